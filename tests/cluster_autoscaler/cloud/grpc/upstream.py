"""The protocol as the real cluster-autoscaler speaks it, on Google's library: messages, and the calls of its client.

``Autoscaler`` keeps and drops answers exactly when upstream's client does, so that a conversation through it has the
same calls on the wire.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

PACKAGE = "clusterautoscaler.cloudprovider.v1.externalgrpc"
PRESENT = """
NodeGroup: string id=1, int32 minSize=2, int32 maxSize=3, string debug=4
ExternalGrpcNode: string providerID=1, string name=2, map<string> labels=3, map<string> annotations=4
NodeGroupsRequest:
NodeGroupsResponse: repeated NodeGroup nodeGroups=1
NodeGroupForNodeRequest: ExternalGrpcNode node=1
NodeGroupForNodeResponse: NodeGroup nodeGroup=1
PricingNodePriceRequest: ExternalGrpcNode node=1, Timestamp startTimestamp=4, Timestamp endTimestamp=5
PricingNodePriceResponse: double price=1
PricingPodPriceRequest: bytes pod_bytes=4, Timestamp startTimestamp=5, Timestamp endTimestamp=6
PricingPodPriceResponse: double price=1
GPULabelRequest:
GPULabelResponse: string label=1
GetAvailableGPUTypesRequest:
GetAvailableGPUTypesResponse: map<Any> gpuTypes=1
CleanupRequest:
CleanupResponse:
RefreshRequest:
RefreshResponse:
NodeGroupTargetSizeRequest: string id=1
NodeGroupTargetSizeResponse: int32 targetSize=1
NodeGroupIncreaseSizeRequest: int32 delta=1, string id=2
NodeGroupIncreaseSizeResponse:
NodeGroupDeleteNodesRequest: repeated ExternalGrpcNode nodes=1, string id=2
NodeGroupDeleteNodesResponse:
NodeGroupDecreaseTargetSizeRequest: int32 delta=1, string id=2
NodeGroupDecreaseTargetSizeResponse:
NodeGroupNodesRequest: string id=1
NodeGroupNodesResponse: repeated Instance instances=1
Instance: string id=1, InstanceStatus status=2
InstanceStatus: int32 instanceState=1, InstanceErrorInfo errorInfo=2
InstanceErrorInfo: string errorCode=1, string errorMessage=2, int32 instanceErrorClass=3
NodeGroupTemplateNodeInfoRequest: string id=1
NodeGroupTemplateNodeInfoResponse: bytes nodeBytes=2
NodeGroupAutoscalingOptions: double scaleDownUtilizationThreshold=1, double scaleDownGpuUtilizationThreshold=2, \
bool zeroOrMaxNodeScaling=6, bool ignoreDaemonSetsUtilization=7, Duration scaleDownUnneededDuration=8, \
Duration scaleDownUnreadyDuration=9, Duration MaxNodeProvisionDuration=10
NodeGroupAutoscalingOptionsRequest: string id=1, NodeGroupAutoscalingOptions defaults=2
NodeGroupAutoscalingOptionsResponse: NodeGroupAutoscalingOptions nodeGroupAutoscalingOptions=1
"""
# Until November 2025; times and durations are Kubernetes' own, nodes and pods are messages (bytes, on the wire).
OLD = """
KubeDuration: int64 duration=1
PricingNodePriceRequest: ExternalGrpcNode node=1, Timestamp startTime=2, Timestamp endTime=3
PricingPodPriceRequest: bytes pod=1, Timestamp startTime=2, Timestamp endTime=3
NodeGroupTemplateNodeInfoResponse: bytes nodeInfo=1
NodeGroupAutoscalingOptions: double scaleDownUtilizationThreshold=1, double scaleDownGpuUtilizationThreshold=2, \
KubeDuration scaleDownUnneededTime=3, KubeDuration scaleDownUnreadyTime=4, KubeDuration MaxNodeProvisionTime=5, \
bool zeroOrMaxNodeScaling=6, bool ignoreDaemonSetsUtilization=7
"""
# Seen in upstream's main branch after the release that PRESENT is of.
NEWEST = """
NodeGroupTemplateNodeInfoResponse: bytes nodeBytes=2, repeated bytes resourceSliceBytes=3
NodeGroupAutoscalingOptions: double scaleDownUtilizationThreshold=1, double scaleDownGpuUtilizationThreshold=2, \
bool zeroOrMaxNodeScaling=6, bool ignoreDaemonSetsUtilization=7, Duration scaleDownUnneededDuration=8, \
Duration scaleDownUnreadyDuration=9, Duration MaxNodeProvisionDuration=10, Duration maxNodeStartupDuration=11, \
bool allowNonAtomicScaleUpToMax=12
"""
_FIELD = re.compile(r"(repeated )?(?:map<(\w+)>|(\w+)) (\w+)=(\d+)")
_WELL_KNOWN = {"Timestamp": timestamp_pb2, "Duration": duration_pb2, "Any": any_pb2}


class Messages:
    """The classes of one generation of the protocol, as attributes."""

    def __init__(self, *texts: str) -> None:
        described: dict[str, str] = {}
        for text in texts:
            for line in text.strip().splitlines():
                name, _, fields = line.partition(":")
                described[name] = fields
        file = descriptor_pb2.FileDescriptorProto(name="externalgrpc.proto", package=PACKAGE, syntax="proto3")
        pool = descriptor_pool.DescriptorPool()
        for module in _WELL_KNOWN.values():
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
            file.dependency.append(module.DESCRIPTOR.name)
        for name, fields in described.items():
            message = file.message_type.add(name=name)
            for repeated, in_map, kind, field_name, number in _FIELD.findall(fields):
                self._add(message, bool(repeated), in_map, kind, field_name, int(number))
        pool.Add(file)
        self._classes = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in described
        }

    def __getattr__(self, name: str) -> Any:
        return self._classes[name]

    def _add(self, message: Any, repeated: bool, in_map: str, kind: str, name: str, number: int) -> None:
        kinds = descriptor_pb2.FieldDescriptorProto
        field = message.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL)
        if repeated or in_map:
            field.label = kinds.LABEL_REPEATED
        if in_map:
            entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
            entry.options.map_entry = True
            self._add(entry, False, "", "string", "key", 1)
            self._add(entry, False, "", in_map, "value", 2)
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{message.name}.{entry.name}"
        elif kind in ("string", "int32", "int64", "double", "bool", "bytes"):
            field.type = getattr(kinds, f"TYPE_{kind.upper()}")
        else:
            field.type = kinds.TYPE_MESSAGE
            field.type_name = f".google.protobuf.{kind}" if kind in _WELL_KNOWN else f".{PACKAGE}.{kind}"


PB = Messages(PRESENT)


class Autoscaler:
    """Upstream's client: what it remembers until Refresh, what for ever, and what it asks each time."""

    def __init__(self, channel: Any, messages: Messages = PB, *, timeout_s: float = 10.0) -> None:
        self.pb = messages
        self.calls: Counter[str] = Counter()
        self._channel = channel
        self._timeout_s = timeout_s
        self._groups: list[Any] | None = None
        self._group_of: dict[str, Any] = {}
        self._templates: dict[str, bytes | None] = {}
        self._gpu_label: str | None = None
        self._gpu_types: set[str] | None = None

    async def call(self, method: str, request: Any) -> Any:
        """One call over the wire."""
        self.calls[method] += 1
        answers = "NodeGroupAutoscalingOptions" if method == "NodeGroupGetOptions" else method
        ask = self._channel.unary_unary(
            f"/{PACKAGE}.CloudProvider/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=getattr(self.pb, f"{answers}Response").FromString,
        )
        return await ask(request, timeout=self._timeout_s)

    async def refresh(self) -> None:
        self._groups, self._group_of, self._templates = None, {}, {}
        await self.call("Refresh", self.pb.RefreshRequest())

    async def node_groups(self) -> list[Any]:
        if self._groups is None:
            self._groups = list((await self.call("NodeGroups", self.pb.NodeGroupsRequest())).nodeGroups)
        return self._groups

    async def node_group_for_node(self, node: dict[str, Any]) -> str | None:
        key = node["metadata"]["name"] + node["spec"].get("providerID", "")
        if key in self._group_of:
            return str(self._group_of[key])
        request = self.pb.NodeGroupForNodeRequest(node=self.wire_node(node))
        found = (await self.call("NodeGroupForNode", request)).nodeGroup
        if not found.id:
            return None
        self._group_of[key] = found.id
        return str(found.id)

    async def gpu_label(self) -> str:
        if self._gpu_label is None:
            self._gpu_label = (await self.call("GPULabel", self.pb.GPULabelRequest())).label
        return self._gpu_label

    async def gpu_types(self) -> set[str]:
        if self._gpu_types is None:
            answer = await self.call("GetAvailableGPUTypes", self.pb.GetAvailableGPUTypesRequest())
            self._gpu_types = set(answer.gpuTypes)
        return self._gpu_types

    async def target_size(self, group: str) -> int:
        return int((await self.call("NodeGroupTargetSize", self.pb.NodeGroupTargetSizeRequest(id=group))).targetSize)

    async def increase_size(self, group: str, delta: int) -> None:
        await self.call("NodeGroupIncreaseSize", self.pb.NodeGroupIncreaseSizeRequest(id=group, delta=delta))

    async def decrease_target_size(self, group: str, delta: int) -> None:
        request = self.pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=delta)
        await self.call("NodeGroupDecreaseTargetSize", request)

    async def delete_nodes(self, group: str, *nodes: dict[str, Any]) -> None:
        request = self.pb.NodeGroupDeleteNodesRequest(id=group, nodes=[self.wire_node(node) for node in nodes])
        await self.call("NodeGroupDeleteNodes", request)

    async def nodes(self, group: str) -> list[Any]:
        return list((await self.call("NodeGroupNodes", self.pb.NodeGroupNodesRequest(id=group))).instances)

    async def template(self, group: str) -> bytes | None:
        """None for "not implemented"; a template without bytes would make the real one crash."""
        if group not in self._templates:
            request = self.pb.NodeGroupTemplateNodeInfoRequest(id=group)
            answer = await self._unless_unimplemented("NodeGroupTemplateNodeInfo", request)
            self._templates[group] = None if answer is None else answer.nodeBytes
        return self._templates[group]

    async def options(self, group: str, defaults: Any = None) -> Any:
        request = self.pb.NodeGroupAutoscalingOptionsRequest(id=group, defaults=defaults)
        answer = await self._unless_unimplemented("NodeGroupGetOptions", request)
        return None if answer is None else answer.nodeGroupAutoscalingOptions

    async def cleanup(self) -> None:
        await self.call("Cleanup", self.pb.CleanupRequest())

    async def _unless_unimplemented(self, method: str, request: Any) -> Any:
        try:
            return await self.call(method, request)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise

    def wire_node(self, node: dict[str, Any]) -> Any:
        meta = node["metadata"]
        return self.pb.ExternalGrpcNode(
            providerID=node["spec"].get("providerID", ""), name=meta["name"], labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
        )  # fmt: skip
