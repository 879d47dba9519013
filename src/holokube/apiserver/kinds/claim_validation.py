"""Rules for persistent volume claims inside pods and stateful sets."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.metadata import validate_annotations, validate_labels
from holokube.kube import names, quantity
from holokube.kube.selectors import validate_label_selector
from holokube.kube.types import JsonObject

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_TEMPLATE_META = frozenset({"annotations", "labels"})


def validate_claim_template(template: JsonObject, path: str, errors: FieldErrors) -> None:
    """The claim of an ephemeral volume; its metadata can only carry labels and annotations."""
    meta: JsonObject = template.get("metadata") or {}
    validate_annotations(meta.get("annotations"), f"{path}.metadata.annotations", errors)
    validate_labels(meta.get("labels"), f"{path}.metadata.labels", errors)
    for key, value in meta.items():
        if value and key not in _TEMPLATE_META:
            errors.forbidden(f"{path}.metadata.{key}", "cannot be set")
    validate_claim_spec(template.get("spec") or {}, f"{path}.spec", errors)


def validate_claim_spec(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """Upstream's ValidatePersistentVolumeClaimSpec."""
    modes = spec.get("accessModes") or []
    if not modes:
        errors.required(f"{path}.accessModes", "at least 1 access mode is required")
    errors.causes += validate_label_selector(spec.get("selector"), f"{path}.selector")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            errors.not_supported(f"{path}.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(m in _ACCESS_MODES and m != "ReadWriteOncePod" for m in modes):
        errors.forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        errors.required(f"{path}.resources[storage]")
    elif quantity.parse(storage).sign() <= 0:
        errors.invalid(f"{path}.resources[storage]", storage, "must be greater than zero")
    for key in ("storageClassName", "volumeAttributesClassName"):
        name = spec.get(key)
        if name:
            errors.all_invalid(f"{path}.{key}", name, names.is_dns1123_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        errors.not_supported(f"{path}.volumeMode", mode, ("Block", "Filesystem"))
    _validate_data_source(spec, path, errors)


def _validate_data_source(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for key, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is None:
            continue
        at = f"{path}.{key}"
        for field in ("name", "kind"):
            if not value.get(field):
                errors.required(f"{at}.{field}")
        group = value.get("apiGroup")
        if not group and value.get("kind") != "PersistentVolumeClaim":
            detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.invalid(at, value.get("kind", ""), detail)
        if group:
            errors.all_invalid(f"{at}.apiGroup", group, names.is_dns1123_subdomain(group))
        namespace = value.get("namespace")
        if namespace:
            errors.all_invalid(f"{at}.namespace", namespace, names.is_dns1123_label(namespace))
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        errors.invalid(path, f"{path}.dataSource", detail)
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errors.invalid(path, f"{path}.dataSource", "must match dataSourceRef")
