"""PodTopologySpread: no domain may get too far ahead of the emptiest one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.counters import Tally
from holokube.packing.filters.protocol import Finding, OneReason, Scope
from holokube.packing.podclass import PodClass, SpreadConstraint

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class PodTopologySpread(OneReason):
    """See the module. Only ``DoNotSchedule`` constraints are here; the others are for scoring."""

    name = "PodTopologySpread"
    reason = "node(s) didn't match pod topology spread constraints"
    reason_missing_label = reason + " (missing required label)"
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with constraints."""
        del state
        return bool(cls.spread)

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """The versions of its tallies, which see pods and nodes."""
        return tuple(tally.version for tally in state.plan(cls).spread)

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where every constraint holds."""
        mask = true_for(rows, state.nodes.capacity)
        for tally, holds in self._constraints(state, cls):
            mask &= holds[tally.column.ids[rows]]
        return mask

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """The first constraint that fails gives the reason: no label, or too many pods."""
        undecided = true_for(rows, state.nodes.capacity)
        unlabelled, skewed = ~undecided, ~undecided
        for tally, holds in self._constraints(state, cls):
            domains = tally.column.ids[rows]
            unlabelled |= undecided & (domains == 0)
            skewed |= undecided & (domains > 0) & ~holds[domains]
            undecided &= holds[domains]
        nothing = np.zeros_like(undecided)
        return [
            Finding(self.reason_missing_label, unlabelled, unlabelled),
            Finding(self.reason, skewed, nothing),
        ]

    @staticmethod
    def _constraints(state: ClusterState, cls: PodClass) -> Iterator[tuple[Tally, BoolArray]]:
        """Each tally, and by domain number whether one more pod is allowed."""
        for constraint, tally in zip(cls.spread, state.plan(cls).spread, strict=True):
            itself = int(constraint.selector.matches(cls.labels))
            holds = tally.counts + (itself - fewest(constraint, tally)) <= constraint.max_skew
            holds[0] = False
            yield tally, holds


def fewest(constraint: SpreadConstraint, tally: Tally) -> int:
    """The pods of the emptiest domain; zero while there are fewer domains than the constraint wants."""
    domains = tally.counts[tally.nodes > 0]
    if len(domains) < constraint.min_domains:
        return 0
    # Upstream starts its search for the minimum at the largest 32-bit number.
    return int(domains.min()) if len(domains) else 2**31 - 1
