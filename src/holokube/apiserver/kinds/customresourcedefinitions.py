"""CustomResourceDefinitions: what they must say, which names they get, how they end."""

from __future__ import annotations

from holokube.apiserver.crds.definition_checks import (
    check_definition,
    check_definition_status_update,
    check_definition_update,
    definition_warnings,
)
from holokube.apiserver.crds.definition_defaults import default_definition
from holokube.apiserver.crds.naming import CLEANUP_FINALIZER, GROUP, PLURAL, accept_names, set_terminating
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.kube import timeformat
from holokube.kube.types import JsonObject


class CustomResourceDefinition(Kind):
    """Names are accepted and the resource is established within the write, so that it is served at once."""

    allow_unconditional_update = False
    returns_deleted_object = True

    def default(self, obj: JsonObject) -> None:
        default_definition(obj)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["status"] = {"storedVersions": []}
        self._settle(new, context)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        self._settle(new, context)

    def _settle(self, crd: JsonObject, context: WriteContext) -> None:
        """Record the storage version, and compare the names with those of all other CRDs."""
        spec, status = crd.get("spec") or {}, crd.get("status") or {}
        stored = list(status.get("storedVersions") or [])
        storage = next((v.get("name", "") for v in spec.get("versions") or [] if v.get("storage")), None)
        if storage is not None and storage not in stored:
            stored.append(storage)
        crd["status"] = {**status, "storedVersions": stored}
        if spec.get("names") and spec.get("group") and not crd["metadata"].get("deletionTimestamp"):
            others = context.lookup.objects(GROUP, PLURAL)
            crd["status"] = accept_names(crd, others, timeformat.format_time(context.now))

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        check_definition(new, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_definition_update(new, old, errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_definition_status_update(new, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        return definition_warnings(new, old)

    def lingers(self, obj: JsonObject) -> bool:
        """Objects of the resource have to go first; see ``crds.serving``."""
        meta: JsonObject = obj["metadata"]
        return not meta.get("deletionTimestamp") or CLEANUP_FINALIZER in (meta.get("finalizers") or [])

    def mark_deleted(self, obj: JsonObject) -> None:
        meta: JsonObject = obj["metadata"]
        finalizers = meta.get("finalizers") or []
        if CLEANUP_FINALIZER not in finalizers:
            meta["finalizers"] = [*finalizers, CLEANUP_FINALIZER]
            # Unlike with other kinds, the deletion of a CRD is no new generation of it.
            meta["generation"] -= 1
            marked = set_terminating(obj, "True", "InstanceDeletionPending", meta["deletionTimestamp"])
            obj["status"] = marked["status"]
