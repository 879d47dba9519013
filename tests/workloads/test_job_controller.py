"""Jobs on virtual time: completions, indexes, failures, suspension, deadlines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest

from holokube.client.cache import Cache
from holokube.client.faulty import Faults
from holokube.client.resources import JOBS, PODS
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.result import Result
from holokube.workloads import job_controller, ttl_after_finished_controller
from holokube.workloads.job_controller import JobReconciler
from holokube.workloads.job_tracking import declare_end
from tests.builders import pod
from tests.workloads.world import STORM, World, conditions

BUILDS = [job_controller.build, ttl_after_finished_controller.build]
FINALIZER = "batch.kubernetes.io/job-tracking"


def make(name: str = "work", **spec: Any) -> JsonObject:
    pod_spec = {**pod()["spec"], "restartPolicy": spec.pop("restart", "Never")}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": pod_spec}, **spec},
    }  # fmt: skip


def world_of(verdict: str = "succeed", **options: Any) -> World:
    world = World(BUILDS, **options)
    world.kubelet.verdict = lambda _pod: verdict
    return world


def index_of(each: JsonObject) -> int:
    return int(each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def test_a_job_runs_its_pods_and_completes() -> None:
    with world_of() as world:
        world.create(JOBS, make(completions=5, parallelism=2))
        most = 0
        for _ in range(120):
            world.pass_time(0.5)
            most = max(most, len(world.pods()))
        assert most == 2
        found = world.get(JOBS, "work")
        status = found["status"]
        assert {name: status.get(name) for name in ("active", "succeeded", "failed", "ready", "terminating")} == {
            "active": None, "succeeded": 5, "failed": None, "ready": 0, "terminating": 0,
        }  # fmt: skip
        assert status["uncountedTerminatedPods"] == {}
        assert conditions(found) == {
            "SuccessCriteriaMet": ("True", "CompletionsReached"), "Complete": ("True", "CompletionsReached"),
        }  # fmt: skip
        assert status["completionTime"] > status["startTime"]
        assert len(world.list(PODS)) == 5
        assert all(FINALIZER not in p["metadata"].get("finalizers", ()) for p in world.list(PODS))
        assert len(world.events("SuccessfulCreate")) == 5
        assert world.events("Completed") == ["Job completed"]


def test_a_running_job_shows_its_pods_and_they_carry_the_finalizer() -> None:
    with world_of("ready") as world:
        world.create(JOBS, make(completions=3, parallelism=3))
        world.pass_time(20)
        status = world.get(JOBS, "work")["status"]
        assert (status["active"], status["ready"], status["terminating"]) == (3, 3, 0)
        for each in world.pods():
            assert each["metadata"]["finalizers"] == [FINALIZER]
            assert each["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "work"


def test_a_work_queue_job_is_complete_when_one_succeeds_and_all_have_ended() -> None:
    with world_of() as world:
        world.create(JOBS, make(parallelism=3))
        world.pass_time(60)
        found = world.get(JOBS, "work")
        assert found["status"]["succeeded"] == 3
        assert conditions(found)["Complete"][0] == "True"


def test_failures_are_retried_with_growing_delay_up_to_the_limit() -> None:
    with world_of("fail") as world:
        world.create(JOBS, make(backoffLimit=3))
        world.pass_time(30)
        assert world.get(JOBS, "work")["status"]["failed"] == 2
        world.pass_time(300)
        found = world.get(JOBS, "work")
        assert found["status"]["failed"] == 4 and "succeeded" not in found["status"]
        assert conditions(found)["Failed"] == ("True", "BackoffLimitExceeded")
        assert conditions(found)["FailureTarget"] == ("True", "BackoffLimitExceeded")
        assert world.events("BackoffLimitExceeded") == ["Job has reached the specified backoff limit"]
        created = sorted(p["metadata"]["creationTimestamp"] for p in world.list(PODS))
        gaps = [_seconds(b) - _seconds(a) for a, b in pairwise(created)]
        assert len(gaps) == 3
        # A pod lives about seven seconds; then come waits of 10, 20 and 40.
        assert all(low <= gap <= low + 10 for gap, low in zip(gaps, (15, 25, 45), strict=True))


def _seconds(moment: str) -> int:
    return int(moment[11:13]) * 3600 + int(moment[14:16]) * 60 + int(moment[17:19])


def test_an_indexed_job_runs_each_index_once() -> None:
    with world_of() as world:
        world.create(JOBS, make(completions=4, parallelism=3, completionMode="Indexed"))
        world.pass_time(5)
        first = world.list(PODS)
        assert sorted(map(index_of, first)) == [0, 1, 2]
        each = min(first, key=index_of)
        assert each["metadata"]["generateName"] == "work-0-" and each["spec"]["hostname"] == "work-0"
        (variable,) = each["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        world.pass_time(60)
        found = world.get(JOBS, "work")
        assert found["status"]["completedIndexes"] == "0-3" and found["status"]["succeeded"] == 4
        assert sorted(map(index_of, world.list(PODS))) == [0, 1, 2, 3]


def test_a_failed_index_is_tried_again_and_only_it() -> None:
    with world_of() as world:
        failures = iter(["fail", "fail"])
        seen: dict[str, str] = {}

        def verdict(each: JsonObject) -> str:
            if index_of(each) != 1:
                return "succeed"
            name = each["metadata"]["name"]
            if name not in seen:
                seen[name] = next(failures, "succeed")
            return seen[name]

        world.kubelet.verdict = verdict
        world.create(JOBS, make(completions=3, parallelism=3, completionMode="Indexed"))
        world.pass_time(200)
        found = world.get(JOBS, "work")
        assert found["status"]["completedIndexes"] == "0-2" and found["status"]["failed"] == 2
        assert sorted(map(index_of, world.list(PODS))) == [0, 1, 1, 1, 2]


def test_a_limit_per_index_fails_that_index_alone() -> None:
    with world_of() as world:
        world.kubelet.verdict = lambda each: "fail" if index_of(each) == 2 else "succeed"
        spec = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
        world.create(JOBS, make(**spec))
        world.pass_time(200)
        found = world.get(JOBS, "work")
        assert found["status"]["completedIndexes"] == "0,1,3"
        assert found["status"]["failedIndexes"] == "2"
        assert found["status"]["failed"] == 2
        assert conditions(found)["Failed"] == ("True", "FailedIndexes")
        counts = [
            p["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"]
            for p in world.list(PODS) if index_of(p) == 2
        ]  # fmt: skip
        assert sorted(counts) == ["0", "1"]


def test_a_suspended_job_has_no_pods_and_goes_on_when_resumed() -> None:
    with world_of("ready") as world:
        world.create(JOBS, make(completions=2, parallelism=2))
        world.pass_time(10)
        assert len(world.pods()) == 2
        world.patch(JOBS, "work", {"spec": {"suspend": True}})
        world.pass_time(30)
        found = world.get(JOBS, "work")
        assert world.list(PODS) == []
        assert conditions(found) == {"Suspended": ("True", "JobSuspended")}
        assert "startTime" not in found["status"] and "failed" not in found["status"]
        world.kubelet.verdict = lambda _pod: "succeed"
        world.patch(JOBS, "work", {"spec": {"suspend": False}})
        world.pass_time(60)
        found = world.get(JOBS, "work")
        assert conditions(found)["Suspended"] == ("False", "JobResumed")
        assert conditions(found)["Complete"][0] == "True"
        assert world.events("Suspended") == ["Job suspended"]
        assert world.events("Resumed") == ["Job resumed"]


def test_the_active_deadline_ends_a_job() -> None:
    with world_of("ready") as world:
        world.create(JOBS, make(activeDeadlineSeconds=30))
        world.pass_time(29)
        assert "conditions" not in world.get(JOBS, "work")["status"]
        world.pass_time(20)
        found = world.get(JOBS, "work")
        assert conditions(found)["Failed"] == ("True", "DeadlineExceeded")
        assert found["status"]["failed"] == 1
        assert world.pods() == []


def test_a_failure_policy_ignores_counts_or_fails() -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    with world_of("fail") as world:
        world.kubelet.exit_code = 42
        world.create(JOBS, make(backoffLimit=0, podFailurePolicy={"rules": rules}))
        world.pass_time(100)
        found = world.get(JOBS, "work")
        assert "failed" not in found["status"] and "conditions" not in found["status"]
        assert len(world.list(PODS)) >= 2
        world.kubelet.exit_code = 7
        world.pass_time(200)
        found = world.get(JOBS, "work")
        assert conditions(found)["Failed"] == ("True", "PodFailurePolicy")
        message = next(c["message"] for c in found["status"]["conditions"] if c["type"] == "Failed")
        assert message.endswith("failed with exit code 7 matching FailJob rule at index 1")


def test_a_success_policy_ends_a_job_early() -> None:
    with world_of() as world:
        world.kubelet.verdict = lambda each: "succeed" if index_of(each) == 0 else "ready"
        policy = {"rules": [{"succeededIndexes": "0"}]}
        world.create(JOBS, make(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy))
        world.pass_time(60)
        found = world.get(JOBS, "work")
        assert conditions(found)["Complete"] == ("True", "SuccessPolicy")
        assert found["status"]["completedIndexes"] == "0" and world.pods() == []


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    with world_of() as world:
        world.create(JOBS, make(ttlSecondsAfterFinished=100))
        world.pass_time(90)
        assert conditions(world.get(JOBS, "work"))["Complete"][0] == "True"
        world.pass_time(60)
        try:
            leaving = bool(world.get(JOBS, "work")["metadata"].get("deletionTimestamp"))
        except NotFound:
            leaving = True
        assert leaving


def is_leaving(world: World) -> bool:
    return bool(world.get(JOBS, "work")["metadata"].get("deletionTimestamp"))


def test_a_time_to_live_that_is_changed_counts_from_the_end_of_the_job() -> None:
    with world_of() as world:
        world.create(JOBS, make(ttlSecondsAfterFinished=100))
        world.pass_time(60)
        world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 200}})
        world.pass_time(120)
        assert not is_leaving(world)
        world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 185}})
        world.pass_time(3)
        assert not is_leaving(world)
        world.pass_time(17)
        assert is_leaving(world)


def test_a_job_whose_time_is_over_when_it_is_given_one_goes_at_once() -> None:
    with world_of() as world:
        world.create(JOBS, make())
        world.pass_time(60)
        world.patch(JOBS, "work", {"spec": {"ttlSecondsAfterFinished": 10}})
        world.pass_time(0.1)
        assert is_leaving(world)


def test_pods_of_a_deleted_job_do_not_hang_on_their_finalizer() -> None:
    with world_of("ready") as world:
        world.create(JOBS, make(completions=2, parallelism=2))
        world.pass_time(10)
        world.delete(JOBS, "work", propagation="Background")
        for each in world.list(PODS):
            world.delete(PODS, each["metadata"]["name"])
        world.pass_time(60)
        assert world.list(PODS) == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_whatever_goes_wrong_every_pod_is_counted_once(seed: int, mode: str) -> None:
    with world_of(seed=seed, faults=STORM) as world:
        broken = {"n": 0}
        verdicts: dict[str, str] = {}

        def verdict(each: JsonObject) -> str:
            name = each["metadata"]["name"]
            if name not in verdicts:
                broken["n"] += 1
                verdicts[name] = "fail" if broken["n"] in (2, 5) else "succeed"
            return verdicts[name]

        world.kubelet.verdict = verdict
        world.create(JOBS, make(completions=6, parallelism=3, completionMode=mode))
        world.pass_time(200)
        world.faulty.faults = Faults()
        world.pass_time(2000)
        found = world.get(JOBS, "work")
        status = found["status"]
        assert conditions(found)["Complete"][0] == "True"
        ended = [p["status"]["phase"] for p in world.list(PODS)]
        assert status["failed"] == ended.count("Failed") == 2
        # A create whose answer got lost may make one pod too many, which is counted or removed, never lost.
        assert status["succeeded"] >= 6 if mode == "NonIndexed" else status["completedIndexes"] == "0-5"
        if mode == "NonIndexed":
            assert status["succeeded"] == ended.count("Succeeded")
        assert status["uncountedTerminatedPods"] == {}


@pytest.mark.parametrize("seed", range(4))
def test_changes_that_are_passed_over_would_have_led_to_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = {"all": 0, "some": 0}
    usual = JobReconciler.reconcile

    def objects(name: str) -> list[bytes]:
        async def counted(self: JobReconciler, key: str) -> Result | None:
            looks[name] += 1
            return await usual(self, key)

        monkeypatch.setattr(JobReconciler, "reconcile", counted)
        with world_of(seed=seed) as world:
            for number in range(6):
                ttl = {"ttlSecondsAfterFinished": 20} if number % 2 else {}
                world.create(JOBS, make(f"work-{number}", completions=1 + seed, parallelism=2, **ttl))
                world.pass_time(7)
            world.delete(JOBS, "work-5", propagation="Background")
            world.pass_time(200)
            return [orjson.dumps(each) for resource in (JOBS, PODS) for each in world.list(resource)]

    found = objects("some")
    for name in ("concerns_job", "concerns_pod"):
        monkeypatch.setattr(JobReconciler, name, lambda *_: True)
    assert found == objects("all")
    assert looks["some"] < looks["all"]


def test_nothing_is_remembered_of_jobs_that_are_over() -> None:
    with pytest.MonkeyPatch.context() as patched:
        made = reconcilers(patched)
        with world_of() as world:
            world.create(JOBS, make(completions=3, parallelism=2))
            world.create(JOBS, make("gone", completions=3, parallelism=1, suspend=True))
            world.pass_time(20)
            world.delete(JOBS, "gone", propagation="Background")
            world.pass_time(60)
            (reconciler,) = made
            assert not (
                reconciler._backoffs or reconciler._removed or reconciler._busy
                or reconciler._written._versions or reconciler._expectations._by_owner
                or reconciler._echoes._written
            )  # fmt: skip


def is_complete(job: JsonObject) -> bool:
    return "Complete" in conditions(job)


def after_writing(
    condition: str, patched: pytest.MonkeyPatch, act: Callable[[JobReconciler], Awaitable[None]]
) -> None:
    """Does something once, between the write of a condition and the controller's hearing the answer."""
    usual = JobReconciler._write
    done: list[JsonObject] = []

    async def write(self: JobReconciler, job: JsonObject, status: JsonObject) -> JsonObject:
        written = await usual(self, job, status)
        if condition in conditions(written) and not done:
            done.append(written)
            await act(self)
        return written

    patched.setattr(JobReconciler, "_write", write)


