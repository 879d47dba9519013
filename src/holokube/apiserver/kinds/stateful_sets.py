"""Stateful sets."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.annotation_validation import validate_pod_annotations
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import NOT_NEGATIVE
from holokube.apiserver.kinds.claim_validation import validate_claim_spec
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.pod_validation import validate_template
from holokube.apiserver.kinds.pod_warnings import claim_warnings
from holokube.apiserver.kinds.volume_defaults import default_claim_spec
from holokube.apiserver.kinds.workload_base import WorkloadKind
from holokube.apiserver.kinds.workload_rules import (
    not_negative,
    ordered,
    validate_collisions,
    validate_replica_counts,
    validate_runs_forever,
    validate_selector,
    workload_warnings,
)
from holokube.apiserver.metadata import validate_annotations, validate_labels
from holokube.kube import names
from holokube.kube.types import JsonObject

_RETENTION = ("Retain", "Delete")
_COUNTS = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
    "observedGeneration", "collisionCount",
)  # fmt: skip
_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_MUTABLE = frozenset(
    {
        "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    }
)  # fmt: skip
_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSet(WorkloadKind):
    """The rules of stateful sets."""

    go_type = "apps.v1.StatefulSet"

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        """Pod names are made from the name and serve as host names."""
        return names.is_dns1123_label(names.mask_trailing_dash(name) if prefix else name)

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec["updateStrategy"]
        if "type" not in strategy:
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
            strategy["rollingUpdate"].setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for key in ("whenDeleted", "whenScaled"):
            if not retention.get(key):
                retention[key] = "Retain"
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            default_claim_spec(claim["spec"])
            claim["status"].setdefault("phase", "Pending")
        default_template(spec["template"])

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        super().prepare_create(new, context)
        _drop_max_unavailable(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        _drop_max_unavailable(new)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _validate_policies(spec, errors)
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec", errors)
        service = spec.get("serviceName")
        _validate_spec(spec, errors)
        if service:
            errors.all_invalid("spec.serviceName", service, names.is_dns1123_label(service))

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _validate_policies(spec, errors)
        _validate_spec(spec, errors)
        if _fixed(spec) != _fixed(old["spec"]):
            errors.forbidden("spec", _FORBIDDEN)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new.get("status") or {}
        not_negative(status, _COUNTS, "status", errors)
        validate_replica_counts(status, _PARTS, errors, ready_name="status.readyReplicas")
        validate_collisions(new, old, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found = workload_warnings(new, old, checks_name=False)
        spec = new["spec"]
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            at = f"spec.volumeClaimTemplates[{index}]"
            found += claim_warnings(claim["spec"], at if old is None else f"{at}.Spec")
        if spec.get("revisionHistoryLimit", 0) < 0:
            found.append(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
                "a value >= 0 is recommended"
            )
        return found


def _drop_max_unavailable(obj: JsonObject) -> None:
    """Updating several pods at once is a feature that is off by default."""
    rolling = obj["spec"]["updateStrategy"].get("rollingUpdate")
    if rolling:
        rolling.pop("maxUnavailable", None)


def _fixed(spec: JsonObject) -> JsonObject:
    return {key: value for key, value in spec.items() if key not in _MUTABLE}


def _validate_policies(spec: JsonObject, errors: FieldErrors) -> None:
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        errors.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec["updateStrategy"]
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": None}
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            errors.invalid("spec.updateStrategy.rollingUpdate", shown, detail)
    elif kind == "RollingUpdate":
        if rolling is not None:
            not_negative(rolling, ("partition",), "spec.updateStrategy.rollingUpdate", errors)
    else:
        internal = None
        if rolling is not None:
            internal = {"Partition": rolling.get("partition", 0), "MaxUnavailable": None}
        shown = {"Type": kind, "RollingUpdate": internal}
        errors.invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    retention = spec["persistentVolumeClaimRetentionPolicy"]
    for key in ("whenDeleted", "whenScaled"):
        if retention[key] not in _RETENTION:
            at = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors.not_supported(at, retention[key], _RETENTION)


def _validate_spec(spec: JsonObject, errors: FieldErrors) -> None:
    not_negative(spec, ("replicas", "minReadySeconds"), "spec", errors)
    start = (spec.get("ordinals") or {}).get("start", 0)
    if start < 0:
        errors.invalid("spec.ordinals.start", start, NOT_NEGATIVE)
    selector = validate_selector(spec, "statefulset", errors)
    if selector is None:
        errors.invalid("spec.selector", spec.get("selector"), "")
    else:
        labels = spec["template"]["metadata"].get("labels")
        if not selector.is_empty and not selector.matches(labels or {}):
            detail = "`selector` does not match template `labels`"
            errors.invalid("spec.template.metadata.labels", ordered(labels), detail)
        _validate_template(spec, errors)
    validate_runs_forever(spec["template"], "spec.template", "StatefulSet", errors)


def _validate_template(spec: JsonObject, errors: FieldErrors) -> None:
    """The pods get a volume per claim and host names of their own, whatever the template says."""
    template = spec["template"]
    pod_spec = {key: value for key, value in template["spec"].items() if key not in ("subdomain", "hostname")}
    claims = spec.get("volumeClaimTemplates")
    if claims:
        claimed = {claim["metadata"].get("name", ""): None for claim in claims}
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
        others = [v for v in pod_spec.get("volumes") or () if v.get("name", "") not in claimed]
        pod_spec["volumes"] = volumes + others
    meta = template["metadata"]
    validate_template({"metadata": meta, "spec": pod_spec}, "spec.template", errors)
    # Upstream looks at labels and annotations a second time.
    validate_labels(meta.get("labels"), "spec.template.labels", errors)
    annotations = meta.get("annotations")
    if annotations:
        validate_annotations(annotations, "spec.template.annotations", errors)
        validate_pod_annotations(annotations, pod_spec, "spec.template.annotations", errors)
