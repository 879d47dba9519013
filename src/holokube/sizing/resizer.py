"""Resizes running pods in place when their node's allocatable or their annotations change.

Must be done once, so that it runs under a lease; reviews are answered by every replica.
"""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.client import Client, PatchType
from holokube.client.informer import Informer
from holokube.client.resources import PODS
from holokube.kube.errors import BadRequest, Forbidden, Invalid, NotFound
from holokube.kube.sizing import ORIGINAL_ANNOTATION, SizingProblem
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.metrics import Metrics
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, enqueue_self
from holokube.sizing.known_nodes import KnownNodes
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.resize_decisions import ResizePlan, can_be_resized, plan_resize

BY_NODE = "node"
WORKERS = 4
FORBIDDEN_RETRY_S = 300.0
EVENT_CHARACTERS_MAX = 1000


def index_by_node(pod: JsonObject) -> list[str]:
    """For the informer of pods."""
    name = (pod.get("spec") or {}).get("nodeName")
    return [name] if name else []


def keep_resizable(pod: JsonObject) -> JsonObject:
    """What the cache keeps of a pod; every node of a large cluster may have several."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp")

    def slim(container: JsonObject) -> JsonObject:
        return {name: container[name] for name in ("name", "resources", "restartPolicy") if name in container}

    slimmed: JsonObject = {name: spec[name] for name in ("nodeName", "resources", "affinity") if name in spec}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            slimmed[field] = [slim(container) for container in spec[field]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": slimmed,
        "status": {"phase": status.get("phase")},
    }


class Resizer:
    """Brings running pods to their size, one at a time."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        pods: Informer,
        nodes: Informer,
        recorder: EventRecorder,
        sizing_metrics: SizingMetrics,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._pods = pods
        self._known = KnownNodes(nodes)
        self._recorder = recorder
        self._metrics = sizing_metrics
        self._refused: dict[str, tuple[str, JsonObject | None]] = {}
        """Of each pod, by uid, the resize that the API server calls invalid: it would do so again."""
        self._log = get_logger("holokube.sizing.resizer")
        self.controller: Controller[str] = Controller(
            clock,
            "node-sizing-resizer",
            self.reconcile,
            sources=[
                InformerSource(pods, enqueue_self, predicates=[_matters]),
                InformerSource(nodes, self._pods_on, predicates=[_has_other_size]),
            ],
            workers=WORKERS,
            metrics=metrics,
        )

    def _pods_on(self, node: JsonObject) -> list[str]:
        pods = self._pods.lister.by_index(BY_NODE, node["metadata"]["name"])
        return [key for pod in pods for key in enqueue_self(pod)]

    async def reconcile(self, key: str) -> Result | None:
        """One look at one pod."""
        pod = self._pods.lister.by_key(key)
        if pod is None or not can_be_resized(pod):
            self._refused.pop(key, None)
            return None
        node = self._known.find(pod["spec"]["nodeName"])
        if node is None:
            return None
        try:
            plan = plan_resize(pod, node)
        except SizingProblem as problem:
            # A pod that was never sized has been told about when it was admitted.
            if ORIGINAL_ANNOTATION in (pod["metadata"].get("annotations") or {}):
                self._recorder.event(pod, WARNING, "NodeSizingFailed", problem.text)
            return None
        if plan.is_empty or self._refused.get(key) == (pod["metadata"]["uid"], plan.resize):
            return None
        self._refused.pop(key, None)
        try:
            await self._write(pod, plan)
        except NotFound:
            return None
        except (BadRequest, Forbidden, Invalid) as error:
            self._metrics.resized("refused")
            self._log.warning("A pod cannot be resized in place", pod=key, why=error.message)
            self._recorder.event(pod, WARNING, "NodeSizingResizeRefused", error.message[:EVENT_CHARACTERS_MAX])
            if isinstance(error, Forbidden):
                # A quota may have room another time.
                return Result(requeue_after_s=FORBIDDEN_RETRY_S)
            self._refused[key] = pod["metadata"]["uid"], plan.resize
        return None

    async def _write(self, pod: JsonObject, plan: ResizePlan) -> None:
        meta = pod["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        # A pod of the same name may have come in its place since.
        same = {"uid": meta["uid"]}
        if plan.note is not None:
            await self._client.patch(PODS, name, _with(plan.note, same), namespace=namespace)
        if plan.resize is not None:
            await self._client.patch(
                PODS, name, _with(plan.resize, same),
                namespace=namespace, type=PatchType.STRATEGIC, subresource="resize",
            )  # fmt: skip
            self._metrics.resized("resized")
            self._log.info("Resized a pod in place", pod=f"{namespace}/{name}", node=pod["spec"]["nodeName"])
            self._recorder.event(pod, NORMAL, "NodeSizingResized", f"Resized for node {pod['spec']['nodeName']}")
        if plan.status is not None:
            await self._client.patch(PODS, name, _with(plan.status, same), namespace=namespace)


def _with(patch: JsonObject, metadata: JsonObject) -> JsonObject:
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **metadata}}


def _matters(change: Change) -> bool:
    """Statuses change all the time; sizes depend on nothing of them but whether the pod is finished."""
    old, new = change.old, change.new
    if old is None or new is None:
        return new is not None
    return old["spec"] != new["spec"] or any(
        old["metadata"].get(name) != new["metadata"].get(name) for name in ("annotations", "labels")
    )


def _has_other_size(change: Change) -> bool:
    if change.old is None or change.new is None:
        return change.new is not None
    return bool(change.old["status"].get("allocatable") != change.new["status"].get("allocatable"))
