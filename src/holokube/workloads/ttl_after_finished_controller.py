"""Deletes finished Jobs when their ``ttlSecondsAfterFinished`` is over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.informer import EventType
from holokube.client.resources import JOBS
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

WORKERS = 5
_EMPTY: Final[Mapping[str, Any]] = {}


def expires_at(job: JsonObject) -> datetime | None:
    """When a finished Job is to be deleted; None if it is not finished, or for ever."""
    finished_at = _finished_at(job)
    if finished_at is None:
        return None
    return parse_time(finished_at) + timedelta(seconds=int(job["spec"]["ttlSecondsAfterFinished"]))


def _finished_at(job: JsonObject) -> str | None:
    """When a Job that is to be deleted some time was finished; None if it is not, or for ever."""
    if job["spec"].get("ttlSecondsAfterFinished") is None or job["metadata"].get("deletionTimestamp"):
        return None
    for condition in (job.get("status") or _EMPTY).get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            at: str = condition["lastTransitionTime"]
            return at
    return None


class _ExpirySource(InformerSource[str]):
    """Feeds a finished Job when its time is over, and not before."""

    clock: Clock
    controller: Controller[str]

    def _on_event(self, _type: EventType, _old: JsonObject | None, new: JsonObject | None) -> None:
        # Most Jobs that are told of run, and have no conditions at all.
        if new is None or not (new.get("status") or _EMPTY).get("conditions"):
            return
        due = expires_at(new)
        if due is not None:
            left_s = (due - self.clock.now()).total_seconds()
            self.controller.queue.add_after(object_key(new), left_s)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller that deletes finished Jobs."""
    jobs = informers.get(JOBS)

    async def reconcile(key: str) -> Result | None:
        job = jobs.lister.by_key(key)
        due = expires_at(job) if job is not None else None
        if job is None or due is None:
            return None
        left_s = (due - clock.now()).total_seconds()
        if left_s > 0:
            return Result(left_s)
        meta = job["metadata"]
        try:
            # Somebody may have prolonged its life since: ask the server before doing what cannot be undone.
            fresh = await client.get(JOBS, meta["name"], meta["namespace"])
            still_due = due if fresh is job else expires_at(fresh)
            if still_due is None or still_due > clock.now() or fresh["metadata"]["uid"] != meta["uid"]:
                return None
            await client.delete(
                JOBS, meta["name"], meta["namespace"], propagation="Foreground", uid=meta["uid"],
                resource_version=fresh["metadata"]["resourceVersion"],
            )  # fmt: skip
        except NotFound:
            return None
        except Conflict:
            return Result(0)
        return None

    source = _ExpirySource(jobs, enqueue_self)
    controller = Controller(clock, "ttl-after-finished-controller", reconcile, workers=WORKERS, sources=[source])
    source.clock, source.controller = clock, controller
    return controller
