"""Nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    POSITIVE,
    check_legacy_cidr,
    check_quantity,
    cidr_warnings,
    is_ipv6,
    round_to_milli,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MERGED: Final = ("taints", "unschedulable")
_PLAIN_IN_TAINTS: Final = ("key", "value", "effect")
_DECLARED_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_CIDR_FIXED: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_FIXED: Final = 'node updates may not change providerID except from "" to valid'


class Node(GoKind):
    """A status given at creation is kept: kubelets register themselves that way."""

    go_type = "core.v1.Node"
    keeps_status_on_create = True
    status_stands_alone = True
    settles_on_update = True
    field_labels = frozenset({"metadata.name", "spec.unschedulable"})

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        # The singular and the plural are two views of one field.
        if "podCIDR" in spec:
            if spec.get("podCIDRs", [""])[0] != spec["podCIDR"]:
                spec["podCIDRs"] = [spec["podCIDR"]]
        elif "podCIDRs" in spec:
            spec["podCIDR"] = spec["podCIDRs"][0]
        self.set_status_defaults(obj["status"])

    def set_status_defaults(self, status: JsonObject) -> None:
        capacity = status.get("capacity")
        if capacity:
            round_to_milli(capacity)
            if "allocatable" not in status:
                status["allocatable"] = dict(capacity)
            else:
                round_to_milli(status["allocatable"])

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["spec"].pop("configSource", None)
        new["status"].pop("config", None)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        if "configSource" not in old["spec"]:
            new["spec"].pop("configSource", None)

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        if "config" not in (old.get("status") or {}):
            new["status"].pop("config", None)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec, status = new["spec"], new["status"]
        _check_taints(spec.get("taints"), errors)
        _check_status(status, errors)
        swap = status["nodeInfo"].get("swap")
        if swap and swap.get("capacity", 1) <= 0:
            errors.invalid("metadata.nodeSwapStatus.capacity", swap["capacity"], POSITIVE)
        cidrs = spec.get("podCIDRs")
        if cidrs:
            for index, cidr in enumerate(cidrs):
                check_legacy_cidr(cidr, f"spec.podCIDRs[{index}]", errors)
            if len(cidrs) > 1:
                families = {is_ipv6(cidr.partition("/")[0]) for cidr in cidrs}
                if len(families) < 2 or len(cidrs) > 2:
                    errors.invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        if errors:
            # Upstream looks at these once as a node and once as a change of a node, and reports both.
            _check_status(new["status"], errors)
            _check_taints(new["spec"].get("taints"), errors)
        self._validate_change(new, old, errors)

    def stays_valid(self, new: JsonObject, old: JsonObject) -> bool:
        # Nothing but the general rules is about the metadata, and the status is the stored one. Only of a new node
        # nobody asks whether it has an address twice.
        addresses = new["status"].get("addresses")
        return not addresses or len({(one["type"], one["address"]) for one in addresses}) == len(addresses)

    def merged_spec(self, spec: JsonObject, asked: JsonObject) -> JsonObject | None:
        merged = spec.copy()
        for key, value in asked.items():
            if key == "taints" and type(value) is list:
                if not all(map(_is_plain_taint, value)):
                    return None
                part: Any = [{**taint} for taint in value]
            elif key in _MERGED and (value is None or (key == "unschedulable" and type(value) is bool)):
                part = value
            else:
                return None
            # A null takes a field off, and Go leaves out what is empty.
            if part:
                merged[key] = part
            else:
                merged.pop(key, None)
        return merged

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _check_status(new["status"], errors)
        self._validate_change(new, old, errors)

    def _validate_change(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        seen: set[tuple[str, str]] = set()
        for index, address in enumerate(new["status"].get("addresses") or ()):
            key = (address["type"], address["address"])
            if key in seen:
                errors.duplicate(f"status.addresses[{index}]", {"Type": key[0], "Address": key[1]})
            seen.add(key)
        after, before = new["spec"], old["spec"]
        known = before.get("podCIDRs")
        if known:
            given = after.get("podCIDRs") or []
            if len(known) != len(given):
                errors.forbidden("spec.podCIDRs", _CIDR_FIXED)
            else:
                for was, now in zip(known, given, strict=True):
                    if was != now:
                        errors.forbidden("spec.podCIDRs", _CIDR_FIXED)
        if before.get("providerID") and before["providerID"] != after.get("providerID"):
            errors.forbidden("spec.providerID", _PROVIDER_FIXED)
        if before.get("externalID", "") != after.get("externalID", ""):
            errors.forbidden("spec.externalID", "may not be updated")

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        spec = new["spec"]
        if old is not None and new["status"] is not old["status"]:
            # Only the status was written; whoever writes the rest is given the stored one.
            return []
        found = []
        if "configSource" in spec:
            found.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for index, cidr in enumerate(spec.get("podCIDRs") or ()):
            found += cidr_warnings(cidr, f"spec.podCIDRs[{index}]")
        return found

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if obj["spec"].get("unschedulable") else "false"}


def _check_status(status: JsonObject, errors: FieldErrors) -> None:
    for field in ("capacity", "allocatable"):
        for name, value in (status.get(field) or {}).items():
            check_quantity(name, value, f"status.{field}.{name}", errors)
    features = status.get("declaredFeatures")
    if features:
        _check_features(features, errors)


def _check_features(features: list[str], errors: FieldErrors) -> None:
    path = "status.declaredFeatures"
    for index, feature in enumerate(features):
        if len(feature) > names.DNS1123_SUBDOMAIN_MAX_LENGTH:
            problem = f"must be no more than {names.DNS1123_SUBDOMAIN_MAX_LENGTH} characters"
            errors.invalid(f"{path}[{index}]", feature, f"invalid feature name {show(feature)}: {problem}")
        elif not _DECLARED_FEATURE.fullmatch(feature):
            errors.invalid(
                f"{path}[{index}]", feature,
                f"invalid feature name {show(feature)}: must start with an UpperCamelCase segment, with subsequent "
                "segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
                "characters and slashes",
            )  # fmt: skip
        if index and features[index - 1] == feature:
            errors.duplicate(f"{path}[{index}]", feature)
        elif index and features[index - 1] > feature:
            errors.invalid(f"{path}[{index}]", feature, "list must be sorted alphabetically")


def _is_plain_taint(taint: Any) -> bool:
    """Whether a taint is stored as it was sent."""
    if type(taint) is not dict or "key" not in taint or "effect" not in taint:
        return False
    return all(key in _PLAIN_IN_TAINTS and type(part) is str and part for key, part in taint.items())


def _check_taints(taints: list[JsonObject] | None, errors: FieldErrors) -> None:
    if not taints:
        return
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        # Upstream reports taints under metadata.
        path = f"metadata.taints[{index}]"
        key, effect, value = taint["key"], taint["effect"], taint.get("value", "")
        errors.all_invalid(f"{path}.key", key, names.is_qualified_name(key))
        problems = names.is_label_value(value)
        if problems:
            errors.invalid(f"{path}.value", value, ";".join(problems))
        if not effect:
            errors.required(f"{path}.effect")
        elif effect not in TAINT_EFFECTS:
            errors.not_supported(f"{path}.effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            problem = f"Duplicate value: {show(shown)}: taints must be unique by key and effect pair"
            errors.causes.append(Cause("FieldValueDuplicate", problem, path))
        seen.add((key, effect))