async def wait(reconciler: JobReconciler) -> None:
    await reconciler._clock.sleep(3)


def reconcilers(patched: pytest.MonkeyPatch) -> list[JobReconciler]:
    made: list[JobReconciler] = []
    usual = JobReconciler.__init__

    def noted(self: JobReconciler, *args: Any) -> None:
        made.append(self)
        usual(self, *args)

    patched.setattr(JobReconciler, "__init__", noted)
    return made


def test_the_life_of_a_plain_job_takes_three_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    usual = JobReconciler.reconcile

    async def counted(self: JobReconciler, key: str) -> Result | None:
        looks.append(key)
        return await usual(self, key)

    monkeypatch.setattr(JobReconciler, "reconcile", counted)
    with world_of() as world:
        world.kubelet.start_s = 0.5
        world.create(JOBS, make(ttlSecondsAfterFinished=20))
        world.pass_time(15)
        assert is_complete(world.get(JOBS, "work"))
        world.pass_time(60)
        assert world.get(JOBS, "work")["metadata"]["deletionTimestamp"]
        # One makes the pod, one tells that it is ready, one counts it.
        assert len(looks) == 3


def history(spec: JsonObject, verdict: str, faults: Faults | None) -> list[object]:
    """All that is written of a Job and its pods, and what becomes of them."""
    with world_of(verdict, faults=faults) as world:
        world.create(JOBS, make(ttlSecondsAfterFinished=20, **spec))
        found: list[object] = []
        for _ in range(60):
            world.pass_time(0.5)
            found += [world.get(JOBS, "work"), world.pods()]
        return [*found, *(world.events(reason) for reason in ("SuccessfulCreate", "FailedCreate", "Completed"))]


