"""Rules for ``metadata``, the same for every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.apiserver.kinds.base import Kind
from holokube.kube import names
from holokube.kube.types import JsonObject

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({ORPHAN_FINALIZER, FOREGROUND_FINALIZER, "kubernetes"})
_ANNOTATIONS_MAX_BYTES = 256 * 1024
NAME_ATTEMPTS: Final = 8
"""How often a name is generated where the ones before it were taken."""
_GENERATED_NAME_BASE_MAX: Final = 58
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_NOTHING_KNOWN: Final[Mapping[str, Any]] = {}
RENEWED: Final = frozenset({"managedFields", "resourceVersion"})
"""What every write changes."""
MEANT_FOR: Final = ("uid", "resourceVersion")
"""By these a write may say for which state of which object it is meant."""
STORED_FIELDS: Final = ["kind", "apiVersion", "metadata", "spec", "status"]
"""Most stored objects have these and no others, in this order; the short ways of writing build the next one so."""


def generated_name(prefix: str, letters: str) -> str:
    """The name that ``metadata.generateName`` and the letters drawn for it make."""
    return prefix[:_GENERATED_NAME_BASE_MAX] + letters


def validate_metadata(
    obj: JsonObject,
    kind: Kind,
    *,
    namespaced: bool,
    errors: FieldErrors,
    path: str = "metadata",
    known: Mapping[str, Any] = _NOTHING_KNOWN,
) -> None:
    """Upstream's ValidateObjectMeta. What is the same in ``known`` was found valid before."""
    meta: JsonObject = obj["metadata"]
    names_known = meta.get("name") == known.get("name") and meta.get("generateName") == known.get("generateName")
    if not known or not names_known or meta.get("namespace") != known.get("namespace"):
        _validate_names(meta, kind, path, errors, namespaced=namespaced)
    if meta.get("generation", 0) < 0:
        errors.invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0")
    labels, annotations = meta.get("labels"), meta.get("annotations")
    owners, finalizers = meta.get("ownerReferences"), meta.get("finalizers")
    if labels and labels != known.get("labels"):
        validate_labels(labels, f"{path}.labels", errors)
    if annotations and annotations != known.get("annotations"):
        validate_annotations(annotations, f"{path}.annotations", errors)
    if owners and owners != known.get("ownerReferences"):
        _validate_owners(owners, f"{path}.ownerReferences", errors)
    if finalizers and finalizers != known.get("finalizers"):
        _validate_finalizers(finalizers, f"{path}.finalizers", errors, plain=kind.allows_plain_finalizers)


def _validate_names(meta: JsonObject, kind: Kind, path: str, errors: FieldErrors, *, namespaced: bool) -> None:
    prefix = meta.get("generateName")
    if prefix and (problems := kind.name_problems(prefix, prefix=True)):
        errors.all_invalid(f"{path}.generateName", prefix, problems)
    name = meta.get("name")
    if not name:
        errors.required(f"{path}.name", "name or generateName is required")
    elif problems := kind.name_problems(name, prefix=False):
        errors.all_invalid(f"{path}.name", name, problems)
    namespace = meta.get("namespace")
    if namespaced and not namespace:
        errors.required(f"{path}.namespace")
    elif namespaced and namespace:
        if problems := names.is_dns1123_label(namespace):
            errors.all_invalid(f"{path}.namespace", namespace, problems)
    elif namespace:
        errors.forbidden(f"{path}.namespace", "not allowed on this type")


def validate_labels(labels: Mapping[str, str] | None, path: str, errors: FieldErrors) -> None:
    for key, value in (labels or {}).items():
        if not _SIMPLE_KEYS.get(key):
            problems = names.is_qualified_name(key)
            if problems:
                errors.all_invalid(path, key, problems)
            else:
                _remember(key)
        if value and (problems := names.is_label_value(value)):
            errors.all_invalid(path, value, problems)


