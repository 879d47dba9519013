"""What a turn reads of Node objects, read once: objects are immutable, so what was once read of one holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import is_not

from holokube.cluster_autoscaler.objects import (
    annotations_of,
    condition_of,
    cores_and_memory,
    creation_s,
    is_cordoned,
    name_of,
    provider_id,
    readiness_of,
)
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, TO_BE_DELETED, taint_time_s, taints_of
from holokube.kube.types import JsonObject

FAKE_NODE_REASON = "k8s.io/cluster-autoscaler/fake-node-reason"
_SPARE = 256


def changed_places(before: Sequence[JsonObject], now: Sequence[JsonObject]) -> list[int] | None:
    """Where in two lists of the same nodes an object is another one; None if they are not the same nodes.

    Nodes come and go seldom, and change often: what is known of a list can mostly be brought up to date.
    """
    if before is now:
        return []
    if len(before) != len(now):
        return None
    places = list(compress(range(len(now)), map(is_not, before, now)))
    if all(name_of(before[place]) == name_of(now[place]) for place in places):
        return places
    return None


class NodeFacts:
    """What is remembered of one node."""

    __slots__ = (
        "cores_and_memory", "created_s", "group_id", "is_candidate", "is_cordoned", "is_invented", "is_ready",
        "is_suspended", "is_to_be_deleted", "marked_s", "name", "node", "provider_id", "readiness", "taint_keys",
    )  # fmt: skip

    def __init__(self, node: JsonObject) -> None:
        self.node = node
        self.name = name_of(node)
        self.provider_id = provider_id(node)
        self.created_s = creation_s(node)
        self.readiness = readiness_of(node)
        self.is_ready = self.readiness.is_ready
        self.is_cordoned = is_cordoned(node)
        suspended = condition_of(node, "Suspended")
        self.is_suspended = suspended is not None and suspended.get("status") == "True"
        self.taint_keys = tuple(taint.get("key", "") for taint in taints_of(node))
        self.is_to_be_deleted = TO_BE_DELETED in self.taint_keys
        self.is_candidate = DELETION_CANDIDATE in self.taint_keys
        self.marked_s: float | None = None
        """When the autoscaler has begun to remove it; None as well if the taint does not say so."""
        if self.is_to_be_deleted:
            try:
                self.marked_s = taint_time_s(node, TO_BE_DELETED)
            except ValueError:
                self.marked_s = None
        self.group_id: str | None = None
        """Its group, empty if it has none, once a provider has told that can tell by the object; None until then."""
        self.is_invented = FAKE_NODE_REASON in annotations_of(node)
        """Whether it says that it stands for a machine that is no node."""
        self.cores_and_memory = cores_and_memory(node)
        """Whole cores and bytes."""


class NodeReadings:
    """The facts of nodes by the identity of the object."""

    def __init__(self) -> None:
        # An object is remembered together with its facts, so that no other can have its id while it is.
        self._known: dict[int, NodeFacts] = {}
        self._last: tuple[Sequence[JsonObject], Sequence[NodeFacts]] = ((), ())

    def of(self, node: JsonObject) -> NodeFacts:
        """What there is to know about a node."""
        facts = self._known.get(id(node))
        if facts is None:
            facts = self._known[id(node)] = NodeFacts(node)
        return facts

    def of_all(self, nodes: Sequence[JsonObject]) -> Sequence[NodeFacts]:
        """The same about many, of which most are known."""
        if nodes is self._last[0]:
            return self._last[1]
        found = list(map(self._known.get, map(id, nodes)))
        return [self.of(node) if facts is None else facts for node, facts in zip(nodes, found, strict=True)]

    def keep_only(self, nodes: tuple[JsonObject, ...], facts: tuple[NodeFacts, ...]) -> None:
        """Forget all but these, of which the facts are told, once there are too many others."""
        self._last = nodes, facts
        if len(self._known) > 2 * len(nodes) + _SPARE:
            wanted = {id(node) for node in nodes}
            self._known = {number: facts for number, facts in self._known.items() if number in wanted}
