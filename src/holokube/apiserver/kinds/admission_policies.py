"""Validating and mutating admission policies, and their bindings."""

from __future__ import annotations

import re
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_one_of, check_selector
from holokube.apiserver.kinds.conditions import check_conditions
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.webhook_configurations import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    check_match_conditions,
    check_rule,
    default_rules,
)
from holokube.kube import names
from holokube.kube.types import JsonObject

_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
_ANNOTATIONS_MAX: Final = 20
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
    "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_NOTHING_TO_DO: Final = "validations or auditAnnotations must contain at least one item"
_DENY_AND_WARN: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


class _AdmissionKind(GoKind):
    tracks_generation = True
    allow_unconditional_update = False
    match_field = "matchConstraints"

    def set_defaults(self, obj: JsonObject) -> None:
        match = obj["spec"].get(self.match_field)
        if match is not None:
            match.setdefault("matchPolicy", "Equivalent")
            match.setdefault("namespaceSelector", {})
            match.setdefault("objectSelector", {})
            for field in ("resourceRules", "excludeResourceRules"):
                default_rules(match.get(field) or [])


class ValidatingAdmissionPolicy(_AdmissionKind):
    go_type = "admissionregistration.v1.ValidatingAdmissionPolicy"

    def set_defaults(self, obj: JsonObject) -> None:
        super().set_defaults(obj)
        obj["spec"].setdefault("failurePolicy", "Fail")

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _check_policy(spec, errors)
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            errors.required("spec.validations", _NOTHING_TO_DO)
            errors.required("spec.auditAnnotations", _NOTHING_TO_DO)
            return
        for index, validation in enumerate(validations):
            _check_validation(validation, f"spec.validations[{index}]", errors)
        if len(annotations) > _ANNOTATIONS_MAX:
            shown = [{"Key": a["key"], "ValueExpression": a["valueExpression"]} for a in annotations]
            message = f"must not have more than {_ANNOTATIONS_MAX} auditAnnotations"
            errors.invalid("spec.auditAnnotations", shown, message)
        seen: set[str] = set()
        for index, annotation in enumerate(annotations):
            path, key = f"spec.auditAnnotations[{index}]", annotation["key"]
            full = f"{new['metadata'].get('name', '')}/{key}"
            errors.all_invalid(f"{path}.key", full, names.is_qualified_name(full))
            if not annotation["valueExpression"].strip():
                errors.required(f"{path}.valueExpression", "valueExpression is not specified")
            if key in seen:
                errors.duplicate(f"{path}.key", key)
            seen.add(key)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new["status"]
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or []
        for index, warning in enumerate(warnings):
            path = f"status.typeChecking.expressionWarnings[{index}]"
            for field in ("warning", "fieldRef"):
                if not warning[field].strip():
                    errors.required(f"{path}.{field}")
        check_conditions(status.get("conditions") or [], "status.conditions", errors)


class MutatingAdmissionPolicy(_AdmissionKind):
    go_type = "admissionregistration.v1.MutatingAdmissionPolicy"

    def set_defaults(self, obj: JsonObject) -> None:
        super().set_defaults(obj)
        obj["spec"].setdefault("failurePolicy", "Fail")

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _check_policy(spec, errors)
        _check_mutating_operations(spec.get("matchConstraints") or {}, "spec.matchConstraints", errors)
        mutations = spec.get("mutations") or []
        if not mutations:
            errors.required("spec.mutations", "mutations must contain at least one item")
        for index, mutation in enumerate(mutations):
            _check_mutation(mutation, f"spec.mutations[{index}]", errors)
        policy = spec.get("reinvocationPolicy", "")
        check_one_of(policy, REINVOCATION_POLICIES, "spec.reinvocationPolicy", errors)


class ValidatingAdmissionPolicyBinding(_AdmissionKind):
    go_type = "admissionregistration.v1.ValidatingAdmissionPolicyBinding"
    match_field = "matchResources"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_binding(new["spec"], errors)
        path, actions = "spec.validationActions", new["spec"].get("validationActions") or []
        for index, action in enumerate(actions):
            if action not in _ACTIONS:
                errors.not_supported(f"{path}[{index}]", action, _ACTIONS)
            if action in actions[:index]:
                errors.duplicate(f"{path}[{index}]", action)
        if "Deny" in actions and "Warn" in actions:
            errors.invalid(path, actions, _DENY_AND_WARN)
        if not actions:
            errors.required(path, "at least one validation action is required")


class MutatingAdmissionPolicyBinding(_AdmissionKind):
    go_type = "admissionregistration.v1.MutatingAdmissionPolicyBinding"
    match_field = "matchResources"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_binding(new["spec"], errors)
        _check_mutating_operations(new["spec"].get("matchResources") or {}, "spec.matchResources", errors)


