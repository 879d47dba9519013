"""Topology groups as pods ask for them: spread constraints, affinity and anti-affinity.

Pods that ask for the same share one group and its counts. What counts as the same is upstream's choice, and it looks at
less than one would think: of a spread constraint's node filter only the label keys matter, not the values, so that the
filter of the first pod holds for all; ``minDomains`` does not matter at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import orjson

from holokube.karpenter.scheduling.relaxation import Demands
from holokube.karpenter.scheduling.requirement_states import RequirementState
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.taints import ALL_EFFECTS, Taint, Toleration, find_untolerated
from holokube.kube.types import JsonObject, Labels

_EMPTY: Final[Mapping[str, Any]] = {}
_ANY_SKEW: Final = 2**31 - 1


class GroupKind(Enum):
    """What a group demands of the pods that are bound by it."""

    SPREAD = "topology spread"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"


class LabelSet:
    """Namespace and labels of pods, as far as any selector asks for them. Compared by identity."""

    __slots__ = ("labels", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels


def tolerates(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> bool:
    """Whether every taint is tolerated, PreferNoSchedule included."""
    return find_untolerated(taints, tolerations, effects=_EVERY_EFFECT, comparison_operators=True) is None


_EVERY_EFFECT: Final = ALL_EFFECTS | {""}


class NodeFilter(NamedTuple):
    """Which nodes count for a spread constraint."""

    alternatives: tuple[tuple[Requirements, Requirement | None], ...]
    """Node selector and a required affinity term; the hostname stands apart."""
    honor_affinity: bool
    honor_taints: bool
    tolerations: tuple[Toleration, ...]

    @property
    def is_open(self) -> bool:
        """Whether every node counts."""
        return not self.honor_taints and (
            not self.honor_affinity
            or not self.alternatives
            or any(not wanted and on_host is None for wanted, on_host in self.alternatives)
        )

    def admits(self, state: RequirementState, hostname: str | None, taints: tuple[Taint, ...]) -> bool:
        """Whether a node, or one to be, counts."""
        if self.honor_taints and not tolerates(taints, self.tolerations):
            return False
        if not self.honor_affinity or not self.alternatives:
            return True
        return any(
            state.serves(wanted) and (on_host is None or _is_host(on_host, hostname))
            for wanted, on_host in self.alternatives
        )


def _is_host(wanted: Requirement, hostname: str | None) -> bool:
    return wanted.has(hostname) if hostname is not None else not wanted.is_positive


class GroupSpec:
    """What one group is about. Get it from :class:`SpecBook`; compared by identity."""

    __slots__ = (
        "_selected", "count_selector", "filter", "identity", "is_hostname", "key", "kind", "max_skew", "min_domains",
        "namespaces", "number", "selector", "universe_tolerations",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        identity: Hashable,
        kind: GroupKind,
        key: str,
        namespaces: frozenset[str],
        selector: JsonObject | None,
        max_skew: int = _ANY_SKEW,
        min_domains: int | None = None,
        node_filter: NodeFilter | None = None,
        universe_tolerations: tuple[Toleration, ...] | None = None,
    ) -> None:
        self.number = number
        self.identity = identity
        self.kind = kind
        self.key = key
        self.is_hostname = key == HOSTNAME_LABEL
        self.namespaces = namespaces
        self.selector = _compiled(selector)
        # Without a selector, no new pod counts, but every pod that is there does.
        self.count_selector = LabelSelector.everything() if selector is None else self.selector
        self.max_skew = max_skew
        self.min_domains = min_domains
        self.filter = None if node_filter is None or node_filter.is_open else node_filter
        """Which nodes count; None if all do."""
        self.universe_tolerations = universe_tolerations
        """If domains count only where these tolerate the taints of some pool; None if they always do."""
        self._selected: dict[LabelSet, bool] = {}

    def selects(self, labels: LabelSet) -> bool:
        """Whether a pod with these labels counts for the group."""
        found = self._selected.get(labels)
        if found is None:
            found = labels.namespace in self.namespaces and self.selector.matches(labels.labels)
            self._selected[labels] = found
        return found

    def counts_bound(self, labels: LabelSet) -> bool:
        """The same for a pod that was there before."""
        return labels.namespace in self.namespaces and self.count_selector.matches(labels.labels)

    def __str__(self) -> str:
        return f"{self.kind.value}, key={self.key}"


def _compiled(selector: JsonObject | None) -> LabelSelector:
    try:
        return LabelSelector.from_json(selector)
    except SelectorError:
        return LabelSelector.nothing()


def _odd(elements: Iterable[Hashable]) -> frozenset[Hashable]:
    """Elements that occur an odd number of times: upstream's hash of a list as a set lets pairs vanish."""
    return frozenset(element for element, times in Counter(elements).items() if times % 2)


