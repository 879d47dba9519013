"""What is wrong with a NodePool that its schema cannot tell.

An API server has checked the schema and its rules before. What is found here makes the pool's ValidationSucceeded
condition False, and nothing is launched from it. Rules that a server may not evaluate (``holokube`` without the
extra ``cel``) are checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS, KNOWN_VALUES, NODEPOOL_LABEL, why_restricted
from holokube.kube import names
from holokube.kube.requirements import NORMALIZED_LABELS
from holokube.kube.selectors import parse_int64
from holokube.kube.taints import ALL_EFFECTS

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_COMPARING: Final = frozenset({"Gt", "Lt", "Gte", "Lte"})
_EMPTY: Final[Mapping[str, Any]] = {}


def problems(pool: Mapping[str, Any], well_known: frozenset[str] = ALL_WELL_KNOWN_LABELS) -> list[str]:
    """Everything that keeps a NodePool from being used, each in a sentence that names the field."""
    template = (pool.get("spec") or _EMPTY).get("template") or _EMPTY
    spec = template.get("spec") or _EMPTY
    requirements = spec.get("requirements") or ()
    found = _of_labels((template.get("metadata") or _EMPTY).get("labels") or _EMPTY, well_known)
    found += _of_taints(spec)
    for requirement in requirements:
        found += [f"requirements: {problem}" for problem in requirement_problems(requirement, well_known)]
    if any(requirement.get("key") == NODEPOOL_LABEL for requirement in requirements):
        found.append(f"requirements: key {NODEPOOL_LABEL} is restricted")
    return found


def _of_labels(labels: Mapping[str, str], well_known: frozenset[str]) -> list[str]:
    found = []
    for key, value in labels.items():
        if key == NODEPOOL_LABEL:
            found.append(f"labels: key {key} is restricted")
        found += [f"labels: key {key!r}: {problem}" for problem in names.is_qualified_name(key)]
        found += [f"labels: value {value!r} of {key}: {problem}" for problem in names.is_label_value(value)]
        restriction = why_restricted(key, well_known)
        if restriction:
            found.append(f"labels: {restriction}")
    return found


def _of_taints(spec: Mapping[str, Any]) -> list[str]:
    """Both lists end up on one node, so a pair of key and effect may be in one of them only, and once."""
    found = []
    seen = set()
    for field in ("taints", "startupTaints"):
        for taint in spec.get(field) or ():
            key, value, effect = (taint.get(part) or "" for part in ("key", "value", "effect"))
            found += [f"{field}: key {key!r}: {problem}" for problem in names.is_qualified_name(key)]
            if value:
                found += [f"{field}: value {value!r}: {problem}" for problem in names.is_qualified_name(value)]
            if effect and effect not in ALL_EFFECTS:
                found.append(f"{field}: effect {effect!r} is none of {', '.join(sorted(ALL_EFFECTS))}")
            if (key, effect) in seen:
                found.append(f"{field}: key {key} with effect {effect} is there twice")
            seen.add((key, effect))
    return found


def requirement_problems(
    requirement: Mapping[str, Any], well_known: frozenset[str] = ALL_WELL_KNOWN_LABELS
) -> list[str]:
    """Everything that is wrong with one requirement."""
    given = requirement.get("key") or ""
    key = NORMALIZED_LABELS.get(given, given)
    operator = requirement.get("operator") or ""
    values: list[str] = requirement.get("values") or []
    minimum = requirement.get("minValues")
    found = []
    if operator not in OPERATORS:
        found.append(f"key {key}: operator {operator!r} is none of {', '.join(OPERATORS)}")
    restriction = why_restricted(key, well_known)
    if restriction:
        found.append(restriction)
    found += _of_known_values(key, operator, values, minimum)
    found += [f"key {key!r} is no label key: {problem}" for problem in names.is_qualified_name(key)]
    for value in values:
        found += [f"key {key}: value {value!r}: {problem}" for problem in names.is_label_value(value)]
    if operator == "In" and not values:
        found.append(f"key {key}: operator In must have a value")
    if operator == "In" and minimum is not None and len(values) < minimum:
        found.append(f"key {key}: minValues is {minimum}, but there are only {len(values)} values")
    if operator in _COMPARING:
        number = parse_int64(values[0]) if len(values) == 1 else None
        if number is None or number < 0:
            found.append(f"key {key}: operator {operator} must have a single integer that is not negative")
    return found


def _of_known_values(key: str, operator: str, values: Iterable[str], minimum: int | None) -> list[str]:
    known = KNOWN_VALUES.get(key)
    if known is None or operator != "In":
        return []
    given = list(values)
    usable = [value for value in given if value in known]
    if not usable:
        return [f"key {key}: none of the values {', '.join(given) or '(none)'} is one of {', '.join(sorted(known))}"]
    if minimum is not None and len(usable) < minimum:
        return [f"key {key}: minValues is {minimum}, but only {', '.join(usable)} can be used"]
    return []


def unknown_values(pool: Mapping[str, Any]) -> dict[str, list[str]]:
    """Values that mean nothing beside others that do, by label key: worth a line in the log, no more."""
    template = (pool.get("spec") or _EMPTY).get("template") or _EMPTY
    found: dict[str, list[str]] = {}
    for requirement in (template.get("spec") or _EMPTY).get("requirements") or ():
        given = requirement.get("key") or ""
        key = NORMALIZED_LABELS.get(given, given)
        known = KNOWN_VALUES.get(key)
        if known is not None and requirement.get("operator") == "In":
            unknown = [value for value in requirement.get("values") or () if value not in known]
            if unknown:
                found.setdefault(key, []).extend(unknown)
    return found
