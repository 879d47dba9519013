"""The nodes as a turn takes them, worked out anew only for those that have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
            known = {id(one.raw): one for one in self._taken}
            self._taken = [known.get(id(node)) or self._take(node) for node in listed]
            self._last = _listing(self._taken)
        else:
            before = self._last
            for place in places:
                self._taken[place] = self._take(listed[place])
            self._last = _changed(before, self._taken, places)
        self._listed = listed
        self._readings.keep_only(self._last.nodes, len(listed))
        return self._last

    def _take(self, node: JsonObject) -> _Taken:
        reported = tuple(map(self._taints.reported_as, self._readings.of(node).taint_keys))
        ready = [node] if is_ready_and_schedulable(node) else []
        [seen], ready = without_unready_gpus([node], ready, self._gpu_label)
        [seen], ready = without_starting_nodes([seen], ready, self._taints)
        return _Taken(node, self._readings.of(seen), bool(ready), reported)


def _changed(before: NodeList, taken: list[_Taken], places: list[int]) -> NodeList:
    """The list with some nodes in a new form. Where one means something else than it did, it is made anew."""
    nodes, facts = list(before.nodes), list(before.facts)
    for place in places:
        was, now = facts[place], taken[place]
        if now.is_ready != before.are_ready[place] or not _means_the_same(was, now.facts):
            return _listing(taken)
        nodes[place], facts[place] = now.facts.node, now.facts
    renewed = {facts[place].name: facts[place] for place in places}
    return replace(
        before, nodes=tuple(nodes), facts=tuple(facts),
        candidates=tuple([renewed.get(one.name, one) for one in before.candidates]),
    )  # fmt: skip


def _means_the_same(was: NodeFacts, now: NodeFacts) -> bool:
    return (
        was.taint_keys == now.taint_keys and was.cores_and_memory == now.cores_and_memory
        and not was.is_to_be_deleted and not now.is_to_be_deleted
    )  # fmt: skip


def _listing(found: Sequence[_Taken]) -> NodeList:
    facts = tuple([one.facts for one in found])
    sizes = [one.cores_and_memory for one in facts]
    return NodeList(
        nodes=tuple([one.node for one in facts]), facts=facts, ready=sum([one.is_ready for one in found]),
        are_ready=bytes([one.is_ready for one in found]),
        cores_and_memory=(sum([cores for cores, _ in sizes]), sum([memory_bytes for _, memory_bytes in sizes])),
        taints=dict(Counter([kind for one in found for kind in one.reported])),
        marked=tuple([one for one in facts if one.is_to_be_deleted]),
        candidates=tuple([one for one in facts if one.is_candidate]),
    )  # fmt: skip
