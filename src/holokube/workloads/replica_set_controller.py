"""Keeps as many pods as ReplicaSets and ReplicationControllers want."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads.expectations import RECHECK_S, Expectations
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, claim, controller_of, orphans_of
from holokube.workloads.pod_control import PodControl, pod_from_template
from holokube.workloads.pod_sources import PodOwnerSource, selector_of
from holokube.workloads.pod_status import (
    is_active,
    is_terminated,
    is_terminating,
    next_availability_s,
)
from holokube.workloads.replica_set_decisions import (
    call_roll,
    decide_replicas,
    decide_status,
    replicas_of,
    roll_of,
    template_labels_of,
)
from holokube.workloads.status_writes import write_status

WORKERS = 5


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """What differs between the two kinds."""

    resource: Resource
    component: str
    selector_of: Callable[[JsonObject], LabelSelector]
    counts_terminating: bool


def _plain_selector(obj: JsonObject) -> LabelSelector:
    labels = obj["spec"].get("selector")
    return LabelSelector.from_labels(labels) if labels else LabelSelector.nothing()


REPLICA_SET = ReplicaKind(REPLICA_SETS, "replicaset-controller", selector_of, True)
REPLICATION_CONTROLLER = ReplicaKind(
    REPLICATION_CONTROLLERS, "replication-controller", _plain_selector, False
)


class ReplicaSetReconciler:
    """Brings one owner's pods to the wanted number."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, kind: ReplicaKind
    ) -> None:
        self._clock = clock
        self._client = client
        self._kind = kind
        self._owners = by_controller(informers, kind.resource).lister
        pods = by_controller(informers, PODS)
        self._pods = pods.lister
        self._expectations = Expectations(clock, pods)
        self._pod_control = PodControl(client, recorder, self._expectations)

    async def reconcile(self, key: str) -> Result | None:
        owner = self._owners.by_key(key)
        if owner is None:
            self._expectations.forget(key)
            return None
        settled = self._expectations.met(key)
        selector = self._kind.selector_of(owner)
        mine = self._pods.by_index(CONTROLLER_INDEX, owner["metadata"]["uid"])
        orphans = self._pods.by_index(CONTROLLER_INDEX, orphans_of(owner["metadata"]["namespace"]))
        labels = template_labels_of(owner)
        roll = None if orphans else call_roll(mine, selector, labels)
        if roll is None:
            candidates = [pod for pod in (*mine, *orphans) if is_active(pod)]
            claimed = await claim(self._client, self._kind.resource, owner, PODS, selector, candidates)
            terminating = [
                pod for pod in mine
                if is_terminating(pod) and not is_terminated(pod)
                and selector.matches(pod["metadata"].get("labels") or {})
            ]  # fmt: skip
            roll = roll_of(claimed, len(terminating), labels)
        active = roll.active
        failure: HolokubeError | None = None
        if settled and not owner["metadata"].get("deletionTimestamp"):
            failure = await self._manage(key, owner, active)
        now = self._clock.now()
        status = decide_status(
            owner, roll, str(failure) if failure else "", now, counts_terminating=self._kind.counts_terminating
        )
        await write_status(self._client, self._kind.resource, owner, status)
        if failure is not None:
            raise failure
        waits = [RECHECK_S] if not self._expectations.met(key) else []
        min_ready_s = int(owner["spec"].get("minReadySeconds") or 0)
        available_in_s = next_availability_s(active, min_ready_s, now) if min_ready_s else None
        if available_in_s is not None:
            waits.append(max(available_in_s, 0.001))
        return Result(min(waits)) if waits else None

    async def _manage(self, key: str, owner: JsonObject, active: list[JsonObject]) -> HolokubeError | None:
        related = self._related_pods(owner) if len(active) > replicas_of(owner) else []
        changes = decide_replicas(replicas_of(owner), active, related, self._clock.now())
        if changes.create:
            pod = pod_from_template(owner["spec"]["template"], owner)
            return await self._pod_control.create(key, owner, [pod] * changes.create)
        return await self._pod_control.delete(key, owner, changes.delete)

    def _related_pods(self, owner: JsonObject) -> list[JsonObject]:
        """Pods of all sets of the same controller, a Deployment say, and of the owner itself."""
        parent = controller_of(owner)
        sets = self._owners.by_index(CONTROLLER_INDEX, parent["uid"]) if parent else [owner]
        return [
            pod for replica_set in sets
            for pod in self._pods.by_index(CONTROLLER_INDEX, replica_set["metadata"]["uid"])
        ]  # fmt: skip


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
    *,
    kind: ReplicaKind = REPLICA_SET,
) -> Component:
    """The controller of ReplicaSets, or of the kind given."""
    reconciler = ReplicaSetReconciler(clock, client, informers, recorder, kind)
    owners = informers.get(kind.resource)
    return Controller(
        clock, kind.component, reconciler.reconcile, workers=WORKERS,
        sources=[
            InformerSource(owners, enqueue_self),
            PodOwnerSource(by_controller(informers, PODS), kind.resource, owners, kind.selector_of),
        ],
    )  # fmt: skip


def build_replication_controller(
    clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, rng: Rng
) -> Component:
    """The controller of ReplicationControllers."""
    return build(clock, client, informers, recorder, rng, kind=REPLICATION_CONTROLLER)
