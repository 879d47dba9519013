"""The messages of ``externalgrpc``, by the numbers of their fields.

Three generations of the protocol are in use, and their numbers do not collide. Until November 2025 nodes, pods, times
and durations were messages of Kubernetes (``nodeInfo``, ``pod``, ``startTime``, ``scaleDownUnneededTime`` and so on);
since then nodes and pods are bytes, and times and durations those of protobuf itself. The newest knows startup times,
too. Reading and writing all of them makes one server good for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.kube.protobuf import Decoder, Encoder, read_rows
from holokube.kube.types import JsonObject

SERVICE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"

_ROWS: Final[Mapping[str, tuple[tuple[int, str, str], ...]]] = {
    "Empty": (),
    "Any": (),
    # Also the layout of Kubernetes' own Time.
    "Timestamp": ((1, "seconds", "int64"), (2, "nanos", "int32")),
    "Duration": ((1, "seconds", "int64"), (2, "nanos", "int32")),
    "KubernetesDuration": ((1, "duration", "int64"),),
    "NodeGroup": ((1, "id", "string"), (2, "minSize", "int32"), (3, "maxSize", "int32"), (4, "debug", "string")),
    "Node": (
        (1, "providerID", "string"), (2, "name", "string"), (3, "labels", "{}string"), (4, "annotations", "{}string"),
    ),
    "NodeGroups": ((1, "nodeGroups", "[]NodeGroup"),),
    "NodeRequest": ((1, "node", "Node"),),
    "NodeGroupAnswer": ((1, "nodeGroup", "NodeGroup"),),
    "NodePriceRequest": (
        (1, "node", "Node"), (2, "startTime", "Timestamp"), (3, "endTime", "Timestamp"),
        (4, "startTimestamp", "Timestamp"), (5, "endTimestamp", "Timestamp"),
    ),
    "PodPriceRequest": (
        (1, "pod", "raw"), (2, "startTime", "Timestamp"), (3, "endTime", "Timestamp"), (4, "podBytes", "raw"),
        (5, "startTimestamp", "Timestamp"), (6, "endTimestamp", "Timestamp"),
    ),
    "Price": ((1, "price", "double"),),
    "Label": ((1, "label", "string"),),
    "GpuTypes": ((1, "gpuTypes", "{}Any"),),
    "Group": ((1, "id", "string"),),
    "TargetSize": ((1, "targetSize", "int32"),),
    "SizeChange": ((1, "delta", "int32"), (2, "id", "string")),
    "Deletion": ((1, "nodes", "[]Node"), (2, "id", "string")),
    "InstanceError": ((1, "errorCode", "string"), (2, "errorMessage", "string"), (3, "instanceErrorClass", "int32")),
    "InstanceStatus": ((1, "instanceState", "int32"), (2, "errorInfo", "InstanceError")),
    "Instance": ((1, "id", "string"), (2, "status", "InstanceStatus")),
    "Instances": ((1, "instances", "[]Instance"),),
    "Template": ((1, "nodeInfo", "raw"), (2, "nodeBytes", "raw")),
    "Options": (
        (1, "scaleDownUtilizationThreshold", "double"), (2, "scaleDownGpuUtilizationThreshold", "double"),
        (3, "scaleDownUnneededTime", "KubernetesDuration"), (4, "scaleDownUnreadyTime", "KubernetesDuration"),
        (5, "MaxNodeProvisionTime", "KubernetesDuration"), (6, "zeroOrMaxNodeScaling", "bool"),
        (7, "ignoreDaemonSetsUtilization", "bool"), (8, "scaleDownUnneededDuration", "Duration"),
        (9, "scaleDownUnreadyDuration", "Duration"), (10, "MaxNodeProvisionDuration", "Duration"),
        (11, "maxNodeStartupDuration", "Duration"), (12, "allowNonAtomicScaleUpToMax", "bool"),
    ),
    "OptionsRequest": ((1, "id", "string"), (2, "defaults", "Options")),
    "OptionsAnswer": ((1, "nodeGroupAutoscalingOptions", "Options"),),
}  # fmt: skip

METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "NodeGroups": ("Empty", "NodeGroups"),
    "NodeGroupForNode": ("NodeRequest", "NodeGroupAnswer"),
    "PricingNodePrice": ("NodePriceRequest", "Price"),
    "PricingPodPrice": ("PodPriceRequest", "Price"),
    "GPULabel": ("Empty", "Label"),
    "GetAvailableGPUTypes": ("Empty", "GpuTypes"),
    "Cleanup": ("Empty", "Empty"),
    "Refresh": ("Empty", "Empty"),
    "NodeGroupTargetSize": ("Group", "TargetSize"),
    "NodeGroupIncreaseSize": ("SizeChange", "Empty"),
    "NodeGroupDeleteNodes": ("Deletion", "Empty"),
    "NodeGroupDecreaseTargetSize": ("SizeChange", "Empty"),
    "NodeGroupNodes": ("Group", "Instances"),
    "NodeGroupTemplateNodeInfo": ("Group", "Template"),
    "NodeGroupGetOptions": ("OptionsRequest", "OptionsAnswer"),
}
"""Every call, with the messages of its question and its answer. Names of messages are not on the wire."""

_FIELDS: Final = {
    name: read_rows([(number, field, kind, False) for number, field, kind in rows]) for name, rows in _ROWS.items()
}
_ENCODER: Final = Encoder(_FIELDS.get)
_DECODER: Final = Decoder(_FIELDS.get)


def encode(message: str, value: Mapping[str, Any]) -> bytes:
    """A message as bytes."""
    return _ENCODER.encode(value, message)


def decode(message: str, data: bytes) -> JsonObject:
    """What bytes say; zeros may be left out of them, and are not there then."""
    return _DECODER.decode(data, message)
