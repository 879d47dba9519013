"""Rules for environment variables and for references to fields of the pod."""

from __future__ import annotations

from collections.abc import Iterable

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.paths import has_backstep
from holokube.kube import names, quantity
from holokube.kube.types import JsonObject

ENV_FIELDS = frozenset(
    {
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    }
)  # fmt: skip
_KNOWN_FIELDS = ENV_FIELDS | {
    "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase",
}  # fmt: skip
_RESOURCE_FIELDS = tuple(
    sorted(
        f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
    )
)
_HUGE_PAGE_FIELDS = ("limits.hugepages-", "requests.hugepages-")
_BYTE_DIVISORS = frozenset(
    ["1", *(f"1{prefix}{suffix}" for prefix in "MGTPE" for suffix in ("", "i")), "1k", "1Ki"]
)
_BYTE_DIVISORS_LISTED = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_DIVISOR_NAMES = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_env(env: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    for index, variable in enumerate(env):
        name = variable.get("name")
        if not name:
            errors.required(f"{path}[{index}].name")
        elif not (name.isascii() and name.isidentifier()):
            # Ordinary names are identifiers; only the others need a closer look.
            errors.all_invalid(f"{path}[{index}].name", name, names.is_relaxed_env_var_name(name))
        source = variable.get("valueFrom")
        if source is not None:
            _validate_source(variable, source, f"{path}[{index}].valueFrom", errors)


def _validate_source(variable: JsonObject, source: JsonObject, path: str, errors: FieldErrors) -> None:
    count = 0
    for key in _SOURCES:
        if key not in source:
            continue
        count += 1
        reference: JsonObject = source[key]
        at = f"{path}.{key}"
        if key == "fieldRef":
            validate_field_ref(reference, ENV_FIELDS, at, errors)
        elif key == "resourceFieldRef":
            validate_resource_ref(reference, at, errors, in_volume=False)
        elif key == "fileKeyRef":
            _validate_file_key(reference, at, errors)
        else:
            name = reference.get("name", "")
            errors.all_invalid(f"{at}.name", name, names.is_dns1123_subdomain(name))
            config_key = reference.get("key")
            if not config_key:
                errors.required(f"{at}.key")
            else:
                errors.all_invalid(f"{at}.key", config_key, names.is_config_map_key(config_key))
    if count == 0:
        detail = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
            "`fileKeyRef`"
        )
        errors.invalid(path, "", detail)
    elif variable.get("value"):
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def _validate_file_key(reference: JsonObject, path: str, errors: FieldErrors) -> None:
    key = reference.get("key")
    if not key:
        errors.required(f"{path}.key")
    else:
        errors.all_invalid(f"{path}.key", key, names.is_relaxed_env_var_name(key))
    volume = reference.get("volumeName")
    if not volume:
        errors.required(f"{path}.volumeName")
    else:
        errors.all_invalid(f"{path}.volumeName", volume, names.is_dns1123_label(volume))
    file_path = reference.get("path")
    if not file_path:
        errors.required(f"{path}.path")
    elif has_backstep(file_path):
        errors.invalid(f"{path}.path", file_path, "must not contain '..'")


def validate_field_ref(
    reference: JsonObject, allowed: frozenset[str], path: str, errors: FieldErrors
) -> None:
    """A reference to a field of the pod's own object."""
    version, field = reference.get("apiVersion"), reference.get("fieldPath")
    if not version:
        errors.required(f"{path}.apiVersion")
        return
    if not field:
        errors.required(f"{path}.fieldPath")
        return
    problem, base, subscript = "", field, ""
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif field.endswith("']") and field.find("['") > 0:
        base, _, subscript = field.removesuffix("']").partition("['")
        if base not in ("metadata.annotations", "metadata.labels"):
            problem = f"field label does not support subscript: {field}"
    elif field == "spec.host":
        base = "spec.nodeName"
    elif field not in _KNOWN_FIELDS:
        problem = f"field label not supported: {field}"
    if problem:
        errors.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")
    elif base != field and field != "spec.host":
        key = subscript.lower() if base == "metadata.annotations" else subscript
        errors.all_invalid(path, key, names.is_qualified_name(key))
    elif base not in allowed:
        errors.not_supported(f"{path}.fieldPath", base, sorted(allowed))


def validate_resource_ref(reference: JsonObject, path: str, errors: FieldErrors, *, in_volume: bool) -> None:
    """A reference to a container's own requests or limits."""
    resource: str = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        errors.required(f"{path}.containerName")
    elif not resource:
        errors.required(f"{path}.resource")
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGE_FIELDS):
        errors.not_supported(f"{path}.resource", resource, _RESOURCE_FIELDS)
    divisor = quantity.parse(reference.get("divisor", "0"))
    if not divisor:
        return
    text, name = str(divisor), resource.partition(".")[2]
    if resource in _RESOURCE_FIELDS and name == "cpu":
        if text not in ("1m", "1"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            errors.invalid(f"{path}.divisor", resource, detail)
        return
    shown = _DIVISOR_NAMES.get(name) if resource in _RESOURCE_FIELDS else None
    if shown is None and resource.startswith(_HUGE_PAGE_FIELDS):
        shown = "hugepages"
    if shown is not None and text not in _BYTE_DIVISORS:
        detail = f"only divisor's values {_BYTE_DIVISORS_LISTED} are supported with the {shown} resource"
        errors.invalid(f"{path}.divisor", resource, detail)


def validate_env_from(sources: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        prefix = source.get("prefix")
        if prefix:
            errors.all_invalid(f"{at}.prefix", prefix, names.is_relaxed_env_var_name(prefix))
        count = 0
        for key in ("configMapRef", "secretRef"):
            if key in source:
                count += 1
                name = source[key].get("name")
                if not name:
                    errors.required(f"{at}.{key}.name")
                else:
                    problems = names.is_dns1123_subdomain(names.mask_trailing_dash(name))
                    errors.all_invalid(f"{at}.{key}.name", name, problems)
        if count == 0:
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif count > 1:
            errors.invalid(path, "", "may not have more than one field specified at a time")
