"""The pods that are bound already, and what they mean for topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

import orjson

from holokube.base.lazy import lazy
from holokube.karpenter.scheduling.domains import Universe
from holokube.karpenter.scheduling.label_index import LabelIndex, SpecIndex
from holokube.karpenter.scheduling.relaxation import Demands
from holokube.karpenter.scheduling.requirement_states import RequirementState, StateSpace
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.topology_groups import HostBase
from holokube.karpenter.scheduling.topology_specs import GroupSpec, LabelSet, NodeFilter, SpecBook
from holokube.kube.requirements import HOSTNAME_LABEL, Requirements
from holokube.kube.taints import Taint, taints_of
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_TERMINAL: Final = ("Succeeded", "Failed")
_NO_NODES: Final[Mapping[int, int]] = {}


class NodeFacts(NamedTuple):
    """A Node object as topology looks at it; not through its claim, even while that speaks for it."""

    name: str
    labels: Mapping[str, str]
    state: RequirementState
    taints: tuple[Taint, ...]
    is_active: bool
    solver_labels: Mapping[str, str]
    """Those by which the solver knows it."""

    def domain(self, key: str) -> str | None:
        """Its domain; a node without a hostname label is its own."""
        return self.labels.get(key) or (self.name if key == HOSTNAME_LABEL else None)

    def admitted_by(self, spec: GroupSpec) -> bool:
        """Whether it counts for a group."""
        if spec.filter is None:
            return True
        return spec.filter.admits(self.state, self.labels.get(HOSTNAME_LABEL), self.taints)


class BoundPod(NamedTuple):
    """A bound pod that counts."""

    labels: LabelSet
    node: int
    anti_specs: tuple[GroupSpec, ...]
    is_counted: bool
    """Whether it counts for groups; a terminating pod does not, but others still keep their distance."""


class GroupBase(NamedTuple):
    """Counts of a group before anything is placed."""

    counts: Mapping[str, int]
    """Pods by domain."""
    known: frozenset[str]
    """Domains that new nodes can be in."""
    nodes: Mapping[str, int]
    """How many nodes make a domain known."""


class _OnNode(NamedTuple):
    """One node with its pods that count."""

    facts: NodeFacts
    pods: Mapping[str, BoundPod]


class Census:
    """Bound pods by labels and node. Pods in ``moving`` are about to be placed anew and never count.

    A census never changes. One of a later moment is carried on from it.
    """

    def __init__(
        self, nodes: Iterable[StateNode], moving: Collection[str], specs: SpecBook, universe: Universe
    ) -> None:
        self._specs = specs
        self._universe = universe
        self._space = StateSpace()
        self._last_number = -1
        self._on_nodes: dict[int, _OnNode] = {}
        self._number_of: dict[StateNode, int] = {}
        self.numbers: dict[str, int] = {}
        """The number of a node by the name of the Node object."""
        self._node_of: dict[str, int] = {}
        """Where pods are, by uid."""
        self._by_labels: dict[LabelSet, dict[int, int]] = {}
        self._own: set[LabelSet] = set()
        """Labels whose counts no other census shares."""
        self._anti: dict[Hashable, Counter[int]] = {}
        self.inverse_specs: dict[Hashable, GroupSpec] = {}
        """Required anti-affinity of bound pods by identity; of several like ones the first."""
        self._anti_memo: dict[tuple[LabelSet, bytes], tuple[GroupSpec, ...]] = {}
        self._forget_counts()
        self._take_over((), nodes, moving)

    def _forget_counts(self) -> None:
        """What is worked out of nodes and pods when it is asked for."""
        self._bases: dict[tuple[GroupSpec, bool], GroupBase] = {}
        self._host_bases: dict[tuple[GroupSpec, bool], HostBase] = {}
        self._admitted_by: dict[NodeFilter, dict[int, bool]] = {}
        self._known_memo: dict[tuple[str, NodeFilter | None], Mapping[str, int]] = {}
        for name in ("inverse_index", "_index", "pods"):
            self.__dict__.pop(name, None)

    def carried_on(self, changed: Iterable[StateNode], gone: Iterable[StateNode]) -> Census:
        """The census of a later moment, with and without these nodes."""
        later = self._copy()
        later._take_over(gone, changed, ())  # noqa: SLF001 - it is a copy of this very object
        return later

    def without(self, moving: Iterable[str]) -> Census:
        """The same without pods that are about to be placed anew."""
        found = {uid for uid in moving if uid in self._node_of}
        if not found:
            return self
        later = self._copy()
        for uid in sorted(found):
            later._leave(uid)  # noqa: SLF001 - it is a copy of this very object
        return later

    def _copy(self) -> Census:
        assert not self.inverse_specs, "where pods keep their distance it matters which of them came first"
        later = copy(self)
        # What is named below is its own from now on; the rest is never changed.
        later._on_nodes, later._number_of = dict(self._on_nodes), dict(self._number_of)  # noqa: SLF001
        later.numbers, later._node_of = dict(self.numbers), dict(self._node_of)  # noqa: SLF001
        later._by_labels, later._own = dict(self._by_labels), set()  # noqa: SLF001
        later._forget_counts()  # noqa: SLF001
        return later

    def _take_over(self, gone: Iterable[StateNode], come: Iterable[StateNode], moving: Collection[str]) -> None:
        for node in gone:
            number = self._number_of.pop(node, None)
            if number is not None:
                for uid, pod in self._on_nodes.pop(number).pods.items():
                    self._count(pod, -1)
                    if self._node_of.get(uid) == number:
                        del self._node_of[uid]
                if self.numbers.get(node.node_name) == number:
                    del self.numbers[node.node_name]
        for node in come:
            if node.node is not None:
                self._last_number += 1
                self._put(node, self._last_number, moving)

    def _put(self, node: StateNode, number: int, moving: Collection[str]) -> None:
        self.numbers[node.node_name] = self._number_of[node] = number
        pods = dict(self._bound(pod, number) for pod in node.pods if _is_there(pod, moving))
        self._on_nodes[number] = _OnNode(self._facts_of(node), pods)
        for uid, one in pods.items():
            self._node_of[uid] = number
            self._count(one, 1)
            for spec in one.anti_specs:
                self._anti.setdefault(spec.identity, Counter())[number] += 1
                self.inverse_specs.setdefault(spec.identity, spec)

    def _leave(self, uid: str) -> None:
        number = self._node_of.pop(uid)
        facts, pods = self._on_nodes[number]
        self._count(pods[uid], -1)
        self._on_nodes[number] = _OnNode(facts, {one: pod for one, pod in pods.items() if one != uid})

    def _facts_of(self, node: StateNode) -> NodeFacts:
        assert node.node is not None
        labels = node.node["metadata"].get("labels") or _EMPTY
        requirements = node.label_requirements if labels is node.labels else Requirements.from_labels(labels)
        return NodeFacts(
            node.node_name, labels, self._space.state(requirements), taints_of(node.node),
            not node.is_marked_for_deletion, node.labels,
        )  # fmt: skip

    def _bound(self, pod: JsonObject, node: int) -> tuple[str, BoundPod]:
        metadata = pod["metadata"]
        labels = self._specs.label_set(metadata.get("namespace") or "", metadata.get("labels"))
        is_counted = metadata.get("deletionTimestamp") is None
        return uid_of(pod), BoundPod(labels, node, self._anti_specs(pod, labels), is_counted)

    def _count(self, pod: BoundPod, sign: int) -> None:
        """Adds a pod to the counts, or takes it off."""
        if not pod.is_counted:
            return
        if pod.labels not in self._own:
            self._own.add(pod.labels)
            self._by_labels[pod.labels] = dict(self._by_labels.get(pod.labels, ()))
        counts = self._by_labels[pod.labels]
        counts[pod.node] = counts.get(pod.node, 0) + sign
        if not counts[pod.node]:
            del counts[pod.node]

    @lazy
    def pods(self) -> dict[str, BoundPod]:
        """By uid, or ``namespace/name`` where there is none."""
        return {uid: pod for on_node in self._on_nodes.values() for uid, pod in on_node.pods.items()}

    def pod(self, uid: str) -> BoundPod | None:
        """A pod."""
        number = self._node_of.get(uid)
        return self._on_nodes[number].pods[uid] if number is not None else None

    def node(self, number: int) -> NodeFacts:
        """A node."""
        return self._on_nodes[number].facts

    def _anti_specs(self, pod: JsonObject, labels: LabelSet) -> tuple[GroupSpec, ...]:
        spec = pod.get("spec") or _EMPTY
        apart = (spec.get("affinity") or _EMPTY).get("podAntiAffinity")
        if not apart:
            return ()
        key = labels, orjson.dumps((apart, spec.get("tolerations")))
        found = self._anti_memo.get(key)
        if found is None:
            found = self._anti_memo[key] = self._specs.anti_specs_of(labels, Demands.of(pod))
        return found

    @lazy
    def inverse_index(self) -> SpecIndex[Hashable]:
        """The identities of :attr:`inverse_specs` by what they select."""
        found: SpecIndex[Hashable] = SpecIndex()
        for identity, spec in self.inverse_specs.items():
            found.add(spec, identity)
        return found

    @lazy
    def _index(self) -> LabelIndex:
        return LabelIndex(self._by_labels)

    def host_base(self, spec: GroupSpec, hosts: Mapping[str, int], *, inverse: bool) -> HostBase:
        """The counts of a group over hostnames; ``hosts`` are always the same."""
        known = self._host_bases.get((spec, inverse))
        if known is None:
            known = self._host_bases[spec, inverse] = HostBase(self.base(spec, inverse=inverse).counts, hosts)
        return known

    def base(self, spec: GroupSpec, *, inverse: bool) -> GroupBase:
        """The counts of a group; ``inverse`` counts the pods that have the term instead of those it is about."""
        known = self._bases.get((spec, inverse))
        if known is None:
            count = self._base_inverse if inverse else self._base
            known = self._bases[spec, inverse] = count(spec)
        return known

    def _base(self, spec: GroupSpec) -> GroupBase:
        counts: Counter[str] = Counter()
        admitted = self._admitted(spec)
        for labels in self._index.counted_by(spec):
            for node, pods in self._by_labels[labels].items():
                domain = self.node(node).domain(spec.key)
                if domain is not None and (admitted is None or admitted[node]):
                    counts[domain] += pods
        return GroupBase(dict(counts), self._domains(spec), self._known_by_nodes(spec))

    def _admitted(self, spec: GroupSpec) -> dict[int, bool] | None:
        """By node: whether it counts for a group; None if all do."""
        if spec.filter is None:
            return None
        found = self._admitted_by.get(spec.filter)
        if found is None:
            found = {number: on_node.facts.admitted_by(spec) for number, on_node in self._on_nodes.items()}
            self._admitted_by[spec.filter] = found
        return found

    def _known_by_nodes(self, spec: GroupSpec) -> Mapping[str, int]:
        """How many nodes make a domain known."""
        if spec.is_hostname:
            # With hostnames, it never matters which ones are known.
            return {}
        key = spec.key, spec.filter
        found = self._known_memo.get(key)
        if found is None:
            admitted = self._admitted(spec)
            found = self._known_memo[key] = Counter(
                facts.solver_labels[spec.key]
                for node, (facts, _) in self._on_nodes.items()
                if facts.is_active and spec.key in facts.solver_labels and (admitted is None or admitted[node])
            )
        return found

    def _base_inverse(self, spec: GroupSpec) -> GroupBase:
        counts: Counter[str] = Counter()
        for node, pods in self._anti.get(spec.identity, _NO_NODES).items():
            domain = self.node(node).labels.get(spec.key)
            if domain is not None:
                counts[domain] += pods
        return GroupBase(dict(counts), self._domains(spec), {})

    def _domains(self, spec: GroupSpec) -> frozenset[str]:
        if spec.is_hostname:
            return frozenset()
        return frozenset(self._universe.domains(spec.key, spec.universe_tolerations))


class Departure:
    """Bound pods that are being moved, and nodes that will be gone: what groups must not count any more."""

    def __init__(self, census: Census, uids: Iterable[str], nodes: Sequence[int]) -> None:
        self._census = census
        self._nodes = nodes
        self._by_labels: dict[LabelSet, Counter[int]] = {}
        self._anti: dict[Hashable, Counter[int]] = {}
        for uid in uids:
            pod = census.pod(uid)
            if pod is None:
                continue
            if pod.is_counted:
                self._by_labels.setdefault(pod.labels, Counter())[pod.node] += 1
            for spec in pod.anti_specs:
                self._anti.setdefault(spec.identity, Counter())[pod.node] += 1
        self._index = LabelIndex(self._by_labels)

    def of_group(self, spec: GroupSpec, *, inverse: bool) -> Mapping[str, int]:
        """How many of the pods a group has counted, by domain."""
        counts: Counter[str] = Counter()
        facts_of = self._census.node
        if inverse:
            for node, pods in self._anti.get(spec.identity, _NO_NODES).items():
                domain = facts_of(node).labels.get(spec.key)
                if domain is not None:
                    counts[domain] += pods
            return counts
        for labels in self._index.counted_by(spec):
            for node, pods in self._by_labels[labels].items():
                facts = facts_of(node)
                domain = facts.domain(spec.key)
                if domain is not None and facts.admitted_by(spec):
                    counts[domain] += pods
        return counts

    def of_nodes(self, spec: GroupSpec) -> Mapping[str, int]:
        """How many of the nodes made a domain known."""
        found: Counter[str] = Counter()
        for node in self._nodes:
            facts = self._census.node(node)
            if facts.is_active and spec.key in facts.solver_labels and facts.admitted_by(spec):
                found[facts.solver_labels[spec.key]] += 1
        return found


def _is_there(pod: JsonObject, moving: Collection[str]) -> bool:
    return (pod.get("status") or _EMPTY).get("phase") not in _TERMINAL and uid_of(pod) not in moving


def uid_of(pod: Mapping[str, Any]) -> str:
    """What tells pods apart."""
    metadata = pod["metadata"]
    return metadata.get("uid") or f"{metadata.get('namespace') or ''}/{metadata['name']}"
