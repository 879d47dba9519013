"""Namespaces: they carry their own finalizers, and linger until their content is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import masked
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

NAME_LABEL: Final = "kubernetes.io/metadata.name"
KUBERNETES_FINALIZER: Final = "kubernetes"
_STANDARD_FINALIZERS: Final = frozenset({KUBERNETES_FINALIZER, "orphan", "foregroundDeletion"})


class Namespace(GoKind):
    """``spec.finalizers`` keeps a deleted namespace until somebody finalizes it."""

    go_type = "core.v1.Namespace"
    returns_deleted_object = True
    field_labels = frozenset({"metadata.name", "status.phase"})

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_dns1123_label(masked(name, prefix=prefix))

    def set_defaults(self, obj: JsonObject) -> None:
        meta: JsonObject = obj.setdefault("metadata", {})
        name = meta.get("name")
        if name:
            labels = meta.get("labels")
            if labels is None:
                meta["labels"] = {NAME_LABEL: name}
            else:
                labels[NAME_LABEL] = name
        obj["status"].setdefault("phase", "Active")

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["status"] = {"phase": "Active"}
        spec: JsonObject = new.setdefault("spec", {})
        finalizers = spec.setdefault("finalizers", [])
        if KUBERNETES_FINALIZER not in finalizers:
            finalizers.append(KUBERNETES_FINALIZER)
        # A generated name is known only now.
        self.set_defaults(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        finalizers = (old.get("spec") or {}).get("finalizers")
        spec: JsonObject = new.setdefault("spec", {})
        if finalizers:
            spec["finalizers"] = finalizers
        else:
            spec.pop("finalizers", None)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        check_finalizers(new, errors)

    def prepare_door(self, door: str, new: JsonObject, old: JsonObject) -> bool:
        """The finalize subresource changes ``spec.finalizers`` and nothing else."""
        new["status"] = old.get("status") or {}
        return door == "finalize"

    def validate_door(self, door: str, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_finalizers(new, errors, indexed=True)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        phase = (new.get("status") or {}).get("phase", "")
        if not new["metadata"].get("deletionTimestamp"):
            if phase != "Active":
                errors.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
        elif phase != "Terminating":
            errors.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.phase": obj["status"].get("phase", "")}

    def lingers(self, obj: JsonObject) -> bool:
        return bool((obj.get("spec") or {}).get("finalizers"))

    def mark_deleted(self, obj: JsonObject) -> None:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        # What upstream's namespace storage marks itself has no grace period.
        obj["metadata"].pop("deletionGracePeriodSeconds", None)


def check_finalizers(namespace: JsonObject, errors: FieldErrors, *, indexed: bool = False) -> None:
    """Rules for ``spec.finalizers``; the finalize subresource says which one is wrong (``indexed``)."""
    for index, finalizer in enumerate((namespace.get("spec") or {}).get("finalizers") or []):
        path = f"spec.finalizers[{index}]" if indexed else "spec.finalizers"
        errors.all_invalid(path, finalizer, names.is_qualified_name(finalizer))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            errors.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")
