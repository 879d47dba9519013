"""How many nodes an estimate may use, and how long it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from holokube.cluster_autoscaler.groups import GroupView

UNLIMITED: Final = 0
NONE_ALLOWED: Final = -1

ClockS = Callable[[], float]
"""A clock that never goes back, in seconds."""


def node_limit(
    group: GroupView, similar: Iterable[GroupView], *, per_scale_up: int, nodes_total: int, current_nodes: int
) -> int:
    """The number of nodes that may be added for a group, ``UNLIMITED``, or ``NONE_ALLOWED``.

    The smallest of: the limit for one scale-up, what the group and those like it have left, and what the cluster as
    a whole has left.
    """
    room = sum(_room(one) for one in (group, *similar))
    return _strictest(per_scale_up, room if room > 0 else NONE_ALLOWED, _cluster_room(nodes_total, current_nodes))


def _room(group: GroupView) -> int:
    return 0 if group.target_size is None else max(0, group.max_size - group.target_size)


def _cluster_room(nodes_total: int, current_nodes: int) -> int:
    if nodes_total == 0:
        return UNLIMITED
    return nodes_total - current_nodes if nodes_total > current_nodes else NONE_ALLOWED


def _strictest(*limits: int) -> int:
    if min(limits) < 0:
        return NONE_ALLOWED
    return min((limit for limit in limits if limit > 0), default=UNLIMITED)


class NodeBudget:
    """Gives nodes to an estimate until there are no more, or the time is up."""

    def __init__(self, nodes: int, *, duration_s: float = 0.0, clock_s: ClockS | None = None) -> None:
        """``nodes`` as ``node_limit`` has it; a duration of zero is no limit, a negative one allows nothing."""
        self._nodes = nodes
        self._given = 0
        self._duration_s = duration_s
        self._clock_s = clock_s
        self._end_s = clock_s() + duration_s if clock_s is not None and duration_s > 0 else None
        self.refusal = ""
        """Why nodes were refused; empty if none were."""

    def take(self, nodes: int = 1) -> int:
        """As many of these nodes as may be added. Each of them is then used up."""
        if self._duration_s < 0 or (self._end_s is not None and self._clock_s is not None
                                    and self._clock_s() > self._end_s):
            self.refusal = f"estimate took longer than {self._duration_s:g}s"
            return 0
        given = nodes
        if self._nodes != UNLIMITED:
            given = min(nodes, max(0, self._nodes - self._given))
        if given < nodes:
            self.refusal = f"limited to {max(0, self._nodes)} nodes"
        self._given += given
        return given
