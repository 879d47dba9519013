"""Keeps as many pods as ReplicaSets and ReplicationControllers want."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from holokube.workloads.expectations import RECHECK_S, Echoes, Expectations
from holokube.workloads.later_looks import LaterLooks
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, claim, controller_of, orphans_of
from holokube.workloads.pod_book import PodBook
from holokube.workloads.pod_control import BURST_PODS, PodControl, pod_from_template
from holokube.workloads.pod_sources import CountedPodSource, selector_of
from holokube.workloads.pod_status import (
    Standings,
    is_active,
    is_terminated,
    is_terminating,
    next_availability_s,
)
from holokube.workloads.replica_set_decisions import (
    Numbers,
    Roll,
    add_up,
    call_roll,
    decide_replicas,
    decide_surplus,
    judged_numbers,
    min_ready_s_of,
    replicas_of,
    roll_of,
    selects_alike,
    status_with,
    template_labels_of,
)
from holokube.workloads.status_writes import write_status

WORKERS = 5
_RECHECK = Result(RECHECK_S)
_Outcome = Coroutine[Any, Any, HolokubeError | None]
"""Of many pods: the first failure, if any. Handed on as it is, since each step on the way costs at each turn."""


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """What differs between the two kinds."""

    resource: Resource
    component: str
    selector_of: Callable[[JsonObject], LabelSelector]
    counts_terminating: bool


class _Pattern(NamedTuple):
    """The pod that an owner makes of its template, which is never changed: all that are made of it share its parts."""

    template: JsonObject
    uid: str
    pod: JsonObject


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
        self.book = PodBook((kind.resource.group, kind.resource.kind))
        # By key: the spec by which the labels of its pods were last judged.
        self._judged: dict[str, JsonObject] = {}
        self._standings: dict[str, Standings] = {}
        self._echoes = Echoes()
        # By key: the pod that was last made of an owner's template, and what it was made of.
        self._patterns: dict[str, _Pattern] = {}

    def concerns_owner(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of an owner calls for a look: not if it only shows the status that was written here."""
        return not self._echoes.is_one(old, new)

    async def reconcile(self, key: str) -> Result | None:
        owner = self._owners.by_key(key)
        if owner is None:
            self._expectations.forget(key)
            self._judged.pop(key, None)
            self._standings.pop(key, None)
            self._echoes.forget(key)
            self._patterns.pop(key, None)
            return None
        owner = self._echoes.latest(key, owner)
        settled = self._expectations.met(key)
        min_ready_s = min_ready_s_of(owner)
        numbers = self._look_up(key, owner, min_ready_s)
        roll = await self._call_roll(owner) if numbers is None else None
        failure: HolokubeError | None = None
        is_met = False
        if settled and not owner["metadata"].get("deletionTimestamp"):
            if roll is not None:
                failure = await self._manage(key, owner, roll.active)
            elif numbers is not None and numbers.active != replicas_of(owner):
                failure = await self._manage_counted(key, owner, numbers.active)
            else:
                # Nothing was done that would have to be waited for.
                is_met = True
        now = self._clock.now()
        if roll is not None:
            numbers = roll.numbers(min_ready_s, now)
        assert numbers is not None
        status = status_with(
            owner, numbers, str(failure) if failure else "", now, counts_terminating=self._kind.counts_terminating
        )
        written = await write_status(self._client, self._kind.resource, owner, status)
        if written is not owner:
            self._echoes.wrote(key, written)
        if failure is not None:
            raise failure
        is_met = is_met or self._expectations.met(key)
        available_in_s = next_availability_s(roll.active, min_ready_s, now) if min_ready_s and roll else None
        if available_in_s is None:
            return None if is_met else _RECHECK
        available_in_s = max(available_in_s, 0.001)
        return Result(available_in_s if is_met else min(available_in_s, RECHECK_S))

    def _look_up(self, key: str, owner: JsonObject, min_ready_s: int) -> Numbers | None:
        """The numbers that the book has; None if somebody may have to be adopted or let go, or is not available yet."""
        meta, spec = owner["metadata"], owner["spec"]
        alikes = self.book.of(meta["uid"])
        numbers = None
        if not min_ready_s and not self._pods.has_indexed(CONTROLLER_INDEX, orphans_of(meta["namespace"])):
            judged = self._judged.get(key)
            if judged is spec or (judged is not None and selects_alike(judged, spec)):
                numbers = judged_numbers(alikes)
            if numbers is None:
                numbers = add_up(alikes, self._kind.selector_of(owner), template_labels_of(owner))
        if numbers is not None:
            self._judged[key] = spec
        elif self._judged.pop(key, None) is not None:
            for alike in alikes:
                alike.is_labelled = None
        return numbers

    async def _call_roll(self, owner: JsonObject) -> Roll:
        """Looks at all pods, and adopts and releases those that must be."""
        selector, labels = self._kind.selector_of(owner), template_labels_of(owner)
        mine = self._pods.by_index(CONTROLLER_INDEX, owner["metadata"]["uid"])
        orphans = self._pods.by_index(CONTROLLER_INDEX, orphans_of(owner["metadata"]["namespace"]))
        roll = None if orphans else call_roll(mine, selector, labels)
        if roll is not None:
            return roll
        candidates = [pod for pod in (*mine, *orphans) if is_active(pod)]
        claimed = await claim(self._client, self._kind.resource, owner, PODS, selector, candidates)
        terminating = [
            pod for pod in mine
            if is_terminating(pod) and not is_terminated(pod)
            and selector.matches(pod["metadata"].get("labels") or {})
        ]  # fmt: skip
        return roll_of(claimed, len(terminating), labels)

    def _manage_counted(self, key: str, owner: JsonObject, active: int) -> _Outcome:
        """As ``_manage``, where the pods are looked at only if some of them have to go."""
        missing = replicas_of(owner) - active
        if missing > 0:
            return self._create(key, owner, min(missing, BURST_PODS))
        uid = owner["metadata"]["uid"]
        mine = self._pods.by_index(CONTROLLER_INDEX, uid)
        others = self._pods_of(one for one in self._siblings(owner) if one["metadata"]["uid"] != uid)
        known = self._standings.setdefault(key, {})
        surplus = decide_surplus(replicas_of(owner), mine, others, self._clock.now(), known)
        return self._pod_control.delete(key, owner, surplus)

    def _create(self, key: str, owner: JsonObject, count: int) -> _Outcome:
        template, uid = owner["spec"]["template"], owner["metadata"]["uid"]
        pattern = self._patterns.get(key)
        if pattern is None or pattern.template is not template or pattern.uid != uid:
            pattern = self._patterns[key] = _Pattern(template, uid, pod_from_template(template, owner))
        return self._pod_control.create(key, owner, [pattern.pod] * count)

    async def _manage(self, key: str, owner: JsonObject, active: list[JsonObject]) -> HolokubeError | None:
        related = self._pods_of(self._siblings(owner)) if len(active) > replicas_of(owner) else []
        changes = decide_replicas(replicas_of(owner), active, related, self._clock.now())
        if changes.create:
            return await self._create(key, owner, changes.create)
        return await self._pod_control.delete(key, owner, changes.delete)

    def _siblings(self, owner: JsonObject) -> list[JsonObject]:
        """The sets of the same controller, a Deployment say, and the owner itself."""
        parent = controller_of(owner)
        return self._owners.by_index(CONTROLLER_INDEX, parent["uid"]) if parent else [owner]

    def _pods_of(self, owners: Iterable[JsonObject]) -> list[JsonObject]:
        return [pod for one in owners for pod in self._pods.by_index(CONTROLLER_INDEX, one["metadata"]["uid"])]


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
    looks = LaterLooks(reconciler.reconcile)
    return Controller(
        clock, kind.component, looks.reconcile, workers=WORKERS, postpone=looks.postpone,
        sources=[
            InformerSource(owners, enqueue_self, concerns=reconciler.concerns_owner),
            CountedPodSource(
                by_controller(informers, PODS), kind.resource, owners, kind.selector_of, reconciler.book
            ),
        ],
    )  # fmt: skip


def build_replication_controller(
    clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, rng: Rng
) -> Component:
    """The controller of ReplicationControllers."""
    return build(clock, client, informers, recorder, rng, kind=REPLICATION_CONTROLLER)
