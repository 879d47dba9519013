"""Empties a node: pods are evicted band by band, all pods of a band at once, and waited for until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import PODS
from holokube.cluster_autoscaler.actuation.ports import Recorder
from holokube.cluster_autoscaler.actuation.priority_bands import bands, single_band
from holokube.cluster_autoscaler.actuation.results import PodEvictionResult
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.objects import is_daemon_set_pod, is_mirror, pod_key, pod_uid
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING

RETRY_EVERY_S = 10.0
POLL_EVERY_S = 5.0
HEADROOM_S = 30.0
"""A pod that ignores SIGTERM is killed when its grace is over; it is given this much longer to be gone."""
DEFAULT_GRACE_S = 30
ENABLE_DS_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"

_log = get_logger("holokube.cluster_autoscaler.actuation")


@dataclass(slots=True)
class Drain:
    """How far a drain came."""

    results: dict[str, PodEvictionResult] = field(default_factory=dict)
    """Of the pods that have to go, by their keys."""
    error: HolokubeError | None = None


def pods_to_evict(
    pods: Sequence[JsonObject], *, daemon_sets_by_default: bool
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The DaemonSet pods that want, or may, be evicted, and all other pods but the mirror pods."""
    daemons: list[JsonObject] = []
    others: list[JsonObject] = []
    for pod in pods:
        if is_mirror(pod):
            continue
        if not is_daemon_set_pod(pod):
            others.append(pod)
            continue
        wish = (pod["metadata"].get("annotations") or {}).get(ENABLE_DS_EVICTION)
        if wish == "true" or (wish is None and daemon_sets_by_default):
            daemons.append(pod)
    return daemons, others


