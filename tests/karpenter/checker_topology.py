"""The checker's rules about pods together: spread, affinity, anti-affinity, at the end of a plan."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holokube.kube.affinity import apply_label_keys
from holokube.kube.selectors import LabelSelector
from tests.karpenter.checker_nodes import matches_node, tolerates
from tests.karpenter.checker_world import (
    HOSTNAME,
    Place,
    Pod,
    Values,
    Violation,
    World,
    accepts,
    key_of,
    label_of,
    stable_key,
)


@dataclass(frozen=True, eq=False)
class Spot:
    """A pod where it is, or where the plan puts it."""

    pod: Pod
    place: Place
    is_placed: bool
    """By the plan."""


def check_topology(world: World) -> Iterator[Violation]:
    """Everything about spread and (anti-)affinity that does not hold."""
    crowd = _Crowd(world)
    yield from _spread(world, crowd)
    yield from _anti_affinity(crowd)
    yield from _affinity(crowd)


class _Crowd:
    """All pods that count for topology, found by selector."""

    def __init__(self, world: World) -> None:
        self.namespaces = world.namespaces
        self.spots: list[Spot] = []
        for place in world.places:
            self.spots += [Spot(pod, place, False) for pod in place.before if _counts(pod)]
            self.spots += [Spot(pod, place, True) for pod in place.placed]
        self._by_labels: dict[tuple[str, frozenset[tuple[str, str]]], list[Spot]] = defaultdict(list)
        for spot in self.spots:
            self._by_labels[_identity(spot.pod)].append(spot)
        self._domains: dict[tuple[int, str], frozenset[str] | None] = {}
        self._matching: dict[str, list[Spot]] = {}

    @cached_property
    def placed(self) -> list[Spot]:
        return [spot for spot in self.spots if spot.is_placed]

    def matching(self, owner: Pod, term: Mapping[str, Any], *, own_namespace: bool) -> list[Spot]:
        """The pods that a term of a pod means."""
        selector = apply_label_keys(term, owner["metadata"].get("labels") or {})
        scope = self._scope(owner, term, own_namespace)
        key = json.dumps([selector, sorted(scope)], sort_keys=True)
        if key not in self._matching:
            meant = LabelSelector.from_json(selector)
            self._matching[key] = [
                spot for (namespace, labels), spots in self._by_labels.items()
                if namespace in scope and meant.matches(dict(labels)) for spot in spots
            ]  # fmt: skip
        return self._matching[key]

    def _scope(self, owner: Pod, term: Mapping[str, Any], own_namespace: bool) -> frozenset[str]:
        mine = str(owner["metadata"].get("namespace") or "default")
        listed, by_label = term.get("namespaces") or (), term.get("namespaceSelector")
        if own_namespace or (not listed and by_label is None):
            return frozenset({mine})
        if by_label is None:
            return frozenset(listed)
        picked = LabelSelector.from_json(by_label)
        everywhere = {namespace for namespace, _ in self._by_labels}
        return frozenset(listed) | {
            name for name in everywhere if picked.matches(self.namespaces.get(name, {}))}

    def domains(self, place: Place, key: str) -> frozenset[str] | None:
        """The values of a topology key that a place may have: one, several, none; None if nobody can tell."""
        known = self._domains.get((id(place), key), ())
        if known == ():
            known = self._domains[id(place), key] = _domains_of(place, key)
        return known  # type: ignore[return-value]  # an empty tuple is the only other thing in there


def _identity(pod: Pod) -> tuple[str, frozenset[tuple[str, str]]]:
    meta = pod["metadata"]
    return str(meta.get("namespace") or "default"), frozenset((meta.get("labels") or {}).items())


def _counts(pod: Pod) -> bool:
    """Whether a bound pod counts: it has not ended and is not about to."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")


def _domains_of(place: Place, key: str) -> frozenset[str] | None:
    if key == HOSTNAME:
        label = place.labels.get(key)
        single = label.single if label is not None and not place.is_new else None
        return frozenset({single or place.name})
    if not place.is_new:
        label = place.labels.get(key)
        return frozenset() if label is None else label.known
    found: frozenset[str] = frozenset()
    for kind in place.options:
        label = label_of(place, kind, key)
        if label is None:
            continue
        if label.is_open:
            return None
        offered = [deal.labels[key] for deal in place.deals(kind) if key in deal.labels]
        found |= {value for value in label.listed if not offered or any(one.has(value) for one in offered)}
    return found


