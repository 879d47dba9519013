"""Times and durations in the forms of the API: RFC 3339, kubectl's ages, Go's durations."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_PLAIN: Final = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ", re.ASCII)
"""The form in which nearly all times are written."""
_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"


class TimeFormatError(ValueError):
    """A text is not a time or duration; the message is worded like Go's."""


def format_time(moment: datetime | float) -> str:
    """``2026-01-01T00:00:00Z``. A float is seconds since 1970; fractions are cut off, as upstream does."""
    # All that is written at one instant asks for the same moment, one write after the other.
    last, text = _last_formatted[0]
    if moment is not last:
        if not isinstance(moment, datetime):
            return _format_second(math.floor(moment))
        text = f"{_to_second(_in_utc(moment))}Z"
        _last_formatted[0] = (moment, text)
    return text


_last_formatted: list[tuple[datetime, str]] = [(datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00Z")]


@lru_cache(maxsize=1024)
def _format_second(second: int) -> str:
    """Of a fleet that writes a thousand times in a second, the time is written once."""
    days, rest = divmod(second, 86_400)
    minutes, seconds = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{_format_day(days + _DAY_ZERO)}T{_TWO_DIGITS[hours]}:{_TWO_DIGITS[minutes]}:{_TWO_DIGITS[seconds]}Z"


def _to_second(moment: datetime) -> str:
    """As ``isoformat`` does, without a zone; that takes many times as long, most of it for the zone and the day."""
    hours, minutes, seconds = _TWO_DIGITS[moment.hour], _TWO_DIGITS[moment.minute], _TWO_DIGITS[moment.second]
    return f"{_format_day(moment.toordinal())}T{hours}:{minutes}:{seconds}"


_TWO_DIGITS: Final = tuple(f"{number:02}" for number in range(60))
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()


@lru_cache(maxsize=16)
def _format_day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()


def format_micro_time(moment: datetime | float) -> str:
    """``2026-01-01T00:00:00.000000Z``, the form of Lease times and event times."""
    moment = _in_utc(moment)
    return f"{_to_second(moment)}.{moment.microsecond:06}Z"


def _in_utc(moment: datetime | float) -> datetime:
    if not isinstance(moment, datetime):
        return datetime.fromtimestamp(moment, UTC)
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise TimeFormatError(f"{moment} has no time zone; give an aware datetime")
    return moment.astimezone(UTC)


@lru_cache(maxsize=16_384)
def parse_time(text: str) -> datetime:
    """The moment in UTC. Any number of decimals is read (what is below a microsecond is cut), any offset."""
    if _PLAIN.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # There is no such day; below it is said in Go's words.
    return _parse(text, _LAYOUT)


def parse_micro_time(text: str) -> datetime:
    """Like :func:`parse_time`, but exactly six decimals must be there, as the API demands for a MicroTime."""
    moment = _parse(text, _MICRO_LAYOUT)
    fraction = _RFC3339.fullmatch(text)
    if fraction is None or fraction[7] is None or len(fraction[7]) != 6:
        raise TimeFormatError(_explain(text, _MICRO_LAYOUT))
    return moment


def _parse(text: str, layout: str) -> datetime:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimeFormatError(_explain(text, layout))
    year, month, day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), micros, tzinfo=UTC
        )
        if sign is None:
            return moment
        # Go goes up to 24 hours and 60 minutes, which is more than Python's own time zones can hold.
        if int(offset_hours) > 24 or int(offset_minutes) > 60:
            raise ValueError("time zone offset")
        offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
        return moment + offset if sign == "-" else moment - offset
    except (ValueError, OverflowError):
        raise TimeFormatError(_explain(text, layout)) from None


_ELEMENTS: Final = (
    (r"\d{4}", "2006", "", 0, 9999), ("-", "-", "", 0, 0),
    (r"\d\d", "01", "month", 1, 12), ("-", "-", "", 0, 0),
    (r"\d\d", "02", "day", 1, 31), ("T", "T", "", 0, 0),
    (r"\d\d?", "15", "hour", 0, 23), (":", ":", "", 0, 0),
    (r"\d\d", "04", "minute", 0, 59), (":", ":", "", 0, 0),
    (r"\d\d", "05", "second", 0, 59),
)  # fmt: skip