@pytest.mark.parametrize("faults", [None, Faults(internal_error=0.3, conflict=0.2)], ids=["calm", "faulty"])
@pytest.mark.parametrize(("spec", "verdict"), [
    ({}, "succeed"), ({"completions": 3, "parallelism": 3}, "succeed"),
    ({"completions": 3, "parallelism": 2}, "succeed"), ({"parallelism": 2, "completions": None}, "succeed"),
    ({"backoffLimit": 1}, "fail"), ({"suspend": True}, "succeed"),
])  # fmt: skip
def test_the_short_ways_lead_to_where_the_long_one_does(
    monkeypatch: pytest.MonkeyPatch, spec: JsonObject, verdict: str, faults: Faults | None
) -> None:
    short = history(spec, verdict, faults)
    monkeypatch.setattr(job_controller, "first_pods", lambda _job: [])
    monkeypatch.setattr(job_controller, "good_end", lambda *_: None)
    assert history(spec, verdict, faults) == short


def test_a_job_is_not_looked_at_for_what_it_told_itself_but_for_what_others_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = reconcilers(monkeypatch)
    with world_of("ready") as world:
        first = world.create(JOBS, make(completions=2, parallelism=2))
        world.pass_time(20)
        (reconciler,) = made
        job = world.get(JOBS, "work")
        assert job["status"]["ready"] == 2
        before = {**job, "metadata": {**job["metadata"], "resourceVersion": "1"}, "status": first.get("status") or {}}

        def looks_again(*_: object) -> bool:
            raise AssertionError("it was worked out whether there is something to do")

        with monkeypatch.context() as patched:
            patched.setattr(job_controller, "runs_as_it_should", looks_again)
            assert not reconciler.concerns_job(before, job)
            # What came together with it, or another write, has to be looked at.
            for other in (
                {**before, "spec": {**before["spec"], "parallelism": 1}},
                {**before, "metadata": {**before["metadata"], "labels": {"a": "b"}}},
            ):
                with pytest.raises(AssertionError, match="worked out"):
                    reconciler.concerns_job(other, job)
            later = {**job, "metadata": {**job["metadata"], "resourceVersion": str(10**9)}}
            patched.setattr(reconciler, "_jobs", Cache())
            with pytest.raises(AssertionError, match="worked out"):
                reconciler.concerns_job(job, later)
        wrong = {"status": {"ready": 1}}
        world.cluster.run(world.client.patch_status(JOBS, "work", wrong, namespace="default"))
        world.pass_time(5)
        assert world.get(JOBS, "work")["status"]["ready"] == 2


