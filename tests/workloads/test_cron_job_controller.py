"""CronJobs on virtual time: schedules, concurrency, deadlines, history."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.client.faulty import Faults
from holokube.client.resources import CRON_JOBS, JOBS
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject
from holokube.workloads import cron_job_controller, job_controller
from tests.builders import pod
from tests.workloads.world import STORM, World

BUILDS = [cron_job_controller.build, job_controller.build]


def make(schedule: str = "*/10 * * * *", **spec: Any) -> JsonObject:
    pod_spec = {**pod()["spec"], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"cron": "yes"}}, "spec": {"template": {"spec": pod_spec}}}
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }  # fmt: skip


def world_of(verdict: str = "succeed", **options: Any) -> World:
    world = World(BUILDS, **options)
    world.kubelet.verdict = lambda _pod: verdict
    return world


def alive(world: World) -> list[str]:
    return sorted(
        job["metadata"]["name"] for job in world.list(JOBS) if not job["metadata"].get("deletionTimestamp")
    )


def job_name(moment: str) -> str:
    return f"tick-{int(parse_time(moment).timestamp()) // 60}"


def test_a_job_is_started_at_every_due_moment() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make())
        world.pass_time(599)
        assert alive(world) == []
        world.pass_time(60)
        (job,) = world.list(JOBS)
        assert job["metadata"]["name"] == job_name("2026-01-01T00:10:00Z")
        assert job["metadata"]["labels"] == {"cron": "yes"}
        assert job["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:10:00Z"
        }
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        status = world.get(CRON_JOBS, "tick")["status"]
        assert status["lastScheduleTime"] == "2026-01-01T00:10:00Z"
        assert status["lastSuccessfulTime"] == job["status"]["completionTime"]
        assert "active" not in status
        name = job["metadata"]["name"]
        assert world.events("SuccessfulCreate")[0] == f"Created job {name}"
        assert world.events("SawCompletedJob") == [f"Saw completed job: {name}, condition: Complete"]
        world.pass_time(1200)
        assert alive(world) == [job_name(f"2026-01-01T00:{m}:00Z") for m in (10, 20, 30)]


def test_a_running_job_is_listed_as_active() -> None:
    with world_of("ready") as world:
        world.create(CRON_JOBS, make())
        world.pass_time(630)
        (job,) = world.list(JOBS)
        (reference,) = world.get(CRON_JOBS, "tick")["status"]["active"]
        assert (reference["kind"], reference["name"], reference["uid"]) == (
            "Job", job["metadata"]["name"], job["metadata"]["uid"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "expected"), [("Allow", ["10", "20", "30"]), ("Forbid", ["10"]), ("Replace", ["30"])]
)
def test_the_concurrency_policy_decides_what_runs_at_once(policy: str, expected: list[str]) -> None:
    with world_of("ready") as world:
        world.create(CRON_JOBS, make(concurrencyPolicy=policy))
        world.pass_time(1830)
        assert alive(world) == [job_name(f"2026-01-01T00:{m}:00Z") for m in expected]
        active = world.get(CRON_JOBS, "tick")["status"]["active"]
        assert [reference["name"] for reference in active] == alive(world)
        if policy == "Forbid":
            assert len(world.events("JobAlreadyActive")) == 1  # One event, counted up.


def test_a_forbidden_start_is_made_up_for_when_the_running_job_ends() -> None:
    with world_of() as world:
        world.kubelet.run_s = 800
        world.create(CRON_JOBS, make(concurrencyPolicy="Forbid"))
        world.pass_time(600 + 830)
        assert alive(world) == [job_name(f"2026-01-01T00:{m}:00Z") for m in ("10", "20")]


def test_suspended_cron_jobs_rest_and_start_once_when_they_go_on() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make(suspend=True))
        world.pass_time(3700)
        assert alive(world) == []
        world.patch(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        world.pass_time(60)
        assert alive(world) == [job_name("2026-01-01T01:00:00Z")]


def test_a_start_that_is_too_late_is_left_out() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make(suspend=True, startingDeadlineSeconds=60))
        world.pass_time(700)
        world.patch(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        world.pass_time(60)
        assert alive(world) == []
        world.pass_time(500)
        assert alive(world) == [job_name("2026-01-01T00:20:00Z")]


def test_only_so_many_finished_jobs_are_kept() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0))
        world.pass_time(3660)
        assert alive(world) == [job_name(m) for m in ("2026-01-01T00:50:00Z", "2026-01-01T01:00:00Z")]
        assert len(world.events("SuccessfulDelete")) == 4


def test_the_schedule_follows_the_time_zone() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make("0 3 * * *", timeZone="Europe/Berlin"))
        world.pass_time(2 * 3600 + 60)
        (job,) = world.list(JOBS)
        assert job["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T03:00:00+01:00"
        }


def test_a_changed_schedule_counts_at_once() -> None:
    with world_of() as world:
        world.create(CRON_JOBS, make("0 0 1 * *"))
        world.pass_time(60)
        world.patch(CRON_JOBS, "tick", {"spec": {"schedule": "*/5 * * * *"}})
        world.pass_time(300)
        assert alive(world) == [job_name("2026-01-01T00:05:00Z")]


def test_a_job_that_somebody_deletes_is_missed() -> None:
    with world_of("ready") as world:
        world.create(CRON_JOBS, make())
        world.pass_time(630)
        (name,) = alive(world)
        world.delete(JOBS, name, propagation="Background")
        world.pass_time(60)
        assert "active" not in world.get(CRON_JOBS, "tick")["status"]
        assert world.events("MissingJob") == [f"Active job went missing: {name}"]
        assert alive(world) == []


@pytest.mark.parametrize("seed", range(5))
def test_whatever_goes_wrong_no_moment_is_served_twice(seed: int) -> None:
    with world_of(seed=seed, faults=STORM) as world:
        world.create(CRON_JOBS, make(successfulJobsHistoryLimit=100))
        world.pass_time(3600)
        world.faulty.faults = Faults()
        world.pass_time(1260)
        names = alive(world)
        assert len(names) == len(set(names)) >= 7
        assert job_name("2026-01-01T01:20:00Z") in names
        assert "active" not in world.get(CRON_JOBS, "tick")["status"]
