"""Which nodes a pod may be on, by its own words: tolerations, node selector, required node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.karpenter.checker_world import Kind, Place, Pod, accepts, label_of, stable_key


def tolerates(pod: Pod, taint: Mapping[str, Any]) -> bool:
    for toleration in pod["spec"].get("tolerations") or ():
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        operator = toleration.get("operator") or "Equal"
        if not toleration.get("key"):
            if operator == "Exists":
                return True
            continue
        if toleration["key"] == taint["key"] and (
            operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")
        ):
            return True
    return False


def matches_node(pod: Pod, place: Place, kind: Kind | None) -> bool:
    spec = pod["spec"]
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not holds({"key": key, "operator": "In", "values": [value]}, place, kind):
            return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution")
    if affinity is None:
        return True
    return any(term_holds(term, place, kind) for term in affinity.get("nodeSelectorTerms") or ())


def term_holds(term: Mapping[str, Any], place: Place, kind: Kind | None) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = all(
        not place.is_new and (place.name in entry["values"]) is (entry["operator"] == "In") for entry in fields)
    return names and all(holds(expression, place, kind) for expression in expressions)


def holds(expression: Mapping[str, Any], place: Place, kind: Kind | None) -> bool:
    return accepts(expression, label_of(place, kind, stable_key(expression["key"])))


