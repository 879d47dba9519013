"""Runs Jobs to their end."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from functools import partial

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import FINALIZERS, OWNERS
from holokube.client.cache import object_key
from holokube.client.client import Client, PatchType
from holokube.client.resources import JOBS, PODS
from holokube.kube.conditions import conditions_of, find_condition
from holokube.kube.errors import NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads.expectations import RECHECK_S, Echoes, Expectations, OwnWrites
from holokube.workloads.job_decisions import (
    Backoff,
    JobView,
    PodChanges,
    completed,
    condition,
    deadline_left_s,
    decide_end,
    decide_pods,
    is_complete,
    is_finished,
)
from holokube.workloads.job_pods import TRACKING_FINALIZER, is_tracked
from holokube.workloads.job_rest import (
    first_pods,
    first_status,
    good_end,
    matcher_of,
    runs_as_it_should,
    status_at_rest,
)
from holokube.workloads.job_tracking import Tracking, count_released, decide_tracking, declare_end
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, claim, controller_of, orphans_of
from holokube.workloads.pod_control import PodControl, together
from holokube.workloads.pod_sources import PodOwnerSource, selector_of
from holokube.workloads.pod_status import is_pod_ready
from holokube.workloads.status_writes import same_status

WORKERS = 5
BATCH_S = 1.0
"""Changes of pods are looked at together after this time, as upstream does."""
TRACKED_INDEX = "job-tracked"
_ALWAYS_SHOWN = frozenset({"ready", "terminating", "uncountedTerminatedPods"})
_NONE: frozenset[str] = frozenset()
_AT_ONCE = Result(0.001)
_RECHECK = Result(RECHECK_S)
_NO_FAILURES = Backoff()
_MANAGED_BY_US = "kubernetes.io/job-controller"
_RELEASE = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}}


def tracked_index(pod: JsonObject) -> list[str]:
    """Lists pods with the tracking finalizer under their Job's key."""
    # Most pods are no Job's, and are known by having no finalizers at all.
    if TRACKING_FINALIZER not in (pod["metadata"].get("finalizers") or ()):
        return []
    reference = controller_of(pod)
    if reference is None or reference.get("kind") != "Job":
        return []
    return [f"{pod['metadata']['namespace']}/{reference['name']}"]