def _single(domains: frozenset[str] | None) -> str | None:
    return next(iter(domains)) if domains is not None and len(domains) == 1 else None


def _terms(pod: Pod, kind: str) -> Iterable[Mapping[str, Any]]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()


def _anti_affinity(crowd: _Crowd) -> Iterator[Violation]:
    """No pod is with one that it, or that one, shuns; pairs that were together before are not the plan's."""
    near: dict[tuple[int, str], dict[str, list[Spot]]] = {}
    for spot in crowd.spots:
        for term in _terms(spot.pod, "podAntiAffinity"):
            key = stable_key(term["topologyKey"])
            shunned = crowd.matching(spot.pod, term, own_namespace=False)
            by_domain = near.get((id(shunned), key))
            if by_domain is None:
                by_domain = near[id(shunned), key] = defaultdict(list)
                for other in shunned:
                    domain = _single(crowd.domains(other.place, key))
                    if domain is not None:
                        by_domain[domain].append(other)
            domain = _single(crowd.domains(spot.place, key))
            mates = by_domain.get(domain, []) if domain is not None else [
                other for other in shunned
                if other.place is spot.place and crowd.domains(spot.place, key) != frozenset()
            ]  # fmt: skip
            for other in mates:
                if other.pod is not spot.pod and (spot.is_placed or other.is_placed):
                    yield Violation(
                        "anti-affinity", spot.place.name, key_of(spot.pod),
                        f"shuns {key_of(other.pod)} on {other.place.name}, both in {key} {domain or 'of one node'}")


def _affinity(crowd: _Crowd) -> Iterator[Violation]:
    """Every placed pod is with one that it wants to be with, or is the first of its own kind."""
    for spot in crowd.placed:
        for term in _terms(spot.pod, "podAffinity"):
            key = stable_key(term["topologyKey"])
            wanted = crowd.matching(spot.pod, term, own_namespace=False)
            others = [other for other in wanted if other.pod is not spot.pod]
            domains = crowd.domains(spot.place, key)
            if domains == frozenset():
                yield Violation("affinity", spot.place.name, key_of(spot.pod), f"the node has no {key}")
                continue
            occupied = {_single(crowd.domains(other.place, key)) for other in others}
            if any(other.place is spot.place for other in others) or (domains is not None and domains <= occupied):
                continue
            if len(others) == len(wanted):
                yield Violation(
                    "affinity", spot.place.name, key_of(spot.pod), f"nobody it wants is in {key} {_text(domains)}")
                continue
            missed = _missed(crowd, spot, term, key, others)
            if missed:
                yield Violation(
                    "affinity", spot.place.name, key_of(spot.pod),
                    f"is alone in {key} {_text(domains)}, not with {missed}")


def _missed(crowd: _Crowd, spot: Spot, term: Mapping[str, Any], key: str, others: list[Spot]) -> str:
    """A pod that the first of its kind should have gone to, since it was there before or might as well have come."""
    for other in others:
        domain = _single(crowd.domains(other.place, key))
        if domain is None or not _may_use(spot.pod, key, domain):
            continue
        if not other.is_placed:
            return key_of(other.pod)
        mine = _single(crowd.domains(spot.place, key))
        if mine is not None and term in _terms(other.pod, "podAffinity") and _may_use(other.pod, key, mine):
            return key_of(other.pod)
    return ""


def _text(domains: frozenset[str] | None) -> str:
    return "any" if domains is None else ", ".join(sorted(domains))


def _alternatives(pod: Pod) -> list[list[Mapping[str, Any]]]:
    """The expressions of a pod about nodes, one list for each of its ways."""
    selector = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in (pod["spec"].get("nodeSelector") or {}).items()
    ]
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: Iterable[Mapping[str, Any]] = affinity.get("nodeSelectorTerms") or ({},)
    return [[*selector, *(term.get("matchExpressions") or ())] for term in terms]


def _may_use(pod: Pod, key: str, domain: str) -> bool:
    return any(_way_allows(way, key, domain) for way in _alternatives(pod))


def _way_allows(way: list[Mapping[str, Any]], key: str, domain: str) -> bool:
    return all(
        stable_key(expression["key"]) != key or accepts(expression, Values.of(domain)) for expression in way)


