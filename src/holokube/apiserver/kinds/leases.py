"""Leases: by far the most frequently written kind of a large cluster."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.kube.types import JsonObject

# Fields of coordinated leader election, which is not switched on by default.
_DISABLED: Final = ("strategy", "preferredHolder")


class Lease(Kind):
    tracks_generation = False
    allow_create_on_update = True
    allow_unconditional_update = False

    def empty_object(self) -> JsonObject:
        return {"spec": {}}

    def default(self, obj: JsonObject) -> None:
        if "spec" not in obj:
            obj["spec"] = {}

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        spec = new["spec"]
        for field in _DISABLED:
            spec.pop(field, None)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        spec = new["spec"]
        for field in _DISABLED:
            if field in spec and field not in old["spec"]:
                del spec[field]

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        duration_s = spec.get("leaseDurationSeconds")
        if duration_s is not None and duration_s <= 0:
            errors.invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0")
        transitions = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            errors.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