def test_a_job_that_lacks_a_pod_is_looked_at_although_only_its_status_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = reconcilers(monkeypatch)
    with world_of("ready") as world:
        world.create(JOBS, make(completions=2, parallelism=2))
        world.pass_time(20)
        (reconciler,) = made
        job = world.get(JOBS, "work")
        assert not reconciler.concerns_job(job, job)
        assert reconciler.concerns_job(None, job) and reconciler.concerns_job(job, None)
        for change in ({"active": 1}, {"ready": 1}, {"terminating": 1}, {"startTime": None}):
            assert reconciler.concerns_job(job, {**job, "status": {**job["status"], **change}})
        assert reconciler.concerns_job(job, {**job, "spec": {**job["spec"], "parallelism": 1}})
        # A pod that was made and is not in the cache yet may be one too many.
        reconciler._expectations.created("default/work", {"metadata": {
            "namespace": "default", "name": "new", "uid": "new", "resourceVersion": str(10**9),
        }})  # fmt: skip
        assert reconciler.concerns_job(job, job)


def test_a_job_whose_end_could_not_be_written_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = reconcilers(monkeypatch)
    usual = JobReconciler._write
    refused: list[JsonObject] = []

    async def write(self: JobReconciler, job: JsonObject, status: JsonObject) -> JsonObject:
        if any(c["type"] == "Complete" for c in status.get("conditions") or ()) and len(refused) < 3:
            refused.append(status)
            raise Conflict("somebody else wrote first")
        return await usual(self, job, status)

    monkeypatch.setattr(JobReconciler, "_write", write)
    with world_of() as world:
        world.create(JOBS, make())
        world.pass_time(60)
        assert len(refused) == 3
        assert is_complete(world.get(JOBS, "work")) and world.get(JOBS, "work")["status"]["succeeded"] == 1
        assert not made[0]._ending


