"""Notes how long pods take: from their creation to their binding, and until they run."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.audience import PHASE, SPEC
from holokube.client.cache import object_key
from holokube.client.informer import EventType, Informer
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.state.pod_times import PodTimes
from holokube.kube.types import JsonObject

_EMPTY: Final[JsonObject] = {}


class PodWatch:
    """Watches the pods of an informer."""

    def __init__(self, clock: Clock, pods: Informer, metrics: KarpenterMetrics, times: PodTimes) -> None:
        self._clock = clock
        self._metrics = metrics
        self._times = times
        pods.listen(self._on_pod, heeds=SPEC | PHASE, hears_comings=False)

    def _on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None or new is None:
            return
        spec, status = new.get("spec"), new.get("status")
        # What a change leaves alone is the very same object as a rule, so that one of the two need not be looked at.
        is_bound = spec is not old.get("spec") and bool(_node(new)) and not _node(old)
        is_started = status is not old.get("status") and _phase(new) == "Running" and _phase(old) != "Running"
        if not is_bound and not is_started:
            return
        now_s = self._clock.time()
        created_s = seconds_of(new["metadata"].get("creationTimestamp")) or now_s
        if is_bound:
            seen_s = self._times.seen_s(object_key(new))
            self._metrics.pod_bound(now_s - created_s, None if seen_s is None else now_s - seen_s)
        if is_started:
            self._metrics.pod_started(now_s - created_s)


def _node(pod: JsonObject) -> str:
    name: str = (pod.get("spec") or _EMPTY).get("nodeName") or ""
    return name


def _phase(pod: JsonObject) -> str:
    phase: str = (pod.get("status") or _EMPTY).get("phase") or ""
    return phase