# Label keys repeat endlessly in a cluster; the ones that were found valid need no second look.
_SIMPLE_KEYS: dict[str, bool] = {}


def _remember(key: str) -> None:
    if len(_SIMPLE_KEYS) > 10_000:
        _SIMPLE_KEYS.clear()
    _SIMPLE_KEYS[key] = True


def validate_annotations(annotations: Mapping[str, str] | None, path: str, errors: FieldErrors) -> None:
    if not annotations:
        return
    size = 0
    for key, value in annotations.items():
        if not _SIMPLE_KEYS.get(key):
            # Annotation keys are compared in lower case; upstream is lenient about capitals here.
            errors.all_invalid(path, key, names.is_qualified_name(key.lower()))
        size += len(key.encode("utf-8", "surrogatepass")) + len(value.encode("utf-8", "surrogatepass"))
    if size > _ANNOTATIONS_MAX_BYTES:
        errors.too_long(path, "", _ANNOTATIONS_MAX_BYTES)


def _validate_owners(owners: list[JsonObject], path: str, errors: FieldErrors) -> None:
    controller = ""
    for owner in owners:
        # Upstream leaves the index out of these paths.
        at = path
        api_version = owner.get("apiVersion", "")
        if not api_version or api_version.count("/") > 1:
            errors.invalid(f"{at}.apiVersion", api_version, "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                errors.invalid(f"{at}.{key}", owner.get(key, ""), "must not be empty")
        if api_version == "v1" and owner.get("kind") == "Event":
            errors.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            if controller:
                errors.invalid(
                    path, owners,
                    "Only one reference can have Controller set to true. Found \"true\" in references for "
                    f"{controller} and {owner.get('name', '')}",
                )  # fmt: skip
            controller = owner.get("name", "")


def _validate_finalizers(finalizers: list[str], path: str, errors: FieldErrors, *, plain: bool) -> None:
    for index, finalizer in enumerate(finalizers):
        problems = names.is_qualified_name(finalizer)
        errors.all_invalid(path, finalizer, problems)
        if not plain and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            errors.invalid(
                f"{path}[{index}]", finalizer, "name is neither a standard finalizer name nor is it fully qualified"
            )
    if ORPHAN_FINALIZER in finalizers and FOREGROUND_FINALIZER in finalizers:
        errors.invalid(
            path, finalizers,
            f"finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set",
        )  # fmt: skip


def validate_metadata_update(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidateObjectMetaUpdate: what identity and deletion allow to change."""
    after: JsonObject = new["metadata"]
    before: JsonObject = old["metadata"]
    if before.get("deletionTimestamp"):
        known = before.get("finalizers") or []
        added = [f for f in after.get("finalizers") or [] if f not in known]
        if added:
            shown = ", ".join(show(f) for f in added)
            errors.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}",
            )
    for key in _IMMUTABLE:
        if after.get(key) != before.get(key):
            errors.invalid(f"metadata.{key}", after.get(key), "field is immutable")
    if after.get("generation", 0) < before.get("generation", 0):
        errors.invalid("metadata.generation", after.get("generation", 0), "must not be decremented")


def carry_identity(new: JsonObject, old: JsonObject) -> None:
    """Fill in what an update may leave out, and put back what it cannot change."""
    after: JsonObject = new["metadata"]
    before: JsonObject = old["metadata"]
    after.pop("selfLink", None)
    if not after.get("uid"):
        after["uid"] = before["uid"]
    for key in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if key in before:
            after[key] = before[key]
    if "generation" not in before:
        after.pop("generation", None)


def user_visible(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object without what every write changes; two equal results mean nothing happened."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in RENEWED}
    return {**obj, "metadata": meta}


def is_unchanged(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether a write has nothing to store: the object is as it was, and so are the owners of its fields."""
    same_owners = new["metadata"].get("managedFields") == old["metadata"].get("managedFields")
    return same_owners and user_visible(new) == user_visible(old)
