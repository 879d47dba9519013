"""InterPodAffinity: required terms of the pod, and anti-affinity of the pods that are there already."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.counters import Tally, term_means
from holokube.packing.filters.protocol import Finding, OneReason, Scope
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class InterPodAffinity(OneReason):
    """See the module."""

    name = "InterPodAffinity"
    reason_affinity = "node(s) didn't match pod affinity rules"
    reason_anti_affinity = "node(s) didn't match pod anti-affinity rules"
    reason_existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Pods with terms, and pods that somebody wants nowhere near."""
        return bool(cls.affinity or cls.anti_affinity or state.against(cls))

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """The versions of all tallies it looks at."""
        plan, against = state.plan(cls), state.against(cls)
        tallies = (*plan.affinity, *plan.anti_affinity, *against)
        return state.counters.holders_epoch, tuple(tally.version for tally in tallies)

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where nobody minds."""
        return (
            self._near_friends(state, cls, rows)
            & _nobody(state.plan(cls).anti_affinity, rows, state.nodes.capacity)
            & _nobody(state.against(cls), rows, state.nodes.capacity)
        )

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """In upstream's order: affinity, own anti-affinity, that of others."""
        capacity = state.nodes.capacity
        friendless = ~self._near_friends(state, cls, rows)
        near_foes = ~friendless & ~_nobody(state.plan(cls).anti_affinity, rows, capacity)
        unwelcome = ~friendless & ~near_foes & ~_nobody(state.against(cls), rows, capacity)
        nothing = np.zeros_like(friendless)
        return [
            Finding(self.reason_affinity, friendless, friendless),
            Finding(self.reason_anti_affinity, near_foes, nothing),
            Finding(self.reason_existing, unwelcome, nothing),
        ]

    @staticmethod
    def _near_friends(state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        tallies = state.plan(cls).affinity
        mask = true_for(rows, state.nodes.capacity)
        # The first pod of a group that wants to be together may start anywhere, as long as no pod it looks
        # for is in any domain and it would be its own company.
        first = bool(tallies) and not any(tally.counts.any() for tally in tallies) and _is_own_friend(state, cls)
        for tally in tallies:
            domains = tally.column.ids[rows]
            mask &= domains > 0 if first else (tally.counts > 0)[domains]
        return mask


def _is_own_friend(state: ClusterState, cls: PodClass) -> bool:
    return all(term_means(term, cls.namespace, cls.labels, state.counters.namespaces) for term in cls.affinity)


def _nobody(tallies: list[Tally], rows: Rows, capacity: int) -> BoolArray:
    """Where the domain has no counted pod; a node without the label is in no domain."""
    mask = true_for(rows, capacity)
    for tally in tallies:
        mask &= (tally.counts == 0)[tally.column.ids[rows]]
    return mask
