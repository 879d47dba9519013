"""Node affinity and pod (anti-)affinity as compiled views of a pod's spec.

The views are immutable, and equal when their conditions are, so pods can be grouped by them. A malformed term
does not fail the whole pod: like upstream it matches nothing, and its complaints are kept in ``errors``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.kube.quoting import go_json_strings, go_quote
from holokube.kube.selectors import LabelRequirement, LabelSelector, Operator, SelectorError
from holokube.kube.types import JsonObject

_NODE_OPERATORS: Final = {
    "In": Operator.IN, "NotIn": Operator.NOT_IN, "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST, "Gt": Operator.GREATER_THAN, "Lt": Operator.LESS_THAN,
}  # fmt: skip
_NAME_FIELD: Final = "metadata.name"


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """A ``matchFields`` entry: the field must have, or must not have, one value."""

    field: str
    value: str
    negated: bool = False

    def matches(self, name: str) -> bool:
        """Whether a node of that name fulfils it; a node has no other field to select by."""
        found = name if self.field == _NAME_FIELD else ""
        return (found == self.value) is not self.negated


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One of several alternatives: all its conditions must hold."""

    labels: LabelSelector
    fields: tuple[FieldCondition, ...] = ()
    errors: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, term: Mapping[str, Any], path: str = "") -> NodeSelectorTerm | None:
        """The term, or None if it is empty and so selects nothing."""
        expressions, match_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not expressions and not match_fields:
            return None
        errors: list[str] = []
        requirements = []
        for i, expression in enumerate(expressions):
            where = f"{path}.matchExpressions[{i}]" if path else f"matchExpressions[{i}]"
            try:
                requirements.append(_label_requirement(expression, where))
            except SelectorError as error:
                errors.extend(error.messages)
        conditions = []
        for i, entry in enumerate(match_fields):
            where = f"{path}.matchFields[{i}]" if path else f"matchFields[{i}]"
            try:
                conditions.append(_field_condition(entry, where))
            except SelectorError as error:
                errors.extend(error.messages)
        return cls(LabelSelector(requirements), tuple(conditions), tuple(errors))

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        """Whether a node with these labels and this name fulfils every condition."""
        if self.errors or not self.labels.matches(labels):
            return False
        # A node without a name, as in a template, is not held against its fields.
        return not name or all(condition.matches(name) for condition in self.fields)


def _label_requirement(expression: Mapping[str, Any], path: str) -> LabelRequirement:
    word = expression.get("operator", "")
    operator = _NODE_OPERATORS.get(word)
    if operator is None:
        raise SelectorError(_unsupported(f"{path}.operator", word, _NODE_OPERATORS))
    return LabelRequirement.checked(expression.get("key", ""), operator, expression.get("values"), path=path)


def _field_condition(entry: Mapping[str, Any], path: str) -> FieldCondition:
    word, values = entry.get("operator", ""), entry.get("values")
    if word not in ("In", "NotIn"):
        raise SelectorError(_unsupported(f"{path}.operator", word, ("In", "NotIn")))
    if not values or len(values) != 1:
        raise SelectorError(f"{path}.values: Invalid value: {go_json_strings(values)}: must have one element")
    return FieldCondition(entry.get("key", ""), values[0], word == "NotIn")


def _unsupported(path: str, word: str, supported: Iterable[str]) -> str:
    listed = ", ".join(map(go_quote, supported))
    return f"{path}: Unsupported value: {go_quote(word)}: supported values: {listed}"


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Alternatives of which one must match: the ``NodeSelector`` of node affinities and of volumes."""

    terms: tuple[NodeSelectorTerm, ...]
    has_empty_terms: bool = False
    """Whether some terms had no condition; they match nothing, and name no nodes either."""

    @classmethod
    def from_json(cls, selector: Mapping[str, Any], path: str = "") -> NodeSelector:
        """The selector in ``{"nodeSelectorTerms": [...]}``; empty terms match nothing and are dropped."""
        prefix = f"{path}.nodeSelectorTerms" if path else "nodeSelectorTerms"
        parsed = [
            NodeSelectorTerm.from_json(term, f"{prefix}[{i}]")
            for i, term in enumerate(selector.get("nodeSelectorTerms") or ())
        ]
        return cls(tuple(term for term in parsed if term is not None), None in parsed)

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong with its terms; upstream reports it only when no other term matches."""
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        """Whether any term matches; without terms nothing does."""
        for term in self.terms:  # noqa: SIM110 - a plain loop costs half of any() with a generator
            if term.matches(labels, name):
                return True
        return False

    def node_names(self) -> frozenset[str] | None:
        """The only nodes that can match, if every term names its own (daemon pods do); None if any may."""
        if self.has_empty_terms:
            return None
        found: set[str] = set()
        for term in self.terms:
            named = [{c.value} for c in term.fields if c.field == _NAME_FIELD and not c.negated]
            if not named:
                return None
            found |= set.intersection(*named)
        return frozenset(found) if self.terms else None


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """What a pod demands of its node: ``nodeSelector`` AND any of the required affinity terms."""

    node_selector: LabelSelector
    affinity: NodeSelector | None = None

    @classmethod
    def of_pod(cls, pod: Mapping[str, Any]) -> RequiredNodeAffinity:
        """The demands of a Pod object, or of anything with a pod's ``spec``."""
        spec = pod.get("spec") or {}
        required = _node_affinity(spec).get("requiredDuringSchedulingIgnoredDuringExecution")
        return cls(
            LabelSelector.from_labels(spec.get("nodeSelector")),
            NodeSelector.from_json(required) if required is not None else None,
        )

    @property
    def is_empty(self) -> bool:
        """Whether any node will do."""
        return self.affinity is None and self.node_selector.is_empty

    def matches(self, labels: Mapping[str, str] | None, name: str) -> bool:
        """Whether a node with these labels and this name will do."""
        if not self.node_selector.matches(labels):
            return False
        return self.affinity is None or self.affinity.matches(labels, name)

    def matches_node(self, node: Mapping[str, Any]) -> bool:
        """Whether this Node object will do."""
        metadata = node.get("metadata") or {}
        return self.matches(metadata.get("labels"), metadata.get("name", ""))


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    """A wish about the node, and how much it weighs (1 to 100)."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PreferredNodeAffinity:
    """What a pod would like of its node."""

    terms: tuple[PreferredNodeTerm, ...] = ()

    @classmethod
    def of_pod(cls, pod: Mapping[str, Any]) -> PreferredNodeAffinity:
        """The wishes of a Pod object; those without weight or content are dropped."""
        wishes = _node_affinity(pod.get("spec") or {}).get("preferredDuringSchedulingIgnoredDuringExecution")
        terms = []
        for i, wish in enumerate(wishes or ()):
            term = NodeSelectorTerm.from_json(wish.get("preference") or {}, f"[{i}]")
            if wish.get("weight") and term is not None:
                terms.append(PreferredNodeTerm(wish["weight"], term))
        return cls(tuple(terms))

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong with the terms; upstream refuses to score the pod if anything is."""
        return tuple(error for wish in self.terms for error in wish.term.errors)

    def score(self, labels: Mapping[str, str] | None, name: str) -> int:
        """The sum of the weights of the wishes that a node fulfils."""
        return sum(wish.weight for wish in self.terms if wish.term.matches(labels, name))


