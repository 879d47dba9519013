from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holokube.workloads.cron_job_decisions import CronPlan, decide, finished_as, with_started
from tests.workloads.objects import NOW, ago, an_owner

JsonObject = dict[str, Any]


def cron_job(status: JsonObject | None = None, *, age_s: float = 30, **spec: Any) -> JsonObject:
    body = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {}}}, **spec}
    made = an_owner("CronJob", "tick", **body)
    made["metadata"]["creationTimestamp"] = ago(age_s)
    return {**made, "status": status or {}}


def job(name: str, outcome: str = "", *, age_s: float = 60) -> JsonObject:
    made = an_owner("Job", name)
    status: JsonObject = {"startTime": ago(age_s)}
    if outcome:
        status["conditions"] = [{"type": outcome, "status": "True"}]
    if outcome == "Complete":
        status["completionTime"] = ago(age_s - 1)
    return {**made, "status": status}


def active(*names: str) -> JsonObject:
    return {"active": [{"name": name, "uid": f"uid-{name}"} for name in names]}


def reasons(plan: CronPlan) -> list[str]:
    return [reason for _, reason, _ in plan.events]


def test_a_due_moment_makes_a_job_that_is_named_by_it() -> None:
    plan = decide(cron_job(), [], (), NOW)
    assert plan.create is not None and plan.scheduled == NOW
    assert plan.create["metadata"]["name"] == f"tick-{int(NOW.timestamp()) // 60}"
    assert plan.check_in_s == pytest.approx(60.1)


def test_a_moment_is_acted_upon_once() -> None:
    assert decide(cron_job({"lastScheduleTime": ago(0)}), [], (), NOW).create is None
    later = decide(cron_job({"lastScheduleTime": ago(0)}), [], (), NOW + timedelta(seconds=60))
    assert later.create is not None


def test_suspended_ones_and_those_with_a_broken_schedule_do_nothing() -> None:
    assert decide(cron_job(suspend=True), [], (), NOW).create is None
    assert reasons(decide(cron_job(schedule="nonsense"), [], (), NOW)) == ["UnparseableSchedule"]
    assert reasons(decide(cron_job(timeZone="Nowhere/At-All"), [], (), NOW)) == ["UnknownTimeZone"]


def test_what_may_run_at_the_same_time_is_up_to_the_policy() -> None:
    running = [job("tick-1")]
    assert decide(cron_job(active("tick-1")), running, (), NOW).create is not None
    forbidden = decide(cron_job(active("tick-1"), concurrencyPolicy="Forbid"), running, (), NOW)
    assert (forbidden.create, reasons(forbidden)) == (None, ["JobAlreadyActive"])
    replaced = decide(cron_job(active("tick-1"), concurrencyPolicy="Replace"), running, (), NOW)
    assert [r["name"] for r in replaced.replace] == ["tick-1"] and "active" not in replaced.status


def test_a_start_that_is_too_late_is_missed() -> None:
    late = decide(cron_job(age_s=90, startingDeadlineSeconds=10), [], (), NOW + timedelta(seconds=30))
    assert late.create is None


def test_a_finished_job_is_seen_and_its_time_noted() -> None:
    plan = decide(cron_job(active("tick-1"), suspend=True), [job("tick-1", "Complete")], (), NOW)
    assert reasons(plan) == ["SawCompletedJob"] and plan.status == {"lastSuccessfulTime": ago(59)}


def test_of_a_job_that_is_deleted_at_once_only_the_deletion_is_told() -> None:
    done = [job("tick-1", "Complete")]
    plan = decide(cron_job(active("tick-1"), suspend=True, successfulJobsHistoryLimit=0), done, (), NOW)
    assert (reasons(plan), plan.delete) == ([], done)
    assert plan.status == {"lastSuccessfulTime": ago(59)}


def test_the_oldest_beyond_the_limits_go_each_kind_by_its_own() -> None:
    jobs = [
        job("a", "Complete", age_s=300), job("b", "Complete", age_s=200), job("c", "Failed", age_s=250),
        job("d", "Failed", age_s=100), job("e"),
    ]  # fmt: skip
    limits = {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}
    plan = decide(cron_job(suspend=True, **limits), jobs, (), NOW)
    assert [item["metadata"]["name"] for item in plan.delete] == ["a", "c"]
    assert [finished_as(item) for item in jobs] == ["Complete", "Complete", "Failed", "Failed", ""]


def test_strangers_and_the_missing_are_told() -> None:
    plan = decide(cron_job(active("gone"), suspend=True), [job("stranger")], {"uid-gone"}, NOW)
    assert reasons(plan) == ["UnexpectedJob", "MissingJob"] and plan.status == {}


def test_a_started_job_is_listed() -> None:
    status = with_started({"active": [{"uid": "x"}]}, job("tick-9"), NOW)
    assert [r["uid"] for r in status["active"]] == ["x", "uid-tick-9"] and status["lastScheduleTime"] == ago(0)
