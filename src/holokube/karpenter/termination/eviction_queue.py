"""Asks pods to leave, one by one, again and again while a disruption budget or an annotation forbids it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.base.clock import Clock
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.karpenter import events
from holokube.karpenter.api.labels import DISRUPTION_REASON
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.disruption.pods import is_evictable
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, only
from holokube.karpenter.termination.drain import is_settled, must_be_deleted, remaining_grace_s
from holokube.kube.conditions import get_condition
from holokube.kube.errors import ApiError, Conflict, InternalError, NotFound, TooManyRequests
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.ratelimit import ExponentialBackoff
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.stop import StopSignal

WORKERS: Final = 32
BACKOFF_S: Final = (0.1, 10.0)
FORCEFUL: Final = "Forceful Termination"
_AGAIN: Final = Result(requeue_after_s=0.0)


class EvictionQueue:
    """A component: pods that have to leave, each with the time by which it must."""

    name = "eviction-queue"

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, publisher: Publisher, metrics: KarpenterMetrics
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._metrics = metrics
        self._pods = informers.get(PODS)
        self._nodes = informers.get(NODES)
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._deadlines_s: dict[tuple[str, str], float | None] = {}
        """By key and uid; None where nothing presses."""
        self._controller: Controller[str] = Controller(
            clock, self.name, self.reconcile, workers=WORKERS, limiter=ExponentialBackoff(*BACKOFF_S)
        )

    async def run(self, stop: StopSignal) -> None:
        # What was in the queue of an earlier run is found again by the drain of its node.
        self._deadlines_s.clear()
        await self._controller.run(stop)

    def add(self, pods: Iterable[JsonObject], deadline_s: float | None) -> None:
        """Asks for pods to leave; of two deadlines for one pod the earlier counts."""
        for pod in pods:
            item = (object_key(pod), str(pod["metadata"]["uid"]))
            known = item in self._deadlines_s
            if not known and deadline_s is None and is_settled(pod):
                # It leaves already.
                continue
            given = [one for one in (self._deadlines_s.get(item), deadline_s) if one is not None]
            self._deadlines_s[item] = min(given, default=None)
            if not known:
                self._controller.enqueue(item[0])

    def __contains__(self, pod: JsonObject) -> bool:
        return (object_key(pod), str(pod["metadata"]["uid"])) in self._deadlines_s

    async def reconcile(self, key: str) -> Result | None:
        """One try with one pod."""
        pod = self._pods.lister.by_key(key)
        if pod is None:
            self._forget(key)
            return None
        item = (key, str(pod["metadata"]["uid"]))
        if item not in self._deadlines_s:
            # A pod of the same name has taken its place.
            self._forget(key)
            return None
        deadline_s, now_s = self._deadlines_s[item], self._clock.time()
        if deadline_s is not None and must_be_deleted(pod, deadline_s, now_s):
            return await self._delete(pod, deadline_s, now_s)
        if is_settled(pod):
            del self._deadlines_s[item]
            return None
        if not is_evictable(pod, now_s):
            return _AGAIN
        return await self._evict(pod)

    def _forget(self, key: str) -> None:
        for item in [one for one in self._deadlines_s if one[0] == key]:
            del self._deadlines_s[item]

    async def _evict(self, pod: JsonObject) -> Result | None:
        metadata = pod["metadata"]
        try:
            await self._client.evict(metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except ApiError as error:
            self._metrics.eviction_answered(error.code)
            if isinstance(error, NotFound | Conflict):
                self._done(pod)
                return None
            if not isinstance(error, TooManyRequests) and not _has_several_budgets(error):
                raise
            several = _has_several_budgets(error)
            why = "eviction does not support multiple PDBs" if several else "evicting pod violates a PDB"
            node = self._nodes.lister.by_key((pod.get("spec") or {}).get("nodeName") or "")
            if node is not None:
                self._publisher.warning(
                    node, events.FAILED_DRAINING,
                    f"Failed to drain node, {why} (Pod={metadata['namespace']}/{metadata['name']})",
                )  # fmt: skip
            return _AGAIN
        self._metrics.eviction_answered(200)
        reason = self._reason(pod)
        self._publisher.normal(pod, events.EVICTED, f"Evicted pod: {reason}")
        self._metrics.pod_drained(reason)
        self._done(pod)
        return None

    async def _delete(self, pod: JsonObject, deadline_s: float, now_s: float) -> Result | None:
        metadata = pod["metadata"]
        grace_s = remaining_grace_s(deadline_s, now_s)
        own_s = (pod.get("spec") or {}).get("terminationGracePeriodSeconds", 0)
        self._publisher.normal(
            pod, events.DISRUPTED,
            f"Deleting the pod to accommodate the terminationTime {format_time(deadline_s)} of the node. The pod was"
            f" granted {grace_s} seconds of grace-period of its {own_s} terminationGracePeriodSeconds. This bypasses"
            " the PDB of the pod and the do-not-disrupt annotation.",
        )  # fmt: skip
        try:
            await self._client.delete(
                PODS, metadata["name"], metadata["namespace"], grace_s=grace_s, uid=metadata["uid"]
            )
        except NotFound:
            self._done(pod)
            return None
        self._metrics.pod_drained(self._reason(pod))
        self._done(pod)
        return None

    def _done(self, pod: JsonObject) -> None:
        self._deadlines_s.pop((object_key(pod), str(pod["metadata"]["uid"])), None)

    def _reason(self, pod: JsonObject) -> str:
        """Why its node goes."""
        node = self._nodes.lister.by_key((pod.get("spec") or {}).get("nodeName") or "")
        claim = only(self._claims, (node.get("spec") or {}).get("providerID") or "") if node is not None else None
        if claim is None:
            return ""
        condition = get_condition(claim, DISRUPTION_REASON)
        return str(condition["reason"]) if condition is not None and condition["status"] == "True" else FORCEFUL


def _has_several_budgets(error: ApiError) -> bool:
    """The API server answers with an internal error where a pod has more than one budget."""
    return isinstance(error, InternalError) and "more than one PodDisruptionBudget" in error.message
