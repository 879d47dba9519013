"""Rules for what steers the scheduler: tolerations, affinity, topology spread, gates."""

from __future__ import annotations

from collections.abc import Iterable

from holokube.apiserver.field_errors import FieldErrors
from holokube.kube import names
from holokube.kube.selectors import validate_label_selector
from holokube.kube.types import JsonObject

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_tolerations(tolerations: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    for index, toleration in enumerate(tolerations):
        at = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            errors.all_invalid(f"{at}.key", key, names.is_qualified_name(key))
        elif operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            errors.invalid(f"{at}.operator", operator, detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            errors.invalid(
                f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
            )
        if operator in ("Equal", ""):
            problems = names.is_label_value(value)
            if problems:
                errors.invalid(f"{at}.operator", value, ";".join(problems))
        elif operator == "Exists":
            if value:
                errors.invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        elif operator in ("Lt", "Gt"):
            errors.not_supported(f"{at}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
        else:
            errors.not_supported(f"{at}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            errors.not_supported(f"{at}.effect", effect, _EFFECTS)


def validate_affinity(affinity: JsonObject, path: str, errors: FieldErrors) -> None:
    node = affinity.get("nodeAffinity")
    if node is not None:
        required = node.get(_REQUIRED)
        if required is not None:
            validate_node_selector(required, f"{path}.nodeAffinity.{_REQUIRED}", errors)
        for index, term in enumerate(node.get(_PREFERRED) or ()):
            at = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
            _validate_weight(term, at, errors)
            # Values that are no label values only get a warning here.
            validate_node_term(term.get("preference") or {}, f"{at}.preference", errors, check_values=False)
    for key in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(key)
        if pods is None:
            continue
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            _validate_pod_term(term, f"{path}.{key}.{_REQUIRED}[{index}]", errors)
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            at = f"{path}.{key}.{_PREFERRED}[{index}]"
            _validate_weight(weighted, at, errors)
            _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm", errors)


def _validate_weight(term: JsonObject, path: str, errors: FieldErrors) -> None:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def validate_node_selector(selector: JsonObject, path: str, errors: FieldErrors) -> None:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        validate_node_term(term, f"{path}.nodeSelectorTerms[{index}]", errors, check_values=True)


def validate_node_term(term: JsonObject, path: str, errors: FieldErrors, *, check_values: bool) -> None:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                errors.required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.forbidden(f"{at}.values", detail)
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                errors.required(
                    f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        else:
            errors.invalid(f"{at}.operator", operator, "not a valid selector operator")
        key = expression.get("key", "")
        errors.all_invalid(f"{at}.key", key, names.is_qualified_name(key))
        if check_values:
            for number, value in enumerate(values):
                errors.all_invalid(f"{at}.values[{number}]", value, names.is_label_value(value))
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _validate_node_field(requirement, f"{path}.matchFields[{index}]", errors)


def _validate_node_field(requirement: JsonObject, path: str, errors: FieldErrors) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.required(f"{path}.values", detail)
    key = requirement.get("key", "")
    if key != "metadata.name":
        errors.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        errors.all_invalid(f"{path}.values[{index}]", value, names.is_dns1123_subdomain(value))


def _validate_pod_term(term: JsonObject, path: str, errors: FieldErrors) -> None:
    errors.causes += validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors.causes += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors.all_invalid(f"{path}.namespace", name, names.is_dns1123_label(name))
    _validate_label_keys(term, path, errors)
    key = term.get("topologyKey", "")
    if not key:
        errors.required(f"{path}.topologyKey", "can not be empty")
    errors.all_invalid(f"{path}.topologyKey", key, names.is_qualified_name(key))


def _validate_label_keys(term: JsonObject, path: str, errors: FieldErrors) -> None:
    """Keys whose values the server copies from the pod's labels into the selector."""
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                errors.all_invalid(f"{path}.{field}[{index}]", key, names.is_qualified_name(key))
    if match and selector is not None:
        selected = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            # The server itself adds one expression per key, so that only a second one is the user's.
            if key in match and key in selected:
                where = f"{path}[{len(match) - 1 - match[::-1].index(key)}]"
                errors.invalid(where, key, "exists in both matchLabelKeys and labelSelector")
            selected.add(key)
    for index, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def validate_topology_spread(constraints: list[JsonObject], path: str, errors: FieldErrors) -> None:
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        action = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            errors.invalid(f"{at}.maxSkew", skew, "must be greater than zero")
        if not key:
            errors.required(f"{at}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            errors.not_supported(f"{at}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        for other in constraints[index + 1 :]:
            if other.get("topologyKey", "") == key and other.get("whenUnsatisfiable", "") == action:
                errors.duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
                break
        domains = constraint.get("minDomains")
        if domains is not None:
            if domains <= 0:
                errors.invalid(f"{at}.minDomains", domains, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.invalid(f"{at}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in ("Honor", "Ignore"):
                errors.not_supported(f"{at}.{field}", policy, ("Honor", "Ignore"))
        _validate_label_keys(constraint, at, errors)
        errors.causes += validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")


def validate_scheduling_gates(gates: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        errors.all_invalid(f"{path}[{index}]", name, names.is_qualified_name(name))
        if name in seen:
            errors.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def validate_only_added_tolerations(
    new: list[JsonObject], old: list[JsonObject], path: str, errors: FieldErrors
) -> None:
    """Tolerations of a pod stay; only how long they last may change."""
    known = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in known for toleration in old):
        errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
        return
    validate_tolerations(new, path, errors)


def _without_seconds(toleration: JsonObject) -> JsonObject:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def validate_only_removed_gates(
    new: list[JsonObject], old: list[JsonObject], path: str, errors: FieldErrors
) -> None:
    known = {gate.get("name", "") for gate in old}
    for index, gate in enumerate(new):
        name = gate.get("name", "")
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errors.forbidden(f"{path}[{index}].name", detail)
