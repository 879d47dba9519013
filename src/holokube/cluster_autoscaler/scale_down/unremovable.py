"""The nodes that stay, with their reasons, and which of them need not be looked at again soon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization


class UnremovableNodes:
    """Reasons are of this turn; what a simulation found is remembered until its time is up."""

    def __init__(self) -> None:
        self._reasons: dict[str, Unremovable] = {}
        self._listed: list[Unremovable] | None = []
        self._recent: dict[str, Unremovable] = {}

    def start_turn(self, has_node: Callable[[str], bool], now_s: float) -> None:
        """Forget last turn's reasons, and nodes that are gone or due for another look."""
        self.begin({})
        self._recent = {
            name: found
            for name, found in self._recent.items()
            if has_node(name) and found.recheck_at_s is not None and found.recheck_at_s > now_s
        }

    def begin(self, reasons: Mapping[str, Unremovable]) -> None:
        """Take these as the reasons of the turn so far."""
        self._reasons, self._listed = dict(reasons), None

    def add(self, found: Unremovable, utilization: Utilization | None = None) -> None:
        """Note why a node stays; the last reason given holds. A reason without a utilisation is given this one."""
        if utilization is not None and found.utilization is None:
            found = found.with_utilization(utilization)
        self._reasons[found.name] = found
        self._listed = None

    def add_until(self, found: Unremovable, recheck_at_s: float, utilization: Utilization | None = None) -> None:
        """Note why a node stays, and that it is not worth a simulation before a time."""
        found = replace(found, recheck_at_s=recheck_at_s)
        self._recent[found.name] = found
        self.add(found, utilization)

    def all_recent(self) -> Mapping[str, Unremovable]:
        """What earlier turns' simulations found, as far as it still stands, by name."""
        return dict(self._recent)

    def recent(self, name: str) -> Unremovable | None:
        """What an earlier turn's simulation found, if it still stands."""
        return self._recent.get(name)

    def next_recheck_s(self) -> float:
        """When the first of the simulations' findings has had its time."""
        return min(
            (found.recheck_at_s for found in self._recent.values() if found.recheck_at_s is not None), default=math.inf
        )

    def as_list(self) -> list[Unremovable]:
        """The nodes that stay, in the order in which they were first noted."""
        if self._listed is None:
            self._listed = list(self._reasons.values())
        return self._listed