def _spread(world: World, crowd: _Crowd) -> Iterator[Violation]:
    """In every domain that got a pod with a constraint, there are at most max skew more than where there are fewest.

    Pods with the very same constraint are judged together. Others that match count where there are fewest, and not
    where there are most: they may have come later, and need not care.
    """
    groups: dict[str, list[Spot]] = defaultdict(list)
    constraints: dict[str, Mapping[str, Any]] = {}
    for spot in crowd.placed:
        for constraint in spot.pod["spec"].get("topologySpreadConstraints") or ():
            if constraint.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule":
                continue
            key = json.dumps(
                [constraint, apply_label_keys(constraint, spot.pod["metadata"].get("labels") or {}),
                 _alternatives(spot.pod), spot.pod["spec"].get("tolerations"),
                 spot.pod["metadata"].get("namespace")], sort_keys=True)  # fmt: skip
            groups[key].append(spot)
            constraints[key] = constraint
    for signature, owners in groups.items():
        yield from _check_spread(world, crowd, constraints[signature], owners)


def _check_spread(
    world: World, crowd: _Crowd, constraint: Mapping[str, Any], owners: list[Spot]
) -> Iterator[Violation]:
    key, skew = stable_key(constraint["topologyKey"]), int(constraint["maxSkew"])
    pod = owners[0].pod
    matching = crowd.matching(pod, constraint, own_namespace=True)
    mine = {id(spot) for spot in owners}
    most: Counter[str] = Counter()
    fewest: Counter[str] = Counter()
    for spot in matching:
        domains = crowd.domains(spot.place, key)
        fewest.update(domains or ())
        counts = id(spot) in mine or (not spot.is_placed and _is_included(spot.place, pod, constraint))
        domain = _single(domains)
        if counts and domain is not None:
            most[domain] += 1
    lowest = 0 if key == HOSTNAME else _lowest(world, crowd, constraint, pod, fewest)
    told: set[str] = set()
    for spot in owners:
        domain = _single(crowd.domains(spot.place, key))
        if domain is None:
            yield Violation("spread", spot.place.name, key_of(spot.pod), f"its {key} is not settled")
        elif most[domain] - lowest > skew and domain not in told:
            told.add(domain)
            yield Violation(
                "spread", spot.place.name, key_of(spot.pod),
                f"{most[domain]} in {key} {domain}, {lowest} in the least, max skew {skew}")


def _is_included(place: Place, pod: Pod, constraint: Mapping[str, Any]) -> bool:
    """Whether a node counts at all for a constraint of a pod."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node(pod, place, None):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") != "Honor" or all(
        tolerates(pod, taint) for taint in place.taints if taint.get("effect") in ("NoSchedule", "NoExecute"))


def _lowest(
    world: World, crowd: _Crowd, constraint: Mapping[str, Any], pod: Pod, counts: Counter[str]
) -> int:
    """How many there are at most in the domain that has fewest, of those that the pod may use."""
    key = stable_key(constraint["topologyKey"])
    universe = _universe(world, crowd, constraint, pod)
    lows = []
    for way in _alternatives(pod):
        usable = [domain for domain in universe if _way_allows(way, key, domain)]
        if len(usable) < int(constraint.get("minDomains") or 1) or not usable:
            lows.append(0)
        else:
            lows.append(min(counts[domain] for domain in usable))
    return max(lows)


def _universe(world: World, crowd: _Crowd, constraint: Mapping[str, Any], pod: Pod) -> set[str]:
    """The domains there are or could be: of nodes that count, and of what pools offer."""
    key = stable_key(constraint["topologyKey"])
    honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    found: set[str] = set()
    for place in world.places:
        if not place.is_new and not place.is_leaving and _is_included(place, pod, constraint):
            found |= crowd.domains(place, key) or frozenset()
    for pool in world.pools.values():
        if honors_taints and not all(tolerates(pod, taint) for taint in pool.taints):
            continue
        wanted = pool.labels.get(key)
        if wanted is not None and not wanted.is_open:
            found |= wanted.listed
        for kind in pool.kinds:
            if key in kind.labels and not kind.labels[key].is_open:
                found |= {value for value in kind.labels[key].listed if wanted is None or wanted.has(value)}
    return found
