"""The pods that are bound already, and what they mean for topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

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
_NO_NODES: Final[Counter[int]] = Counter()


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


class Census:
    """Bound pods by labels and node. Pods in ``moving`` are about to be placed anew and never count."""

    def __init__(
        self, nodes: Sequence[StateNode], moving: Collection[str], specs: SpecBook, universe: Universe
    ) -> None:
        self._specs = specs
        self._universe = universe
        space = StateSpace()
        self.nodes: list[NodeFacts] = []
        self.numbers: dict[str, int] = {}
        """Place in ``nodes`` by the name of the Node object."""
        self.pods: dict[str, BoundPod] = {}
        """By uid, or ``namespace/name`` where there is none."""
        self._by_labels: dict[LabelSet, Counter[int]] = {}
        self._anti: dict[Hashable, Counter[int]] = {}
        self.inverse_specs: dict[Hashable, GroupSpec] = {}
        """Required anti-affinity of bound pods by identity; of several like ones the first."""
        self._anti_memo: dict[tuple[LabelSet, bytes], tuple[GroupSpec, ...]] = {}
        self._bases: dict[tuple[GroupSpec, bool], GroupBase] = {}
        self._host_bases: dict[tuple[GroupSpec, bool], HostBase] = {}
        self._admitted_by: dict[NodeFilter, list[bool]] = {}
        self._known_memo: dict[tuple[str, NodeFilter | None], Mapping[str, int]] = {}
        for node in nodes:
            if node.node is not None:
                self._add_node(node, space)
                for pod in node.pods:
                    self._add_pod(pod, len(self.nodes) - 1, moving)

    def _add_node(self, node: StateNode, space: StateSpace) -> None:
        assert node.node is not None
        labels = node.node["metadata"].get("labels") or _EMPTY
        requirements = node.label_requirements if labels is node.labels else Requirements.from_labels(labels)
        self.numbers[node.node_name] = len(self.nodes)
        self.nodes.append(NodeFacts(
            node.node_name, labels, space.state(requirements), taints_of(node.node),
            not node.is_marked_for_deletion, node.labels,
        ))  # fmt: skip

    def _add_pod(self, pod: JsonObject, node: int, moving: Collection[str]) -> None:
        metadata = pod["metadata"]
        uid = uid_of(pod)
        if uid in moving or (pod.get("status") or _EMPTY).get("phase") in _TERMINAL:
            return
        labels = self._specs.label_set(metadata.get("namespace") or "", metadata.get("labels"))
        is_counted = metadata.get("deletionTimestamp") is None
        found = BoundPod(labels, node, self._anti_specs(pod, labels), is_counted)
        self.pods[uid] = found
        if is_counted:
            self._by_labels.setdefault(labels, Counter())[node] += 1
        for spec in found.anti_specs:
            self._anti.setdefault(spec.identity, Counter())[node] += 1
            self.inverse_specs.setdefault(spec.identity, spec)

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

    @cached_property
    def inverse_index(self) -> SpecIndex[Hashable]:
        """The identities of :attr:`inverse_specs` by what they select."""
        found: SpecIndex[Hashable] = SpecIndex()
        for identity, spec in self.inverse_specs.items():
            found.add(spec, identity)
        return found

    @cached_property
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
            count = self._count_inverse if inverse else self._count
            known = self._bases[spec, inverse] = count(spec)
        return known

    def _count(self, spec: GroupSpec) -> GroupBase:
        counts: Counter[str] = Counter()
        admitted = self._admitted(spec)
        for labels in self._index.counted_by(spec):
            for node, pods in self._by_labels[labels].items():
                domain = self.nodes[node].domain(spec.key)
                if domain is not None and (admitted is None or admitted[node]):
                    counts[domain] += pods
        return GroupBase(dict(counts), self._domains(spec), self._known_by_nodes(spec))

    def _admitted(self, spec: GroupSpec) -> list[bool] | None:
        """By node: whether it counts for a group; None if all do."""
        if spec.filter is None:
            return None
        found = self._admitted_by.get(spec.filter)
        if found is None:
            found = self._admitted_by[spec.filter] = [facts.admitted_by(spec) for facts in self.nodes]
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
                for node, facts in enumerate(self.nodes)
                if facts.is_active and spec.key in facts.solver_labels and (admitted is None or admitted[node])
            )
        return found

    def _count_inverse(self, spec: GroupSpec) -> GroupBase:
        counts: Counter[str] = Counter()
        for node, pods in self._anti.get(spec.identity, _NO_NODES).items():
            domain = self.nodes[node].labels.get(spec.key)
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
            pod = census.pods.get(uid)
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
        facts = self._census.nodes
        if inverse:
            for node, pods in self._anti.get(spec.identity, _NO_NODES).items():
                domain = facts[node].labels.get(spec.key)
                if domain is not None:
                    counts[domain] += pods
            return counts
        for labels in self._index.counted_by(spec):
            for node, pods in self._by_labels[labels].items():
                domain = facts[node].domain(spec.key)
                if domain is not None and facts[node].admitted_by(spec):
                    counts[domain] += pods
        return counts

    def of_nodes(self, spec: GroupSpec) -> Mapping[str, int]:
        """How many of the nodes made a domain known."""
        found: Counter[str] = Counter()
        for node in self._nodes:
            facts = self._census.nodes[node]
            if facts.is_active and spec.key in facts.solver_labels and facts.admitted_by(spec):
                found[facts.solver_labels[spec.key]] += 1
        return found


def uid_of(pod: Mapping[str, Any]) -> str:
    """What tells pods apart."""
    metadata = pod["metadata"]
    return metadata.get("uid") or f"{metadata.get('namespace') or ''}/{metadata['name']}"
