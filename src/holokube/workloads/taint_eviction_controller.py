"""Evicts pods from nodes with NoExecute taints: at once, or when their tolerations run out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.audience import SPEC
from holokube.client.cache import object_key
from holokube.client.client import Client, PatchType
from holokube.client.resources import NODES, PODS
from holokube.kube.errors import NotFound
from holokube.kube.taints import NO_EXECUTE
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads import taint_eviction_decisions as decisions
from holokube.workloads.pod_indexes import NODE_INDEX, pods_by_node
from holokube.workloads.taint_eviction_decisions import Appointment, Evict, Stay, Wait

NAME: Final = "taint-eviction-controller"
WORKERS: Final = 8


class TaintEviction:
    """Decides about one pod, and remembers the evictions to come."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._nodes = informers.get(NODES).lister
        self._pods = pods_by_node(informers).lister
        self._appointments: dict[str, Appointment] = {}

    def pods_of(self, node: JsonObject) -> Iterable[str]:
        return [object_key(pod) for pod in self._pods.by_index(NODE_INDEX, node["metadata"]["name"])]

    def may_move(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """A pod concerns us when it is bound or tolerates other things than before, to a node that evicts; or is gone.

        A node that comes, or comes to evict, later has all its pods looked at then.
        """
        latest = new if new is not None else old
        assert latest is not None
        spec = latest["spec"]
        if old is not None and new is not None:
            was = old["spec"]
            if was is spec:
                return False
            if was.get("nodeName") == spec.get("nodeName") and was.get("tolerations") == spec.get("tolerations"):
                return False
        if self._appointments and object_key(latest) in self._appointments:
            return True
        if new is None or not spec.get("nodeName"):
            return False
        node = self._nodes.by_key(spec["nodeName"])
        return node is not None and _evicts(node)

    async def reconcile(self, key: str) -> Result | None:
        pod = self._pods.by_key(key)
        if pod is None:
            self._appointments.pop(key, None)
            return None
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            return None
        now = self._clock.now()
        appointment = self._appointments.get(key)
        verdict = decisions.decide(pod, self._nodes.by_key(node_name), appointment, now)
        if isinstance(verdict, Wait):
            self._appointments[key] = verdict.appointment
            return Result(requeue_after_s=max((verdict.appointment.due_at - now).total_seconds(), 0.001))
        # Who goes at once keeps no appointment for later: upstream tells of both.
        early = isinstance(verdict, Evict) and appointment is not None and now < appointment.due_at
        if early or (isinstance(verdict, Stay) and verdict.cancelled):
            self._recorder.event(pod, NORMAL, "TaintManagerEviction", f"Cancelling deletion of Pod {key}")
        if isinstance(verdict, Evict):
            await self._evict(pod, key)
        self._appointments.pop(key, None)
        return None

    async def _evict(self, pod: JsonObject, key: str) -> None:
        self._recorder.event(pod, NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {key}")
        meta = pod["metadata"]
        condition = decisions.disruption_condition(
            pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", self._clock.now()
        )
        try:
            if condition is not None:
                patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
                await self._client.patch_status(
                    PODS, meta["name"], patch, namespace=meta["namespace"], type=PatchType.STRATEGIC
                )
            await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return


def _raw_taints(node: JsonObject) -> list[JsonObject]:
    return (node.get("spec") or {}).get("taints") or []


def _evicts(node: JsonObject) -> bool:
    for taint in (node.get("spec") or {}).get("taints") or ():  # noqa: SIM110 - a generator costs more than the look at the few that there are
        if taint.get("effect") == NO_EXECUTE:
            return True
    return False


def _taints_changed(old: JsonObject | None, new: JsonObject | None) -> bool:
    if old is not None and new is not None and _raw_taints(old) == _raw_taints(new):
        return False
    return decisions.execute_taints(old) != decisions.execute_taints(new)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller that evicts pods from tainted nodes."""
    eviction = TaintEviction(clock, client, informers, recorder)
    return Controller(
        clock, NAME, eviction.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(PODS), enqueue_self, concerns=eviction.may_move, heeds=SPEC),
            InformerSource(informers.get(NODES), eviction.pods_of, concerns=_taints_changed, heeds=SPEC),
        ],
    )  # fmt: skip
