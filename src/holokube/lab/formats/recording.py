"""Records what happens in an embedded cluster, write by write, for kwokctl, SimKube or another run to replay."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from holokube.base.clock import Clock
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Change, Timeline
from holokube.lab.formats.workload import pod_lives
from holokube.store.store import Store
from holokube.store.values import EventType
from holokube.store.watch import Watch

RECORDED: Final[tuple[str, ...]] = (
    "customresourcedefinitions.apiextensions.k8s.io", "namespaces", "nodes", "priorityclasses.scheduling.k8s.io",
    "runtimeclasses.node.k8s.io", "storageclasses.storage.k8s.io", "persistentvolumes", "persistentvolumeclaims",
    "configmaps", "limitranges", "resourcequotas", "services", "deployments.apps", "replicasets.apps",
    "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch", "replicationcontrollers",
    "poddisruptionbudgets.policy", "horizontalpodautoscalers.autoscaling", "nodepools.karpenter.sh",
    "kwoknodeclasses.karpenter.kwok.sh", "nodeclaims.karpenter.sh", "pods",
)  # fmt: skip
"""Buckets of the store that make up a workload and what became of it; owners come before what they own."""

_MANY_EVENTS: Final = 1_000_000
_OF_EVERY_CLUSTER: Final = frozenset({
    ("namespaces", "default"), ("namespaces", "kube-system"), ("namespaces", "kube-public"),
    ("namespaces", "kube-node-lease"), ("services", "default/kubernetes"),
    ("priorityclasses.scheduling.k8s.io", "system-node-critical"),
    ("priorityclasses.scheduling.k8s.io", "system-cluster-critical"),
})  # fmt: skip


class Recording:
    """Records from its making until it is closed. Versions of objects are shared with the store, not copied."""

    def __init__(self, clock: Clock, store: Store, *, buckets: Sequence[str] = RECORDED) -> None:
        self._clock = clock
        self._start_s = clock.time()
        self._begin_s = clock.monotonic()
        self._end_s: float | None = None
        self._objects: list[JsonObject] = []
        self._events: list[tuple[int, float, EventType, JsonObject]] = []
        self._watches: list[Watch] = []
        for bucket in buckets:
            page = store.list(bucket)
            self._objects.extend(
                stored.obj for key, stored in page.items if (bucket, key) not in _OF_EVERY_CLUSTER
            )
            watch = store.watch(bucket, since=store.revision, buffer=_MANY_EVENTS)
            watch.add_listener(self._take)
            self._watches.append(watch)

    def _take(self, watch: Watch) -> None:
        at_s = self._clock.monotonic() - self._begin_s
        self._events.extend(
            (event.revision, at_s, event.type, event.stored.obj)
            for event in watch.pop_all()
            if (watch.bucket, event.key) not in _OF_EVERY_CLUSTER
        )

    def close(self) -> None:
        """Record no more; closing twice is fine."""
        if self._end_s is None:
            self._end_s = self._clock.monotonic() - self._begin_s
            for watch in self._watches:
                watch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def timeline(self) -> Timeline:
        """Everything so far."""
        # Watches of different buckets are told one after the other, so only the revision knows the order.
        events = sorted(self._events, key=lambda event: event[0])
        changes = tuple(
            Change(at_s, "delete" if kind == "DELETED" else "apply", obj) for _, at_s, kind, obj in events
        )
        end_s = self._clock.monotonic() - self._begin_s if self._end_s is None else self._end_s
        bare = Timeline(tuple(self._objects), changes, (), self._start_s, end_s)
        return Timeline(bare.objects, bare.changes, tuple(pod_lives(bare)), bare.start_s, bare.duration_s)
