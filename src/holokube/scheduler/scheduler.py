"""The scheduler as a component: informers feed the state and the queue, decisions become writes.

One pod is decided at a time, with all decisions before it in the state. A few workers write, in parallel, while the
next pods are decided. Everything that is remembered is built anew when the component starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType, Handler
from holokube.client.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState
from holokube.packing.volumes import SELECTED_NODE, annotation
from holokube.runtime.app import Component
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.stop import StopSignal
from holokube.scheduler.cycle import Bind, Cycle, Refuse
from holokube.scheduler.default_spread import DefaultSpread
from holokube.scheduler.messages import event_note
from holokube.scheduler.observer import Observer
from holokube.scheduler.pod_facts import DEFAULT_SCHEDULER, is_being_deleted, key_of, priority_of, uid_of
from holokube.scheduler.profiles import DEFAULT, Profile, checked
from holokube.scheduler.queue import QueuedPod, SchedulingQueue
from holokube.scheduler.scoring import Scoring
from holokube.scheduler.volume_choice import ClaimPlan, is_bound, plan_claims
from holokube.scheduler.workers import Wake, Workers
from holokube.scheduler.writes import SCHEDULER_ERROR, UNSCHEDULABLE, Writes

BATCH: Final = 64
"""So many pods are decided before others get their turn on the event loop."""
VOLUME_WAIT_S: Final = 600.0
"""``bindTimeoutSeconds``: how long a pod keeps its node while its volumes are being made."""
_STORAGE: Final[tuple[Resource, ...]] = (
    PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)  # fmt: skip
_OWNERS: Final[tuple[Resource, ...]] = (REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)
_NO_CLAIMS: Final = ClaimPlan()
_log = get_logger("holokube.scheduler")


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,
    *,
    profiles: Sequence[Profile] = (DEFAULT,),
) -> Component:
    """The scheduler of a cluster, for the pods that name one of the profiles."""
    return Scheduler(clock, client, informers, recorder, rng, profiles=profiles)


class Scheduler:
    """See the module; runs until it is stopped, from scratch each time."""

    name = "scheduler"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        recorder: EventRecorder,
        rng: Rng,
        *,
        profiles: Sequence[Profile] = (DEFAULT,),
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._rng = rng.fork("scheduler")
        self._profiles = checked(profiles)
        self._informers = {
            resource: informers.get(resource)
            for resource in (NODES, NAMESPACES, *_STORAGE, SERVICES, *_OWNERS, POD_DISRUPTION_BUDGETS, PODS)
        }

    async def run(self, stop: StopSignal) -> None:
        for informer in self._informers.values():
            if not await stop.finishes_first(informer.synced()):
                return
        owners = {resource.kind: self._informers[resource].lister for resource in _OWNERS}
        session = _Session(
            self._clock, self._client, self._recorder, self._rng, self._profiles,
            budgets=self._informers[POD_DISRUPTION_BUDGETS].lister.list,
            spread=DefaultSpread(self._informers[SERVICES].lister, owners),
        )  # fmt: skip
        removals = [self._informers[resource].add_handler(on) for resource, on in session.handlers()]
        try:
            await stop.finishes_first(session.run())
        finally:
            for remove in removals:
                remove()


@dataclass(slots=True, eq=False)
class _Binding:
    """A pod on its way to a node, for which volumes are made ready, or which it does not get."""

    queued: QueuedPod
    pod: JsonObject
    node_name: str
    claims: ClaimPlan
    until_s: float = 0.0
    """Until when volumes are waited for."""
    selected_at: Mapping[str, int] | None = None
    """The versions of the claims into which the node was written."""

    def lost_its_selection(self, claim: JsonObject) -> bool:
        """Whether a provisioner took the node out of a claim again, its way to say that it failed."""
        selected_at = None if self.selected_at is None else self.selected_at.get(key_of(claim))
        if selected_at is None or int(claim["metadata"]["resourceVersion"]) < selected_at:
            return False
        return annotation(claim, SELECTED_NODE) != self.node_name


class _Session:
    """One run of the scheduler."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        recorder: EventRecorder,
        rng: Rng,
        profiles: Sequence[Profile],
        *,
        budgets: Callable[[], Sequence[JsonObject]],
        spread: DefaultSpread,
    ) -> None:
        self._clock = clock
        self._recorder = recorder
        self._spread = spread
        self._writes = Writes(clock, client, recorder)
        self._workers = Workers()
        self._wake = Wake()
        self._state = ClusterState()
        self._queue = SchedulingQueue()
        self._waiting: dict[str, _Binding] = {}
        """Bindings that wait for volumes."""
        self._cycles = {
            profile.scheduler_name: Cycle(
                self._state, self._queue.nominations, Scoring(self._state, profile.scores, spread.selector_of).ranks,
                rng.fork(profile.scheduler_name), disabled_filters=profile.disabled_filters, budgets=budgets,
                preempts=profile.preempts,
            )
            for profile in profiles
        }  # fmt: skip
        self._observer = Observer(
            self._state, self._queue, self._cycles, now_s=clock.monotonic, wake=self._wake.set,
            on_claim=self._on_claim, on_namespace=self._on_namespace,
        )  # fmt: skip

    def handlers(self) -> list[tuple[Resource, Handler]]:
        """What to have called for which resource; pods come last, when what they refer to is known."""
        observer = self._observer
        storage: list[tuple[Resource, Handler]] = [(resource, observer.on_storage) for resource in _STORAGE]
        selecting: list[tuple[Resource, Handler]] = [
            (resource, self._on_selecting) for resource in (SERVICES, *_OWNERS)
        ]
        return [
            (NODES, observer.on_node), (NAMESPACES, observer.on_namespace), *storage, *selecting,
            (PODS, observer.on_pod),
        ]  # fmt: skip

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._workers.run(), name="scheduler workers")
            await self._loop()

    async def _loop(self) -> None:
        loop, clock, wake = asyncio.get_running_loop(), self._clock, self._wake
        while True:
            wake.is_set = False
            self._queue.flush(clock.monotonic())
            if self._waiting:
                self._give_up_waiting()
            # What other tasks have seen by now is taken in first.
            await asyncio.sleep(0)
            while self._decide_some():
                await asyncio.sleep(0)
                await self._workers.room()
            if wake.is_set:
                continue
            due_s = self._next_due_s()
            if due_s is None:
                await wake.wait(loop)
                continue
            timer = loop.call_soon(wake.set) if due_s <= clock.monotonic() else loop.call_at(due_s, wake.set)
            try:
                await wake.wait(loop)
            finally:
                timer.cancel()

    def _decide_some(self) -> bool:
        """Decide for the pods whose turn it is; whether these were so many that others should get theirs."""
        queue, clock = self._queue, self._clock
        for _ in range(BATCH):
            queued = queue.pop(clock.monotonic())
            if queued is None:
                return False
            self._schedule(queued)
        return True

    def _next_due_s(self) -> float | None:
        next_s = self._queue.next_due_s(self._clock.monotonic())
        if not self._waiting:
            return next_s
        due = [binding.until_s for binding in self._waiting.values()]
        return min([*due, *([] if next_s is None else [next_s])], default=None)

    # Deciding

    def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if pod["metadata"].get("deletionTimestamp"):
            note = f"skip schedule deleting pod: {key_of(pod)}"
            self._recorder.event(pod, WARNING, "FailedScheduling", note, action="Scheduling")
            self._queue.done(queued)
            return
        if self._observer.is_assumed(pod, queued.key):
            self._queue.done(queued)
            return
        try:
            scheduler_name = pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
            decision = self._cycles[scheduler_name].decide(pod, self._clock.now())
        except Exception as error:
            # One pod that cannot be understood must not keep all others waiting.
            _log.exception("no decision for a pod", exc=error, pod=queued.key)
            self._queue.failed(queued, self._clock.monotonic())
            self._say(queued, pod, SCHEDULER_ERROR, f"{type(error).__name__}: {error}", None)
            return
        if isinstance(decision, Bind):
            self._assume(queued, decision)
        else:
            self._refuse(queued, decision)

    def _assume(self, queued: QueuedPod, decision: Bind) -> None:
        pod, queue = queued.pod, self._queue
        row, node_name, cls, _ = decision
        claims = plan_claims(self._state, cls, row) if cls.claims else _NO_CLAIMS
        self._observer.assume(pod, row, cls, queued.key)
        if queued.leads is not None:
            queue.assumed(queued, self._clock.monotonic())
        if queue.nominations.promised:
            queue.nominations.remove(uid_of(pod))
        for will_be, is_ in (*claims.reserve, *claims.select):
            self._observer.assume_storage(will_be, is_)
        if claims.waits:
            binding = _Binding(queued, pod, node_name, claims)
            self._workers.submit(queued.key, partial(self._prepare_volumes, binding))
        else:
            self._workers.submit(queued.key, partial(self._bind, queued, pod, node_name, claims))

    def _refuse(self, queued: QueuedPod, decision: Refuse) -> None:
        pod, nominate, nominations = queued.pod, decision.nominate, self._queue.nominations
        # A pod with a promise, or with victims, is in a place of its own; the others fare as their like do.
        is_special = nominate or decision.victims or (nominations.promised and nominations.node_for(uid_of(pod)))
        how = ("uid", uid_of(pod)) if is_special else ("policy", pod["spec"].get("preemptionPolicy"))
        now_s = self._clock.monotonic()
        self._queue.refused(queued, decision.plugins, decision.cls, now_s, how=how, words=decision.message)
        if nominate is not None:
            nominations.put(pod, nominate)
        self._say(queued, pod, UNSCHEDULABLE, decision.message, nominate)
        if not (nominate and decision.victims):
            return
        leaving = [victim for victim in decision.victims if not is_being_deleted(victim)]
        if leaving:
            self._queue.hold(queued.key)
            self._workers.submit(queued.key, lambda: self._preempt(pod, nominate, leaving))

    def _say(self, queued: QueuedPod, pod: JsonObject, reason: str, message: str, nominate: str | None) -> None:
        """Tell users why a pod has no node, in an event each time, and in its status if that is news."""
        self._recorder.event(pod, WARNING, "FailedScheduling", event_note(message), action="Scheduling")
        status = self._writes.refusal_patch(pod, reason, message, nominate)
        said = (uid_of(pod), reason, message, nominate, pod["metadata"].get("resourceVersion"))
        if status is None or queued.said == said:
            return
        queued.said = said

        async def write() -> None:
            try:
                await self._writes.patch_pod_status(pod, status)
            except (NotFound, Conflict):
                # The pod is gone, or another one took its name.
                return
            except HolokubeError as error:
                queued.said = None
                _log.warning("status of a pod not written", pod=queued.key, why=error.message)

        self._workers.submit(queued.key, write)

    # Acting

    async def _bind(self, queued: QueuedPod, pod: JsonObject, node_name: str, claims: ClaimPlan) -> None:
        if not self._observer.is_assumed(pod, queued.key):
            # It was deleted, or another scheduler was quicker.
            return
        try:
            await self._writes.bind(pod, node_name)
        except HolokubeError as error:
            binding = _Binding(queued, pod, node_name, claims)
            self._fail(binding, error.message, is_gone=isinstance(error, NotFound))
        else:
            self._queue.done(queued)

    def _fail(self, binding: _Binding, why: str, *, is_gone: bool = False) -> None:
        """A pod does not get its node: undo what was assumed, and try again later."""
        for _, is_ in (*binding.claims.reserve, *binding.claims.select):
            self._observer.forget_storage(is_)
        queued = binding.queued
        if is_gone:
            self._queue.done(queued)
        self._queue.failed(queued, self._clock.monotonic())
        was_assumed = self._observer.forget(binding.pod)
        self._wake.set()
        if not was_assumed or is_gone:
            return
        _log.info("pod not bound", pod=queued.key, node=binding.node_name, why=why)
        self._say(queued, queued.pod, SCHEDULER_ERROR, why, "")

    async def _preempt(self, pod: JsonObject, node_name: str, victims: Sequence[JsonObject]) -> None:
        """Have the victims leave; the pod is not tried again before the API server has heard of all."""
        is_done = False
        try:
            for lower in self._queue.nominations.below(node_name, priority_of(pod)):
                self._queue.nominations.put(lower, "")
                await self._writes.promise(lower, "")
            for victim in victims:
                await self._writes.end(victim, pod, node_name)
            is_done = True
        except HolokubeError as error:
            _log.warning("preemption failed", pod=key_of(pod), node=node_name, why=error.message)
        finally:
            self._queue.release(key_of(pod), self._clock.monotonic(), try_again=not is_done)
            self._wake.set()

    # Volumes

    async def _prepare_volumes(self, binding: _Binding) -> None:
        """Write which volumes the pod's claims shall get, then wait for the volume controller."""
        if not self._observer.is_assumed(binding.pod):
            return
        try:
            await self._writes.promise(binding.pod, binding.node_name)
            for volume, _ in binding.claims.reserve:
                await self._writes.reserve(volume)
            binding.selected_at = selected_at = {}
            for claim, _ in binding.claims.select:
                selected_at[key_of(claim)] = await self._writes.select(claim)
        except HolokubeError as error:
            self._fail(binding, f'running PreBind plugin "VolumeBinding": {error.message}',
                       is_gone=isinstance(error, NotFound))  # fmt: skip
            return
        binding.until_s = self._clock.monotonic() + VOLUME_WAIT_S
        self._waiting[binding.queued.key] = binding
        self._check_volumes(binding)
        self._wake.set()

    def _on_claim(self, claim: JsonObject) -> None:
        if self._waiting:
            key = key_of(claim)
            for binding in list(self._waiting.values()):
                if any(key_of(wait) == key for wait in binding.claims.waits):
                    self._check_volumes(binding)

    def _check_volumes(self, binding: _Binding) -> None:
        """Bind the pod as soon as all its claims are bound; give the node up if that cannot come."""
        volumes = self._state.volumes
        claims = [volumes.get("PersistentVolumeClaim", key_of(wait)) for wait in binding.claims.waits]
        if all(claim is not None and is_bound(claim) for claim in claims):
            del self._waiting[binding.queued.key]
            bind = partial(self._bind, binding.queued, binding.pod, binding.node_name, binding.claims)
            self._workers.submit(binding.queued.key, bind)
            return
        for wait, claim in zip(binding.claims.waits, claims, strict=True):
            if claim is None or binding.lost_its_selection(claim):
                del self._waiting[binding.queued.key]
                why = f'provisioning failed for PVC "{wait["metadata"]["name"]}"'
                self._fail(binding, f'running PreBind plugin "VolumeBinding": {why}')
                return

    def _give_up_waiting(self) -> None:
        now_s = self._clock.monotonic()
        for key, binding in list(self._waiting.items()):
            if binding.until_s <= now_s or not self._observer.is_assumed(binding.pod):
                del self._waiting[key]
                why = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
                self._fail(binding, why)

    def _on_selecting(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """A service or an owner came, went or selects other pods; most changes are of their status."""
        del type
        if old is None or new is None or old["spec"].get("selector") != new["spec"].get("selector"):
            self._spread.forget()

    def _on_namespace(self) -> None:
        for cycle in self._cycles.values():
            cycle.forget_refusals()