def _selector_identity(selector: JsonObject | None) -> Hashable:
    if selector is None:
        return None
    expressions = frozenset(
        (e.get("key"), e.get("operator"), _odd(e.get("values") or ())) for e in selector.get("matchExpressions") or ()
    )
    return frozenset((selector.get("matchLabels") or _EMPTY).items()), expressions


class SpecBook:
    """All groups that pods of a problem ask for, and the labels that any selector looks at."""

    def __init__(
        self, pods: Iterable[JsonObject], namespaces: Mapping[str, Labels], watched: Iterable[str] = ()
    ) -> None:
        """``watched`` are labels that selectors look at besides those of the pods."""
        self._namespaces = namespaces
        self._specs: dict[Hashable, GroupSpec] = {}
        self._label_sets: dict[tuple[str, tuple[tuple[str, str], ...]], LabelSet] = {}
        self._selected_namespaces: dict[bytes, frozenset[str]] = {}
        self.watched = _watched_keys(pods).union(watched)

    def watched_labels(self, labels: Labels | None) -> dict[str, str]:
        """Those that some selector asks for."""
        if not labels:
            return {}
        watched = self.watched
        return {key: labels[key] for key in sorted(labels) if key in watched}

    def label_set(self, namespace: str, labels: Labels | None) -> LabelSet:
        """The set that pods with these labels belong to."""
        found = self.watched_labels(labels) if self.watched else {}
        key = namespace, tuple(found.items())
        known = self._label_sets.get(key)
        if known is None:
            known = self._label_sets[key] = LabelSet(namespace, found)
        return known

    def specs_of(self, labels: LabelSet, demands: Demands) -> tuple[GroupSpec, ...]:
        """The groups that a pod is bound by."""
        found = [self._spread(labels, demands, constraint) for constraint in demands.spread]
        found += [self._of_term(GroupKind.AFFINITY, labels, demands, term) for term in demands.affinity_terms]
        found += [self._of_term(GroupKind.ANTI_AFFINITY, labels, demands, term) for term in demands.anti_affinity_terms]
        return tuple(dict.fromkeys(found))

    def anti_specs_of(self, labels: LabelSet, demands: Demands) -> tuple[GroupSpec, ...]:
        """The required anti-affinity of a pod, as others feel it; wishes are not felt."""
        found = [self._of_term(GroupKind.ANTI_AFFINITY, labels, demands, term) for term in demands.anti_affinity]
        return tuple(dict.fromkeys(found))

    def _spread(self, labels: LabelSet, demands: Demands, constraint: JsonObject) -> GroupSpec:
        selector = constraint.get("labelSelector")
        added = [
            {"key": key, "operator": "In", "values": [labels.labels[key]]}
            for key in constraint.get("matchLabelKeys") or ()
            if key in labels.labels
        ]
        if added and selector is not None:
            selector = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}
        node_filter = _node_filter(demands, constraint)
        namespaces = frozenset({labels.namespace})
        max_skew = int(constraint.get("maxSkew") or 0)
        terms = [
            frozenset(wanted) | ({HOSTNAME_LABEL} if on_host is not None else set())
            for wanted, on_host in node_filter.alternatives
        ]
        filter_identity = (
            _odd(terms), node_filter.honor_affinity, node_filter.honor_taints, _odd(node_filter.tolerations)
        )  # fmt: skip
        key = constraint.get("topologyKey", "")
        identity = (GroupKind.SPREAD, key, namespaces, max_skew, filter_identity, _selector_identity(selector))
        tolerations = demands.tolerations if node_filter.honor_taints else None
        min_domains = constraint.get("minDomains")
        content = (identity, node_filter, min_domains, tolerations)
        facts = (GroupKind.SPREAD, key, namespaces, selector, max_skew, min_domains, node_filter, tolerations)
        return self._intern(content, identity, *facts)

    def _of_term(self, kind: GroupKind, labels: LabelSet, demands: Demands, term: JsonObject) -> GroupSpec:
        key, selector = term.get("topologyKey", ""), term.get("labelSelector")
        namespaces = self._namespaces_of(labels.namespace, term)
        identity = (kind, key, namespaces, _selector_identity(selector))
        # The domains of a group are those that the pod which asked for it first can reach through taints.
        content = (identity, demands.tolerations)
        reach = demands.tolerations
        return self._intern(content, identity, kind, key, namespaces, selector, universe_tolerations=reach)

    def _intern(self, content: Hashable, identity: Hashable, *facts: Any, **more: Any) -> GroupSpec:
        known = self._specs.get(content)
        if known is None:
            known = self._specs[content] = GroupSpec(len(self._specs), identity, *facts, **more)
        return known

    def _namespaces_of(self, own: str, term: JsonObject) -> frozenset[str]:
        listed, selector = term.get("namespaces") or (), term.get("namespaceSelector")
        if selector is None:
            return frozenset(listed) if listed else frozenset({own})
        key = orjson.dumps(selector, option=orjson.OPT_SORT_KEYS)
        selected = self._selected_namespaces.get(key)
        if selected is None:
            compiled = _compiled(selector)
            selected = frozenset(name for name, labels in self._namespaces.items() if compiled.matches(labels))
            self._selected_namespaces[key] = selected
        return selected | frozenset(listed)


