"""Pods that were put on nodes of a snapshot while nobody was looking: its engine is told when somebody does.

Pods that wait for nodes on their way are put there in every turn, and in most turns nobody asks what that leaves of
these nodes before everything is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holokube.cluster_autoscaler.pods.kinds import PodFacts


class OwedPod(NamedTuple):
    """A pod on a node of which the engine does not know, maybe."""

    facts: PodFacts
    row: int
    number: int
    """Tells who came before whom."""


class OwedPods:
    """The pods, and whether the engine has to be told.

    They belong to the turn. If the engine was told within an experiment, which is taken back, it does not know again.
    """

    __slots__ = ("_nodes", "_pods", "_told_at", "is_due")

    def __init__(self) -> None:
        self._pods: list[OwedPod] = []
        self._nodes: set[str] = set()
        self._told_at = 0
        """In how many experiments, one within the other, the engine was told."""
        self.is_due = False
        """Whether there are pods of which the engine does not know."""

    def add(self, pods: Iterable[OwedPod], nodes: Iterable[str]) -> None:
        """Note pods, on these nodes, outside of all experiments."""
        self._pods.extend(pods)
        self._nodes.update(nodes)
        self.is_due = bool(self._pods)

    def is_due_on(self, node_name: str) -> bool:
        """Whether there are pods of which the engine does not know on a node."""
        return self.is_due and node_name in self._nodes

    def told(self, depth: int) -> Sequence[OwedPod]:
        """The engine is told of all now, in so many experiments; returns them."""
        pods = self._pods
        self.is_due, self._told_at = False, depth
        if not depth:
            self.clear()
        return pods

    def committed(self, depth: int) -> None:
        """An experiment was kept; there are so many around it."""
        self._told_at = min(self._told_at, depth)
        if not self._told_at and not self.is_due:
            self.clear()

    def rolled_back(self, depth: int) -> None:
        """An experiment was taken back; there are so many around it."""
        if self._pods and self._told_at > depth:
            self.is_due, self._told_at = True, 0

    def clear(self) -> None:
        """The turn is over, or the engine knows them as long as it lasts."""
        self._pods, self._nodes = [], set()
        self.is_due, self._told_at = False, 0
