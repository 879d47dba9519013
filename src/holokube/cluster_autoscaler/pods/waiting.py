"""Pods that wait for a node, in order, with what is known of each of them and of all together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind, PodKinds
from holokube.kube.types import JsonObject

PodPlace = tuple[bool, int, int]
"""Where a pod stands: scheduled pods before nominated ones, then by a place that somebody gave it, then by age."""


class PodGroup(NamedTuple):
    """What pods have in common that fare alike."""

    controller: str | None
    kind: PodKind
    is_daemon: bool


@dataclass(frozen=True, slots=True)
class WaitingPods:
    """The pods of one moment. There may be thousands, of few groups."""

    pods: list[JsonObject]
    facts: list[PodFacts]
    """Of the same pods."""
    groups: Mapping[PodGroup, int]
    """The groups that there are, and how many pods of each."""
    oldest_s: float
    """None of the pods was created before."""

    def __len__(self) -> int:
        return len(self.facts)

    def __add__(self, more: WaitingPods) -> WaitingPods:
        """These, and others behind them."""
        if not more.facts:
            return self
        groups = dict(self.groups)
        for group, count in more.groups.items():
            groups[group] = groups.get(group, 0) + count
        return WaitingPods(
            self.pods + more.pods, self.facts + more.facts, groups, min(self.oldest_s, more.oldest_s))


def count_waiting(known: Iterable[PodFacts]) -> WaitingPods:
    """Pods, of which everything is known, counted."""
    facts = list(known)
    groups: dict[PodGroup, int] = {}
    for one in facts:
        group = PodGroup(one.controller, one.kind, one.is_daemon)
        groups[group] = groups.get(group, 0) + 1
    oldest_s = min((one.created_s for one in facts), default=math.inf)
    return WaitingPods([one.pod for one in facts], facts, groups, oldest_s)


class WaitingQueue:
    """Pods of which each can be put in or taken out at little cost."""

    __slots__ = ("_facts", "_groups", "_kinds", "_oldest_s", "_places", "_pods")

    def __init__(self, kinds: PodKinds) -> None:
        """``kinds`` remember the pods as long as they wait."""
        self._kinds = kinds
        self._places: list[PodPlace] = []
        self._pods: list[JsonObject] = []
        self._facts: list[PodFacts] = []
        self._groups: dict[PodGroup, int] = {}
        self._oldest_s = math.inf

    def add(self, place: PodPlace, pod: JsonObject) -> None:
        """A pod waits, at a place of its own."""
        index = bisect_left(self._places, place)
        facts = self._kinds.keep(pod)
        self._places.insert(index, place)
        self._pods.insert(index, pod)
        self._facts.insert(index, facts)
        group = PodGroup(facts.controller, facts.kind, facts.is_daemon)
        self._groups[group] = self._groups.get(group, 0) + 1
        self._oldest_s = min(self._oldest_s, facts.created_s)

    def remove(self, place: PodPlace) -> None:
        """The pod at that place does not wait any more."""
        index = bisect_left(self._places, place)
        facts = self._facts[index]
        del self._places[index], self._pods[index], self._facts[index]
        self._kinds.let_go(facts)
        group = PodGroup(facts.controller, facts.kind, facts.is_daemon)
        left = self._groups[group] - 1
        if left:
            self._groups[group] = left
        else:
            del self._groups[group]
        if not self._facts:
            # Until then the oldest of all that waited will do: none is older.
            self._oldest_s = math.inf

    def look(self) -> WaitingPods:
        """The pods of this moment."""
        return WaitingPods(self._pods.copy(), self._facts.copy(), self._groups.copy(), self._oldest_s)