class Evictor:
    """Evicts the pods of nodes by the Eviction API, which keeps the disruption budgets."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        options: AutoscalerOptions,
        recorder: Recorder,
        tracker: NodeDeletionTracker,
        count: Callable[[bool], None],
    ) -> None:
        """``count`` is told of every pod that had to go whether its eviction succeeded."""
        self._clock = clock
        self._client = client
        self._options = options
        self._recorder = recorder
        self._tracker = tracker
        self._count = count
        # With bands of their own, DaemonSet pods are waited for as well.
        self._waits_for_daemons = bool(options.drain_priority_config)
        self._bands = options.drain_priority_config or single_band(options.max_graceful_termination_sec)

    async def drain(self, node_name: str, pods: Sequence[JsonObject]) -> Drain:
        """Evict all pods of a node and wait until they are gone; DaemonSet pods as well as may be."""
        daemons, others = pods_to_evict(
            pods, daemon_sets_by_default=self._options.daemonset_eviction_for_occupied_nodes
        )
        if self._waits_for_daemons:
            return await self._drain(node_name, [*others, *daemons], [])
        return await self._drain(node_name, others, daemons)

    async def evict_daemons(self, node_name: str, pods: Sequence[JsonObject]) -> Drain:
        """Evict the DaemonSet pods of an otherwise empty node, without waiting for them to be gone."""
        daemons, _ = pods_to_evict(pods, daemon_sets_by_default=self._options.daemonset_eviction_for_empty_nodes)
        return await self._drain(node_name, [], daemons)

    async def _drain(self, node_name: str, full: list[JsonObject], best_effort: list[JsonObject]) -> Drain:
        drain = Drain()
        for pod in full:
            drain.results[pod_key(pod)] = PodEvictionResult(pod, error=AutoscalerError(
                f"pod {pod_key(pod)} was not evicted because earlier evictions failed",
                kind=ErrorKind.UNEXPECTED_SCALE_DOWN_STATE))
        for band in bands(self._bands, full, best_effort):
            if not band.full and not band.best_effort:
                continue
            await self._evict_band(node_name, band.full, band.best_effort, band.grace_s, drain)
            if drain.error is None:
                await self._wait_until_gone(node_name, band.full, band.grace_s, drain)
            if drain.error is not None:
                break
        return drain

    async def _evict_band(
        self, node_name: str, full: list[JsonObject], best_effort: list[JsonObject], grace_s: int, drain: Drain
    ) -> None:
        until_s = self._clock.monotonic() + self._options.max_pod_eviction_time_s
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._evict(pod, until_s, grace_s, must_go=True)) for pod in full]
            for pod in best_effort:
                group.create_task(self._evict(pod, until_s, grace_s, must_go=False))
        failed: list[str] = []
        for task in tasks:
            result = task.result()
            drain.results[pod_key(result.pod)] = result
            self._count(result.is_successful)
            if not result.is_successful:
                failed.append(str(result.error))
        if failed:
            drain.error = AutoscalerError(
                f"failed to drain node {node_name}: {'; '.join(failed)}", kind=ErrorKind.API_CALL)

    async def _evict(
        self, pod: JsonObject, until_s: float, band_grace_s: int, *, must_go: bool
    ) -> PodEvictionResult:
        """Ask until the eviction is granted or the time is over; at least once."""
        self._recorder.event(pod, NORMAL, "ScaleDown", "deleting pod for node scale down")
        grace_s = pod["spec"].get("terminationGracePeriodSeconds")
        grace_s = DEFAULT_GRACE_S if grace_s is None else grace_s
        if 0 < band_grace_s < grace_s:
            grace_s = band_grace_s
        while True:
            try:
                await self._evict_once(pod, grace_s)
            except HolokubeError as error:
                last = error
            else:
                self._tracker.evicted(pod)
                return PodEvictionResult(pod)
            await self._clock.sleep(RETRY_EVERY_S)
            if self._clock.monotonic() >= until_s:
                break
        _log.error("A pod could not be evicted", pod=pod_key(pod), error=str(last))
        if must_go:
            self._recorder.event(pod, WARNING, "ScaleDownFailed", "failed to delete pod for ScaleDown")
        return PodEvictionResult(pod, timed_out=True, error=AutoscalerError(
            f"failed to evict pod {pod_key(pod)} within allowed timeout (last error: {last})",
            kind=ErrorKind.API_CALL))

    async def _evict_once(self, pod: JsonObject, grace_s: int) -> None:
        """Ask once. The uid makes sure that a pod of the same name elsewhere, a StatefulSet's say, is spared."""
        meta = pod["metadata"]
        try:
            await self._client.evict(meta["namespace"], meta["name"], grace_s=grace_s, uid=pod_uid(pod))
        except NotFound:
            return
        except Conflict:
            if not await self._is_gone(pod):
                raise

    async def _is_gone(self, pod: JsonObject) -> bool:
        try:
            found = await self._client.get(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])
        except NotFound:
            return True
        return pod_uid(found) != pod_uid(pod)

    async def _wait_until_gone(
        self, node_name: str, pods: list[JsonObject], grace_s: int, drain: Drain
    ) -> None:
        until_s = self._clock.monotonic() + grace_s + HEADROOM_S
        while True:
            if not await self._any_left(node_name, pods):
                return
            await self._clock.sleep(POLL_EVERY_S)
            if self._clock.monotonic() >= until_s:
                break
        left = [pod for pod in pods if await self._any_left(node_name, [pod])]
        for pod in left:
            drain.results[pod_key(pod)] = PodEvictionResult(pod, timed_out=True)
        if left:
            drain.error = AutoscalerError(
                f"failed to drain node {node_name}: pods remaining after timeout: "
                f"{', '.join(pod_key(pod) for pod in left)}", kind=ErrorKind.TRANSIENT)

    async def _any_left(self, node_name: str, pods: Sequence[JsonObject]) -> bool:
        """Whether any of the pods is still on the node, or cannot be asked for."""
        for pod in pods:
            meta = pod["metadata"]
            try:
                found = await self._client.get(PODS, meta["name"], meta["namespace"])
            except NotFound:
                continue
            except HolokubeError as error:
                _log.error("A pod could not be looked at", pod=f"{meta['namespace']}/{meta['name']}", error=str(error))
                return True
            if found["spec"].get("nodeName") == node_name:
                return True
        return False
