"""Starts Jobs on schedule."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import CRON_JOBS, JOBS
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_owner, enqueue_self
from holokube.workloads.cron_job_decisions import CronPlan, decide, with_started
from holokube.workloads.expectations import RECHECK_S, OwnWrites
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, is_controlled_by
from holokube.workloads.pod_control import namespace_is_terminating
from holokube.workloads.status_writes import same_status

WORKERS = 5


class CronJobReconciler:
    """Looks after one CronJob."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        cron_jobs = informers.get(CRON_JOBS)
        self._cron_jobs = cron_jobs.lister
        self._jobs = by_controller(informers, JOBS).lister
        self._written = OwnWrites(cron_jobs)

    async def reconcile(self, key: str) -> Result | None:
        if not self._written.shown(key):
            return Result(RECHECK_S)
        cron_job = self._cron_jobs.by_key(key)
        if cron_job is None:
            self._written.forget(key)
            return None
        jobs = self._jobs.by_index(CONTROLLER_INDEX, cron_job["metadata"]["uid"])
        missing = await self._find_missing(cron_job, jobs)
        plan = decide(cron_job, jobs, missing, self._clock.now())
        for kind, reason, message in plan.events:
            self._recorder.event(cron_job, kind, reason, message)
        status = plan.status
        try:
            status = await self._carry_out(cron_job, plan)
        finally:
            await self._write(cron_job, status)
        return Result(plan.check_in_s) if plan.check_in_s is not None else None

    async def _find_missing(self, cron_job: JsonObject, jobs: list[JsonObject]) -> set[str]:
        """Active Jobs that are in neither the cache nor the server."""
        known = {job["metadata"]["uid"] for job in jobs}
        missing: set[str] = set()
        for reference in (cron_job.get("status") or {}).get("active") or ():
            if reference["uid"] in known:
                continue
            try:
                found = await self._client.get(JOBS, reference["name"], cron_job["metadata"]["namespace"])
            except NotFound:
                missing.add(reference["uid"])
                continue
            if found["metadata"]["uid"] != reference["uid"]:
                missing.add(reference["uid"])
        return missing

    async def _carry_out(self, cron_job: JsonObject, plan: CronPlan) -> JsonObject:
        """Deletes and creates Jobs; the status after that."""
        space = cron_job["metadata"]["namespace"]
        for job in plan.delete:
            await self._delete(cron_job, job["metadata"]["name"], job["metadata"]["uid"])
        for reference in plan.replace:
            await self._delete(cron_job, reference["name"], reference["uid"])
        if plan.create is None or plan.scheduled is None:
            return plan.status
        try:
            job = await self._client.create(JOBS, plan.create, space)
        except AlreadyExists:
            job = await self._client.get(JOBS, plan.create["metadata"]["name"], space)
            if not is_controlled_by(job, cron_job):
                return plan.status
        except HolokubeError as error:
            if not namespace_is_terminating(error):
                self._recorder.event(cron_job, WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        else:
            self._recorder.event(
                cron_job, NORMAL, "SuccessfulCreate", f"Created job {job['metadata']['name']}"
            )
        return with_started(plan.status, job, plan.scheduled)

    async def _delete(self, cron_job: JsonObject, name: str, uid: str) -> None:
        try:
            await self._client.delete(
                JOBS, name, cron_job["metadata"]["namespace"], propagation="Background", uid=uid
            )
        except NotFound:
            return
        except HolokubeError as error:
            self._recorder.event(cron_job, WARNING, "FailedDelete", f"Deleted job: {error}")
            raise
        self._recorder.event(cron_job, NORMAL, "SuccessfulDelete", f"Deleted job {name}")

    async def _write(self, cron_job: JsonObject, status: JsonObject) -> None:
        if same_status(cron_job.get("status") or {}, status):
            return
        written = await self._client.update_status(
            CRON_JOBS, {**cron_job, "status": status}, cron_job["metadata"]["namespace"]
        )
        self._written.wrote(written)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller of CronJobs."""
    reconciler = CronJobReconciler(clock, client, informers, recorder)
    return Controller(
        clock, "cronjob-controller", reconciler.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(CRON_JOBS), enqueue_self),
            InformerSource(
                by_controller(informers, JOBS), enqueue_owner("CronJob", group="batch"),
                controlled_by=("batch", "CronJob"), hears_orphans=False,
            ),
        ],
    )  # fmt: skip
