"""When a cron schedule is due, by the rules of the library that upstream uses.

Fields are spelled out before ``cronsim`` gets them, as it would else take Debian's side where the two differ:
a day with a step counts as a restriction, Sunday is only 0, and a time that a clock change skips or repeats is
skipped or repeated.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holokube.apiserver.kinds.cron_schedules import ScheduleError, check_schedule
from holokube.kube.timeformat import parse_duration

__all__ = ["Schedule", "ScheduleError", "parse_schedule"]

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class Schedule:
    """A schedule in a time zone: either a cron expression, or a fixed interval."""

    def __init__(self, expression: str, zone: tzinfo, every_s: int = 0) -> None:
        self._expression = expression
        self._zone = zone
        self._every_s = every_s

    def next(self, after: datetime) -> datetime | None:
        """The first due moment after ``after``; None if there will never be one."""
        if self._every_s:
            return after.replace(microsecond=0) + timedelta(seconds=self._every_s)
        try:
            due = next(CronSim(self._expression, after.astimezone(self._zone)), None)
        except CronSimError:
            return None
        return due.astimezone(UTC) if due is not None else None


@lru_cache(maxsize=4096)
def parse_schedule(text: str, zone: str = "") -> Schedule:
    """Reads a schedule; raises :class:`ScheduleError`. A zone inside the text wins over the one given."""
    check_schedule(text)
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, _, text = text.partition(" ")
        zone, text = prefix.partition("=")[2], text.strip()
    place: tzinfo = ZoneInfo(zone) if zone else UTC
    if text.startswith("@every "):
        # Whole seconds, at least one.
        return Schedule("", place, max(1, int(parse_duration(text.removeprefix("@every ")))))
    text = _DESCRIPTORS.get(text, text)
    fields = [_spell_out(field, *limits) for field, limits in zip(text.split(), _FIELDS, strict=True)]
    # The seconds keep cronsim from its own treatment of clock changes, which it has for five fields only.
    return Schedule(" ".join(["0", *fields]), place)


def _spell_out(field: str, low: int, high: int, names: dict[str, int]) -> str:
    """All values of a field, or a star if it is free."""
    values: set[int] = set()
    for part in filter(None, field.split(",")):
        span, _, step_text = part.partition("/")
        step = int(step_text) if step_text else 1
        first, dash, last = span.partition("-")
        if first in ("*", "?"):
            if step == 1:
                return "*"
            start, end = low, high
        else:
            start = _number(first, names)
            end = _number(last, names) if dash else high if step_text else start
        values.update(range(start, end + 1, step))
    return ",".join(map(str, sorted(values)))


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    return int(text) if named is None else named
