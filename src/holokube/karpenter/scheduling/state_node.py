"""A node as the solver and the disruption methods see it: Node and NodeClaim read as one.

Until a node has registered, its claim speaks for it: name, labels, annotations and taints are the claim's. Until it is
initialized, the claim fills in resources that the node still reports as zero, and taints that are expected to go away
are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holokube.base.lazy import lazy
from holokube.karpenter.api.labels import (
    INITIALIZED_LABEL,
    INSTANCE_TERMINATING,
    REBOOTING,
    REBOOTING_TAINT,
    REGISTERED_LABEL,
    UNREGISTERED_TAINT,
)
from holokube.karpenter.scheduling.pod_facts import PodFacts, held_by
from holokube.karpenter.scheduling.pod_requests import requests_of as requests_of
from holokube.kube import conditions
from holokube.kube.requirements import HOSTNAME_LABEL, NODEPOOL_LABEL, Requirements
from holokube.kube.resources import ResourceVector, parse_resources
from holokube.kube.taints import (
    CLOUD_PROVIDER_UNINITIALIZED,
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE_NOT_READY,
    NODE_UNREACHABLE,
    Taint,
    taints_of,
)
from holokube.kube.types import JsonObject

NODES: Final = "nodes"
"""The resource that limits count nodes by; a node has one."""
_ONE: Final = 1000
_EMPTY: Final[Mapping[str, Any]] = {}
_TERMINAL: Final = ("Succeeded", "Failed")
_EPHEMERAL: Final = frozenset({
    (NODE_NOT_READY, NO_SCHEDULE), (NODE_NOT_READY, NO_EXECUTE), (NODE_UNREACHABLE, NO_SCHEDULE),
    (CLOUD_PROVIDER_UNINITIALIZED, NO_SCHEDULE), (UNREGISTERED_TAINT.key, UNREGISTERED_TAINT.effect),
})  # fmt: skip
_EPHEMERAL_PREFIX: Final = "readiness.k8s.io/"
_OF_NODE: Final = (
    "_speaker", "allocatable", "capacity", "is_initialized", "is_registered", "label_requirements", "labels", "name",
    "provider_id",
)  # fmt: skip
"""What goes by the Node alone once it is registered and initialized, as long as there is a claim or none."""
_OF_NODE_UNLESS_REBOOTING: Final = ("taints",)
"""What goes by the Node alone once it is registered and initialized, unless it reboots."""
_OF_CONDITIONS: Final = ("claim_states", "is_rebooting")
"""What goes by the conditions of the claim alone."""
_OF_CONDITIONS_AND_DELETION: Final = ("is_deleted",)
"""What goes by the conditions of the claim, and by whether its deletion was asked for."""
_OF_LABELS: Final = ("label_requirements",)
_OF_BOTH: Final = ("claim_states", "is_deleted", "is_rebooting", "objects", "taints")
"""What goes by Node and claim."""
_OF_PODS: Final = ("daemon_requests", "guards", "is_plain", "is_spread", "pod_requests", "running_pods", "watched")
"""What goes by pods alone."""
_OF_NODE_AND_PODS: Final = ("available",)
"""What goes by pods and by what goes by the Node alone."""
_OF_PODS_ALSO: Final = (*_OF_PODS, *_OF_NODE_AND_PODS)
_NO_LABELS: Final[frozenset[str]] = frozenset()
Reading = tuple[tuple[JsonObject, ...], tuple[PodFacts, ...], bool]
"""Pods, the facts about them in the same order, and whether all of them are known to be ordinary."""


def is_ephemeral(taint: Taint) -> bool:
    """Whether a node that is coming up is expected to lose it by itself."""
    return (taint.key, taint.effect) in _EPHEMERAL or taint.key.startswith(_EPHEMERAL_PREFIX)


def _deletion(obj: JsonObject) -> object:
    """When the object's deletion was asked for, if it was."""
    return (obj.get("metadata") or _EMPTY).get("deletionTimestamp")


def _tell_facts(own: dict[str, Any], reading: Reading) -> None:
    """Notes what is known of a node's pods."""
    own["facts"] = reading[1]
    if reading[2]:
        own["guards"], own["is_plain"], own["is_spread"], own["watched"] = (), True, False, _NO_LABELS


def is_daemon(pod: Mapping[str, Any]) -> bool:
    """Whether a DaemonSet owns it."""
    for owner in (pod.get("metadata") or _EMPTY).get("ownerReferences") or ():
        if owner.get("kind") == "DaemonSet" and owner.get("apiVersion") == "apps/v1":
            return True
    return False


