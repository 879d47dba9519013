"""Events, in the core group and in events.k8s.io; both are stored in the form of the core group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_immutable
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

_MISMATCH: Final = "does not match event.namespace"
_REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LIMITS: Final = (("reportingInstance", 128), ("action", 128), ("reason", 128))
_NOTE_MAX: Final = 1024


class Event(GoKind):
    """core/v1: lenient, because old clients must go on working."""

    go_type = "core.v1.Event"
    allow_create_on_update = True
    reporter_field: ClassVar[str] = "reportingComponent"
    field_labels = frozenset({
        *(f"involvedObject.{field}" for field in _REFERENCE_FIELDS),
        "reason", "reportingComponent", "source", "type", "metadata.namespace", "metadata.name",
    })  # fmt: skip

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        # Upstream checks no more than what every path needs; recorders put dots and hex digits there.
        return names.is_path_segment_name(name)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        namespace = new["metadata"].get("namespace", "")
        involved = new["involvedObject"].get("namespace", "")
        if new["eventTime"] is None:
            if involved != namespace and not (not involved and namespace in ("", "default")):
                errors.invalid("involvedObject.namespace", involved, _MISMATCH)
        else:
            if not involved and namespace not in ("default", "kube-system"):
                errors.invalid("involvedObject.namespace", involved, _MISMATCH)
            self._check_new_style(new, errors)
        errors.all_invalid("namespace", namespace, names.is_dns1123_subdomain(namespace))

    def _check_new_style(self, new: JsonObject, errors: FieldErrors) -> None:
        reporter = new["reportingComponent"]
        if not reporter:
            errors.required(self.reporter_field)
        errors.all_invalid(self.reporter_field, reporter, names.is_qualified_name(reporter))
        for field, limit in _LIMITS:
            value = new.get(field, "")
            if not value:
                errors.required(field)
            if len(value) > limit:
                errors.invalid(field, "", f"can have at most {limit} characters")
        if len(new.get("message", "")) > _NOTE_MAX:
            errors.invalid("message", "", f"can have at most {_NOTE_MAX} characters")

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        involved = obj["involvedObject"]
        reporter = obj.get("reportingComponent", "")
        values = {f"involvedObject.{field}": involved.get(field, "") for field in _REFERENCE_FIELDS}
        values["reason"] = obj.get("reason", "")
        values["reportingComponent"] = reporter
        values["source"] = obj["source"].get("component") or reporter
        values["type"] = obj.get("type", "")
        return values


class EventsEvent(Event):
    """events.k8s.io/v1: strict, and with names of its own for the same fields."""

    reporter_field = "reportingController"
    field_labels = frozenset({
        *(f"regarding.{field}" for field in _REFERENCE_FIELDS),
        "reason", "reportingController", "type", "metadata.namespace", "metadata.name",
    })  # fmt: skip

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_dns1123_subdomain(names.mask_trailing_dash(name) if prefix else name)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        super().validate(new, errors)
        _check_series(new, errors)
        if new["eventTime"] is None:
            errors.required("eventTime")
        kind = new.get("type", "")
        if kind not in ("Normal", "Warning"):
            errors.invalid("type", "", f"has invalid value: {kind}")
        for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if new.get(field):
                errors.invalid(field, "", "needs to be unset")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        super().validate(new, errors)
        if new.get("series") != old.get("series"):
            _check_series(new, errors)
        for field in (
            "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason",
            "type", "eventTime", "action", "related",
        ):  # fmt: skip
            check_immutable(new.get(field), old.get(field), field, errors)
        check_immutable(new["reportingComponent"], old["reportingComponent"], "reportingController", errors)
        check_immutable(new["reportingInstance"], old["reportingInstance"], "reportingInstance", errors)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        involved = obj["involvedObject"]
        values = {f"regarding.{field}": involved.get(field, "") for field in _REFERENCE_FIELDS}
        values["reason"] = obj.get("reason", "")
        values["reportingController"] = obj.get("reportingComponent", "")
        values["type"] = obj.get("type", "")
        return values


def _check_series(event: JsonObject, errors: FieldErrors) -> None:
    series = event.get("series")
    if series is not None:
        if series.get("count", 0) < 2:
            errors.invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            errors.required("series.lastObservedTime")
