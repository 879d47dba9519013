"""Rules for the annotations of a pod that mean something to Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.paths import validate_descending
from holokube.apiserver.kinds.scheduling_validation import validate_tolerations
from holokube.apiserver.kinds.security_validation import (
    APPARMOR_CONTAINER,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    all_containers,
)
from holokube.kube.types import JsonObject

MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_LOCALHOST = "localhost/"
_SECCOMP_NAMES = ("runtime/default", "docker/default", "unconfined")


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: JsonObject, path: str, errors: FieldErrors
) -> None:
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    if annotations.get(_TOLERATIONS):
        _validate_old_tolerations(annotations[_TOLERATIONS], path, errors)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not is_deletion_cost(cost):
        errors.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    for key, profile in annotations.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            _validate_seccomp_name(profile, f"{path}.{key}", errors)
        elif key.startswith(APPARMOR_CONTAINER):
            _validate_apparmor_name(key, profile, spec, path, errors)


def is_deletion_cost(text: str) -> bool:
    """A 32-bit integer without a plus sign or leading zeros."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (text[0] == "0" and text != "0"):
        return False
    return -(2**31) <= int(text) < 2**31


def _validate_old_tolerations(text: str, path: str, errors: FieldErrors) -> None:
    try:
        tolerations = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        errors.invalid(path, _TOLERATIONS, str(problem))
        return
    if not isinstance(tolerations, list) or not all(isinstance(item, dict) for item in tolerations):
        errors.invalid(path, _TOLERATIONS, "must be a list of tolerations")
        return
    validate_tolerations(tolerations, f"{path}.{_TOLERATIONS}", errors)


def _validate_seccomp_name(profile: str, path: str, errors: FieldErrors) -> None:
    if profile in _SECCOMP_NAMES:
        return
    if profile.startswith(_LOCALHOST):
        validate_descending(profile.removeprefix(_LOCALHOST), path, errors)
    else:
        errors.invalid(path, profile, "must be a valid seccomp profile")


def _validate_apparmor_name(key: str, profile: str, spec: JsonObject, path: str, errors: FieldErrors) -> None:
    name = key.removeprefix(APPARMOR_CONTAINER)
    if not any(container.get("name") == name for container, _ in all_containers(spec, "spec")):
        errors.invalid(f"{path}[{key}]", name, "container not found")
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCALHOST):
        errors.invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"')


def validate_annotation_changes(
    new: Mapping[str, str], old: Mapping[str, str], path: str, errors: FieldErrors
) -> None:
    """AppArmor profiles and the mark of a static pod stay as they were created."""
    for key, value in old.items():
        if new.get(key) == value:
            continue
        if key.startswith(APPARMOR_CONTAINER):
            errors.forbidden(f"{path}[{key}]", "may not remove or update AppArmor annotations")
        if key == MIRROR:
            errors.forbidden(f"{path}[{key}]", "may not remove or update mirror pod annotation")
    for key in new:
        if key in old:
            continue
        if key.startswith(APPARMOR_CONTAINER):
            errors.forbidden(f"{path}[{key}]", "may not add AppArmor annotations")
        if key == MIRROR:
            errors.forbidden(f"{path}[{key}]", "may not add mirror pod annotation")


def validate_profiles_agree(
    annotations: Mapping[str, str], spec: JsonObject, path: str, errors: FieldErrors
) -> None:
    """Where a profile is both annotated and a field, both say the same."""
    pod_context = spec.get("securityContext") or {}
    seccomp = pod_context.get("seccompProfile")
    if seccomp and SECCOMP_POD in annotations:
        at = f"{path}.securityContext.seccompProfile"
        _agree("seccomp", annotations[SECCOMP_POD], seccomp, at, errors)
    windows = (spec.get("os") or {}).get("name") == "windows"
    for container, where in all_containers(spec, path):
        name, context = container.get("name", ""), container.get("securityContext") or {}
        annotation = annotations.get(SECCOMP_CONTAINER + name)
        seccomp = context.get("seccompProfile")
        if annotation is not None and seccomp:
            _agree("seccomp", annotation, seccomp, f"{where}.securityContext.seccompProfile", errors)
        annotation = annotations.get(APPARMOR_CONTAINER + name)
        apparmor = context.get("appArmorProfile") or pod_context.get("appArmorProfile")
        if annotation is not None and apparmor and not windows:
            _agree("apparmor", annotation, apparmor, f"{where}.securityContext.appArmorProfile", errors)


def _agree(what: str, annotation: str, profile: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = profile.get("type")
    expected: tuple[str, ...]
    if kind == "Unconfined":
        expected = ("unconfined",)
    elif kind == "RuntimeDefault":
        expected = ("runtime/default", "docker/default") if what == "seccomp" else ("runtime/default",)
    elif kind == "Localhost" and annotation.startswith(_LOCALHOST):
        if annotation.removeprefix(_LOCALHOST) != profile.get("localhostProfile"):
            errors.forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")
        return
    elif kind == "Localhost":
        expected = ()
    else:
        return
    if annotation not in expected:
        errors.forbidden(f"{path}.type", f"{what} type in annotation and field must match")


def apparmor_profile(annotation: str) -> JsonObject | None:
    """The profile field that an old annotation stands for; None if it stands for none."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    local = annotation.removeprefix(_LOCALHOST)
    if annotation.startswith(_LOCALHOST) and local and local == local.strip():
        return {"type": "Localhost", "localhostProfile": local}
    return None
