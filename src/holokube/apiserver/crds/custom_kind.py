"""The rules of one version of a custom resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holokube.apiserver.crds.correlation import UNCORRELATED
from holokube.apiserver.crds.embedded import check_embedded
from holokube.apiserver.crds.json_schema import NO_FIELD, Check, go_float
from holokube.apiserver.crds.list_types import check_lists
from holokube.apiserver.crds.rules import RuleTree
from holokube.apiserver.crds.shaping import apply_defaults
from holokube.apiserver.crds.status_fields import StatusFields
from holokube.apiserver.crds.structural import Structural
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.apiserver.subresources.scale import ScalePaths
from holokube.kube import names
from holokube.kube.errors import Cause, Forbidden, details_for
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

# After one of these upstream does not even try the rules: they could trip over values of a wrong type.
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)  # fmt: skip
_NOT_CHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class VersionRules:
    """What a CRD says about one of its versions, compiled."""

    qualified_name: str
    api_version: str
    node: Structural
    check: Check
    status_check: Check | None
    rules: RuleTree | None
    scale: ScalePaths | None


class CustomKind(Kind):
    """A custom resource in one version."""

    allow_unconditional_update = False
    allows_plain_finalizers = True

    def __init__(self, rules: VersionRules, *, terminating: bool = False) -> None:
        self.rules = rules
        self._terminating = terminating

    @cached_property
    def status_fields(self) -> StatusFields:
        """The short way for patches of the status."""
        return StatusFields(self.rules)

    def default(self, obj: JsonObject) -> None:
        apply_defaults(obj, self.rules.node)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:  # noqa: ARG002 - a hook
        if self._terminating:
            plural, _, group = self.rules.qualified_name.partition(".")
            name = new["metadata"].get("name", "")
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden(
                f'{self.rules.qualified_name} "{name}" is forbidden: {why}',
                details=details_for(group, plural, name),
            )
        # The status that came with it was taken away, and with it the defaults in it.
        apply_defaults(new, self.rules.node)

    def spec_changed(self, new: JsonObject, old: JsonObject) -> bool:
        """Anything but metadata counts; the status only where it is not a subresource (it is the old one then)."""
        return _content(new) != _content(old)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        rules = self.rules
        rules.check.report(new, errors)
        self._check_scale_spec(new, errors)
        self._check_scale_status(new, errors)
        check_embedded(new, rules.node, errors)
        check_lists(new, rules.node, errors)
        self._check_rules(new, None, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        rules = self.rules
        rules.check.report(new, errors, old)
        self._check_scale_spec(new, errors)
        self._check_scale_status(new, errors)
        check_embedded(new, rules.node, errors)
        _check_lists_update(new, old, rules.node, errors)
        self._check_rules(new, old, errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        rules = self.rules
        if rules.status_check is not None and "status" in new:
            rules.status_check.report(new["status"], errors, old.get("status", UNCORRELATED), prefix="status")
        self._check_scale_status(new, errors)
        status_node = rules.node.properties.get("status")
        if status_node is not None:
            check_embedded(new.get("status"), status_node, errors, "status")
            _check_lists_update(new.get("status"), old.get("status"), status_node, errors, "status")
        self._check_rules(new, old, errors)

    def _check_rules(self, new: JsonObject, old: JsonObject | None, errors: FieldErrors) -> None:
        tree = self.rules.rules
        if tree is None:
            return
        if any(cause.reason in _BLOCKING for cause in errors.causes):
            errors.causes.append(Cause("FieldValueInvalid", _NOT_CHECKED, NO_FIELD))
            return
        if new.get("apiVersion") != self.rules.api_version:
            # Stored objects carry the storage version; rules see the version that was asked for.
            new = {**new, "apiVersion": self.rules.api_version}
        tree.evaluate(new, old, errors)

    def _check_scale_spec(self, obj: JsonObject, errors: FieldErrors) -> None:
        scale = self.rules.scale
        if scale is not None:
            _check_replicas(obj, scale.spec, errors)

    def _check_scale_status(self, obj: JsonObject, errors: FieldErrors) -> None:
        scale = self.rules.scale
        if scale is None:
            return
        _check_replicas(obj, scale.status, errors)
        if not scale.selector:
            return
        selector, problem = _at(obj, scale.selector)
        if selector is not None and not isinstance(selector, str):
            problem = _accessor_error(scale.selector, selector, "string")
        if problem:
            errors.invalid(scale.selector, "", problem)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        known = (old or {}).get("metadata", {}).get("finalizers") or []
        found: list[str] = []
        for name in sorted(set(new["metadata"].get("finalizers") or []).difference(known)):
            problems = list(names.is_qualified_name(name))
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                path = " including a path (/)" if "." in name else ""
                problems.append(
                    f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other "
                    "finalizer writers"
                )
            found.extend(f"metadata.finalizers: {go_quote(name)}: {problem}" for problem in problems)
        return found


def _content(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}


def _check_lists_update(new: Any, old: Any, node: Structural, errors: FieldErrors, path: str = "") -> None:
    """Lists that had duplicates before may keep them, so that what is as it was need not be looked at."""
    others = new
    if isinstance(new, dict) and isinstance(old, dict):
        others = {key: part for key, part in new.items() if part is not old.get(key)}
    found = FieldErrors()
    check_lists(others, node, found, path)
    if found:
        before = FieldErrors()
        check_lists(old, node, before, path)
        if not before:
            errors.causes.extend(found.causes)


_GO_TYPES = {
    str: "string", bool: "bool", int: "int64", float: "float64", dict: "map[string]interface {}",
    list: "[]interface {}",
}  # fmt: skip


def _at(obj: JsonObject, path: str) -> tuple[Any, str]:
    """The value at a path, None if there is none; and what is wrong if something on the way is no object."""
    value: Any = obj
    for part in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None, _accessor_error(path, value, "map[string]interface{}")
        if part not in value:
            return None, ""
        value = value[part]
    return value, ""


def _accessor_error(path: str, value: Any, wanted: str) -> str:
    kind = _GO_TYPES.get(type(value), "<nil>")
    return f"{path} accessor error: {_go_text(value)} is of the type {kind}, expected {wanted}"


def _go_text(value: Any) -> str:
    """A value as Go's ``%v`` prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(item) for item in value)}]"
    return "<nil>" if value is None else str(value)


def _check_replicas(obj: JsonObject, path: str, errors: FieldErrors) -> None:
    replicas, problem = _at(obj, path)
    if problem:
        errors.invalid(path, 0, problem)
    elif replicas is None:
        return
    elif type(replicas) is not int:
        errors.invalid(path, 0, _accessor_error(path, replicas, "int64"))
    elif replicas < 0:
        errors.invalid(path, replicas, "should be a non-negative integer")
    elif replicas > _MAX_INT32:
        errors.invalid(path, replicas, f"should be less than or equal to {_MAX_INT32}")
