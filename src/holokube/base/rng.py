"""Seeded randomness: the same seed gives the same draws on every machine and Python version.

``random.Random`` promises that much only for ``random()`` (and in practice ``getrandbits()``), so everything
else here is built from these two. ``math.log`` differs in the last bit between C libraries, therefore
``expovariate`` brings its own. Seeds and names are hashed with BLAKE2b, never with ``hash()``, which changes
with ``PYTHONHASHSEED``.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")

# Kubernetes' own alphabet for generated names: no vowels and no look-alikes, so no words.
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_NAME_BITS = len(NAME_ALPHABET).bit_length()
# A draw past the end of the alphabet counts for nothing.
_NAME_LETTERS = (*NAME_ALPHABET, *[""] * ((1 << _NAME_BITS) - len(NAME_ALPHABET)))

_VARIANTS = {f"{digit:x}": f"{8 + digit % 4:x}" for digit in range(16)}

_LN2 = 0.6931471805599453
_SQRT_HALF = math.sqrt(0.5)
# 1/23, 1/21, ... 1/3: the series of atanh, highest power first, long enough for a double on |s| < 0.172.
_ATANH_COEFFICIENTS = tuple(1.0 / odd for odd in range(23, 1, -2))


class Rng:
    """A stream of random draws. Each holds 2.5 KiB of state: fork one per component, not one per object."""

    __slots__ = ("_core", "_key", "seed")

    def __init__(self, seed: int | str) -> None:
        # The text of the seed counts, so --seed=7 from a command line and 7 from a file are the same stream.
        self.seed = seed
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"holokube seed").digest()
        self._core = _generator(self._key)

    def __repr__(self) -> str:
        return f"<Rng {self.seed!r}>"

    def fork(self, name: str) -> Rng:
        """An independent stream that depends only on this stream's seed and the name, not on earlier draws.

        The same name gives the same stream again.
        """
        child = object.__new__(Rng)
        child.seed = f"{self.seed}/{name}"
        digest = hashlib.blake2b(name.encode(), digest_size=32, key=self._key, person=b"holokube fork")
        child._key = digest.digest()
        child._core = _generator(child._key)
        return child

    def random(self) -> float:
        """A float in [0, 1)."""
        return self._core.random()

    def uniform(self, a: float, b: float) -> float:
        """A float between a and b."""
        return a + (b - a) * self._core.random()

    def expovariate(self, rate: float) -> float:
        """The wait for the next event of a Poisson process with ``rate`` events per unit of time."""
        if not rate > 0:
            raise ValueError(f"expovariate needs a rate above zero, not {rate!r}")
        # 1 - random() lies in (0, 1], so the logarithm is always finite.
        return -_log(1.0 - self._core.random()) / rate

    def randrange(self, n: int) -> int:
        """An integer in [0, n), each equally likely."""
        if n <= 0:
            raise ValueError(f"randrange needs a bound above zero, not {n!r}")
        draw = self._core.getrandbits
        bits = n.bit_length()
        value = draw(bits)
        while value >= n:
            value = draw(bits)
        return value

    def choice(self, seq: Sequence[_T]) -> _T:
        """One element."""
        if not seq:
            raise IndexError("cannot choose from an empty sequence")
        return seq[self.randrange(len(seq))]

    def shuffle(self, items: list[Any]) -> None:
        """Put a list into random order, in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.randrange(i + 1)
            items[i], items[j] = items[j], items[i]

    def uid(self) -> str:
        """A UUID of version 4 (RFC 4122) as text."""
        digits = f"{self._core.getrandbits(128):032x}"
        # Version 4, and the two bits of the variant before the last two of a digit.
        variant = _VARIANTS[digits[16]]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def name_suffix(self, length: int = 5) -> str:
        """Characters for a generated name, as ``metadata.generateName`` appends them."""
        # As ``choice`` draws each of them, without a call for each.
        draw, name = self._core.getrandbits, ""
        while len(name) < length:
            name += _NAME_LETTERS[draw(_NAME_BITS)]
        return name


def system_seed(*, bits: int = 53) -> int:
    """A seed from the operating system's entropy: the only place where a run's outcome is left open.

    53 bits survive a trip through JSON and JavaScript. Ask for 256 where nobody may guess the result.
    """
    if bits <= 0:
        raise ValueError(f"system_seed needs at least one bit, not {bits!r}")
    return int.from_bytes(os.urandom((bits + 7) // 8), "big") >> (-bits % 8)


def _generator(key: bytes) -> random.Random:
    return random.Random(int.from_bytes(key, "big"))  # noqa: S311 - repeatable on purpose, guards no secret


def _log(x: float) -> float:
    """The natural logarithm from correctly rounded operations only, hence equal on every machine."""
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa *= 2.0
        exponent -= 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    total = 0.0
    for coefficient in _ATANH_COEFFICIENTS:
        total = (total + coefficient) * square
    return exponent * _LN2 + 2.0 * (s + s * total)