def _node_affinity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Which pods a pod wants near it, or not near it, and what near means (``topology_key``)."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    """Namespaces picked by label, besides ``namespaces``; an absent selector picks none."""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()
    weight: int = 0
    """1 to 100 for a preferred term, 0 for a required one."""

    @classmethod
    def from_json(
        cls,
        term: Mapping[str, Any],
        *,
        namespace: str,
        labels: Mapping[str, str] | None = None,
        weight: int = 0,
    ) -> PodAffinityTerm:
        """The term of a pod in ``namespace``; :class:`SelectorError` if a selector is malformed.

        The API server writes ``matchLabelKeys`` into the selector when a pod is created, so a stored pod
        needs no ``labels`` here. A pod that was never created, made from a template, does: give its labels.
        """
        selector = term.get("labelSelector")
        if labels is not None:
            selector = apply_label_keys(term, labels)
        listed = term.get("namespaces") or ()
        if not listed and term.get("namespaceSelector") is None:
            listed = (namespace,)
        return cls(
            term.get("topologyKey", ""),
            LabelSelector.from_json(selector),
            frozenset(listed),
            LabelSelector.from_json(term.get("namespaceSelector")),
            tuple(term.get("matchLabelKeys") or ()),
            tuple(term.get("mismatchLabelKeys") or ()),
            weight,
        )

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str] | None,
        namespace_labels: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether another pod, of that namespace and with these labels, is meant."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False


def apply_label_keys(constraint: Mapping[str, Any], labels: Mapping[str, str]) -> JsonObject | None:
    """The ``labelSelector`` of an affinity term or spread constraint with its label keys written into it.

    ``matchLabelKeys`` become ``In``, ``mismatchLabelKeys`` become ``NotIn`` conditions on the pod's own
    values; keys the pod lacks are ignored. An absent selector stays absent, since it matches nothing anyway.
    """
    selector: JsonObject | None = constraint.get("labelSelector")
    if selector is None:
        return None
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in constraint.get(field) or ()
        if key in labels
    ]
    if not added:
        return selector
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """All pod affinity and anti-affinity of a pod."""

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[PodAffinityTerm, ...] = ()
    anti_required: tuple[PodAffinityTerm, ...] = ()
    anti_preferred: tuple[PodAffinityTerm, ...] = ()

    @classmethod
    def of_pod(cls, pod: Mapping[str, Any], *, merge_label_keys: bool = False) -> PodAffinity:
        """The terms of a Pod object; ``merge_label_keys`` for pods that no API server has seen."""
        affinity = (pod.get("spec") or {}).get("affinity")
        if not affinity or not (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
            return _NO_POD_AFFINITY
        metadata = pod.get("metadata") or {}
        namespace = metadata.get("namespace", "")
        labels = (metadata.get("labels") or {}) if merge_label_keys else None
        lists = [
            _pod_terms(affinity.get(kind) or {}, namespace, labels)
            for kind in ("podAffinity", "podAntiAffinity")
        ]
        return cls(*lists[0], *lists[1])

    @property
    def is_empty(self) -> bool:
        """Whether the pod cares about no other pod."""
        return not (self.required or self.preferred or self.anti_required or self.anti_preferred)


_NO_POD_AFFINITY: Final = PodAffinity()


def _pod_terms(
    affinity: Mapping[str, Any], namespace: str, labels: Mapping[str, str] | None
) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return (
        tuple(PodAffinityTerm.from_json(term, namespace=namespace, labels=labels) for term in required),
        tuple(
            PodAffinityTerm.from_json(
                wish.get("podAffinityTerm") or {},
                namespace=namespace,
                labels=labels,
                weight=wish.get("weight", 0),
            )
            for wish in preferred
        ),
    )