class JobReconciler:
    """Brings one Job a step further."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        jobs = informers.get(JOBS)
        self._jobs = jobs.lister
        pods = by_controller(informers, PODS)
        informers.indexed(PODS, TRACKED_INDEX, tracked_index, heeds=OWNERS | FINALIZERS)
        self._pods = pods.lister
        self._expectations = Expectations(clock, pods)
        self._written = OwnWrites(jobs)
        self._echoes = Echoes()
        self._pod_control = PodControl(client, recorder, self._expectations)
        self._backoffs: dict[str, tuple[str, Backoff]] = {}
        self._busy: set[str] = set()
        # Jobs whose end is being written: whether a change was kept from them meanwhile.
        self._ending: dict[str, bool] = {}
        # By key: uids whose finalizer was removed while the cache still shows it.
        self._removed: dict[str, set[str]] = {}

    def concerns_job(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a Job calls for a look: not if it runs as it should, which is what most of our own writes
        show. Of one that is over or gone only what is known is forgotten, unless it left pods behind that wait to be
        counted."""
        latest = new if new is not None else old
        if latest is None:
            return True
        key = object_key(latest)
        if key in self._busy:
            return old is None or new is None or not self._keeps_back(key)
        if new is not None and (
            self._echoes.is_one(old, new) or (self._jobs.by_key(key) is not new and self._is_behind(key, new))
            # What was written here on top of this is yet to come.
            or not self._written.shown(key)
        ):  # fmt: skip
            return False
        if new is not None and not is_finished(new):
            pods = None if old is None else self._certain_pods(key, new)
            return not (pods and runs_as_it_should(new, pods, matcher_of(new)))
        if self._pods.has_indexed(TRACKED_INDEX, key):
            return not self._all_released(key)
        self._forget(key)
        return False

    def _is_behind(self, key: str, job: JsonObject) -> bool:
        """Whether a state that is told of is not the latest: changes that come together are all in the cache before
        the first of them is told, and the last one says it all."""
        cached = self._jobs.by_key(key)
        return cached is not None and (
            cached["metadata"].get("resourceVersion") != job["metadata"].get("resourceVersion")
        )

    def concerns_pod(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a Job's pod calls for a look: not if it has been counted and the Job is over or gone."""
        latest = new if new is not None else old
        # As ``is_tracked`` has it, without a call: all that happens to a pod of a Job comes by here.
        if latest is None or TRACKING_FINALIZER in (latest["metadata"].get("finalizers") or ()):
            return True
        references = latest["metadata"].get("ownerReferences")
        reference = controller_of(latest)
        if reference is None or (old is not None and old["metadata"].get("ownerReferences") != references):
            return True
        key = f"{latest['metadata']['namespace']}/{reference['name']}"
        if key in self._busy:
            return not self._keeps_back(key)
        job = self._jobs.by_key(key)
        if job is not None and not is_finished(job):
            return True
        if old is not None and is_tracked(old):
            if self._pods.has_indexed(TRACKED_INDEX, key):
                return not self._all_released(key)
            self._forget(key)
        return False

    def _all_released(self, key: str) -> bool:
        """Whether the pods that the cache shows as waiting to be counted are those whose finalizer was removed here."""
        removed = self._removed.get(key, _NONE)
        return removed.issuperset(
            pod["metadata"]["uid"] for pod in self._pods.by_index(TRACKED_INDEX, key)
        )

    def _keeps_back(self, key: str) -> bool:
        """Whether a change need not be told to the look under way: once the end is written nothing else matters. It
        is made up for if the end does not come to be."""
        if key not in self._ending:
            return False
        self._ending[key] = True
        return True

    async def reconcile(self, key: str) -> Result | None:
        self._busy.add(key)
        try:
            if not self._written.shown(key):
                return _RECHECK
            job = self._jobs.by_key(key)
            goes_on = job is not None and not is_finished(job)
            strays = self._strays(key, job if goes_on else None)
            if strays:
                await self._release(key, strays)
            if job is None or not goes_on:
                self._forget(key)
                return None
            if (job["spec"].get("managedBy") or _MANAGED_BY_US) != _MANAGED_BY_US:
                return None
            if not self._expectations.met(key):
                # Pods that were made or deleted here would be counted as they were before.
                return _RECHECK
            pods = self._certain_pods(key, job)
            if pods:
                selector = matcher_of(job)
                at_rest = status_at_rest(job, pods, selector)
                if at_rest is not None:
                    if at_rest is not job["status"]:
                        self._echoes.wrote(key, await self._write(job, at_rest))
                    return None
                end = good_end(job, pods, selector, self._clock.now())
                if end is not None:
                    kept_back = await self._track(key, job, end, _NONE, _NO_FAILURES)
                    return _AT_ONCE if kept_back else None
            elif pods is not None and key not in self._backoffs and (pods := first_pods(job)):
                return await self._begin(key, job, pods)
            return await self._decide(key, job)
        finally:
            self._busy.discard(key)

    async def _begin(self, key: str, job: JsonObject, pods: Sequence[JsonObject]) -> Result | None:
        """Starts the first pods of a Job."""
        now = self._clock.now()
        failure = await self._pod_control.create(key, job, pods)
        # If it failed nobody knows how far it got; the next look, at a cache that shows it, counts it right.
        written = await self._write(job, first_status(len(pods) if failure is None else 0, now))
        self._backoffs[key] = (job["metadata"]["uid"], _NO_FAILURES)
        if failure is not None:
            raise failure
        if self._expectations.met(key):
            return None
        # The pods will be told of, and there is a look in any case if they are not.
        self._echoes.wrote(key, written)
        return _RECHECK

    async def _decide(self, key: str, job: JsonObject) -> Result | None:
        """The long way: for all that is not as it is with most Jobs."""
        view = await self._observe(key, job)
        end = decide_end(view)
        changes = PodChanges()
        failure: HolokubeError | None = None
        managed = False
        if end is not None:
            failure = await self._pod_control.delete(key, job, view.active)
            changes.delete = view.active
        elif not job["metadata"].get("deletionTimestamp"):
            changes = decide_pods(view)
            managed = True
            failure = await self._change_pods(key, job, changes)
        if failure is not None:
            # Nobody knows how far it got; the next look, at a cache that shows it, counts it right.
            changes, end = PodChanges(), None
        status = self._count(view, changes)
        if failure is None and end is None and is_complete(view, int(status.get("active") or 0)):
            end = completed(view.now)
        elif end is None and managed:
            status = self._note_suspension(view, status)
        tracking = decide_tracking(view, status, end)
        released = {pod["metadata"]["uid"] for pod in tracking.release}
        kept_back = await self._track(key, job, tracking, view.waiting.keys() - released, view.new_backoff)
        if failure is not None:
            raise failure
        return self._look_again(key, view, changes, at_once=kept_back)

    def _certain_pods(self, key: str, job: JsonObject) -> Sequence[JsonObject] | None:
        """The pods that it controls; None while the cache may not show them as they are, or there are some to adopt."""
        meta = job["metadata"]
        if self._removed.get(key) or self._pods.has_indexed(CONTROLLER_INDEX, orphans_of(meta["namespace"])):
            return None
        return self._pods.by_index(CONTROLLER_INDEX, meta["uid"]) if self._expectations.met(key) else None

    async def _observe(self, key: str, job: JsonObject) -> JobView:
        meta = job["metadata"]
        candidates = [
            *self._pods.by_index(CONTROLLER_INDEX, meta["uid"]),
            *self._pods.by_index(CONTROLLER_INDEX, orphans_of(meta["namespace"])),
        ]
        pods: list[JsonObject] = []
        if candidates:
            selector = LabelSelector.from_json(job["spec"].get("selector"))
            pods = await claim(
                self._client, JOBS, job, PODS, selector, candidates, finalizers=(TRACKING_FINALIZER,)
            )
        removed = self._removed.get(key) or set()
        if removed:
            removed &= {pod["metadata"]["uid"] for pod in pods if is_tracked(pod)}
        uid, backoff = self._backoffs.get(key, ("", _NO_FAILURES))
        return JobView(
            job, pods, frozenset(removed),
            backoff if uid == meta["uid"] else _NO_FAILURES, self._clock.now(),
        )  # fmt: skip

    async def _change_pods(self, key: str, job: JsonObject, changes: PodChanges) -> HolokubeError | None:
        if changes.create:
            return await self._pod_control.create(key, job, changes.create)
        if not changes.delete:
            return None
        # These pods are not wanted, so they are not counted: their finalizer goes first.
        await self._release(key, changes.delete)
        return await self._pod_control.delete(key, job, changes.delete)

    def _count(self, view: JobView, changes: PodChanges) -> JsonObject:
        """The status with the numbers of running pods, as they are after the changes."""
        status = dict(view.status)
        deleted = len(changes.delete)
        status["active"] = len(view.active) + len(changes.create) - deleted
        status["ready"] = view.ready - sum(map(is_pod_ready, changes.delete))
        status["terminating"] = view.terminating + deleted
        status.setdefault("uncountedTerminatedPods", {})
        if view.start_time is not None:
            status["startTime"] = view.start_time
        return status

    def _note_suspension(self, view: JobView, status: JsonObject) -> JsonObject:
        conditions = conditions_of(view.job)
        known = find_condition(conditions, "Suspended")
        wanted = "True" if view.suspended else "False"
        if (known is None and not view.suspended) or (known is not None and known.get("status") == wanted):
            return status
        if view.suspended:
            note = condition("Suspended", "True", "JobSuspended", "Job suspended", view.now)
            self._recorder.event(view.job, NORMAL, "Suspended", "Job suspended")
            status = {name: value for name, value in status.items() if name != "startTime"}
        else:
            note = condition("Suspended", "False", "JobResumed", "Job resumed", view.now)
            self._recorder.event(view.job, NORMAL, "Resumed", "Job resumed")
            # The deadline counts only time without suspension, so it starts anew.
            status = {**status, "startTime": format_time(view.now)}
        return {**status, "conditions": [*(c for c in conditions if c["type"] != "Suspended"), note]}

    async def _track(
        self, key: str, job: JsonObject, tracking: Tracking, waiting: Set[str], backoff: Backoff
    ) -> bool:
        """Three steps, each of which may be the last: see ``job_tracking``. ``waiting`` are the uids of pods that wait
        to be counted after them. Whether a change was kept back meanwhile that has to be made up for."""
        if tracking.end is not None and not waiting and not tracking.status.get("terminating"):
            self._ending[key] = False
        try:
            written = await self._write(job, tracking.status)
            self._backoffs[key] = (job["metadata"]["uid"], backoff)
            if tracking.release or tracking.end or tracking.status["uncountedTerminatedPods"]:
                await self._release(key, tracking.release)
                await self._count_released(key, written, waiting, tracking.end)
        finally:
            kept_back = self._ending.pop(key, False)
        return kept_back

    async def _count_released(self, key: str, job: JsonObject, waiting: Set[str], end: JsonObject | None) -> None:
        counted = count_released(job.get("status") or {}, waiting)
        finished = declare_end(counted, end)
        job = await self._write(job, finished if finished is not None else counted)
        if finished is not None and end is not None:
            self._tell_end(job, end)
            if self._ending.pop(key, False) and self._written.shown(key):
                # The cache was quicker than the answer: nothing more will come by to forget the Job at.
                self._forget(key)

    def _tell_end(self, job: JsonObject, end: JsonObject) -> None:
        if end["type"] != "Complete":
            self._recorder.event(job, WARNING, end["reason"], end["message"])
            return
        completions = job["spec"].get("completions")
        if completions is not None and int((job.get("status") or {}).get("succeeded") or 0) > completions:
            self._recorder.event(
                job, WARNING, "TooManySucceededPods",
                "Too many succeeded pods running after completion count reached",
            )  # fmt: skip
        self._recorder.event(job, NORMAL, "Completed", "Job completed")

    async def _write(self, job: JsonObject, status: JsonObject) -> JsonObject:
        before = job.get("status") or {}
        if before.keys() >= _ALWAYS_SHOWN and same_status(before, status):
            return job
        written = await self._client.update_status(
            JOBS, {**job, "status": _tidy(status)}, job["metadata"]["namespace"]
        )
        self._written.wrote(written)
        return written

    def _look_again(self, key: str, view: JobView, changes: PodChanges, *, at_once: bool) -> Result | None:
        waits = [0.0] if at_once else []
        if changes.wait_s is not None:
            waits.append(changes.wait_s)
        left_s = deadline_left_s(view)
        if left_s is not None:
            waits.append(left_s)
        if not self._expectations.met(key):
            waits.append(RECHECK_S)
        return Result(max(min(waits), 0.001)) if waits else None

    def _strays(self, key: str, job: JsonObject | None) -> list[JsonObject]:
        """Pods of a Job that is gone or over would else stay for ever: nobody counts them any more."""
        tracked = self._pods.by_index(TRACKED_INDEX, key)
        if job is None or not tracked:
            return tracked
        uid = job["metadata"]["uid"]
        strays = []
        for pod in tracked:
            reference = controller_of(pod)
            if reference is None or reference.get("uid") != uid:
                strays.append(pod)
        return strays

    async def _release(self, key: str, pods: list[JsonObject]) -> None:
        """Removes the tracking finalizer; the first failure is raised after all were tried."""
        tracked = [pod for pod in pods if is_tracked(pod)]
        one_by_one = self._client.answers_at_once
        failure = await together(tracked, partial(self._release_one, key), one_by_one=one_by_one)
        if failure is not None:
            raise failure

    async def _release_one(self, key: str, pod: JsonObject) -> None:
        meta = pod["metadata"]
        with suppress(NotFound):
            await self._client.patch(
                PODS, meta["name"], _RELEASE, namespace=meta["namespace"], type=PatchType.STRATEGIC
            )
        self._removed.setdefault(key, set()).add(meta["uid"])

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        self._written.forget(key)
        self._echoes.forget(key)
        self._backoffs.pop(key, None)
        self._removed.pop(key, None)


def _tidy(status: JsonObject) -> JsonObject:
    """Without the zeros that the API leaves out; some fields are always shown."""
    return {
        name: value for name, value in status.items() if value or name in _ALWAYS_SHOWN or name == "failedIndexes"
    }


class _BatchedPodSource(PodOwnerSource):
    """Feeds pods' Jobs a little later, so that many changes make one look."""

    controller: Controller[str]

    def start(self, enqueue: Callable[[str], None]) -> None:  # noqa: ARG002 - the queue itself is needed
        queue = self.controller.queue
        super().start(lambda key: queue.add_after(key, BATCH_S))


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller of Jobs."""
    reconciler = JobReconciler(clock, client, informers, recorder)
    jobs = informers.get(JOBS)
    pods = _BatchedPodSource(
        by_controller(informers, PODS), JOBS, jobs, selector_of, concerns=reconciler.concerns_pod
    )
    controller = Controller(
        clock, "job-controller", reconciler.reconcile, workers=WORKERS,
        sources=[InformerSource(jobs, enqueue_self, concerns=reconciler.concerns_job), pods],
    )  # fmt: skip
    pods.controller = controller
    return controller
