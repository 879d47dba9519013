"""Stands in for scheduler and kubelets: binds pods, makes them run, lets them end and go away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import NODES, PODS
from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.taints import find_untolerated, taints_of, tolerations_of
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource
from holokube.runtime.stop import StopSignal

Verdict = Callable[[JsonObject], str]
"""What becomes of a running pod: ``ready``, ``stuck`` (runs, never ready), ``pending``, ``succeed``, ``fail``."""


def always_ready(_pod: JsonObject) -> str:
    return "ready"


class FakeKubelet:
    """One for all nodes. ``verdict`` may be replaced while it runs, ``exit_code`` too."""

    name = "fake-kubelet"

    def __init__(
        self, clock: Clock, client: Client, *, start_s: float = 1.0, stop_s: float = 1.0, run_s: float = 5.0
    ) -> None:
        self.clock = clock
        self.client = client
        self.verdict: Verdict = always_ready
        self.exit_code = 1
        self.start_s, self.stop_s, self.run_s = start_s, stop_s, run_s
        self.pods = Informer(clock, client, PODS)
        self.nodes = Informer(clock, client, NODES)
        self._turn = 0

    async def run(self, stop: StopSignal) -> None:
        self.pods.start()
        self.nodes.start()
        sources = [
            InformerSource(self.pods, lambda pod: [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"]),
            InformerSource(self.nodes, lambda _node: [
                f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                for pod in self.pods.lister.list() if not pod["spec"].get("nodeName")
            ]),
        ]  # fmt: skip
        try:
            await Controller(self.clock, self.name, self.reconcile, sources=sources, workers=20).run(stop)
        finally:
            await self.pods.stop()
            await self.nodes.stop()

    async def reconcile(self, key: str) -> None:
        pod = self.pods.lister.by_key(key)
        if pod is None:
            return
        try:
            await self._walk(pod)
        except (NotFound, Conflict):
            return

    async def _walk(self, pod: JsonObject) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        over = status.get("phase") in ("Succeeded", "Failed")
        if meta.get("deletionTimestamp"):
            await self.clock.sleep(self.stop_s)
            if pod["spec"].get("nodeName") and not over and meta.get("finalizers"):
                await self._set(pod, "Failed", ready=False)
            if meta.get("deletionGracePeriodSeconds") != 0:
                await self.client.delete(PODS, meta["name"], meta["namespace"], grace_s=0, uid=meta["uid"])
        elif not pod["spec"].get("nodeName"):
            node = self._choose(pod)
            if node:
                await self.client.bind(meta["namespace"], meta["name"], node, uid=meta["uid"])
        elif status.get("phase") in (None, "Pending"):
            verdict = self.verdict(pod)
            if verdict == "pending":
                return
            await self.clock.sleep(self.start_s)
            await self._set(pod, "Running", ready=self.verdict(pod) != "stuck")
        elif status.get("phase") == "Running":
            verdict = self.verdict(pod)
            if verdict in ("succeed", "fail"):
                await self.clock.sleep(self.run_s)
                await self._set(pod, "Succeeded" if verdict == "succeed" else "Failed", ready=False)

    def _choose(self, pod: JsonObject) -> str:
        affinity = RequiredNodeAffinity.of_pod(pod)
        fitting = [
            node["metadata"]["name"] for node in self.nodes.lister
            if affinity.matches_node(node)
            and find_untolerated(taints_of(node), tolerations_of(pod)) is None
        ]  # fmt: skip
        self._turn += 1
        return fitting[self._turn % len(fitting)] if fitting else ""

    async def _set(self, pod: JsonObject, phase: str, *, ready: bool) -> None:
        meta = pod["metadata"]
        fresh = await self.client.get(PODS, meta["name"], meta["namespace"])
        if fresh["metadata"]["uid"] != meta["uid"]:
            return
        await self.client.update_status(PODS, {**fresh, "status": self._status(fresh, phase, ready)})

    def _status(self, pod: JsonObject, phase: str, ready: bool) -> dict[str, Any]:
        now = format_time(self.clock.now())
        word = "True" if ready else "False"
        conditions = [
            {"type": kind, "status": word, "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")
        ]
        before = (pod.get("status") or {}).get("conditions") or ()
        kept = [c for c in before if c["type"] not in ("Ready", "ContainersReady")]
        started = {"startedAt": now}
        state: dict[str, Any] = {"running": started}
        if phase in ("Succeeded", "Failed"):
            code = 0 if phase == "Succeeded" else self.exit_code
            state = {"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}}
        container = pod["spec"]["containers"][0]
        containers = [{
            "name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
            "restartCount": 0, "state": state,
        }]  # fmt: skip
        return {
            **(pod.get("status") or {}), "phase": phase, "conditions": [*kept, *conditions],
            "containerStatuses": containers, "startTime": now,
        }  # fmt: skip
