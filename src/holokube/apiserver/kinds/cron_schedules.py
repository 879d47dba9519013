"""Which cron schedules and time zones are understood, with the words of upstream's cron library."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holokube.kube.quoting import go_quote
from holokube.kube.timeformat import parse_duration

_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_zone_part = re.compile(r"[A-Za-z._0-9+-]{1,14}", re.ASCII).fullmatch
_integer = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


class ScheduleError(ValueError):
    """A schedule that the cron library would not take."""


def check_schedule(schedule: str) -> None:
    """Raise :class:`ScheduleError` unless this is a standard cron schedule."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, rest = text.partition(" ")
        zone = zone.partition("=")[2]
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if zone and not _is_zone(zone):
            raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
        text = rest.strip()
    if not text:
        raise ScheduleError("empty spec string" if not schedule else "expected exactly 5 fields, found 0: []")
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        listed = " ".join(fields)
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{listed}]")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if part:
                _check_range(part, low, high, names)


def _check_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith("@every "):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text.removeprefix("@every "))
    except ValueError as problem:
        raise ScheduleError(f"failed to parse duration {text}: {problem}") from None


def _check_range(text: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        start, end = low, high
    else:
        start = end = _number(ends[0], names)
        if len(ends) == 2:
            end = _number(ends[1], names)
        elif len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {text}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], {})
        if len(ends) == 1:
            end = high
    elif steps:
        raise ScheduleError(f"too many slashes: {text}")
    if start < low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({low}): {text}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {text}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not _integer(text):
        raise ScheduleError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {go_quote(text)}: invalid syntax"
        )
    number = int(text)
    if number > 2**63 - 1 or number < -(2**63):
        raise ScheduleError(
            f"failed to parse int from {text}: strconv.Atoi: parsing {go_quote(text)}: value out of range"
        )
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def time_zone_problems(zone: str) -> list[str]:
    """Why a time zone cannot be used; empty if it can."""
    if not zone:
        return ["timeZone must be nil or non-empty string"]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _zone_part(part):
            return [f"unknown time zone {zone}"]
    if zone.lower() == "local":
        problem = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [problem] if zone == "Local" else [problem, f"unknown time zone {zone}"]
    return [] if _is_zone(zone) else [f"unknown time zone {zone}"]
