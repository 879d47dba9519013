"""Roles and their bindings."""

from __future__ import annotations

from typing import ClassVar, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_selector
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECT_KINDS: Final = ("ServiceAccount", "User", "Group")


class _RbacKind(GoKind):
    """All four take any name that fits into a path: ``system:node`` and the like."""

    allow_create_on_update = True

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_path_segment_name(name)


class Role(_RbacKind):
    go_type = "rbac.v1.Role"
    namespaced: ClassVar[bool] = True

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        for index, rule in enumerate(new["rules"] or ()):
            _check_rule(rule, f"rules[{index}]", errors, namespaced=self.namespaced)


class ClusterRole(Role):
    go_type = "rbac.v1.ClusterRole"
    namespaced = False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        super().validate(new, errors)
        aggregation = new.get("aggregationRule")
        if aggregation is None:
            return
        path = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            errors.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(selectors):
            known = len(errors.causes)
            check_selector(selector, f"{path}[{index}]", errors)
            if len(errors.causes) > known:
                errors.invalid(f"{path}[{index}]", None, "invalid label selector.")


def _check_rule(rule: JsonObject, path: str, errors: FieldErrors, *, namespaced: bool) -> None:
    if not rule.get("verbs"):
        errors.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            errors.invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            message = "rules cannot apply to both regular resources and non-resource URLs"
            errors.invalid(f"{path}.nonResourceURLs", urls, message)
        return
    if not rule.get("apiGroups"):
        errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        errors.required(f"{path}.resources", "resource rules must supply at least one resource")


class RoleBinding(_RbacKind):
    go_type = "rbac.v1.RoleBinding"
    role_kinds: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")
    namespaced: ClassVar[bool] = True

    def set_defaults(self, obj: JsonObject) -> None:
        reference = obj["roleRef"]
        if not reference["apiGroup"]:
            reference["apiGroup"] = GROUP
        for subject in obj.get("subjects") or ():
            if subject["kind"] in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        reference = new["roleRef"]
        if reference["apiGroup"] != GROUP:
            errors.not_supported("roleRef.apiGroup", reference["apiGroup"], (GROUP,))
        if reference["kind"] not in self.role_kinds:
            errors.not_supported("roleRef.kind", reference["kind"], self.role_kinds)
        if not reference["name"]:
            errors.required("roleRef.name")
        else:
            errors.all_invalid("roleRef.name", reference["name"], names.is_path_segment_name(reference["name"]))
        for index, subject in enumerate(new.get("subjects") or ()):
            _check_subject(subject, f"subjects[{index}]", errors, namespaced=self.namespaced)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        reference = new["roleRef"]
        if reference != old["roleRef"]:
            shown = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
            errors.invalid("roleRef", shown, "cannot change roleRef")


class ClusterRoleBinding(RoleBinding):
    go_type = "rbac.v1.ClusterRoleBinding"
    role_kinds = ("ClusterRole",)
    namespaced = False


def _check_subject(subject: JsonObject, path: str, errors: FieldErrors, *, namespaced: bool) -> None:
    name, kind, group = subject["name"], subject["kind"], subject.get("apiGroup", "")
    if not name:
        errors.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            errors.all_invalid(f"{path}.name", name, names.is_dns1123_subdomain(name))
        if group:
            errors.not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            errors.required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.not_supported(f"{path}.apiGroup", group, (GROUP,))
    else:
        errors.not_supported(f"{path}.kind", kind, _SUBJECT_KINDS)
