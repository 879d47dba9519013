"""Replica sets and their predecessor, replication controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.workload_base import WorkloadKind
from holokube.apiserver.kinds.workload_rules import (
    not_negative,
    selects_as_before,
    unchanged,
    validate_replica_counts,
    validate_selected_template,
    validate_selector,
    workload_warnings,
)
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject

_COUNTS = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
    "terminatingReplicas",
)  # fmt: skip
_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class _Replicated(WorkloadKind):
    """What replica sets and replication controllers have in common."""

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new.get("status") or {}
        not_negative(status, _COUNTS, "status", errors)
        validate_replica_counts(status, _PARTS, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        return workload_warnings(new, old)


class ReplicaSet(_Replicated):
    """The rules of replica sets."""

    go_type = "apps.v1.ReplicaSet"
    status_stands_alone = True
    template_stands_alone = True
    settles_on_update = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        default_template(spec["template"])

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _validate_numbers(spec, errors)
        # Upstream says "deployment" here too.
        selector = validate_selector(spec, "deployment", errors)
        if selector is None:
            errors.invalid("spec.selector", spec.get("selector"), "invalid label selector")
        else:
            validate_selected_template(spec["template"], selector, "spec.template", "ReplicaSet", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if selects_as_before(new, old):
            _validate_numbers(new["spec"], errors)
            return
        self.validate(new, errors)
        unchanged(new["spec"], old["spec"], "selector", "spec", errors)


def _validate_numbers(spec: JsonObject, errors: FieldErrors) -> None:
    not_negative(spec, ("replicas", "minReadySeconds"), "spec", errors)


class ReplicationController(_Replicated):
    """The rules of replication controllers: a selector of labels only, which may be left out."""

    cascades_by_default: ClassVar[str] = "Orphan"
    field_labels: ClassVar[frozenset[str]] = frozenset(
        {"metadata.name", "metadata.namespace", "status.replicas"}
    )

    go_type = "core.v1.ReplicationController"

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        template = spec.get("template")
        if template is None:
            return
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)
        default_template(template)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        not_negative(spec, ("minReadySeconds",), "spec", errors)
        selector = spec.get("selector")
        if not selector:
            errors.required("spec.selector")
        not_negative(spec, ("replicas",), "spec", errors)
        template = spec.get("template")
        if template is None:
            errors.required("spec.template")
        else:
            compiled = LabelSelector.from_labels(selector)
            validate_selected_template(template, compiled, "spec.template", "ReplicationController", errors)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.replicas": str((obj.get("status") or {}).get("replicas", 0))}
