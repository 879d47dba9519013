"""The copy of a cluster that a plan plays with: an API server in this process that nobody else can reach.

Nothing runs on it but the autoscaler. Pods that are evicted are gone at once; if asked for, their controllers' part is
played as well, and a pod without a node takes their place.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.apiserver.restore import restore
from holokube.base.clock import VirtualClock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import PODS
from holokube.client.transport import JSON, Call, Transport, WatchEvent
from holokube.cluster_autoscaler.objects import controller_of, is_daemon_set_pod
from holokube.kube.errors import TooManyRequests
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.store.store import Store


class Evictions:
    """A transport on which an evicted pod is gone when the answer comes."""

    def __init__(self, clock: VirtualClock, inner: Transport, *, keeps_budgets: bool, recreates: bool) -> None:
        """``keeps_budgets``: a disruption budget can refuse. ``recreates``: controllers replace what is evicted."""
        self._clock = clock
        self._inner = inner
        self._keeps_budgets = keeps_budgets
        self._recreates = recreates
        self._replaced = 0
        self._refused: set[str] = set()
        self._recovered_s = -math.inf
        self.evicted: list[str] = []
        self.recover: Callable[[], Awaitable[None]] | None = None
        """Brings budgets back to what they were, as the disruption controller does when evicted pods run elsewhere:
        they do by the time at which an eviction that was refused is tried again."""

    async def call(self, call: Call) -> dict[str, Any]:
        if call.verb != "create" or call.subresource != "eviction":
            return await self._inner.call(call)
        pod = await self._inner.call(Call("get", PODS, call.namespace, call.name))
        answer: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        if self._keeps_budgets:
            answer = await self._ask(call)
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        await self._inner.call(Call("delete", PODS, call.namespace, call.name, body=options))
        self.evicted.append(f"{call.namespace}/{call.name}")
        if self._recreates and controller_of(pod) is not None and not is_daemon_set_pod(pod):
            await self._replace(pod)
        return answer

    async def _ask(self, call: Call) -> dict[str, Any]:
        """Evict as the budgets allow."""
        pod, now_s = f"{call.namespace}/{call.name}", self._clock.monotonic()
        if self.recover is not None and pod in self._refused and now_s > self._recovered_s:
            self._recovered_s = now_s
            await self.recover()
        try:
            return await self._inner.call(call)
        except TooManyRequests:
            self._refused.add(pod)
            raise

    async def _replace(self, pod: JsonObject) -> None:
        """What the controller would do, and then the scheduler that finds no place yet."""
        self._replaced += 1
        meta = pod["metadata"]
        name = f"{meta['name']}-moved-{self._replaced}"
        kept = {key: meta[key] for key in ("namespace", "labels", "annotations", "ownerReferences") if key in meta}
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        await self._inner.call(Call("create", PODS, meta["namespace"], body={
            "apiVersion": "v1", "kind": "Pod", "metadata": {**kept, "name": name}, "spec": spec,
        }))
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        await self._inner.call(Call(
            "patch", PODS, meta["namespace"], name, "status", body={"status": {"conditions": [condition]}},
            content_type="application/merge-patch+json"))

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._inner.watch(call)

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        return await self._inner.request(method, path, query=query, body=body, content_type=content_type)

    async def close(self) -> None:
        await self._inner.close()


class ClusterCopy:
    """The copy, and what is written down about it."""

    def __init__(self, client: Client, evictions: Evictions) -> None:
        self.client = client
        self._evictions = evictions

    @property
    def evicted(self) -> list[str]:
        """The pods that were evicted so far."""
        return self._evictions.evicted

    def recover_by(self, recover: Callable[[], Awaitable[None]]) -> None:
        """Who brings budgets back while a node is being drained; without it they stay used up."""
        self._evictions.recover = recover


@asynccontextmanager
async def cluster_copy(
    clock: VirtualClock, rng: Rng, objects: Iterable[JsonObject], *, keeps_budgets: bool, recreates: bool
) -> AsyncIterator[ClusterCopy]:
    """A copy that holds these objects, for as long as it is needed."""
    store = Store()
    registry = Registry(clock, rng.fork("apiserver"), store)
    try:
        await bootstrap(registry)
        report = await restore(registry, objects)
        if report.left_out:
            first = report.left_out[0]
            raise UsageError(
                f"{len(report.left_out)} objects cannot be read; the first is {first}",
                hint="Correct or leave out what is named; `holokube snapshot` writes objects as the server has them.")
        evictions = Evictions(
            clock, InProcessTransport(registry), keeps_budgets=keeps_budgets, recreates=recreates)
        yield ClusterCopy(Client(evictions), evictions)
    finally:
        await asyncio.shield(registry.close())
        store.close()
