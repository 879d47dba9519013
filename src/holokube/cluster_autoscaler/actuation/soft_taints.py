"""Soft taints: unneeded nodes ask the scheduler to prefer others, so that they become empty sooner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.actuation.node_taints import NodeTaints
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, TO_BE_DELETED, has_taint
from holokube.kube.types import JsonObject

_log = get_logger("holokube.cluster_autoscaler.actuation")


class _Budget:
    """So many calls, and so much time, for one turn."""

    def __init__(self, clock: Clock, *, calls: int, time_s: float) -> None:
        self._clock = clock
        self._calls_left = calls
        self._until_s = clock.monotonic() + time_s
        self.skipped = 0

    def take(self) -> bool:
        if self._calls_left <= 0 or self._clock.monotonic() >= self._until_s:
            self.skipped += 1
            return False
        self._calls_left -= 1
        return True


async def update_soft_taints(
    clock: Clock,
    taints: NodeTaints,
    unneeded: Sequence[JsonObject],
    needed: Sequence[JsonObject],
    *,
    calls_max: int,
    time_max_s: float,
) -> list[HolokubeError]:
    """Take the mark off nodes that are needed again, then put it on unneeded ones; what is left waits a turn.

    Nodes that are already being deleted are left alone. Returns what went wrong.
    """
    budget = _Budget(clock, calls=calls_max, time_s=time_max_s)
    changes: list[tuple[Callable[[JsonObject], Awaitable[JsonObject]], JsonObject]] = []
    changes += [(taints.clean_candidate, node) for node in needed if has_taint(node, DELETION_CANDIDATE)]
    changes += [(taints.mark_candidate, node) for node in unneeded if not has_taint(node, DELETION_CANDIDATE)]
    errors: list[HolokubeError] = []
    for change, node in changes:
        if has_taint(node, TO_BE_DELETED) or not budget.take():
            continue
        try:
            await change(node)
        except HolokubeError as error:
            errors.append(error)
            _log.warning("A soft taint could not be changed", node=node["metadata"]["name"], error=str(error))
    if budget.skipped:
        _log.debug("Soft taints of some nodes wait for the next turn", skipped=budget.skipped)
    return errors
