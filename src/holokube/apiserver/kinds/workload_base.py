"""What all kinds with a pod template have in common."""

from __future__ import annotations

from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.go_shapes import GoKind, go_shape
from holokube.apiserver.kinds.pod_features import drop_disabled_fields
from holokube.apiserver.status_reading import StatusReader
from holokube.kube.schema import Schema
from holokube.kube.types import JsonObject


class WorkloadKind(GoKind):
    """A kind that makes pods from a template, and whose status starts empty."""

    tracks_generation = True

    def __init__(self) -> None:
        super().__init__()
        self._status_shape = go_shape(f"{self.go_type}Status")
        self._status_reader: StatusReader | None = None

    def template(self, obj: JsonObject) -> JsonObject | None:
        """Where the template stands."""
        found: JsonObject | None = obj["spec"].get("template")
        return found

    def status_reader(self, obj: JsonObject, schema: Schema) -> StatusReader | None:
        reader = self._status_reader
        if reader is None:
            reader = self._status_reader = StatusReader(schema.fields["status"], self._status_shape)
        return reader

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        status: JsonObject = {}
        self._status_shape.apply(status)
        new["status"] = status
        template = self.template(new)
        if template is not None:
            drop_disabled_fields(template["spec"])

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        template, known = self.template(new), self.template(old)
        if template is not None and template is not known:
            drop_disabled_fields(template["spec"], known["spec"] if known is not None else None)
