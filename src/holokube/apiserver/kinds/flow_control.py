"""FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

import math
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

_DEFAULT_PRECEDENCE: Final = 1000
_MAX_PRECEDENCE: Final = 10000
_DISTINGUISHERS: Final = ("ByNamespace", "ByUser")
_SUBJECTS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch",
)  # fmt: skip
_TYPES: Final = ("Exempt", "Limited")
_RESPONSES: Final = ("Queue", "Reject")
_MAX_QUEUES: Final = 10_000_000
_MAX_HASH_BITS: Final = 60


class FlowSchema(GoKind):
    go_type = "flowcontrol.v1.FlowSchema"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        if not spec["matchingPrecedence"]:
            spec["matchingPrecedence"] = _DEFAULT_PRECEDENCE

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec, path = new["spec"], "spec.matchingPrecedence"
        precedence = spec["matchingPrecedence"]
        if precedence <= 0:
            errors.invalid(path, precedence, "must be a positive value")
        if precedence > _MAX_PRECEDENCE:
            errors.invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
        if precedence == 1 and new["metadata"].get("name") != "exempt":
            errors.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
        method = spec.get("distinguisherMethod")
        if method is not None and method["type"] not in _DISTINGUISHERS:
            errors.not_supported("spec.distinguisherMethod.type", {"Type": method["type"]}, _DISTINGUISHERS)
        level = spec["priorityLevelConfiguration"]["name"]
        if level:
            errors.all_invalid("spec.priorityLevelConfiguration.name", level, names.is_dns1123_subdomain(level))
        else:
            errors.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
        for index, rule in enumerate(spec.get("rules") or ()):
            _check_rule(rule, f"spec.rules[{index}]", errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _check_conditions(new["status"], errors)


def _check_conditions(status: JsonObject, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, condition in enumerate(status.get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            errors.duplicate(path, kind)
        seen.add(kind)
        if not kind:
            errors.required(path)


def _check_rule(rule: JsonObject, path: str, errors: FieldErrors) -> None:
    subjects = rule["subjects"] or []
    if not subjects:
        errors.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        _check_subject(subject, f"{path}.subjects[{index}]", errors)
    resources, others = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not others:
        errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, resource in enumerate(resources):
        _check_resource_rule(resource, f"{path}.resourceRules[{index}]", errors)
    for index, other in enumerate(others):
        at = f"{path}.nonResourceRules[{index}]"
        _check_verbs(other["verbs"] or [], f"{at}.verbs", errors)
        _check_urls(other["nonResourceURLs"] or [], f"{at}.nonResourceURLs", errors)


def _check_subject(subject: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = subject["kind"]
    if kind not in _SUBJECTS:
        errors.not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))
        return
    for known, field in _SUBJECTS.items():
        given = subject.get(field)
        if known != kind:
            if given is not None:
                errors.forbidden(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{known}'")
        elif given is None:
            errors.required(f"{path}.{field}", f"{field} is required when subject kind is '{known}'")
        else:
            if not given["name"]:
                errors.required(f"{path}.{field}.name")
            elif kind == "ServiceAccount" and given["name"] != "*":
                problems = names.is_dns1123_subdomain(given["name"])
                errors.all_invalid(f"{path}.{field}.name", given["name"], problems)
            if kind == "ServiceAccount":
                namespace = given["namespace"]
                if namespace:
                    errors.all_invalid(f"{path}.{field}.namespace", namespace, names.is_dns1123_label(namespace))
                else:
                    errors.required(f"{path}.{field}.namespace", "must specify namespace for service account")


def _check_verbs(verbs: list[str], path: str, errors: FieldErrors) -> None:
    if not verbs:
        errors.required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            errors.invalid(path, verbs, "if '*' is present, must not specify other verbs")
    elif not set(verbs) <= set(_VERBS):
        errors.not_supported(path, verbs, _VERBS)


def _check_urls(urls: list[str], path: str, errors: FieldErrors) -> None:
    if not urls:
        errors.required(path, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        if len(urls) > 1:
            errors.invalid(path, urls, "if '*' is present, must not specify other non-resource URLs")
    else:
        for index, url in enumerate(urls):
            problem = _url_problem(url)
            if problem:
                errors.invalid(f"{path}[{index}]", url, problem)


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _check_resource_rule(rule: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_verbs(rule["verbs"] or [], f"{path}.verbs", errors)
    for field, thing, things in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        listed = rule[field] or []
        if not listed:
            errors.required(f"{path}.{field}", f"resource rules must supply at least one {thing}")
        elif len(listed) > 1 and "*" in listed:
            errors.invalid(f"{path}.{field}", listed, f"if '*' is present, must not specify other {things}")
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        message = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.required(f"{path}.namespaces", message)
    elif "*" in namespaces:
        if len(namespaces) > 1:
            message = "if '*' is present, must not specify other namespaces"
            errors.invalid(f"{path}.namespaces", namespaces, message)
    else:
        for index, namespace in enumerate(namespaces):
            for problem in names.is_dns1123_label(namespace):
                message = f"each member of this list must be '*' or a DNS-1123 label; {problem}"
                errors.invalid(f"{path}.namespaces[{index}]", namespace, message)


class PriorityLevelConfiguration(GoKind):
    go_type = "flowcontrol.v1.PriorityLevelConfiguration"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        exempt, limited = spec.get("exempt"), spec.get("limited")
        if exempt is not None:
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        if limited is not None:
            if limited["nominalConcurrencyShares"] is None:
                limited["nominalConcurrencyShares"] = 30
            limited.setdefault("lendablePercent", 0)
            queuing = limited["limitResponse"].get("queuing")
            if queuing is not None:
                for field, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                    queuing[field] = queuing[field] or value

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec, name = new["spec"], new["metadata"].get("name")
        kind, exempt, limited = spec["type"], spec.get("exempt"), spec.get("limited")
        if (name == "exempt") is not (kind == "Exempt"):
            errors.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
        if kind == "Exempt":
            if limited is not None:
                errors.forbidden("spec.limited", "must be nil if the type is not Limited")
            if exempt is not None:
                _check_shares(exempt, "spec.exempt", errors)
        elif kind == "Limited":
            if exempt is not None:
                errors.forbidden("spec.exempt", "must be nil if the type is Limited")
            if limited is None:
                errors.required("spec.limited", "must not be empty when type is Limited")
            else:
                _check_shares(limited, "spec.limited", errors)
                _check_response(limited["limitResponse"], "spec.limited.limitResponse", errors)
        elif not kind:
            errors.required("spec.type")
        else:
            errors.not_supported("spec.type", kind, _TYPES)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _check_conditions(new["status"], errors)


def _check_shares(level: JsonObject, path: str, errors: FieldErrors) -> None:
    shares, lendable = level["nominalConcurrencyShares"], level["lendablePercent"]
    if shares < 0:
        errors.invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if not 0 <= lendable <= 100:
        errors.invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive")
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        message = "if specified, must be a non-negative integer"
        errors.invalid(f"{path}.borrowingLimitPercent", borrowing, message)


def _check_response(response: JsonObject, path: str, errors: FieldErrors) -> None:
    kind, queuing = response["type"], response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            errors.forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited")
    elif kind == "Queue":
        if queuing is None:
            errors.required(f"{path}.queuing", "must not be empty if limited.limitResponse.type is Limited")
        else:
            _check_queuing(queuing, f"{path}.queuing", errors)
    elif not kind:
        errors.required(f"{path}.type")
    else:
        errors.not_supported(f"{path}.type", kind, _RESPONSES)


def _check_queuing(queuing: JsonObject, path: str, errors: FieldErrors) -> None:
    length, queues, hand = queuing["queueLengthLimit"], queuing["queues"], queuing["handSize"]
    if length <= 0:
        errors.invalid(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        errors.invalid(f"{path}.queues", queues, "must be positive")
    elif queues > _MAX_QUEUES:
        errors.invalid(f"{path}.queues", queues, f"must not be greater than {_MAX_QUEUES}")
    if hand <= 0:
        errors.invalid(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        errors.invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif hand > _MAX_HASH_BITS or math.ceil(math.log2(math.perm(queues, hand))) > _MAX_HASH_BITS:
        message = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than"
        errors.invalid(f"{path}.handSize", hand, f"{message} {_MAX_HASH_BITS}")