def test_changes_kept_from_a_job_are_made_up_for_when_its_end_does_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_off: list[JsonObject] = []

    def hesitant(status: JsonObject, end: JsonObject | None) -> JsonObject | None:
        if end is not None and not put_off:
            put_off.append(end)
            return None
        return declare_end(status, end)

    monkeypatch.setattr(job_controller, "declare_end", hesitant)
    after_writing("SuccessCriteriaMet", monkeypatch, wait)
    made = reconcilers(monkeypatch)
    with world_of() as world:
        # Without pods there is no second write whose coming by would do as well.
        world.create(JOBS, make(completions=0))
        world.pass_time(60)
        assert put_off and is_complete(world.get(JOBS, "work"))
        assert not made[0]._ending


def test_a_job_is_forgotten_even_if_its_end_is_seen_before_the_answer_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = reconcilers(monkeypatch)

    after_writing("Complete", monkeypatch, wait)
    with world_of() as world:
        world.create(JOBS, make())
        world.pass_time(60)
        assert is_complete(world.get(JOBS, "work"))
        (reconciler,) = made
        assert not (
            reconciler._backoffs or reconciler._removed or reconciler._ending
            or reconciler._written._versions
        )  # fmt: skip


def test_a_job_made_anew_while_the_end_of_the_old_one_was_written_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def replace(reconciler: JobReconciler) -> None:
        await reconciler._client.delete(JOBS, "work", "default", propagation="Background")
        await reconciler._client.create(JOBS, make())
        await reconciler._clock.sleep(1)

    after_writing("Complete", monkeypatch, replace)
    with world_of() as world:
        first = world.create(JOBS, make())
        world.pass_time(120)
        second = world.get(JOBS, "work")
        assert second["metadata"]["uid"] != first["metadata"]["uid"] and is_complete(second)
