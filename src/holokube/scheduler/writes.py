"""What the scheduler writes: bindings, conditions, promises, the end of victims, and wishes for volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.errors import TransportError
from holokube.client.client import Client, PatchType
from holokube.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from holokube.kube.conditions import get_condition
from holokube.kube.errors import ApiError, NotFound
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.packing.volumes import SELECTED_NODE
from holokube.runtime.events import NORMAL, EventRecorder
from holokube.scheduler.pod_facts import PREEMPTION_REASON, nominated_node_of, scheduler_of, uid_of
from holokube.scheduler.volume_choice import BOUND_BY_CONTROLLER

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
_EMPTY: Final[Mapping[str, Any]] = {}
_QUESTIONS: Final = 30
_ASK_AGAIN_S: Final = 1.0


class Writes:
    """The scheduler's hand. Methods raise what the API server answers."""

    def __init__(self, clock: Clock, client: Client, recorder: EventRecorder) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder

    async def bind(self, pod: JsonObject, node_name: str) -> None:
        metadata = pod["metadata"]
        try:
            await self._client.bind(metadata["namespace"], metadata["name"], node_name, uid=uid_of(pod))
        except TransportError:
            # The answer is lost, and the binding perhaps not: room that is given away now might be filled twice.
            if not await self._is_bound(pod, node_name):
                raise
        note = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node_name}"
        self._recorder.event(pod, NORMAL, "Scheduled", note, action="Binding")

    async def _is_bound(self, pod: JsonObject, node_name: str) -> bool:
        """Asks until there is an answer, or for so long that the watch will have told."""
        metadata = pod["metadata"]
        for _ in range(_QUESTIONS):
            try:
                found = await self._client.get(PODS, metadata["name"], metadata["namespace"])
            except NotFound:
                return False
            except (ApiError, TransportError):
                await self._clock.sleep(_ASK_AGAIN_S)
                continue
            return uid_of(found) == uid_of(pod) and (found["spec"].get("nodeName") or "") == node_name
        return False

    async def patch_pod_status(self, pod: JsonObject, status: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        await self._client.patch_status(
            PODS,
            metadata["name"],
            {"metadata": {"uid": uid_of(pod)}, "status": status},
            namespace=metadata["namespace"],
            type=PatchType.STRATEGIC,
        )

    def refusal_patch(
        self, pod: JsonObject, reason: str, message: str, nominate: str | None
    ) -> JsonObject | None:
        """The status that says why a pod has no node; None if it says so already."""
        status: JsonObject = {}
        generation = pod["metadata"].get("generation")
        present = get_condition(pod, "PodScheduled") or _EMPTY
        was_false = present.get("status") == "False"
        if not (
            was_false and present.get("reason") == reason and present.get("message") == message
            and (not generation or present.get("observedGeneration") == generation)
        ):  # fmt: skip
            condition: JsonObject = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
            if generation:
                condition["observedGeneration"] = generation
            if not was_false:
                condition["lastTransitionTime"] = format_time(self._clock.now())
            status["conditions"] = [condition]
        if nominate is not None and nominate != nominated_node_of(pod):
            status["nominatedNodeName"] = nominate or None
        return status or None

    async def promise(self, pod: JsonObject, node_name: str) -> None:
        """Tell autoscalers where a pod is about to go, or with an empty name that it is not."""
        if nominated_node_of(pod) != node_name:
            await self.patch_pod_status(pod, {"nominatedNodeName": node_name or None})

    async def end(self, victim: JsonObject, preemptor: JsonObject, node_name: str) -> None:
        """Have a victim leave; one that is gone already is fine."""
        metadata = victim["metadata"]
        condition: JsonObject = {
            "type": "DisruptionTarget", "status": "True", "reason": PREEMPTION_REASON,
            "message": f"{scheduler_of(preemptor)}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": format_time(self._clock.now()),
        }  # fmt: skip
        if metadata.get("generation"):
            condition["observedGeneration"] = metadata["generation"]
        try:
            await self.patch_pod_status(victim, {"conditions": [condition]})
            await self._client.delete(PODS, metadata["name"], metadata["namespace"], uid=uid_of(victim))
        except NotFound:
            return
        note = f"Preempted by pod {uid_of(preemptor)} on node {node_name}"
        self._recorder.event(victim, NORMAL, "Preempted", note, action="Preempting", related=preemptor)

    async def reserve(self, volume: JsonObject) -> None:
        """Write the claim into a volume, unless somebody else changed the volume."""
        metadata = volume["metadata"]
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {BOUND_BY_CONTROLLER: "yes"},
            },
            "spec": {"claimRef": volume["spec"]["claimRef"]},
        }
        await self._client.patch(PERSISTENT_VOLUMES, metadata["name"], patch)

    async def select(self, claim: JsonObject) -> int:
        """Ask for a volume near the node that was chosen, unless somebody else changed the claim; the new version."""
        metadata = claim["metadata"]
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {SELECTED_NODE: metadata["annotations"][SELECTED_NODE]},
            }
        }
        written = await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS, metadata["name"], patch, namespace=metadata["namespace"]
        )
        return int(written["metadata"]["resourceVersion"])