def _node_filter(demands: Demands, constraint: JsonObject) -> NodeFilter:
    selected = Requirements.from_labels(demands.node_selector)
    if demands.node_terms is None:
        alternatives = [selected]
    else:
        alternatives = [
            selected.merged(Requirements.from_json(term.get("matchExpressions"))) for term in demands.node_terms
        ]
    return NodeFilter(
        tuple((one.without(HOSTNAME_LABEL), one.get(HOSTNAME_LABEL)) for one in alternatives),
        (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor",
        (constraint.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        demands.tolerations,
    )


def _watched_keys(pods: Iterable[JsonObject]) -> frozenset[str]:
    keys: set[str] = set()
    seen: set[bytes] = set()
    for pod in pods:
        spec = pod.get("spec") or _EMPTY
        affinity, spread = spec.get("affinity"), spec.get("topologySpreadConstraints")
        if not affinity and not spread:
            continue
        fingerprint = orjson.dumps((affinity, spread))
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        keys.update(spread_keys(spread or ()))
        for kind in ("podAffinity", "podAntiAffinity"):
            for terms in ((affinity or _EMPTY).get(kind) or _EMPTY).values():
                for term in terms or ():
                    keys.update(_selector_keys((term.get("podAffinityTerm") or term).get("labelSelector")))
    return frozenset(keys)


def spread_keys(constraints: Iterable[JsonObject]) -> frozenset[str]:
    """The labels that spread constraints look at."""
    keys: set[str] = set()
    for constraint in constraints:
        keys.update(constraint.get("matchLabelKeys") or ())
        keys.update(_selector_keys(constraint.get("labelSelector")))
    return frozenset(keys)


def _selector_keys(selector: JsonObject | None) -> set[str]:
    selector = selector or {}
    return {*(selector.get("matchLabels") or ()), *(e.get("key", "") for e in selector.get("matchExpressions") or ())}
