"""resource.k8s.io: device classes, claims, and the slices in which drivers offer devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import IMMUTABLE, check_immutable
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.scheduling_validation import validate_node_selector
from holokube.apiserver.kinds.volumes import check_csi_driver_name
from holokube.apiserver.metadata import validate_annotations, validate_labels
from holokube.kube import names, timeformat
from holokube.kube.resources import is_extended_resource
from holokube.kube.types import JsonObject

_REQUESTS_MAX: Final = 32
_SELECTORS_MAX: Final = 32
_FIRST_AVAILABLE_MAX: Final = 8
_DEVICES_MAX: Final = 128
_RESERVED_MAX: Final = 256
_POOL_NAME_MAX: Final = 253
_EXPRESSION_MAX: Final = 10 * 1024
_MODES: Final = ("All", "ExactCount")
_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_NODE_FIELD: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_NO_SUCH_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def _default_claim(spec: JsonObject) -> None:
    for request in spec["devices"].get("requests") or ():
        exact = request.get("exactly")
        for part in [*([exact] if exact is not None else []), *(request.get("firstAvailable") or ())]:
            if part.setdefault("allocationMode", "ExactCount") == "ExactCount" and not part.get("count"):
                part["count"] = 1


class DeviceClass(GoKind):
    go_type = "resource.v1.DeviceClass"
    tracks_generation = True
    returns_deleted_object = True

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        _check_selectors(spec.get("selectors") or [], "spec.selectors", errors)
        for index, config in enumerate(spec.get("config") or ()):
            _check_config(config, f"spec.config[{index}]", errors)
        name = spec.get("extendedResourceName")
        if name is not None and not is_extended_resource(name):
            errors.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def _go_claim(spec: JsonObject) -> JsonObject:
    """A claim's spec as messages show it: with the field names of Go's internal types."""
    devices = spec["devices"]

    def part(request: JsonObject, *, named: bool) -> JsonObject:
        shown: JsonObject = {"Name": request["name"]} if named else {}
        shown["DeviceClassName"] = request["deviceClassName"]
        shown["Selectors"] = request.get("selectors")
        shown["AllocationMode"] = request["allocationMode"]
        shown["Count"] = request.get("count", 0)
        if not named:
            shown["AdminAccess"] = request.get("adminAccess")
        shown["Tolerations"] = request.get("tolerations")
        shown["Capacity"] = request.get("capacity")
        return shown

    requests = [
        {
            "Name": request["name"],
            "Exactly": part(request["exactly"], named=False) if request.get("exactly") is not None else None,
            "FirstAvailable": [part(p, named=True) for p in request.get("firstAvailable") or ()] or None,
        }
        for request in devices.get("requests") or ()
    ]
    return {
        "Devices": {
            "Requests": requests or None,
            "Constraints": devices.get("constraints"),
            "Config": devices.get("config"),
        }
    }


class ResourceClaim(GoKind):
    go_type = "resource.v1.ResourceClaim"
    returns_deleted_object = True

    def set_defaults(self, obj: JsonObject) -> None:
        _default_claim(obj["spec"])

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_claim(new["spec"]["devices"], "spec.devices", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if new["spec"] != old["spec"]:
            errors.invalid("spec", _go_claim(new["spec"]), IMMUTABLE)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after, before = new["status"], old.get("status") or {}
        reserved = after.get("reservedFor") or []
        path = "status.reservedFor"
        if len(reserved) > _RESERVED_MAX:
            errors.too_many(path, len(reserved), _RESERVED_MAX)
        seen: set[str] = set()
        for index, consumer in enumerate(reserved):
            for field in ("resource", "name", "uid"):
                if not consumer.get(field):
                    errors.required(f"{path}[{index}].{field}")
            if consumer.get("uid") in seen:
                errors.duplicate(f"{path}[{index}]", consumer.get("uid"))
            seen.add(consumer.get("uid", ""))
        if reserved and after.get("allocation") is None:
            errors.forbidden(path, "may not be specified when `allocated` is not set")
        added = any(consumer not in (before.get("reservedFor") or []) for consumer in reserved)
        if added and after.get("allocation") is not None and new["metadata"].get("deletionTimestamp"):
            message = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errors.forbidden(path, message)
        known = before.get("allocation")
        if known is not None and after.get("allocation") is not None and after["allocation"] != known:
            errors.invalid("status.allocation", after["allocation"], IMMUTABLE)


class ResourceClaimTemplate(GoKind):
    go_type = "resource.v1.ResourceClaimTemplate"
    returns_deleted_object = True

    def set_defaults(self, obj: JsonObject) -> None:
        _default_claim(obj["spec"]["spec"])

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        meta = spec["metadata"]
        validate_annotations(meta.get("annotations"), "spec.metadata.annotations", errors)
        validate_labels(meta.get("labels"), "spec.metadata.labels", errors)
        for field, value in meta.items():
            if value and field not in ("annotations", "labels"):
                errors.forbidden(f"spec.metadata.{field}", "cannot be set")
        _check_claim(spec["spec"]["devices"], "spec.spec.devices", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if new["spec"] != old["spec"]:
            spec = new["spec"]
            shown = {"ObjectMeta": spec["metadata"], "Spec": _go_claim(spec["spec"])}
            errors.invalid("spec", shown, IMMUTABLE)


class ResourceSlice(GoKind):
    go_type = "resource.v1.ResourceSlice"
    tracks_generation = True
    returns_deleted_object = True
    field_labels = frozenset({"metadata.name", "spec.nodeName", "spec.driver"})

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        _date_taints(new, context)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        _date_taints(new, context)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        check_csi_driver_name(spec["driver"], "spec.driver", errors)
        _check_pool(spec["pool"], "spec.pool", errors)
        _check_node_fields(spec, errors)
        if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
            errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
        devices = spec.get("devices") or []
        if len(devices) > _DEVICES_MAX:
            errors.too_many("spec.devices", len(devices), _DEVICES_MAX)
        seen: set[str] = set()
        for index, device in enumerate(devices):
            path, name = f"spec.devices[{index}]", device["name"]
            errors.all_invalid(f"{path}.name", name, names.is_dns1123_label(name))
            if name in seen:
                errors.duplicate(path, name)
            seen.add(name)
            for number, taint in enumerate(device.get("taints") or ()):
                _check_taint(taint, f"{path}.taints[{number}]", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        after, before = new["spec"], old["spec"]
        check_immutable(after["pool"]["name"], before["pool"]["name"], "spec.pool.name", errors)
        check_immutable(after["driver"], before["driver"], "spec.driver", errors)
        check_immutable(after.get("nodeName"), before.get("nodeName"), "spec.nodeName", errors)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        spec = obj["spec"]
        return {"spec.nodeName": spec.get("nodeName") or "", "spec.driver": spec["driver"]}


def _date_taints(new: JsonObject, context: WriteContext) -> None:
    for device in new["spec"].get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", timeformat.format_time(context.now))


def _check_taint(taint: JsonObject, path: str, errors: FieldErrors) -> None:
    errors.all_invalid(f"{path}.key", taint["key"], names.is_qualified_name(taint["key"]))
    if taint.get("value"):
        errors.all_invalid(f"{path}.value", taint["value"], names.is_label_value(taint["value"]))
    if not taint["effect"]:
        errors.required(f"{path}.effect")
    elif taint["effect"] not in _TAINT_EFFECTS:
        errors.not_supported(f"{path}.effect", taint["effect"], _TAINT_EFFECTS)


def _check_pool(pool: JsonObject, path: str, errors: FieldErrors) -> None:
    name = pool["name"]
    if not name:
        errors.required(f"{path}.name")
    else:
        if len(name) > _POOL_NAME_MAX:
            errors.too_long(f"{path}.name", "", _POOL_NAME_MAX)
        for part in name.split("/"):
            errors.all_invalid(f"{path}.name", part, names.is_dns1123_subdomain(part))
    if pool["resourceSliceCount"] <= 0:
        errors.invalid(f"{path}.resourceSliceCount", pool["resourceSliceCount"], "must be greater than zero")
    if pool["generation"] < 0:
        errors.invalid(f"{path}.generation", pool["generation"], "must be greater than or equal to zero")


def _check_node_fields(spec: JsonObject, errors: FieldErrors) -> None:
    chosen = []
    node = spec.get("nodeName")
    if node:
        chosen.append("`nodeName`")
        errors.all_invalid("spec.nodeName", node, names.is_dns1123_subdomain(node))
    elif node is not None:
        errors.invalid("spec.nodeName", node, "must be either unset or set to a non-empty string")
    selector = spec.get("nodeSelector")
    if selector is not None:
        chosen.append("`nodeSelector`")
        validate_node_selector(selector, "spec.nodeSelector", errors)
        if len(selector.get("nodeSelectorTerms") or ()) != 1:
            path = "spec.nodeSelector.nodeSelectorTerms"
            errors.invalid(path, selector.get("nodeSelectorTerms") or [], "must have exactly one node selector term")
    for field in ("allNodes", "perDeviceNodeSelection"):
        value = spec.get(field)
        if value:
            chosen.append(f"`{field}`")
        elif value is not None:
            errors.invalid(f"spec.{field}", value, "must be either unset or set to true")
    if not chosen:
        errors.required("spec", _ONE_NODE_FIELD)
    elif len(chosen) > 1:
        errors.invalid("spec", f"{{{', '.join(chosen)}}}", f"{_ONE_NODE_FIELD}, but multiple fields are set")


def _check_claim(devices: JsonObject, path: str, errors: FieldErrors) -> None:
    requests = devices.get("requests") or []
    if len(requests) > _REQUESTS_MAX:
        errors.too_many(f"{path}.requests", len(requests), _REQUESTS_MAX)
    known: set[str] = set()
    for index, request in enumerate(requests):
        at, name = f"{path}.requests[{index}]", request["name"]
        _check_request(request, at, errors)
        if name and name in known:
            errors.duplicate(at, name)
        known.add(name)
        known.update(f"{name}/{part['name']}" for part in request.get("firstAvailable") or ())
    for index, constraint in enumerate(devices.get("constraints") or ()):
        at = f"{path}.constraints[{index}]"
        _check_request_names(constraint.get("requests") or [], known, f"{at}.requests", errors)
        if constraint.get("matchAttribute") is None and constraint.get("distinctAttribute") is None:
            message = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
            errors.required(at, message)
    for index, config in enumerate(devices.get("config") or ()):
        at = f"{path}.config[{index}]"
        _check_request_names(config.get("requests") or [], known, f"{at}.requests", errors)
        _check_config(config, at, errors)


def _check_request_names(listed: list[str], known: set[str], path: str, errors: FieldErrors) -> None:
    for index, name in enumerate(listed):
        if name not in known:
            errors.invalid(f"{path}[{index}]", name, _NO_SUCH_REQUEST)
        if name in listed[:index]:
            errors.duplicate(f"{path}[{index}]", name)


def _check_request_name(name: str, path: str, errors: FieldErrors) -> None:
    errors.all_invalid(path, name, names.is_dns1123_label(name))


def _check_request(request: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_request_name(request["name"], f"{path}.name", errors)
    exact, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exact is None and not alternatives:
        errors.required(path, _ONE_REQUEST)
    elif exact is not None and alternatives:
        errors.invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")
    elif exact is not None:
        _check_device_request(exact, f"{path}.exactly", errors)
    else:
        if len(alternatives) > _FIRST_AVAILABLE_MAX:
            errors.too_many(f"{path}.firstAvailable", len(alternatives), _FIRST_AVAILABLE_MAX)
        seen: set[str] = set()
        for index, part in enumerate(alternatives):
            at = f"{path}.firstAvailable[{index}]"
            _check_request_name(part["name"], f"{at}.name", errors)
            _check_device_request(part, at, errors)
            if part["name"] in seen:
                errors.duplicate(at, part["name"])
            seen.add(part["name"])


def _check_device_request(part: JsonObject, path: str, errors: FieldErrors) -> None:
    name = part["deviceClassName"]
    if not name:
        errors.required(f"{path}.deviceClassName")
    else:
        errors.all_invalid(f"{path}.deviceClassName", name, names.is_dns1123_subdomain(name))
    _check_selectors(part.get("selectors") or [], f"{path}.selectors", errors)
    mode, count = part["allocationMode"], part.get("count", 0)
    if mode == "All":
        if count:
            errors.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            errors.invalid(f"{path}.count", count, "must be greater than zero")
    else:
        errors.not_supported(f"{path}.allocationMode", mode, _MODES)


def _check_selectors(selectors: list[JsonObject], path: str, errors: FieldErrors) -> None:
    if len(selectors) > _SELECTORS_MAX:
        errors.too_many(path, len(selectors), _SELECTORS_MAX)
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            errors.required(f"{path}[{index}].cel")
        elif len(cel["expression"]) > _EXPRESSION_MAX:
            errors.too_long(f"{path}[{index}].cel.expression", "", _EXPRESSION_MAX)


def _check_config(config: JsonObject, path: str, errors: FieldErrors) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        errors.required(f"{path}.opaque")
        return
    check_csi_driver_name(opaque["driver"], f"{path}.opaque.driver", errors)
    parameters = opaque["parameters"]
    if parameters is None:
        errors.required(f"{path}.opaque.parameters")
    elif not isinstance(parameters, dict):
        errors.invalid(f"{path}.opaque.parameters", "<value omitted>", "parameters must be a valid JSON object")
