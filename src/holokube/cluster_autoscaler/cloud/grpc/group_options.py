"""Settings of a group on the wire."""

from __future__ import annotations

from typing import Any

from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.kube.types import JsonObject

_NS = 1_000_000_000
# Of each: the field of GroupOptions, the present name on the wire, and the one of old releases.
_DURATIONS = (
    ("scale_down_unneeded_time_s", "scaleDownUnneededDuration", "scaleDownUnneededTime"),
    ("scale_down_unready_time_s", "scaleDownUnreadyDuration", "scaleDownUnreadyTime"),
    ("max_node_provision_time_s", "MaxNodeProvisionDuration", "MaxNodeProvisionTime"),
    ("max_node_startup_time_s", "maxNodeStartupDuration", ""),
)
_PLAIN = (
    ("scale_down_utilization_threshold", "scaleDownUtilizationThreshold"),
    ("scale_down_gpu_utilization_threshold", "scaleDownGpuUtilizationThreshold"),
    ("zero_or_max_node_scaling", "zeroOrMaxNodeScaling"),
    ("ignore_daemon_sets_utilization", "ignoreDaemonSetsUtilization"),
    ("allow_non_atomic_scale_up_to_max", "allowNonAtomicScaleUpToMax"),
)
NOT_OF_OLD = ("max_node_startup_time_s", "allow_non_atomic_scale_up_to_max")
"""Settings that only the newest autoscalers can be told; to others they become zero as soon as anything is answered."""


def knows_all(defaults: JsonObject | None) -> bool:
    """Whether whoever sent these defaults can be told every setting."""
    return defaults is not None and "maxNodeStartupDuration" in defaults


def from_wire(message: JsonObject | None) -> GroupOptions:
    """The settings in a message; what its sender cannot say keeps upstream's default."""
    if message is None:
        return GroupOptions()
    found: dict[str, Any] = {}
    for name, wire_name in _PLAIN:
        found[name] = message.get(wire_name, False if name.startswith(("zero", "ignore", "allow")) else 0.0)
    for name, wire_name, old_name in _DURATIONS:
        if wire_name in message:
            part = message[wire_name]
            found[name] = part.get("seconds", 0) + part.get("nanos", 0) / _NS
        elif old_name in message:
            found[name] = message[old_name].get("duration", 0) / _NS
        elif old_name:
            found[name] = 0.0
    return GroupOptions(**found)


def to_wire(options: GroupOptions) -> JsonObject:
    """A message with every field filled, under present and old numbers: one left out would become zero."""
    message: JsonObject = {wire_name: getattr(options, name) for name, wire_name in _PLAIN}
    for name, wire_name, old_name in _DURATIONS:
        nanoseconds = round(getattr(options, name) * _NS)
        # Both parts have the sign of the whole.
        seconds, nanos = divmod(abs(nanoseconds), _NS)
        sign = -1 if nanoseconds < 0 else 1
        message[wire_name] = {"seconds": sign * seconds, "nanos": sign * nanos}
        if old_name:
            message[old_name] = {"duration": nanoseconds}
    return message


def overrides(options: GroupOptions, defaults: GroupOptions) -> list[str]:
    """The settings in which a group differs from the defaults."""
    names = [name for name, *_ in (*_PLAIN, *_DURATIONS)]
    return [name for name in names if getattr(options, name) != getattr(defaults, name)]
