"""storage.k8s.io: classes, and what CSI drivers report."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    IMMUTABLE,
    check_immutable,
    check_not_negative,
    check_selector,
    label_warnings,
    node_term_warnings,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.volumes import check_csi_driver_name, check_volume_spec
from holokube.kube import names, quantity
from holokube.kube.types import JsonObject

_PARAMETERS_MAX: Final = 512
_PARAMETERS_MAX_BYTES: Final = 256 * 1024
_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_FS_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES: Final = ("Persistent", "Ephemeral")
_NODE_ID_MAX: Final = 256
_TOKEN_MIN_S: Final = 600
_TOKEN_MAX_S: Final = 2**32
_ATTACHMENT_MAX_BYTES: Final = 256 * 1024
_ERROR_MAX_BYTES: Final = 1024
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_UNSAFE_DELIVERY_WARNING: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def _check_provisioner(name: str, path: str, errors: FieldErrors) -> None:
    if not name:
        errors.required(path)
        return
    lowered = name.lower()
    errors.all_invalid(path, lowered, names.is_qualified_name(lowered))


def _check_parameters(parameters: JsonObject, errors: FieldErrors, *, may_be_empty: bool) -> None:
    if len(parameters) > _PARAMETERS_MAX:
        errors.too_long("parameters", "", _PARAMETERS_MAX)
        return
    size = 0
    for key, value in parameters.items():
        if not key:
            errors.invalid("parameters", key, "field can not be empty.")
        size += len(key.encode()) + len(value.encode("utf-8", "surrogatepass"))
    if size > _PARAMETERS_MAX_BYTES:
        errors.too_long("parameters", "", _PARAMETERS_MAX_BYTES)
    if not parameters and not may_be_empty:
        errors.required("parameters", "must contain at least one key/value pair")


class StorageClass(GoKind):
    go_type = "storage.v1.StorageClass"
    returns_deleted_object = True

    def set_defaults(self, obj: JsonObject) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_provisioner(new["provisioner"], "provisioner", errors)
        _check_parameters(new.get("parameters") or {}, errors, may_be_empty=True)
        policy = new["reclaimPolicy"]
        if policy and policy not in _RECLAIM_POLICIES:
            errors.not_supported("reclaimPolicy", policy, _RECLAIM_POLICIES)
        if new["volumeBindingMode"] not in _BINDING_MODES:
            errors.not_supported("volumeBindingMode", new["volumeBindingMode"], _BINDING_MODES)
        seen: list[dict[str, frozenset[str]]] = []
        for index, term in enumerate(new.get("allowedTopologies") or ()):
            compared = _check_topology(term, f"allowedTopologies[{index}]", errors)
            if compared in seen:
                errors.duplicate(f"allowedTopologies[{index}].matchLabelExpressions", "")
            seen.append(compared)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            check_immutable(new.get(field), old.get(field), field, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found = []
        for index, term in enumerate(new.get("allowedTopologies") or ()):
            for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
                path = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                found += label_warnings(expression.get("key", ""), path)
        return found


def _check_topology(term: JsonObject, path: str, errors: FieldErrors) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for index, expression in enumerate(term.get("matchLabelExpressions") or ()):
        at = f"{path}.matchLabelExpressions[{index}]"
        key, values = expression.get("key", ""), expression.get("values") or []
        if not values:
            errors.required(f"{at}.values")
        for number, value in enumerate(values):
            if value in values[:number]:
                errors.duplicate(f"{at}.values[{number}]", value)
        errors.all_invalid(f"{at}.key", key, names.is_qualified_name(key))
        if key in found:
            errors.duplicate(f"{at}.key", key)
        found[key] = frozenset(values)
    return found


class VolumeAttributesClass(GoKind):
    go_type = "storage.v1.VolumeAttributesClass"
    returns_deleted_object = True

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_provisioner(new["driverName"], "driverName", errors)
        _check_parameters(new.get("parameters") or {}, errors, may_be_empty=False)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if new["driverName"] != old["driverName"]:
            errors.forbidden("driverName", "updates to driverName are forbidden.")
        if new.get("parameters") != old.get("parameters"):
            errors.forbidden("parameters", "updates to parameters are forbidden.")
        self.validate(new, errors)


class CSIDriver(GoKind):
    go_type = "storage.v1.CSIDriver"
    returns_deleted_object = True
    allow_unconditional_update = False

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        for field, value in (
            ("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("requiresRepublish", False), ("seLinuxMount", False),
        ):  # fmt: skip
            spec.setdefault(field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["spec"].pop("preventPodSchedulingIfMissing", None)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        if "preventPodSchedulingIfMissing" not in old["spec"]:
            new["spec"].pop("preventPodSchedulingIfMissing", None)
        if new["spec"] != old["spec"]:
            # There is no generation until the first change.
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        if spec["fsGroupPolicy"] not in _FS_GROUP_POLICIES:
            errors.not_supported("spec.fsGroupPolicy", spec["fsGroupPolicy"], _FS_GROUP_POLICIES)
        requests = spec.get("tokenRequests") or []
        audiences: set[str] = set()
        for index, request in enumerate(requests):
            path = f"spec.tokenRequests[{index}]"
            audience = request.get("audience", "")
            if audience in audiences:
                errors.duplicate(f"{path}.audience", audience)
                continue
            audiences.add(audience)
            expires_s = request.get("expirationSeconds")
            if expires_s is not None and expires_s < _TOKEN_MIN_S:
                message = "may not specify a duration less than 10 minutes"
                errors.invalid(f"{path}.expirationSeconds", expires_s, message)
            if expires_s is not None and expires_s > _TOKEN_MAX_S:
                message = "may not specify a duration larger than 2^32 seconds"
                errors.invalid(f"{path}.expirationSeconds", expires_s, message)
        for mode in spec["volumeLifecycleModes"]:
            if mode not in _LIFECYCLE_MODES:
                errors.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
        period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if period_s is not None and period_s < 10:
            message = "must be greater than or equal to 10 seconds"
            errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period_s, message)
        in_secrets = spec.get("serviceAccountTokenInSecrets")
        if in_secrets is not None and not requests:
            message = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.invalid("spec.serviceAccountTokenInSecrets", in_secrets, message)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        after, before = new["spec"], old["spec"]
        check_immutable(after["attachRequired"], before["attachRequired"], "spec.attachedRequired", errors)
        path = "spec.volumeLifecycleModes"
        check_immutable(after["volumeLifecycleModes"], before["volumeLifecycleModes"], path, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        spec = new["spec"]
        requests = spec.get("tokenRequests")
        known = old["spec"].get("tokenRequests") if old else None
        if requests and requests != known and spec.get("serviceAccountTokenInSecrets") is None:
            return [_UNSAFE_DELIVERY_WARNING]
        return []


class CSINode(GoKind):
    go_type = "storage.v1.CSINode"
    returns_deleted_object = True
    allow_unconditional_update = False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        seen: set[str] = set()
        for index, driver in enumerate(new["spec"]["drivers"] or ()):
            path = f"spec.drivers[{index}]"
            name = driver["name"]
            check_csi_driver_name(name, f"{path}.name", errors)
            node_id = driver["nodeID"]
            if not node_id:
                errors.required(f"{path}.nodeID")
            if len(node_id) > _NODE_ID_MAX:
                errors.invalid(f"{path}.nodeID", node_id, f"must be {_NODE_ID_MAX} characters or less")
            check_not_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count", errors)
            if name in seen:
                errors.duplicate(f"{path}.name", name)
            seen.add(name)
            keys = driver["topologyKeys"] or []
            for number, key in enumerate(keys):
                if not key:
                    errors.required(path)
                if key in keys[:number]:
                    errors.duplicate(path, key)
                errors.all_invalid(path, key, names.is_qualified_name(key))

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        known = {driver["name"]: driver for driver in old["spec"]["drivers"] or ()}
        for driver in new["spec"]["drivers"] or ():
            before = known.get(driver["name"])
            if before is not None and any(driver[key] != before[key] for key in ("nodeID", "topologyKeys")):
                shown = {
                    "Name": driver["name"], "NodeID": driver["nodeID"], "TopologyKeys": driver["topologyKeys"],
                    "Allocatable": None,
                }  # fmt: skip
                errors.invalid("spec.drivers", shown, IMMUTABLE)


class CSIStorageCapacity(GoKind):
    go_type = "storage.v1.CSIStorageCapacity"
    allow_unconditional_update = False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        check_selector(new.get("nodeTopology"), "nodeTopology", errors)
        name = new["storageClassName"]
        errors.all_invalid("storageClassName", name, names.is_dns1123_subdomain(name))
        capacity = new.get("capacity")
        if capacity is not None and quantity.parse(capacity).sign() < 0:
            errors.invalid("capacity", capacity, "must be greater than or equal to 0")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        for field in ("nodeTopology", "storageClassName"):
            check_immutable(new.get(field), old.get(field), field, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        selector: JsonObject = new.get("nodeTopology") or {}
        found = node_term_warnings(selector, "nodeTopology")
        for key in selector.get("matchLabels") or ():
            found += label_warnings(key, f"nodeTopology.matchLabels.{key}")
        return found


class VolumeAttachment(GoKind):
    go_type = "storage.v1.VolumeAttachment"
    returns_deleted_object = True
    allow_unconditional_update = False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        check_csi_driver_name(spec["attacher"], "spec.attacher", errors)
        source = spec["source"]
        volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        if volume is None and inline is None:
            errors.required("spec.source", _ONE_SOURCE)
        elif volume is not None and inline is not None:
            errors.forbidden("spec.source", _ONE_SOURCE)
        elif volume is not None and not volume:
            errors.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
        elif inline is not None:
            check_volume_spec(inline, "spec.source.inlineVolumeSpec", errors, inline=True)
        errors.all_invalid("spec.nodeName", spec["nodeName"], names.is_dns1123_subdomain(spec["nodeName"]))
        if volume is not None:
            errors.all_invalid("spec.source.persistentVolumeName", volume, names.is_dns1123_subdomain(volume))
        self._check_status(new["status"], errors)

    def _check_status(self, status: JsonObject, errors: FieldErrors) -> None:
        size = sum(len(k) + len(v) for k, v in (status.get("attachmentMetadata") or {}).items())
        if size > _ATTACHMENT_MAX_BYTES:
            errors.too_long("status.attachmentMetadata", "", _ATTACHMENT_MAX_BYTES)
        for field in ("attachError", "detachError"):
            problem = status.get(field)
            if problem is None:
                continue
            if len(problem.get("message", "")) > _ERROR_MAX_BYTES:
                errors.too_long(f"status.{field}.message", "", _ATTACHMENT_MAX_BYTES)
            code = problem.get("errorCode")
            if code is not None and code < 0:
                message = f"must be between 0 and {2**31 - 1}, inclusive"
                errors.invalid(f"status.{field}.errorCode", code, message)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        if new["spec"] != old["spec"]:
            spec = new["spec"]
            source = spec["source"]
            shown = {
                "Attacher": spec["attacher"],
                "Source": {
                    "PersistentVolumeName": source.get("persistentVolumeName"),
                    "InlineVolumeSpec": source.get("inlineVolumeSpec"),
                },
                "NodeName": spec["nodeName"],
            }
            errors.invalid("spec", shown, IMMUTABLE)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self._check_status(new["status"], errors)
