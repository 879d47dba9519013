"""A Job that is said to rest is one for which the whole decision finds nothing to do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.job_decisions import Backoff, JobView, PodChanges, decide_end, decide_pods, is_complete
from holokube.workloads.job_pods import TRACKING_FINALIZER
from holokube.workloads.job_rest import runs_as_it_should, status_at_rest
from holokube.workloads.job_tracking import decide_tracking
from holokube.workloads.pod_status import is_pod_ready
from holokube.workloads.status_writes import same_status
from tests.workloads.objects import NOW, a_pod, ago, an_owner

SELECTOR = LabelSelector.from_labels({"app": "a"})
STATUS = {"terminating": 0, "uncountedTerminatedPods": {}, "startTime": ago(50)}
# What may be different from a Job that rests; each alone, or a few together, or nothing.
SPECS = st.sampled_from([
    {"suspend": True}, {"backoffLimit": 0}, {"activeDeadlineSeconds": 5}, {"completionMode": "Indexed"},
    {"completions": 0}, {"completions": 1}, {"completions": 3}, {"parallelism": 0}, {"parallelism": 1},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "Ready"}]}]}},
])  # fmt: skip
STATUSES = st.sampled_from([
    {"startTime": None}, {"failed": 1}, {"succeeded": 1}, {"terminating": 1}, {"active": 0}, {"ready": 7},
    {"conditions": [{"type": "Suspended", "status": "True"}]},
    {"uncountedTerminatedPods": {"succeeded": ["uid-p0"]}},
])  # fmt: skip
PODS = st.lists(
    st.tuples(
        st.sampled_from(["Pending", "Running", "Running", "Running", "Succeeded", "Failed"]),
        st.booleans(), st.sampled_from([False, False, False, True]),
    ), min_size=1, max_size=3,
)  # fmt: skip


def job_of(pods: list[JsonObject], *changes: tuple[JsonObject, JsonObject]) -> JsonObject:
    """A Job that wants as many pods as it has, and says so; with changes of its spec and its status."""
    spec: JsonObject = {"parallelism": len(pods), "template": {"spec": {"restartPolicy": "Never"}}}
    status: JsonObject = {**STATUS, "active": len(pods), "ready": sum(map(is_pod_ready, pods))}
    for of_spec, of_status in changes:
        spec.update(of_spec)
        status.update(of_status)
    return {**an_owner("Job", "work", **spec), "status": {key: v for key, v in status.items() if v is not None}}


def pod_of(number: int, drawn: tuple[str, bool, bool]) -> JsonObject:
    phase, is_ready, is_leaving = drawn
    pod = a_pod(f"p{number}", phase, ready_s=5 if is_ready else None, labels={"app": "a"})
    pod["metadata"]["finalizers"] = [TRACKING_FINALIZER]
    if is_leaving:
        pod["metadata"]["deletionTimestamp"] = ago(0)
    return pod


# A busy machine is no reason to fail.
@settings(deadline=None, max_examples=300)
@given(PODS, st.lists(SPECS, max_size=2), st.lists(STATUSES, max_size=2))
def test_nothing_is_decided_for_a_job_at_rest(
    drawn: list[tuple[str, bool, bool]], specs: list[JsonObject], statuses: list[JsonObject]
) -> None:
    pods = [pod_of(number, each) for number, each in enumerate(drawn)]
    job = job_of(pods, *((spec, {}) for spec in specs), *(({}, status) for status in statuses))
    if not runs_as_it_should(job, pods, SELECTOR):
        return
    view = JobView(job, pods, frozenset(), True, Backoff(), NOW)
    assert decide_end(view) is None
    assert decide_pods(view) == PodChanges()
    assert not is_complete(view, len(view.active))
    assert (view.start_time, view.terminating, view.ready) == (
        job["status"]["startTime"], job["status"]["terminating"], job["status"]["ready"],
    )  # fmt: skip
    tracking = decide_tracking(view, dict(view.status), None)
    assert same_status(tracking.status, job["status"]) and not tracking.release and tracking.end is None
    assert view.new_backoff == Backoff()


@settings(deadline=None, max_examples=300)
@given(PODS, st.lists(SPECS, max_size=2), st.lists(STATUSES, max_size=2))
def test_the_status_of_a_job_at_rest_is_what_the_whole_decision_would_write(
    drawn: list[tuple[str, bool, bool]], specs: list[JsonObject], statuses: list[JsonObject]
) -> None:
    pods = [pod_of(number, each) for number, each in enumerate(drawn)]
    job = job_of(pods, *((spec, {}) for spec in specs), *(({}, status) for status in statuses))
    status = status_at_rest(job, pods, SELECTOR)
    if status is None:
        return
    view = JobView(job, pods, frozenset(), True, Backoff(), NOW)
    assert decide_end(view) is None
    assert decide_pods(view) == PodChanges()
    assert not is_complete(view, len(view.active))
    counts = {"active": len(view.active), "ready": view.ready, "terminating": view.terminating}
    tracking = decide_tracking(view, {**view.status, **counts, "startTime": view.start_time}, None)
    assert same_status(tracking.status, status) and not tracking.release and tracking.end is None
    assert view.new_backoff == Backoff()
    assert (status is job["status"]) == (status == job["status"]) == runs_as_it_should(job, pods, SELECTOR)


def test_a_job_at_rest_whose_pods_became_ready_only_has_to_say_so() -> None:
    pods = [pod_of(0, ("Running", True, False)), pod_of(1, ("Pending", False, False))]
    behind = job_of(pods, ({}, {"ready": 0}))
    assert status_at_rest(behind, pods, SELECTOR) == {**behind["status"], "ready": 1}
    assert status_at_rest(job_of(pods, ({}, {"active": 1})), pods, SELECTOR) is None


def test_a_job_with_all_its_pods_rests_until_one_ends_or_its_status_is_wrong() -> None:
    pods = [pod_of(0, ("Running", True, False)), pod_of(1, ("Pending", False, False))]
    resting = job_of(pods, ({"completions": 5}, {}))
    assert runs_as_it_should(resting, pods, SELECTOR)
    assert not runs_as_it_should(resting, pods[:1], SELECTOR)
    assert not runs_as_it_should(resting, pods, LabelSelector.from_labels({"app": "b"}))
    assert not runs_as_it_should(job_of(pods, ({}, {"ready": 0})), pods, SELECTOR)
    ended = [pods[0], pod_of(1, ("Failed", False, False))]
    assert not runs_as_it_should(resting, ended, SELECTOR)