def _check_policy(spec: JsonObject, errors: FieldErrors) -> None:
    if spec["failurePolicy"] not in FAILURE_POLICIES:
        errors.not_supported("spec.failurePolicy", spec["failurePolicy"], FAILURE_POLICIES)
    if spec.get("paramKind") is not None:
        _check_param_kind(spec["paramKind"], "spec.paramKind", errors)
    match = spec.get("matchConstraints")
    if match is None:
        errors.required("spec.matchConstraints")
    else:
        _check_match(match, "spec.matchConstraints", errors)
        if not match.get("resourceRules"):
            errors.required("spec.matchConstraints.resourceRules")
    check_match_conditions(spec.get("matchConditions") or [], "spec.matchConditions", errors)
    for index, variable in enumerate(spec.get("variables") or ()):
        path, name = f"spec.variables[{index}]", variable["name"]
        if not name.strip():
            errors.required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            errors.invalid(f"{path}.name", name, "must be a valid CEL identifier")
        if not variable["expression"].strip():
            errors.required(f"{path}.expression", "expression is not specified")


def _check_param_kind(kind: JsonObject, path: str, errors: FieldErrors) -> None:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not api_version:
        errors.required(f"{path}.apiVersion")
    elif api_version.count("/") > 1:
        errors.invalid(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        group, _, version = api_version.rpartition("/")
        if group and (problems := names.is_dns1123_subdomain(group)):
            errors.invalid(f"{path}.apiVersion", group, ",".join(problems))
        if not version:
            errors.invalid(f"{path}.apiVersion", api_version, "version must be specified")
        elif problems := names.is_dns1035_label(version):
            errors.invalid(f"{path}.apiVersion", version, ",".join(problems))
    if not name:
        errors.required(f"{path}.kind")
    elif problems := names.is_dns1035_label(name.lower()):
        message = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.invalid(f"{path}.kind", name, message)


def _check_match(match: JsonObject, path: str, errors: FieldErrors) -> None:
    if match["matchPolicy"] not in MATCH_POLICIES:
        errors.not_supported(f"{path}.matchPolicy", match["matchPolicy"], MATCH_POLICIES)
    check_selector(match["namespaceSelector"], f"{path}.namespaceSelector", errors)
    check_selector(match["objectSelector"], f"{path}.objectSelector", errors)
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            at = f"{path}.{field}[{index}]"
            listed = rule.get("resourceNames") or []
            for number, name in enumerate(listed):
                errors.all_invalid(f"{at}.resourceNames[{number}]", name, names.is_path_segment_name(name))
                if name in listed[:number]:
                    errors.duplicate(f"{at}.resourceNames[{number}]", name)
            check_rule(rule, at, errors)


def _check_mutating_operations(match: JsonObject, path: str, errors: FieldErrors) -> None:
    for rule in match.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _MUTATING_OPERATIONS:
                errors.not_supported(f"{path}.resourceRules.operations", operation, _MUTATING_OPERATIONS)


def _check_validation(validation: JsonObject, path: str, errors: FieldErrors) -> None:
    if not validation["expression"].strip():
        errors.required(f"{path}.expression", "expression is not specified")
    for field in ("messageExpression", "message"):
        text = validation.get(field, "")
        if text and not text.strip():
            errors.invalid(f"{path}.{field}", text, "must be non-empty if specified")
        elif field == "message" and "\n" in text.strip():
            errors.invalid(f"{path}.message", text, "must not contain line breaks")
    reason = validation.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.not_supported(f"{path}.reason", reason, _REASONS)


def _check_mutation(mutation: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = mutation["patchType"]
    fields = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}
    if not kind:
        errors.required(f"{path}.patchType")
    elif kind not in fields:
        errors.not_supported(f"{path}.patchType", kind, _PATCH_TYPES)
    else:
        for patch_type, field in fields.items():
            given = mutation.get(field)
            if patch_type == kind and given is None:
                errors.required(f"{path}.{field}", f"must be specified when patchType is {kind}")
            elif patch_type == kind and not (given or {}).get("expression", "").strip():
                errors.required(f"{path}.{field}.expression")
            elif patch_type != kind and given is not None:
                message = f"must not be specified when patchType is {kind}"
                errors.invalid(f"{path}.{field}", f"{{{field}}}", message)


def _check_binding(spec: JsonObject, errors: FieldErrors) -> None:
    name = spec.get("policyName", "")
    if not name:
        errors.required("spec.policyName")
    else:
        errors.all_invalid("spec.policyName", name, names.is_dns1123_subdomain(name))
    reference = spec.get("paramRef")
    if reference is not None:
        _check_param_reference(reference, "spec.paramRef", errors)
    if spec.get("matchResources") is not None:
        _check_match(spec["matchResources"], "spec.matchResources", errors)


def _check_param_reference(reference: JsonObject, path: str, errors: FieldErrors) -> None:
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        errors.all_invalid(f"{path}.name", name, names.is_path_segment_name(name))
    if name and selector is not None:
        for field in ("name", "selector"):
            errors.forbidden(f"{path}.{field}", "name and selector are mutually exclusive")
    check_selector(selector, f"{path}.selector", errors)
    if not name and selector is None:
        errors.required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    check_one_of(action or "", _NOT_FOUND_ACTIONS, f"{path}.parameterNotFoundAction", errors)
