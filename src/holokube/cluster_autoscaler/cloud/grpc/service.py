"""What is answered to the autoscaler's calls. Questions and answers are plain objects; nothing here knows of gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from typing import Any

from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.errors import NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.grpc.group_options import NOT_OF_OLD, from_wire, knows_all, overrides, to_wire
from holokube.cluster_autoscaler.cloud.grpc.messages import METHODS
from holokube.cluster_autoscaler.cloud.grpc.statuses import CallRefused
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, Instance, NodeGroup
from holokube.kube.protobuf import decode_object, encode_object
from holokube.kube.types import JsonObject

Handler = Callable[[JsonObject], Awaitable[Mapping[str, Any]]]


class CleanupMode(Enum):
    """When the provider's machines are cleaned away."""

    REQUEST = "request"
    """When the autoscaler ends and asks for it."""
    EXIT = "exit"
    """When the server ends, too."""
    NEVER = "never"
    """Not even when the autoscaler asks: its next run finds all as it was."""


class CloudProviderService:
    """Answers for one provider.

    Calls come concurrently, as the autoscaler deletes in many threads. What changes something goes on to its end even
    if the caller stops waiting, for a machine that was half made would be nobody's.
    """

    def __init__(
        self,
        provider: CloudProvider,
        *,
        cleanup: CleanupMode = CleanupMode.REQUEST,
        renew: Callable[[], Awaitable[CloudProvider]] | None = None,
    ) -> None:
        """``renew`` makes another provider: one that has cleaned up is done, and the next autoscaler needs one."""
        self._provider = provider
        self._cleanup = cleanup
        self._renew = renew
        self._is_clean = False
        self._renewing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()
        self._log = get_logger("holokube.cluster_autoscaler.cloud.grpc")
        self._handlers: Mapping[str, Handler] = {
            "NodeGroups": self._node_groups,
            "NodeGroupForNode": self._node_group_for_node,
            "PricingNodePrice": self._node_price,
            "PricingPodPrice": self._pod_price,
            "GPULabel": self._gpu_label,
            "GetAvailableGPUTypes": self._gpu_types,
            "Cleanup": self._clean_up,
            "Refresh": self._refresh,
            "NodeGroupTargetSize": self._target_size,
            "NodeGroupIncreaseSize": self._increase_size,
            "NodeGroupDeleteNodes": self._delete_nodes,
            "NodeGroupDecreaseTargetSize": self._decrease_target_size,
            "NodeGroupNodes": self._nodes,
            "NodeGroupTemplateNodeInfo": self._template,
            "NodeGroupGetOptions": self._options,
        }
        assert self._handlers.keys() == METHODS.keys(), "every call has an answer"

    async def answer(self, method: str, question: JsonObject) -> Mapping[str, Any]:
        """The answer to one call; raises what ``statuses`` makes codes of."""
        if self._is_clean and method != "Cleanup":
            await self._begin_again()
        return await self._handlers[method](question)

    async def finish(self) -> None:
        """Wait for changes that nobody waits for any more; then clean up, if that is wished for."""
        while self._changes:
            await asyncio.wait(self._changes)
        if self._cleanup is CleanupMode.EXIT:
            await self._clean_away()

    # -- the provider ------------------------------------------------------------------------------------------

    async def _node_groups(self, _question: JsonObject) -> Mapping[str, Any]:
        return {"nodeGroups": [_describe(group) for group in self._provider.node_groups()]}

    async def _node_group_for_node(self, question: JsonObject) -> Mapping[str, Any]:
        group = await self._provider.node_group_for_node(_node_of(question))
        # An empty id says that the node is nobody's here: also of instances that were listed once and are gone.
        return {"nodeGroup": _describe(group) if group is not None else {"id": ""}}

    async def _node_price(self, question: JsonObject) -> Mapping[str, Any]:
        pricing = self._provider.pricing()
        return {"price": await pricing.node_price(_node_of(question), *_period_of(question))}

    async def _pod_price(self, question: JsonObject) -> Mapping[str, Any]:
        pricing = self._provider.pricing()
        raw = question.get("podBytes") or question.get("pod")
        if not raw:
            raise CallRefused("INVALID_ARGUMENT", "the request names no pod")
        return {"price": await pricing.pod_price(decode_object(raw, "v1", "Pod"), *_period_of(question))}

    async def _gpu_label(self, _question: JsonObject) -> Mapping[str, Any]:
        return {"label": self._provider.gpu_label}

    async def _gpu_types(self, _question: JsonObject) -> Mapping[str, Any]:
        return {"gpuTypes": {name: {} for name in self._provider.available_gpu_types()}}

    async def _clean_up(self, _question: JsonObject) -> Mapping[str, Any]:
        if self._cleanup is CleanupMode.NEVER:
            self._log.info("The autoscaler asks for a clean-up, which is switched off")
            return {}
        return await self._change(self._clean_away(), "Cleanup")

    async def _refresh(self, _question: JsonObject) -> Mapping[str, Any]:
        await self._provider.refresh()
        return {}

    # -- one group ---------------------------------------------------------------------------------------------

    async def _target_size(self, question: JsonObject) -> Mapping[str, Any]:
        return {"targetSize": await self._group(question).target_size()}

    async def _increase_size(self, question: JsonObject) -> Mapping[str, Any]:
        group, delta = self._group(question), question.get("delta", 0)
        if delta <= 0:
            raise CallRefused("INVALID_ARGUMENT", f"group {group.id} cannot be increased by {delta}: give more than 0")
        return await self._change(group.increase_size(delta), f"NodeGroupIncreaseSize {group.id} by {delta}")

    async def _delete_nodes(self, question: JsonObject) -> Mapping[str, Any]:
        group = self._group(question)
        nodes = [_node_object(node) for node in question.get("nodes", [])]
        if not nodes:
            return {}
        return await self._change(group.delete_nodes(nodes), f"NodeGroupDeleteNodes {group.id}, {len(nodes)} nodes")

    async def _decrease_target_size(self, question: JsonObject) -> Mapping[str, Any]:
        group, delta = self._group(question), question.get("delta", 0)
        if delta >= 0:
            raise CallRefused("INVALID_ARGUMENT", f"group {group.id} cannot be decreased by {delta}: give less than 0")
        change = group.decrease_target_size(delta)
        return await self._change(change, f"NodeGroupDecreaseTargetSize {group.id} by {delta}")

    async def _nodes(self, question: JsonObject) -> Mapping[str, Any]:
        return {"instances": [_instance(found) for found in await self._group(question).nodes()]}

    async def _template(self, question: JsonObject) -> Mapping[str, Any]:
        group = self._group(question)
        raw = encode_object((await group.template_node_info()).node, "v1", "Node")
        if not raw:
            # The autoscaler takes nothing for an answer, and crashes on it.
            raise CallRefused("INTERNAL", f"the template of group {group.id} is empty")
        return {"nodeInfo": raw, "nodeBytes": raw}

    async def _options(self, question: JsonObject) -> Mapping[str, Any]:
        group, sent = self._group(question), question.get("defaults")
        defaults = from_wire(sent)
        found = await group.options(defaults)
        different = overrides(found, defaults) if found is not None else []
        lost = [] if knows_all(sent) else [name for name in different if name in NOT_OF_OLD]
        if lost:
            self._warn_once(
                f"{group.id} {lost}", "A setting cannot be told to this autoscaler", group=group.id, settings=lost
            )
        if found is None or len(different) == len(lost):
            # Any answer makes a setting zero that is not on the wire, so none is given without need.
            raise NotImplementedByProvider(f"settings of its own for group {group.id}")
        if not knows_all(sent):
            self._warn_once(
                group.id, "This autoscaler takes max-node-startup-time for 0 in groups with settings", group=group.id
            )
        return {"nodeGroupAutoscalingOptions": to_wire(found)}

    # -- the end, and the next beginning -----------------------------------------------------------------------

    async def _clean_away(self) -> None:
        if not self._is_clean:
            self._is_clean = True
            await self._provider.cleanup()

    async def _begin_again(self) -> None:
        """Not before somebody asks: groups that begin with nodes would fill up again behind a clean-up."""
        async with self._renewing:
            while self._changes:
                await asyncio.wait(self._changes)
            if self._is_clean:
                if self._renew is not None:
                    self._provider = await self._renew()
                self._is_clean = False

    # -- how ---------------------------------------------------------------------------------------------------

    def _group(self, question: JsonObject) -> NodeGroup:
        wanted = question.get("id", "")
        groups = self._provider.node_groups()
        for group in groups:
            if group.id == wanted:
                return group
        known = ", ".join(sorted(group.id for group in groups)) or "none"
        raise CallRefused("NOT_FOUND", f"there is no node group {wanted!r}; there are: {known}")

    async def _change(self, work: Coroutine[Any, Any, None], what: str) -> Mapping[str, Any]:
        """Carry out a change to its end, whether or not the caller waits for it."""
        task = asyncio.create_task(work, name=what)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                self._log.warning(
                    "The caller stopped waiting, the change goes on; raise grpc_timeout in cloud-config", change=what
                )
                task.add_done_callback(self._log_outcome)
            raise
        return {}

    def _log_outcome(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("A change that nobody waited for failed", change=task.get_name(), error=str(error))

    def _warn_once(self, key: str, message: str, **fields: Any) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._log.warning(message, **fields)


def _describe(group: NodeGroup) -> JsonObject:
    return {"id": group.id, "minSize": group.min_size, "maxSize": group.max_size, "debug": group.debug()}


def _node_of(question: JsonObject) -> JsonObject:
    node = question.get("node")
    if not node:
        raise CallRefused("INVALID_ARGUMENT", "the request names no node")
    return _node_object(node)


def _node_object(node: JsonObject) -> JsonObject:
    """As much of a Node as the wire carries."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.get("name", ""),
            "labels": node.get("labels", {}),
            "annotations": node.get("annotations", {}),
        },
        "spec": {"providerID": node.get("providerID", "")},
    }


def _period_of(question: JsonObject) -> tuple[float, float]:
    start = question.get("startTimestamp") or question.get("startTime") or {}
    end = question.get("endTimestamp") or question.get("endTime") or {}
    return _seconds(start), _seconds(end)


def _seconds(timestamp: JsonObject) -> float:
    seconds: int = timestamp.get("seconds", 0)
    nanos: int = timestamp.get("nanos", 0)
    return seconds + nanos / 1_000_000_000


def _instance(instance: Instance) -> JsonObject:
    message: JsonObject = {"id": instance.id}
    if instance.state is not None:
        status: JsonObject = {"instanceState": int(instance.state)}
        message["status"] = status
        if instance.error is not None:
            # An empty code would mean that there is no error.
            status["errorInfo"] = {
                "errorCode": instance.error.code or str(instance.error.error_class),
                "errorMessage": instance.error.message,
                "instanceErrorClass": int(instance.error.error_class),
            }
    return message
