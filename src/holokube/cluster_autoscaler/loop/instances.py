"""The machines of each group, asked for seldom: the answer is kept until something says that it has changed.

As upstream has it, a list is fetched when none is known, thrown away while the group scales up and after machines were
removed, and renewed every two minutes. What was removed in an ordinary scale-down may be listed for that long: such a
machine is then taken for one without a node, unless the provider disowns it.
"""

from __future__ import annotations

from collections.abc import Iterable

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.provider import Instance, NodeGroup

REFRESH_EVERY_S = 120.0

_log = get_logger("holokube.cluster_autoscaler.loop")


class InstanceCache:
    """The last known machines by group id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[Instance, ...]] = {}
        self._last: dict[str, tuple[Instance, ...]] = {}
        self._refreshed_s: float | None = None

    def forget(self, group_id: str) -> None:
        """The machines of a group have changed."""
        self._known.pop(group_id, None)

    async def get(self, groups: Iterable[NodeGroup]) -> dict[str, tuple[Instance, ...]]:
        """The machines of all groups. Fails if those of a group that is not known cannot be had."""
        groups = list(groups)
        now_s = self._clock.monotonic()
        if self._refreshed_s is None or now_s - self._refreshed_s >= REFRESH_EVERY_S:
            self._refreshed_s = now_s
            await self._refresh(groups)
        for group in groups:
            if group.id not in self._known:
                self._known[group.id] = await self._ask(group)
        self._last = {group.id: self._known[group.id] for group in groups}
        return self._last

    async def _ask(self, group: NodeGroup) -> tuple[Instance, ...]:
        """The machines of a group; the same object as before where nothing has changed, for those who remember."""
        found, last = tuple(await group.nodes()), self._last.get(group.id)
        return last if last is not None and last == found else found

    async def _refresh(self, groups: list[NodeGroup]) -> None:
        ids = {group.id for group in groups}
        self._known = {group_id: known for group_id, known in self._known.items() if group_id in ids}
        for group in groups:
            try:
                self._known[group.id] = await self._ask(group)
            except CloudError as error:
                _log.warning("The machines of a group cannot be listed", group=group.id, error=error.message)
