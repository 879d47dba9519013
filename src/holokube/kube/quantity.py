"""Quantities such as ``1500m`` and ``1.5Gi``: exact, and printed the way the API server prints them.

A quantity is ``mantissa * 10**exponent`` with plain integers; nothing is ever a float. The suffix family it
was written in (its format) is kept. Two habits of upstream look odd and are kept, for stored objects show
them:

- A text that is already in a canonical scale is handed back letter by letter, so ``1.234``, ``+1`` and
  ``1.Gi`` print unchanged, although ``1.5`` prints as ``1500m``.
- A lone sign or suffix (``+``, ``Ki``) reads as zero.

One habit is not kept: upstream drops the suffix of numbers beyond its largest one (``1000E`` prints as ``1``,
``1024Ei`` as well once added up); here they print with the largest suffix.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache, total_ordering
from typing import Final

FORMAT_MESSAGE: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC_MESSAGE: Final = "unable to parse numeric part of quantity"
SUFFIX_MESSAGE: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """A text is not a quantity. The message has upstream's words; ``text`` is what was given."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Format(Enum):
    """The suffix family of a quantity."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


_SCAN = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)

_DECIMAL_EXPONENTS: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_POWERS: Final = {suffix: 10 * i for i, suffix in enumerate(_BINARY_SUFFIXES) if suffix}

_NANO: Final = -9
_INT64_MAX: Final = 2**63 - 1
# Upstream reads up to 18 digits the fast way, and only there does it keep the text as it was written.
_FAST_DIGITS: Final = 18
# ``1e999999999`` is legal and must not fill the memory: past this magnitude integers are not spelled out.
_LARGEST_DIGITS: Final = 100
_MOST_DIGITS: Final = 1000
_LARGEST: Final = 10**_LARGEST_DIGITS


@total_ordering
class Quantity:
    """An exact number with a suffix family. Immutable; equal when the numbers are, whatever the format."""

    __slots__ = ("_exponent", "_mantissa", "_text", "format")

    format: Format

    def __init__(
        self, mantissa: int, exponent: int = 0, format: Format = Format.DECIMAL_SI, *, text: str = ""
    ) -> None:
        """``mantissa * 10**exponent``; what is finer than a nano is rounded away from zero."""
        if exponent < _NANO:
            mantissa = _divide_away_from_zero(mantissa, _NANO - exponent)
            exponent = _NANO
        mantissa, exponent = _strip_zeros(mantissa, exponent)
        self._mantissa = mantissa
        self._exponent = exponent
        self._text = text
        self.format = format

    @classmethod
    def from_milli(cls, milli: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """The quantity of so many thousandths."""
        return cls(milli, -3, format)

    def value(self) -> int:
        """The whole number, rounded away from zero. Exact up to 10**100, and never more."""
        return self._scaled(0)

    def milli(self) -> int:
        """The number of thousandths, rounded away from zero. Exact up to 10**100, and never more."""
        return self._scaled(3)

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._mantissa > 0) - (self._mantissa < 0)

    def is_milli(self) -> bool:
        """Whether no precision is lost in thousandths."""
        return self._exponent >= -3

    def rounded_up_to_milli(self) -> Quantity:
        """The API server's rounding of stored resource lists: nothing finer than a thousandth remains."""
        if self.is_milli():
            return self
        return Quantity(self.milli(), -3, self.format)

    def _scaled(self, digits: int) -> int:
        shift = self._exponent + digits
        if shift < 0:
            return _divide_away_from_zero(self._mantissa, -shift)
        if shift > _LARGEST_DIGITS:
            return self.sign() * _LARGEST
        return max(-_LARGEST, min(_LARGEST, self._mantissa * _pow10(shift)))

    def __str__(self) -> str:
        if not self._text:
            self._text = self._canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def _canonical(self) -> str:
        if self._mantissa == 0:
            return "0"
        if self.format is Format.BINARY_SI and self._exponent >= 0:
            whole = self.value()
            if abs(whole) >= 1024:
                power = 0
                while whole % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
                    whole //= 1024
                    power += 1
                return f"{whole}{_BINARY_SUFFIXES[power]}"
        exponent = self._exponent - self._exponent % 3
        if self.format is Format.DECIMAL_EXPONENT:
            number = self._mantissa * _pow10(self._exponent - exponent)
            return f"{number}e{exponent}" if exponent else str(number)
        exponent = min(exponent, 18)
        # Only a binary quantity that was added up can get this far beyond the last suffix.
        if self._exponent - exponent > 10 * _LARGEST_DIGITS:
            return f"{self._mantissa}e{self._exponent}"
        return f"{self._mantissa * _pow10(self._exponent - exponent)}{_DECIMAL_SUFFIXES[exponent]}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._mantissa == other._mantissa and self._exponent == other._exponent

    def __hash__(self) -> int:
        return hash((self._mantissa, self._exponent))

    def __lt__(self, other: Quantity) -> bool:
        mine, theirs = self._mantissa, other._mantissa
        difference = self._exponent - other._exponent
        if difference == 0 or self.sign() != other.sign():
            return mine < theirs
        # Digits are compared before powers are multiplied out, for they may be huge.
        magnitude = _digits(mine) + difference - _digits(theirs)
        if magnitude != 0:
            return (magnitude < 0) == (mine > 0)
        if difference > 0:
            return mine * _pow10(difference) < theirs
        return mine < theirs * _pow10(-difference)

    def __add__(self, other: Quantity) -> Quantity:
        lower = min(self._exponent, other._exponent)
        if max(self._exponent, other._exponent) - lower > 10 * _LARGEST_DIGITS:
            raise OverflowError(f"{self} and {other} are too far apart to be added exactly")
        mine = self._mantissa * _pow10(self._exponent - lower)
        theirs = other._mantissa * _pow10(other._exponent - lower)
        return Quantity(mine + theirs, lower, self.format if self._mantissa else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __neg__(self) -> Quantity:
        return Quantity(-self._mantissa, self._exponent, self.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self._mantissa * factor, self._exponent, self.format)

    def __bool__(self) -> bool:
        return self._mantissa != 0

    def __float__(self) -> float:
        return float(f"{self._mantissa}e{self._exponent}")


def parse(given: str | int | float) -> Quantity:
    """The quantity in a JSON value. Spaces around it are ignored; :class:`QuantityError` if it is none."""
    if isinstance(given, str):
        return _parse_text(given)
    if isinstance(given, bool):
        raise QuantityError(FORMAT_MESSAGE, str(given))
    if isinstance(given, float):
        return _parse_text(str(int(given)) if given.is_integer() else repr(given))
    if isinstance(given, int):
        return _parse_text(str(given))
    raise QuantityError(FORMAT_MESSAGE, str(given))


def canonical(given: str | int | float) -> str:
    """The text the API server would store for ``given``."""
    return str(parse(given))


def milli_of(given: str | int | float) -> int:
    """The number of thousandths in a JSON value, rounded away from zero; remembered, so it is fast."""
    return _milli_of_text(given) if isinstance(given, str) else parse(given).milli()


@lru_cache(maxsize=65_536)
def _milli_of_text(text: str) -> int:
    return _parse_text(text).milli()


@lru_cache(maxsize=65_536)
def _parse_text(given: str) -> Quantity:
    text = given.strip()
    match = _SCAN.fullmatch(text)
    if match is None or not text:
        raise QuantityError(FORMAT_MESSAGE, given)
    sign, zeros, whole, fraction, suffix = match.groups()
    no_digits = not (zeros or whole or fraction)
    whole, fraction = whole or "0", fraction or ""
    binary_power = _BINARY_POWERS.get(suffix, 0)
    if binary_power:
        family, exponent = Format.BINARY_SI, 0
    else:
        family, exponent = _decimal_suffix(suffix, given)
    digits = whole + fraction
    if len(digits) > _MOST_DIGITS:
        raise QuantityError(NUMERIC_MESSAGE, given)
    unsigned = int(digits)
    scale = exponent - len(fraction)

    if binary_power:
        fast = not fraction and len(whole) + binary_power * 3 // 10 <= 14
        kept = fast and unsigned & 7 != 0
        mantissa = unsigned << binary_power
        if not fast:
            mantissa, scale, family = _cap_binary(mantissa, scale)
    else:
        fast = len(digits) <= _FAST_DIGITS and scale >= _NANO
        kept = fast and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        mantissa = unsigned
    if no_digits and not fast:
        raise QuantityError(NUMERIC_MESSAGE, given)
    if sign == "-":
        mantissa = -mantissa
    return Quantity(mantissa, scale, family, text=text if kept else "")


def _cap_binary(mantissa: int, scale: int) -> tuple[int, int, Format]:
    """Upstream's limits of binary quantities: at most 2**63-1, and below one they turn decimal."""
    mantissa = _divide_away_from_zero(mantissa, _NANO - scale) if scale < _NANO else mantissa
    scale = max(scale, _NANO)
    unit = _pow10(-scale)
    if mantissa > _INT64_MAX * unit:
        return _INT64_MAX, 0, Format.BINARY_SI
    return mantissa, scale, Format.DECIMAL_SI if 0 < mantissa < unit else Format.BINARY_SI


def _decimal_suffix(suffix: str, given: str) -> tuple[Format, int]:
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    if exponent is not None:
        return Format.DECIMAL_SI, exponent
    match = _EXPONENT.fullmatch(suffix)
    if match is None or len(match[1]) > 20 or not -_INT64_MAX - 1 <= int(match[1]) <= _INT64_MAX:
        raise QuantityError(SUFFIX_MESSAGE, given)
    # Upstream cuts the exponent to 32 bits without a word.
    return Format.DECIMAL_EXPONENT, (int(match[1]) + 2**31) % 2**32 - 2**31


def _pow10(digits: int) -> int:
    return int(10**digits)


def _divide_away_from_zero(mantissa: int, digits: int) -> int:
    if mantissa == 0:
        return 0
    if digits > _digits(mantissa):
        return 1 if mantissa > 0 else -1
    divisor = _pow10(digits)
    return -(-mantissa // divisor) if mantissa > 0 else mantissa // divisor


def _digits(mantissa: int) -> int:
    return len(str(abs(mantissa)))


def _strip_zeros(mantissa: int, exponent: int) -> tuple[int, int]:
    if mantissa == 0:
        return 0, 0
    while mantissa % 1000 == 0:
        mantissa //= 1000
        exponent += 3
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


ZERO: Final = Quantity(0, text="0")
