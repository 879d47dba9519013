"""Whether a moment lies within some time after a hit of a cron schedule, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from holokube.runtime.cron_schedules import ScheduleError, parse_schedule

_ELSEWHERE = ("@every", "TZ=", "CRON_TZ=")


def is_within(schedule: str, duration_s: float, now_s: float) -> bool:
    """Whether the schedule was due after ``now - duration``, up to now. ValueError if it is no schedule.

    A schedule that is never due (30 February) counts as always within: upstream's cron library answers it with the
    zero time, which lies before any now, and so restrains rather than allows.
    """
    if schedule.startswith(_ELSEWHERE):
        raise ScheduleError(f"{schedule!r} is neither five fields nor a word such as @daily; it is in UTC")
    due = parse_schedule(schedule).next(datetime.fromtimestamp(now_s - duration_s, UTC))
    return due is None or due <= datetime.fromtimestamp(now_s, UTC)
