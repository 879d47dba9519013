"""Pod templates and controller revisions: stored for others to use."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import IMMUTABLE, NOT_NEGATIVE
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.pod_features import drop_disabled_fields
from holokube.apiserver.kinds.pod_validation import validate_template
from holokube.apiserver.kinds.pod_warnings import template_warnings
from holokube.kube.types import JsonObject


class PodTemplate(GoKind):
    """A pod template that stands alone."""

    go_type = "core.v1.PodTemplate"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        default_template(obj["template"])

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        drop_disabled_fields(new["template"]["spec"])

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        drop_disabled_fields(new["template"]["spec"], old["template"]["spec"])

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        validate_template(new["template"], "template", errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None and new["template"] == old["template"]:
            return []
        return template_warnings(new["template"], "template")


class ControllerRevision(GoKind):
    """A state of a stateful set or daemon set, kept for rollbacks."""

    go_type = "apps.v1.ControllerRevision"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _validate_revision(new, errors)
        data = new.get("data")
        if data is None:
            errors.required("data", "data is mandatory")
        elif not isinstance(data, dict):
            errors.required("data", "data must be a valid JSON object")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _validate_revision(new, errors)
        if new.get("data") != old.get("data"):
            errors.invalid("data", new.get("data"), IMMUTABLE)


def _validate_revision(obj: JsonObject, errors: FieldErrors) -> None:
    if obj.get("revision", 0) < 0:
        errors.invalid("revision", obj["revision"], NOT_NEGATIVE)
