"""What a filter is: one rule that says which nodes may take a class of pods."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class Scope(Enum):
    """What can change a filter's verdict about a node."""

    NODE = "node"
    """Only the node itself."""
    USAGE = "usage"
    """The node, and the pods on it."""
    CLUSTER = "cluster"
    """Anything anywhere; the filter tells by its ``stamp``."""

    # There is one of each, and that of enums is slow.
    __hash__ = object.__hash__


class Finding(NamedTuple):
    """One reason for which rows are refused."""

    reason: str
    """Upstream's words, as users know them from FailedScheduling events."""
    hit: BoolArray
    """Which of the rows asked about."""
    unresolvable: BoolArray
    """For which of them removing pods from the node would not help."""


class Filter(Protocol):
    """One rule. Filters have no state of their own."""

    name: str
    """The name of upstream's plugin."""
    scope: Scope

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Whether it can refuse this class at all.

        A matter of the class alone, and for scope CLUSTER of the anti-affinity terms that present pods carry.
        """

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """For scope CLUSTER: equal as long as the verdict about no node can have changed."""

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """Why no node of any cluster could take the class at present; empty if that is not so."""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Which rows may take a pod of the class. Rows without a node may be given either answer."""

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """The reasons for refusing rows."""


class OneReason:
    """The part that most filters share: one reason, which removing pods helps against or not."""

    name: str
    reason: str
    resolvable = False
    scope = Scope.NODE

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """See :class:`Filter`."""
        del state, cls
        return True

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """See :class:`Filter`."""
        del state, cls
        return None

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """See :class:`Filter`."""
        del state, cls
        return ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """See :class:`Filter`."""
        raise NotImplementedError

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """See :class:`Filter`."""
        hit = ~self.mask(state, cls, rows)
        return [Finding(self.reason, hit, np.zeros_like(hit) if self.resolvable else hit)]
