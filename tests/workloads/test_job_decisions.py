from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holokube.workloads.job_decisions import (
    Backoff,
    JobView,
    decide_end,
    decide_pods,
    is_complete,
    is_finished,
)
from holokube.workloads.job_pods import COMPLETION_INDEX, INDEX_FAILURES, TRACKING_FINALIZER
from tests.workloads.objects import NOW, a_pod, ago, an_owner

JsonObject = dict[str, Any]
INDEXED = {"completionMode": "Indexed"}


def job(status: JsonObject | None = None, **spec: Any) -> JsonObject:
    template = {"metadata": {}, "spec": {"containers": [{"name": "c"}], "restartPolicy": spec.pop("restart", "Never")}}
    body = {"template": template, "backoffLimit": 6, "parallelism": 1, "completions": 1, **spec}
    return {**an_owner("Job", "work", **body), "status": {"startTime": ago(100), **(status or {})}}


def worker(
    name: str, phase: str = "Running", index: int | None = None, *, failures: int = 0, code: int = 1
) -> JsonObject:
    notes = {} if index is None else {COMPLETION_INDEX: str(index), INDEX_FAILURES: str(failures)}
    pod = a_pod(name, phase, annotations=notes, node="n")
    pod["metadata"]["finalizers"] = [TRACKING_FINALIZER]
    if phase in ("Failed", "Succeeded"):
        ended = {"exitCode": code if phase == "Failed" else 0, "finishedAt": ago(5)}
        pod["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": ended}}]
    return pod


def view(made: JsonObject, *pods: JsonObject, backoff: Backoff | None = None) -> JobView:
    return JobView(made, pods, frozenset(), backoff or Backoff(), NOW)


def reason(seen: JobView) -> str:
    return (decide_end(seen) or {}).get("reason", "")


def indexes(seen: JobView) -> list[int]:
    return [int(pod["metadata"]["annotations"][COMPLETION_INDEX]) for pod in decide_pods(seen).create]


def test_as_many_run_as_are_allowed_and_still_needed() -> None:
    assert len(decide_pods(view(job(parallelism=3, completions=5))).create) == 3
    done = [worker("a", "Succeeded"), worker("b", "Succeeded")]
    assert len(decide_pods(view(job(parallelism=3, completions=3), *done)).create) == 1
    too_many = view(job(parallelism=1, completions=5), worker("a"), worker("b"))
    assert len(decide_pods(too_many).delete) == 1


def test_a_work_queue_starts_nothing_more_after_the_first_success() -> None:
    queue = view(job(parallelism=3, completions=None), worker("a", "Succeeded"), worker("b"))
    assert decide_pods(queue).create == [] and not is_complete(queue, 1) and is_complete(queue, 0)


def test_a_suspended_job_stops_all_its_pods() -> None:
    assert len(decide_pods(view(job(suspend=True, parallelism=2, completions=2), worker("a"), worker("b"))).delete) == 2


def test_after_a_failure_the_next_pod_waits_longer_each_time() -> None:
    waiting = decide_pods(view(job(), worker("a", "Failed")))
    assert (waiting.create, waiting.wait_s) == ([], 5.0)
    again = decide_pods(view(job({"failed": 1}), worker("b", "Failed"), backoff=Backoff(1, NOW - timedelta(60))))
    assert again.wait_s == 15.0
    assert Backoff(50, NOW).wait_s(NOW) == 600.0


def test_a_success_forgets_the_failures_before_it() -> None:
    assert Backoff(4, NOW).after([worker("a", "Succeeded")], []) == Backoff(0, None)


def test_it_ends_beyond_its_limit_or_its_deadline() -> None:
    assert reason(view(job({"failed": 1}, backoffLimit=1))) == ""
    assert reason(view(job({"failed": 1}, backoffLimit=1), worker("a", "Failed"))) == "BackoffLimitExceeded"
    assert reason(view(job(activeDeadlineSeconds=100))) == "DeadlineExceeded"
    assert reason(view(job(activeDeadlineSeconds=101))) == ""
    assert reason(view(job(activeDeadlineSeconds=1, suspend=True))) == ""


def test_restarts_of_containers_count_where_pods_restart_them() -> None:
    restarting = worker("a")
    restarting["status"]["containerStatuses"] = [{"name": "c", "restartCount": 2}]
    assert reason(view(job(restart="OnFailure", backoffLimit=2), restarting)) == "BackoffLimitExceeded"
    assert reason(view(job(restart="Never", backoffLimit=2), restarting)) == ""


def test_free_indexes_are_taken_from_the_lowest() -> None:
    made = job({"completedIndexes": "0,2"}, completions=6, parallelism=3, **INDEXED)
    assert indexes(view(made, worker("a", index=1))) == [3, 4]


def test_second_pods_of_an_index_and_those_beyond_the_last_go() -> None:
    made = job(completions=2, parallelism=2, **INDEXED)
    twice = view(made, worker("a", index=0), worker("b", index=0), worker("c", index=7))
    assert len(decide_pods(twice).delete) == 2


def test_each_index_has_its_own_failures_where_a_limit_is_set() -> None:
    made = job(completions=2, parallelism=2, backoffLimitPerIndex=1, backoffLimit=100, **INDEXED)
    once = view(made, worker("a", "Failed", 0), worker("b", "Succeeded", 1))
    assert (reason(once), decide_pods(once).create, decide_pods(once).wait_s) == ("", [], 5.0)
    twice = view(made, worker("a", "Failed", 0, failures=1), worker("b", "Succeeded", 1))
    assert reason(twice) == "FailedIndexes"
    limited = job(completions=4, parallelism=4, backoffLimitPerIndex=0, maxFailedIndexes=0, backoffLimit=9, **INDEXED)
    assert reason(view(limited, worker("a", "Failed", 0))) == "MaxFailedIndexesExceeded"


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ({"succeededIndexes": "0-1"}, False), ({"succeededIndexes": "0-1", "succeededCount": 1}, True),
        ({"succeededCount": 2}, False), ({"succeededIndexes": "1"}, True), ({"succeededCount": 1}, True),
    ],
)  # fmt: skip
def test_a_success_policy_may_end_it_early(rule: JsonObject, met: bool) -> None:
    made = job(completions=3, parallelism=3, successPolicy={"rules": [rule]}, **INDEXED)
    assert reason(view(made, worker("a", "Succeeded", 1))) == ("SuccessPolicy" if met else "")


def test_a_failure_policy_may_end_it_at_once_or_look_away() -> None:
    rule = {"onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}}
    ends = job(podFailurePolicy={"rules": [{"action": "FailJob", **rule}]})
    assert reason(view(ends, worker("a", "Failed", code=42))) == "PodFailurePolicy"
    assert reason(view(ends, worker("a", "Failed", code=1))) == ""
    ignores = job(backoffLimit=0, podFailurePolicy={"rules": [{"action": "Ignore", **rule}]})
    assert reason(view(ignores, worker("a", "Failed", code=42))) == ""
    assert reason(view(ignores, worker("a", "Failed", code=1))) == "BackoffLimitExceeded"


def test_what_was_decided_stays_decided() -> None:
    target = {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"}
    decided = job({"conditions": [target]})
    assert decide_end(view(decided)) == target and not is_finished(decided)
    assert is_finished(job({"conditions": [{"type": "Failed", "status": "True"}]}))