def _explain(text: str, layout: str) -> str:
    """Go's words for what is wrong with a time; only called when something is."""
    cannot = f"parsing time {_quote_time(text)} as {_quote_time(layout)}: cannot parse "
    rest = text
    for pattern, element, name, lowest, highest in _ELEMENTS:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return f"{cannot}{_quote_time(rest)} as {_quote_time(element)}"
        # Go checks the day only once everything is read.
        if name not in ("", "day") and not lowest <= int(match[0]) <= highest:
            return f"parsing time {_quote_time(text)}: {name} out of range"
        rest = rest[match.end() :]
    if layout == _MICRO_LAYOUT:
        match = re.match(r"[.,]\d{6}", rest, re.ASCII)
        if match is None:
            return f"{cannot}{_quote_time(rest)} as {_quote_time('.000000')}"
    else:
        match = re.match(r"[.,]\d+|", rest, re.ASCII)
    rest = rest[match.end() if match else 0 :]
    match = re.match(r"Z|[+-]\d\d:\d\d", rest, re.ASCII)
    if match is None:
        return f"{cannot}{_quote_time(rest)} as {_quote_time('Z07:00')}"
    zone, rest = match[0], rest[match.end() :]
    if rest:
        return f"parsing time {_quote_time(text)}: extra text: {_quote_time(rest)}"
    if zone != "Z" and (int(zone[1:3]) > 24 or int(zone[4:6]) > 60):
        unit = "hour" if int(zone[1:3]) > 24 else "minute"
        return f"parsing time {_quote_time(text)}: time zone offset {unit} out of range"
    return f"parsing time {_quote_time(text)}: day out of range"


def _quote_time(text: str) -> str:
    """The time package's own quoting: everything but printable ASCII as bytes."""
    out = "".join(
        f"\\{chr(byte)}" if chr(byte) in '"\\' else chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}"
        for byte in text.encode()
    )
    return f'"{out}"'


def format_age(seconds: float) -> str:
    """An age as kubectl prints it, with two or three significant figures: ``5m3s``, ``47h``, ``7d12h``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return _two_units(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(larger: int, larger_unit: str, smaller: int, smaller_unit: str) -> str:
    return f"{larger}{larger_unit}{smaller}{smaller_unit}" if smaller else f"{larger}{larger_unit}"


_UNITS_NS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000,
    "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
_DURATION_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_DURATION_LIMIT_NS: Final = 2**63


def parse_duration(text: str) -> float:
    """Seconds in a Go duration such as ``1h30m`` or ``1.5s``."""
    return parse_duration_ns(text) / 1_000_000_000


@lru_cache(maxsize=4096)
def parse_duration_ns(text: str) -> int:
    """Nanoseconds in a Go duration; parts of a nanosecond are cut off. Never more than 64 bits, as in Go."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise _invalid_duration(text)
    total = 0
    while rest:
        match = _DURATION_PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise _invalid_duration(text)
        whole, fraction, unit = match.groups()
        if not unit:
            raise TimeFormatError(f"time: missing unit in duration {_quote_time(text)}")
        unit_ns = _UNITS_NS.get(unit)
        if unit_ns is None:
            raise TimeFormatError(f"time: unknown unit {_quote_time(unit)} in duration {_quote_time(text)}")
        if len(whole) > 19:
            raise _invalid_duration(text)
        total += int(whole or 0) * unit_ns
        if fraction:
            # Go does this step in floating point, from as many decimals as fit into 63 bits.
            digits = fraction[:19] if int(fraction[:19]) < 2**63 else fraction[:18]
            total += int(float(int(digits)) * (unit_ns / 10.0 ** len(digits)))
        if total > _DURATION_LIMIT_NS:
            raise _invalid_duration(text)
        rest = rest[match.end() :]
    if total == _DURATION_LIMIT_NS and not negative:
        raise _invalid_duration(text)
    return -total if negative else total


def _invalid_duration(text: str) -> TimeFormatError:
    return TimeFormatError(f"time: invalid duration {_quote_time(text)}")


def format_duration(seconds: float) -> str:
    """A duration as Go prints it: ``1h30m0s``, ``1.5s``, ``300ms``, ``0s``."""
    return format_duration_ns(round(seconds * 1_000_000_000))


def format_duration_ns(nanoseconds: int) -> str:
    """A duration as Go prints it, from nanoseconds."""
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    left = abs(nanoseconds)
    if left < 1_000:
        return f"{sign}{left}ns"
    if left < 1_000_000:
        return f"{sign}{_decimal(left, 1_000)}µs"
    if left < 1_000_000_000:
        return f"{sign}{_decimal(left, 1_000_000)}ms"
    minutes, left = divmod(left, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(left, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
