"""Topology of the reference solver: one dictionary of counts per group, walked over for every question."""

from __future__ import annotations

import copy
from typing import Any

from holokube.karpenter.scheduling.problem import Problem
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.selectors import LabelSelector
from holokube.kube.taints import Taint, Toleration

SPREAD, AFFINITY, ANTI = "spread", "affinity", "anti"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def tolerated(taints: Any, tolerations: Any) -> bool:
    parsed = [Toleration.from_json(t) for t in tolerations or ()]
    return all(any(t.tolerates(taint, comparison_operators=True) for t in parsed) for taint in taints)


def spec_of(pod: dict[str, Any]) -> dict[str, Any]:
    return pod.get("spec") or {}


def affinity_of(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    return (spec_of(pod).get("affinity") or {}).get(kind) or {}


def uid(pod: dict[str, Any]) -> str:
    return pod["metadata"]["uid"]


def values(requirement: Requirement) -> list[str]:
    return sorted(requirement.values)


def frozen(value: Any) -> Any:
    """JSON that can be compared, without the order of lists."""
    if isinstance(value, dict):
        return frozenset((key, frozen(one)) for key, one in value.items())
    return frozenset(map(frozen, value)) if isinstance(value, list) else value


class Filter:
    """Which nodes count: the pod's node selector and any of its required terms."""

    def __init__(self, pod: dict[str, Any], constraint: dict[str, Any]) -> None:
        selector = Requirements.from_labels(spec_of(pod).get("nodeSelector"))
        required = affinity_of(pod, "nodeAffinity").get(REQUIRED)
        self.terms = [selector]
        if required is not None:
            terms = required.get("nodeSelectorTerms") or ()
            self.terms = [selector.merged(Requirements.from_json(t.get("matchExpressions"))) for t in terms]
        self.affinity = constraint.get("nodeAffinityPolicy") or "Honor"
        self.taints = constraint.get("nodeTaintsPolicy") or "Ignore"
        self.tolerations = spec_of(pod).get("tolerations") or []

    def matches(self, taints: Any, requirements: Requirements) -> bool:
        if self.taints == "Honor" and not tolerated(taints, self.tolerations):
            return False
        if self.affinity != "Honor" or not self.terms:
            return True
        return any(requirements.is_compatible(term) for term in self.terms)

    def key(self) -> Any:
        # Upstream adds up the hashes of a list's elements in such a way that two equal ones cancel each other out.
        terms, tolerations = [frozenset(t) for t in self.terms], [Toleration.from_json(t) for t in self.tolerations]
        odd_terms = frozenset(term for term in terms if terms.count(term) % 2)
        odd_tolerations = frozenset(t for t in tolerations if tolerations.count(t) % 2)
        return odd_terms, self.affinity, self.taints, odd_tolerations


class Group:
    def __init__(
        self, topology: ReferenceTopology, kind: str, pod: dict[str, Any], key: str, namespaces: frozenset[str],
        selector: Any, skew: int = 10**9, min_domains: int | None = None, node_filter: Filter | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.key, self.namespaces, self.raw = kind, key, namespaces, selector
        self.selector = LabelSelector.from_json(selector)
        self.skew, self.min_domains, self.filter = skew, min_domains, node_filter
        self.owners: set[str] = set()
        honor = node_filter is None or node_filter.taints == "Honor"
        self.domains: dict[str, int] = {}
        for domain, taint_sets in topology.universe.get(key, {}).items():
            if not honor or any(tolerated(taints, spec_of(pod).get("tolerations")) for taints in taint_sets):
                self.domains[domain] = 0

    def identity(self) -> Any:
        counted = None if self.filter is None else self.filter.key()
        return self.kind, self.key, self.namespaces, self.skew, counted, frozen(self.raw)

    def selects(self, pod: dict[str, Any]) -> bool:
        metadata = pod["metadata"]
        return metadata["namespace"] in self.namespaces and self.selector.matches(metadata.get("labels"))

    def record(self, *domains: str) -> None:
        for domain in domains:
            self.domains[domain] = self.domains.get(domain, 0) + 1

    def allowed(self, pod: dict[str, Any], of_pod: Requirement, of_node: Requirement) -> set[str]:
        host = values(of_node)[0] if self.key == HOSTNAME_LABEL and len(of_node.values) == 1 else None
        return getattr(self, f"_{self.kind}")(pod, of_pod, of_node, host)

    def _spread(self, pod: Any, of_pod: Requirement, of_node: Requirement, host: str | None) -> set[str]:
        own = int(self.selects(pod))
        if host is not None:
            return {host} if self.domains.get(host, 0) + own <= self.skew else set()
        supported = [count for domain, count in self.domains.items() if of_pod.has(domain)]
        least = min(supported, default=10**9)
        if self.min_domains is not None and len(supported) < self.min_domains:
            least = 0
        valid = [(c, d) for d, c in self.domains.items() if of_node.has(d) and c + own - least <= self.skew]
        return {min(valid)[1]} if valid else set()

    def _affinity(self, pod: Any, of_pod: Requirement, of_node: Requirement, host: str | None) -> set[str]:
        occupied = any(count > 0 for count in self.domains.values())
        reachable = any(count > 0 and of_pod.has(domain) for domain, count in self.domains.items())
        begins = self.selects(pod) and (not occupied or not reachable)
        if host is not None:
            if not of_pod.has(host):
                return set()
            return {host} if self.domains.get(host, 0) > 0 or begins else set()
        found = {d for d, c in self.domains.items() if c > 0 and of_pod.has(d) and of_node.has(d)}
        if found or not begins:
            return found
        here = sorted(d for d in self.domains if of_pod.has(d) and of_node.has(d))
        anywhere = sorted(d for d in self.domains if of_pod.has(d))
        return {*here[:1], *anywhere[:1]}

    def _anti(self, pod: Any, of_pod: Requirement, of_node: Requirement, host: str | None) -> set[str]:
        if host is not None:
            return {host} if self.domains.get(host, 0) == 0 else set()
        return {d for d, c in self.domains.items() if c == 0 and of_pod.has(d) and of_node.has(d)}


class ReferenceTopology:
    def __init__(self, problem: Problem, pods: list[dict[str, Any]], ignore_wishes: bool) -> None:
        self.problem, self.ignore_wishes = problem, ignore_wishes
        self.universe = self._universe()
        self.groups: dict[Any, Group] = {}
        self.inverse: dict[Any, Group] = {}
        self.excluded = {uid(pod) for pod in pods}
        for node in problem.state_nodes:
            for pod in node.pods:
                ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
                if node.node is not None and uid(pod) not in self.excluded and not ended:
                    self._add_inverse(pod, node.node["metadata"].get("labels") or {})
        for pod in pods:
            self.update(pod)

    def _universe(self) -> dict[str, dict[str, list[tuple[Taint, ...]]]]:
        found: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}

        def insert(requirements: Requirements, taints: tuple[Taint, ...], only_in: bool) -> None:
            for key, requirement in requirements.items():
                for domain in requirement.values if not only_in or requirement.operator == "In" else ():
                    found.setdefault(key, {}).setdefault(domain, []).append(taints)

        for pool in self.problem.pools:
            of_pool = pool.requirements.merged(Requirements.from_labels(pool.template_labels))
            types = self.problem.types_of_pool.get(pool.name) or ()
            for one in types:
                insert(of_pool.merged(one.requirements), pool.taints, only_in=False)
            if types:
                insert(of_pool, pool.taints, only_in=True)
        return found

    def _namespaces(self, pod: dict[str, Any], term: dict[str, Any]) -> frozenset[str]:
        listed, selector = term.get("namespaces") or [], term.get("namespaceSelector")
        if selector is None:
            return frozenset(listed or [pod["metadata"]["namespace"]])
        compiled = LabelSelector.from_json(selector)
        return frozenset(n for n, labels in self.problem.namespaces.items() if compiled.matches(labels)) | set(listed)

    def _term_group(self, kind: str, pod: dict[str, Any], term: dict[str, Any]) -> Group:
        return Group(self, kind, pod, term["topologyKey"], self._namespaces(pod, term), term.get("labelSelector"))

    def _add_inverse(self, pod: dict[str, Any], labels: dict[str, str]) -> None:
        for term in affinity_of(pod, "podAntiAffinity").get(REQUIRED) or ():
            group = self._term_group(ANTI, pod, term)
            group = self.inverse.setdefault(group.identity(), group)
            if group.key in labels:
                group.record(labels[group.key])
            group.owners.add(uid(pod))

    def update(self, pod: dict[str, Any]) -> None:
        for group in self.groups.values():
            group.owners.discard(uid(pod))
        self._add_inverse(pod, {})
        wanted = []
        for constraint in spec_of(pod).get("topologySpreadConstraints") or ():
            if self.ignore_wishes and constraint["whenUnsatisfiable"] != "DoNotSchedule":
                continue
            selector = copy.deepcopy(constraint.get("labelSelector"))
            for key in constraint.get("matchLabelKeys") or ():
                labels = pod["metadata"].get("labels") or {}
                if key in labels and selector is not None:
                    expression = {"key": key, "operator": "In", "values": [labels[key]]}
                    selector.setdefault("matchExpressions", []).append(expression)
            wanted.append(Group(
                self, SPREAD, pod, constraint["topologyKey"], frozenset({pod["metadata"]["namespace"]}), selector,
                constraint["maxSkew"], constraint.get("minDomains"), Filter(pod, constraint),
            ))  # fmt: skip
        for kind, where in ((AFFINITY, "podAffinity"), (ANTI, "podAntiAffinity")):
            terms = list(affinity_of(pod, where).get(REQUIRED) or ())
            if not self.ignore_wishes:
                terms += [wish["podAffinityTerm"] for wish in affinity_of(pod, where).get(PREFERRED) or ()]
            wanted += [self._term_group(kind, pod, term) for term in terms]
        for group in wanted:
            known = self.groups.get(group.identity())
            if known is None:
                self._count(group)
                known = self.groups[group.identity()] = group
            known.owners.add(uid(pod))

    def _count(self, group: Group) -> None:
        selector = LabelSelector.everything() if group.raw is None else group.selector
        for node in self.problem.state_nodes:
            if node.node is None:
                continue
            labels = node.node["metadata"].get("labels") or {}
            taints = [Taint.from_json(t) for t in spec_of(node.node).get("taints") or ()]
            counts = group.filter is None or group.filter.matches(taints, Requirements.from_labels(labels))
            if counts and not node.is_marked_for_deletion and group.key in node.labels:
                group.domains.setdefault(node.labels[group.key], 0)
            domain = labels.get(group.key) or (node.node_name if group.key == HOSTNAME_LABEL else None)
            for pod in node.pods if counts and domain else ():
                gone = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
                gone = gone or pod["metadata"].get("deletionTimestamp") is not None or uid(pod) in self.excluded
                metadata = pod["metadata"]
                if not gone and metadata["namespace"] in group.namespaces and selector.matches(metadata.get("labels")):
                    group.record(domain)

    def narrowed(self, pod: dict[str, Any], strict: Requirements, node: Requirements) -> Requirements | None:
        found = node
        matching = [g for g in self.groups.values() if uid(pod) in g.owners]
        matching += [g for g in self.inverse.values() if g.selects(pod)]
        for group in matching:
            domains = group.allowed(pod, strict.of(group.key), node.of(group.key))
            if not domains:
                return None
            found = found.adding(Requirement.new(group.key, "In", domains))
        return found

    def record(self, pod: dict[str, Any], taints: Any, node: Requirements) -> None:
        for group in self.groups.values():
            if group.selects(pod) and (group.filter is None or group.filter.matches(taints, node)):
                requirement = node.of(group.key)
                if group.kind == ANTI or (not requirement.complement and len(requirement.values) == 1):
                    group.record(*requirement.values)
        for group in self.inverse.values():
            if uid(pod) in group.owners:
                group.record(*node.of(group.key).values)