@dataclass(frozen=True, eq=False, init=False)
class StateNode:
    """A Node, its NodeClaim, or both, with the pods bound to it. At least one of the two objects is there."""

    node: JsonObject | None = field(repr=False)
    node_claim: JsonObject | None = field(default=None, repr=False)
    pods: tuple[JsonObject, ...] = field(default=(), repr=False)
    is_marked: bool = False
    """Whether a disruption command has chosen it for deletion."""
    nominated_until_s: float = 0.0
    """Until when a provisioning pass counts on it for a pending pod."""
    known_facts: Reading | None = field(default=None, repr=False)
    """What was worked out about pods before; used if it is about the very tuple of its pods."""
    serial: int = 0
    """Nodes of a cluster in the order in which they were first heard of."""

    def __init__(
        self,
        node: JsonObject | None,
        node_claim: JsonObject | None = None,
        pods: tuple[JsonObject, ...] = (),
        is_marked: bool = False,
        nominated_until_s: float = 0.0,
        known_facts: Reading | None = None,
        serial: int = 0,
    ) -> None:
        if node is None and node_claim is None:
            raise ValueError("a state node needs a Node or a NodeClaim; both are missing")
        # Nodes are made at every change, and what a dataclass generates for frozen fields takes several times as long.
        own = self.__dict__
        own["node"] = node
        own["node_claim"] = node_claim
        own["pods"] = pods
        own["is_marked"] = is_marked
        own["nominated_until_s"] = nominated_until_s
        own["known_facts"] = known_facts
        own["serial"] = serial
        if known_facts is not None and known_facts[0] is pods:
            _tell_facts(own, known_facts)

    @property
    def _node(self) -> Mapping[str, Any]:
        return self.node or _EMPTY

    @property
    def _claim(self) -> Mapping[str, Any]:
        return self.node_claim or _EMPTY

    @property
    def is_managed(self) -> bool:
        """Whether it has a NodeClaim."""
        return self.node_claim is not None

    @lazy
    def objects(self) -> tuple[tuple[JsonObject, str], ...]:
        """Its Node and its claim, as far as they are there, each with its uid."""
        found = [obj for obj in (self.node, self.node_claim) if obj is not None]
        return tuple([(obj, str(obj["metadata"].get("uid", ""))) for obj in found])

    @lazy
    def is_registered(self) -> bool:
        """Whether the Node is known to be the claim's; one without a claim always is."""
        return self.node_claim is None or self._node_label(REGISTERED_LABEL) == "true"

    @lazy
    def is_initialized(self) -> bool:
        """Whether it has come up; one without a claim always has."""
        return self.node_claim is None or self._node_label(INITIALIZED_LABEL) == "true"

    def _node_label(self, key: str) -> str | None:
        found: str | None = ((self._node.get("metadata") or _EMPTY).get("labels") or _EMPTY).get(key)
        return found

    @lazy
    def _speaker(self) -> Mapping[str, Any]:
        """The object that name, labels and annotations come from."""
        if self.node is None or (self.node_claim is not None and not self.is_registered):
            return self._claim
        return self.node

    @lazy
    def name(self) -> str:
        """The Node's, or the claim's while that has not registered."""
        return str(self._speaker["metadata"]["name"])

    @property
    def node_name(self) -> str:
        """The name of the Node object; empty if there is none yet."""
        return str(self.node["metadata"]["name"]) if self.node is not None else ""

    @property
    def claim_name(self) -> str:
        """The name of the NodeClaim; empty if it has none."""
        return str(self.node_claim["metadata"]["name"]) if self.node_claim is not None else ""

    @lazy
    def labels(self) -> Mapping[str, str]:
        """As far as the solver is concerned."""
        return self._speaker["metadata"].get("labels") or _EMPTY

    @lazy
    def label_requirements(self) -> Requirements:
        """The labels as requirements."""
        return Requirements.from_labels(self.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """As far as the disruption methods are concerned."""
        return self._speaker["metadata"].get("annotations") or _EMPTY

    @property
    def hostname(self) -> str:
        """The hostname label, or the name where that is missing."""
        return self.labels.get(HOSTNAME_LABEL) or self.name

    @property
    def pool_name(self) -> str:
        """The pool it belongs to; empty if to none."""
        return self.labels.get(NODEPOOL_LABEL, "")

    @lazy
    def provider_id(self) -> str:
        """The instance; empty before launch, and for nodes of no provider."""
        if self.node is None:
            return str((self._claim.get("status") or _EMPTY).get("providerID") or "")
        return str((self.node.get("spec") or _EMPTY).get("providerID") or "")

    @lazy
    def claim_states(self) -> frozenset[str]:
        """The conditions of its claim that are true, of which many are asked for at every change."""
        # Of several of a type the first counts, so that it is written last.
        told = conditions.conditions_of(self._claim)
        statuses = {condition.get("type", ""): condition.get("status", "") for condition in reversed(told)}
        return frozenset([name for name, status in statuses.items() if status == "True"])

    @lazy
    def is_rebooting(self) -> bool:
        """Whether a restart in place is under way."""
        return REBOOTING in self.claim_states

    @lazy
    def is_deleted(self) -> bool:
        """Whether its deletion was asked for, or its instance is being ended."""
        if self.node_claim is not None:
            metadata = self.node_claim.get("metadata") or _EMPTY
            return bool(metadata.get("deletionTimestamp")) or INSTANCE_TERMINATING in self.claim_states
        return bool((self._node.get("metadata") or _EMPTY).get("deletionTimestamp"))

    @lazy
    def is_marked_for_deletion(self) -> bool:
        """Whether it will be gone soon: nothing is placed on it, and its pods need another place."""
        return self.is_marked or self.is_deleted

    def is_nominated(self, now_s: float) -> bool:
        """Whether a pending pod is expected on it."""
        return self.nominated_until_s > now_s

    def prolong_nomination(self, until_s: float) -> None:
        """Another pending pod is expected on it while one is.

        The one thing that changes about a node: whoever has looked at it found it nominated, as it was at that time and
        is now, so that nobody has to look again at a node that pods wait for pass after pass.
        """
        self.__dict__["nominated_until_s"] = until_s

    @lazy
    def taints(self) -> tuple[Taint, ...]:
        """The taints that a pod placed on it must tolerate in the end."""
        from_claim = self.node is None or (self.node_claim is not None and not self.is_registered)
        taints = taints_of(self._claim if from_claim else self._node)
        if not self.is_managed or (self.is_initialized and not self.is_rebooting):
            return taints
        startup = [Taint.from_json(t) for t in (self._claim.get("spec") or _EMPTY).get("startupTaints") or ()]
        return tuple(
            taint
            for taint in taints
            if not is_ephemeral(taint)
            and not taint.is_same(REBOOTING_TAINT)
            and not any(taint.is_same(known) for known in startup)
        )

    @lazy
    def capacity(self) -> ResourceVector:
        """What the node has, and one of ``nodes``."""
        return {**self._resources("capacity"), NODES: _ONE}

    @lazy
    def allocatable(self) -> ResourceVector:
        """What pods may use."""
        return self._resources("allocatable")

    def _resources(self, field_name: str) -> ResourceVector:
        of_node = parse_resources((self._node.get("status") or _EMPTY).get(field_name))
        if self.node_claim is None or self.is_initialized:
            return of_node
        of_claim = parse_resources((self._claim.get("status") or _EMPTY).get(field_name))
        return of_node | {name: milli for name, milli in of_claim.items() if not of_node.get(name)}

    @lazy
    def running_pods(self) -> tuple[JsonObject, ...]:
        """The bound pods that have not ended: those that hold resources."""
        return tuple(pod for pod in self.pods if (pod.get("status") or _EMPTY).get("phase") not in _TERMINAL)

    @lazy
    def facts(self) -> tuple[PodFacts, ...]:
        """What decisions go by about its pods, in their order."""
        return tuple(map(PodFacts, self.pods))

    @lazy
    def guards(self) -> tuple[str, ...]:
        """What its pods say about being disrupted, those that say something."""
        return tuple([facts.guard for facts in self.facts if facts.guard is not None])

    @lazy
    def pod_requests(self) -> ResourceVector:
        """What its pods hold."""
        return held_by([facts for facts in self.facts if facts.is_running])

    @lazy
    def daemon_requests(self) -> ResourceVector:
        """What those of DaemonSets hold."""
        return held_by([facts for facts in self.facts if facts.is_running and facts.is_daemon])

    @property
    def has_volumes(self) -> bool:
        """Whether a pod that has not ended has any."""
        for facts in self.facts:  # noqa: SIM110 - a plain loop costs half of any() with a generator
            if facts.has_volumes and facts.is_running:
                return True
        return False

    @lazy
    def is_plain(self) -> bool:
        """Whether its pods keep neither near to others nor apart from them, and no volume has a say."""
        for facts in self.facts:  # noqa: SIM110 - a plain loop costs half of all() with a generator
            if not facts.is_plain:
                return False
        return True

    @lazy
    def is_spread(self) -> bool:
        """Whether one of its pods is spread over domains."""
        for facts in self.facts:  # noqa: SIM110 - a plain loop costs half of any() with a generator
            if facts.is_spread:
                return True
        return False

    @lazy
    def watched(self) -> frozenset[str]:
        """Labels of other pods that its pods go by when they are spread."""
        return frozenset().union(*[facts.watched for facts in self.facts if facts.watched])

    @lazy
    def available(self) -> ResourceVector:
        """Allocatable without what its pods hold; resources that the node does not list are left out."""
        held_of = self.pod_requests.get
        return {name: milli - held_of(name, 0) for name, milli in self.allocatable.items()}

    def followed_by(
        self,
        node: JsonObject | None,
        node_claim: JsonObject | None,
        reading: Reading,
        is_marked: bool,
        nominated_until_s: float,
    ) -> StateNode:
        """The same instance after a change, with what was worked out before as far as it holds."""
        if not self._speaks_for(node, node_claim):
            made = StateNode(node, node_claim, reading[0], is_marked, nominated_until_s, reading, self.serial)
            made.carry_over(self)
            return made
        # Most changes are of pods, or of when they changed: nearly all is taken over, at once and not one by one.
        made = object.__new__(StateNode)
        own = made.__dict__
        own.update(self.__dict__)
        if node_claim is not self.node_claim:
            own["node_claim"] = node_claim
            own.pop("objects", None)
        if is_marked != self.is_marked:
            own["is_marked"] = is_marked
            own.pop("is_marked_for_deletion", None)
        own["nominated_until_s"] = nominated_until_s
        own["known_facts"] = reading
        if reading[0] is not self.pods:
            own["pods"] = reading[0]
            for name in _OF_PODS_ALSO:
                if name in own:
                    del own[name]
            _tell_facts(own, reading)
        return made

    def _speaks_for(self, node: JsonObject | None, node_claim: JsonObject | None) -> bool:
        """Whether all that goes by Node and claim is the same with these, by the identity of what that is."""
        if node is None or node is not self.node:
            return False
        if node_claim is self.node_claim:
            return True
        return (
            node_claim is not None
            and self.node_claim is not None
            and conditions.conditions_of(node_claim) is conditions.conditions_of(self.node_claim)
            and _deletion(node_claim) is _deletion(self.node_claim)
            and self.is_initialized
            and self.is_registered
            and not self.is_rebooting
        )

    def carry_over(self, before: StateNode) -> None:
        """Takes what was worked out about the same instance before, as far as it goes by objects that are the same."""
        has_same_pods = self.pods is before.pods
        if has_same_pods:
            self._take(before, _OF_PODS)
        if self.node is before.node and self.node_claim is before.node_claim:
            self._take(before, _OF_NODE)
            self._take(before, _OF_BOTH)
        elif before.node is None or self.node is not before.node:
            if self.labels == before.labels:
                self._take(before, _OF_LABELS)
            return
        elif self.node_claim is None or before.node_claim is None:
            return
        elif not before.is_initialized or not before.is_registered:
            # The claim still has a say.
            return
        else:
            self._take(before, _OF_NODE)
            if conditions.conditions_of(self.node_claim) is conditions.conditions_of(before.node_claim):
                self._take(before, _OF_CONDITIONS)
                if _deletion(self.node_claim) == _deletion(before.node_claim):
                    self._take(before, _OF_CONDITIONS_AND_DELETION)
            if not self.is_rebooting and not before.is_rebooting:
                self._take(before, _OF_NODE_UNLESS_REBOOTING)
        if has_same_pods:
            self._take(before, _OF_NODE_AND_PODS)

    def _take(self, before: StateNode, names: tuple[str, ...]) -> None:
        known, own = before.__dict__, self.__dict__
        for name in names:
            if name in known:
                own[name] = known[name]

    def with_pods(self, pods: tuple[JsonObject, ...]) -> StateNode:
        """The same node with other pods."""
        return replace(self, pods=pods)
