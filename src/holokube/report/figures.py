"""Numbers as a reader wants them: with units, and no more digits than mean something."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal

from holokube.lab.results import Measure

NOTHING: Final = "\u2013"
NO_BREAK: Final = "\u00a0"
MINUS: Final = "\u2212"
TIMES: Final = "\u00d7"

Verdict = Literal["better", "worse", "same", ""]

# Below this share of the first value a difference is not worth a reader's time.
_SAME_SHARE: Final = 0.0005


def usd(amount: float) -> str:
    """Money: cents below a thousand dollars, fractions of a cent below ten cents."""
    if amount == 0:
        return "$0"
    size = abs(amount)
    digits = 0 if size >= 10_000 else 2 if size >= 0.1 else 4
    return f"{MINUS if amount < 0 else ''}${size:,.{digits}f}"


def seconds(value: float) -> str:
    """A span of time: ``0.4 s``, ``46 s``, ``3 min 20 s``, ``2 h 05 min``, ``3 d 04 h``."""
    if value < 0:
        return MINUS + seconds(-value)
    if value < 10:
        return f"{value:.1f}".removesuffix(".0") + f"{NO_BREAK}s"
    whole = round(value)
    if whole < 60:
        return f"{whole}{NO_BREAK}s"
    if whole < 3600:
        return _two(whole, 60, "min", 1, "s")
    if whole < 48 * 3600:
        return _two(whole, 3600, "h", 60, "min")
    return _two(whole, 86400, "d", 3600, "h")


def share(value: float) -> str:
    """A share in percent."""
    return f"{value * 100:.1f}{NO_BREAK}%".replace("-", MINUS)


def count(value: float) -> str:
    """A number of things; averages keep a digit."""
    text = f"{value:,.1f}" if value != round(value) and abs(value) < 1000 else f"{value:,.0f}"
    return text.replace("-", MINUS)


def value_text(measure: Measure, value: float | None) -> str:
    """A measured value with its unit."""
    if value is None:
        return NOTHING
    match measure.unit:
        case "usd":
            return usd(value)
        case "usd/h":
            return f"{usd(value)}/h"
        case "s":
            return seconds(value)
        case "share":
            return share(value)
        case "h":
            return f"{count(value)}{NO_BREAK}h"
        case _:
            return count(value)


def difference_text(measure: Measure, value: float | None, first: float | None) -> tuple[str, Verdict]:
    """How far a value is from the first: in percent, shares in percentage points; and what to think of it."""
    if value is None or first is None:
        return "", ""
    change = value - first
    if abs(change) <= _SAME_SHARE * abs(first):
        return "same", "same"
    if measure.unit == "share":
        text = f"{abs(change) * 100:.1f}{NO_BREAK}pp"
    elif first == 0:
        text = value_text(measure, abs(change))
    elif abs(change / first) >= 10:
        return f"{TIMES}{NO_BREAK}{count(round(value / first))}", _verdict(measure, change)
    else:
        text = f"{abs(change / first) * 100:.1f}{NO_BREAK}%"
    return f"{'+' if change > 0 else MINUS}{text}", _verdict(measure, change)


def _verdict(measure: Measure, change: float) -> Verdict:
    if not measure.better:
        return ""
    return "better" if (change < 0) == (measure.better == "lower") else "worse"


def start_epoch_s(start: str) -> float:
    """The beginning of a run in seconds since 1970; 0 if it is no RFC 3339 time."""
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return 0.0
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def start_text(start: str) -> str:
    """The beginning of a run in words."""
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return start
    at = at.astimezone(UTC) if at.tzinfo is not None else at
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year}, {at:%H:%M} UTC"


# strftime would ask the reader's locale, and the report's bytes would depend on it.
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    many, rest = divmod(whole, large)
    text = f"{many}{NO_BREAK}{large_name}"
    return f"{text} {rest // small:02d}{NO_BREAK}{small_name}" if rest // small else text
