"""The nodes as a turn takes them, worked out anew only for those that have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from holokube.cluster_autoscaler.node_facts import NodeFacts, NodeReadings, changed_places
from holokube.cluster_autoscaler.objects import is_ready_and_schedulable, without_unready_gpus
from holokube.cluster_autoscaler.taints import TaintConfig, without_starting_nodes
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True, eq=False)
class NodeList:
    """All nodes, those that only look ready already replaced by their unready copies. The same object as long as none
    of them changes."""

    nodes: tuple[JsonObject, ...] = ()
    facts: tuple[NodeFacts, ...] = ()
    """Of the same nodes."""
    ready: int = 0
    """How many of them are ready, and not cordoned."""
    are_ready: bytes = b""
    """Which of them are."""
    taints: Mapping[str, int] = field(default_factory=dict)
    """How many taints of each reported kind the nodes carry."""
    cores_and_memory: tuple[int, int] = (0, 0)
    """Of all nodes: whole cores, and bytes."""
    marked: tuple[NodeFacts, ...] = ()
    """Those that the autoscaler has begun to remove."""
    candidates: tuple[NodeFacts, ...] = ()
    """Those that carry the mark of an unneeded node."""


class _Taken(NamedTuple):
    raw: JsonObject
    facts: NodeFacts
    is_ready: bool
    reported: tuple[str, ...]


class NodeBook:
    """Remembers what each Node object was taken for."""

    def __init__(self, readings: NodeReadings, taints: TaintConfig, gpu_label: str) -> None:
        self._readings = readings
        self._taints = taints
        self._gpu_label = gpu_label
        self._taken: list[_Taken] = []
        self._listed: tuple[JsonObject, ...] = ()
        self._last = NodeList()

    def look(self, listed: tuple[JsonObject, ...]) -> NodeList:
        """The nodes of a list; the same answer for the same tuple."""
        if listed is self._listed:
            return self._last
        places = changed_places(self._listed, listed)
        if places is None:
            known = dict(zip(map(id, self._listed), self._taken, strict=True))
            found = map(known.get, map(id, listed))
            self._taken = [taken or self._take(node) for taken, node in zip(found, listed, strict=True)]
            self._last = _listing(self._taken)
        else:
            were = {place: self._taken[place] for place in places}
            for place in places:
                self._taken[place] = self._take(listed[place])
            self._last = _changed(self._last, were, self._taken)
        self._listed = listed
        self._readings.keep_only(self._last.nodes, self._last.facts)
        return self._last

    def _take(self, node: JsonObject) -> _Taken:
        reported = tuple(map(self._taints.reported_as, self._readings.of(node).taint_keys))
        ready = [node] if is_ready_and_schedulable(node) else []
        [seen], ready = without_unready_gpus([node], ready, self._gpu_label)
        [seen], ready = without_starting_nodes([seen], ready, self._taints)
        return _Taken(node, self._readings.of(seen), bool(ready), reported)


def _changed(before: NodeList, were: Mapping[int, _Taken], taken: list[_Taken]) -> NodeList:
    """The list with some nodes, which were others before, in a new form."""
    nodes, facts, are_ready = list(before.nodes), list(before.facts), bytearray(before.are_ready)
    taints, (cores, memory_bytes) = dict(before.taints), before.cores_and_memory
    are_marks_as_before = True
    for place, was in were.items():
        now = taken[place]
        nodes[place], facts[place], are_ready[place] = now.facts.node, now.facts, now.is_ready
        cores += now.facts.cores_and_memory[0] - was.facts.cores_and_memory[0]
        memory_bytes += now.facts.cores_and_memory[1] - was.facts.cores_and_memory[1]
        if was.reported != now.reported:
            for kind in was.reported:
                taints[kind] -= 1
            for kind in now.reported:
                taints[kind] = taints.get(kind, 0) + 1
        are_marks_as_before = are_marks_as_before and not (_is_marked(was.facts) or _is_marked(now.facts))
    return NodeList(
        nodes=tuple(nodes), facts=tuple(facts), ready=sum(are_ready), are_ready=bytes(are_ready),
        taints={kind: count for kind, count in taints.items() if count}, cores_and_memory=(cores, memory_bytes),
        marked=before.marked if are_marks_as_before else tuple([one for one in facts if one.is_to_be_deleted]),
        candidates=before.candidates if are_marks_as_before else tuple([one for one in facts if one.is_candidate]),
    )  # fmt: skip


def _is_marked(facts: NodeFacts) -> bool:
    return facts.is_to_be_deleted or facts.is_candidate


def _listing(found: Sequence[_Taken]) -> NodeList:
    if not found:
        return NodeList()
    # Thousands of nodes: no loop is as quick as these.
    _, facts, are_ready, reported = zip(*found, strict=True)
    cores, memory_bytes = zip(*map(attrgetter("cores_and_memory"), facts), strict=True)
    return NodeList(
        nodes=tuple(map(attrgetter("node"), facts)), facts=facts, ready=sum(are_ready), are_ready=bytes(are_ready),
        cores_and_memory=(sum(cores), sum(memory_bytes)), taints=dict(Counter(chain.from_iterable(reported))),
        marked=tuple([one for one in facts if one.is_to_be_deleted]),
        candidates=tuple([one for one in facts if one.is_candidate]),
    )  # fmt: skip
