"""How long a group is left alone after a failed scale-up: twice as long each time, up to a limit."""

from __future__ import annotations

from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import InstanceError


class BackoffStatus(NamedTuple):
    """A group that is left alone, and why."""

    until_s: float
    error: InstanceError


class _Record(NamedTuple):
    duration_s: float
    until_s: float
    failed_at_s: float
    error: InstanceError


class ExponentialBackoff:
    """Backoffs by group id."""

    def __init__(self, *, initial_s: float, max_s: float, reset_after_s: float) -> None:
        self._initial_s = initial_s
        self._max_s = max_s
        self._reset_after_s = reset_after_s
        self._records: dict[str, _Record] = {}

    def back_off(self, group_id: str, error: InstanceError, now_s: float) -> float:
        """Leave the group alone from now on; returns until when."""
        duration_s = self._initial_s
        known = self._records.get(group_id)
        if known is not None:
            # Several scale-ups that fail together are one failure: only what fails after the backoff was served
            # makes it longer.
            duration_s = known.duration_s
            if known.until_s < now_s:
                duration_s = min(2 * known.duration_s, self._max_s)
        until_s = now_s + duration_s
        self._records[group_id] = _Record(duration_s, until_s, now_s, error)
        return until_s

    def status(self, group_id: str, now_s: float) -> BackoffStatus | None:
        """None if the group may be scaled up."""
        known = self._records.get(group_id)
        if known is None or known.until_s < now_s:
            return None
        return BackoffStatus(known.until_s, known.error)

    def remove(self, group_id: str) -> None:
        """Forget the failures of a group."""
        self._records.pop(group_id, None)

    def remove_stale(self, now_s: float) -> None:
        """Forget failures that are long past, so that the next one counts as the first."""
        for group_id, record in list(self._records.items()):
            if record.failed_at_s + self._reset_after_s < now_s:
                del self._records[group_id]
