"""Pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.annotation_validation import apparmor_profile
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.pod_defaults import default_pod, drop_obsolete_annotations
from holokube.apiserver.kinds.pod_features import drop_disabled_fields
from holokube.apiserver.kinds.pod_status import carry_status, share_addresses, validate_pod_status
from holokube.apiserver.kinds.pod_update import (
    prepare_ephemeral_containers,
    prepare_resize,
    share_names,
    validate_ephemeral_containers,
    validate_pod_resize,
    validate_pod_update,
)
from holokube.apiserver.kinds.pod_validation import validate_new_pod
from holokube.apiserver.kinds.pod_warnings import pod_warnings
from holokube.apiserver.kinds.security_validation import APPARMOR_CONTAINER, all_containers
from holokube.kube import names, timeformat
from holokube.kube.resources import qos_class
from holokube.kube.types import JsonObject

# Claims get names that begin with the pod's, and a gate brings the time into the status.
_NAMED = frozenset({"resourceClaims", "schedulingGates"})
# Annotations that rules for pods look at are all of this domain.
_MEANINGFUL = "kubernetes.io/"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Pod(GoKind):
    """The rules of pods."""

    returns_deleted_object: ClassVar[bool] = True
    is_graceful: ClassVar[bool] = True
    is_made_in_numbers: ClassVar[bool] = True
    repeats_status: ClassVar[bool] = True
    field_labels: ClassVar[frozenset[str]] = frozenset(
        {
            "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy",
            "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
            "status.podIP", "status.podIPs", "status.nominatedNodeName", "spec.host",
        }
    )  # fmt: skip

    status_stands_alone = True
    go_type = "core.v1.Pod"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        default_pod(obj)
        self.set_status_defaults(obj["status"])

    def default_beside_spec(self, obj: JsonObject) -> None:
        super().default_beside_spec(obj)
        drop_obsolete_annotations(obj["metadata"])

    def set_status_defaults(self, status: JsonObject) -> None:
        if status:
            share_addresses(status)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        spec = new["spec"]
        drop_disabled_fields(spec)
        share_names(new)
        new["status"] = {"phase": "Pending", "qosClass": qos_class(new)}
        if spec.get("schedulingGates"):
            new["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": timeformat.format_time(context.now),
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        if "affinity" in spec or "topologySpreadConstraints" in spec:
            _apply_label_keys(spec, new["metadata"].get("labels") or {})
        if new["metadata"].get("annotations"):
            _apply_apparmor_annotations(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        drop_disabled_fields(new["spec"], old["spec"])
        share_names(new)

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        carry_status(new, old)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        validate_new_pod(new, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        validate_pod_update(new, old, errors)

    def stays_valid(self, new: JsonObject, old: JsonObject) -> bool:
        after, before = new["metadata"], old["metadata"]
        return bool(
            after.get("annotations") == before.get("annotations") and after.get("labels") == before.get("labels")
        )

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        validate_pod_status(new, old, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None:
            return []
        return self.name_warnings(new) + self.warnings_besides_name(new)

    def name_warnings(self, new: JsonObject) -> list[str]:
        found = []
        problems = names.is_dns1123_label(new["metadata"].get("name", ""))
        if problems:
            found.append(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        return found

    def warnings_besides_name(self, new: JsonObject) -> list[str]:
        return pod_warnings(new["spec"], new["metadata"], "")

    def repeat_key(self, new: JsonObject) -> bytes | None:
        spec, meta = new["spec"], new["metadata"]
        if not _NAMED.isdisjoint(spec) or any("ephemeral" in volume for volume in spec.get("volumes") or ()):
            return None
        selects = "affinity" in spec or "topologySpreadConstraints" in spec
        annotations = meta.get("annotations")
        if annotations:
            # Others are only checked for their form, as all metadata is; each pod of a job may have its own.
            annotations = {key: value for key, value in annotations.items() if _MEANINGFUL in key}
        return orjson.dumps((spec, annotations or None, meta.get("labels") if selects else None))

    def goes_by_spec(self, spec: JsonObject, annotations: Mapping[str, str]) -> bool:
        if "affinity" in spec or "topologySpreadConstraints" in spec:
            return False
        return _MEANINGFUL not in " ".join(annotations)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        spec, status = obj["spec"], obj.get("status") or {}
        node = spec.get("nodeName", "")
        addresses = status.get("podIPs")
        return {
            "spec.nodeName": node,
            "spec.host": node,
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def prepare_door(self, door: str, new: JsonObject, old: JsonObject) -> bool:
        if door == "resize":
            prepare_resize(new, old)
        elif door == "ephemeralcontainers":
            prepare_ephemeral_containers(new, old)
        else:
            return False
        return True

    def validate_door(self, door: str, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if door == "resize":
            validate_pod_resize(new, old, errors)
        else:
            validate_ephemeral_containers(new, old, errors)

    def grace_period_s(self, obj: JsonObject, requested_s: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        grace_s: int = spec.get("terminationGracePeriodSeconds", 0) if requested_s is None else requested_s
        return 1 if grace_s < 0 else grace_s


def _apply_label_keys(spec: JsonObject, labels: Mapping[str, str]) -> None:
    """Turn ``matchLabelKeys`` into requirements with the values of this pod's own labels."""
    affinity = spec.get("affinity") or {}
    for key in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(key) or {}
        for weighted in pods.get(_PREFERRED) or ():
            _extend_selector(weighted.get("podAffinityTerm") or {}, labels)
        for term in pods.get(_REQUIRED) or ():
            _extend_selector(term, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _extend_selector(constraint, labels)


def _extend_selector(term: JsonObject, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field) or ():
            if key in labels:
                requirement = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(requirement)


def _apply_apparmor_annotations(pod: JsonObject) -> None:
    """Profiles used to be annotations; the field is what counts today."""
    spec, annotations = pod["spec"], pod["metadata"]["annotations"]
    if (spec.get("os") or {}).get("name") == "windows":
        return
    pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _ in all_containers(spec, "spec"):
        annotation = annotations.get(APPARMOR_CONTAINER + container.get("name", ""))
        if annotation is None or (container.get("securityContext") or {}).get("appArmorProfile"):
            continue
        profile = apparmor_profile(annotation)
        if profile is not None and profile != pod_profile:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile
