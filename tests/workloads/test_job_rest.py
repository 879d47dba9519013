"""A Job that is said to rest is one for which the whole decision finds nothing to do.

One that begins or ends as most do gets what the whole decision gives it.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.job_controller import JobReconciler, _tidy
from holokube.workloads.job_decisions import (
    Backoff,
    JobView,
    PodChanges,
    completed,
    decide_end,
    decide_pods,
    is_complete,
)
from holokube.workloads.job_pods import TRACKING_FINALIZER
from holokube.workloads.job_rest import (
    first_pods,
    first_status,
    good_end,
    matcher_of,
    runs_as_it_should,
    status_at_rest,
)
from holokube.workloads.job_tracking import UNCOUNTED_MAX, decide_tracking
from holokube.workloads.pod_status import is_pod_ready
from holokube.workloads.status_writes import same_status
from tests.workloads.objects import NOW, a_pod, ago, an_owner

SELECTOR = LabelSelector.from_labels({"app": "a"})
STATUS = {"terminating": 0, "uncountedTerminatedPods": {}, "startTime": ago(50)}
# What may be different from a Job that rests; each alone, or a few together, or nothing.
SPECS = st.sampled_from([
    {"suspend": True}, {"backoffLimit": 0}, {"backoffLimit": 2}, {"activeDeadlineSeconds": 5},
    {"completionMode": "Indexed"},
    {"completions": 0}, {"completions": 1}, {"completions": 3}, {"parallelism": 0}, {"parallelism": 1},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "Ready"}]}]}},
])  # fmt: skip
STATUSES = st.sampled_from([
    {"startTime": None}, {"failed": 1}, {"failed": 3}, {"succeeded": 1}, {"terminating": 1}, {"active": 0},
    {"ready": 7}, {"conditions": [{"type": "Suspended", "status": "True"}]},
    {"uncountedTerminatedPods": {"succeeded": ["uid-p0"]}},
])  # fmt: skip
PODS = st.lists(
    st.tuples(
        st.sampled_from(["Pending", "Running", "Running", "Running", "Succeeded", "Failed"]),
        st.booleans(), st.sampled_from([False, False, False, True]),
    ), min_size=1, max_size=3,
)  # fmt: skip
BACKOFFS = st.sampled_from([Backoff(), Backoff(1, NOW), Backoff(3, NOW)])


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
@given(PODS, st.lists(SPECS, max_size=2), st.lists(STATUSES, max_size=2), BACKOFFS)
def test_nothing_is_decided_for_a_job_at_rest(
    drawn: list[tuple[str, bool, bool]], specs: list[JsonObject], statuses: list[JsonObject], backoff: Backoff
) -> None:
    pods = [pod_of(number, each) for number, each in enumerate(drawn)]
    job = job_of(pods, *((spec, {}) for spec in specs), *(({}, status) for status in statuses))
    if not runs_as_it_should(job, pods, SELECTOR):
        return
    view = JobView(job, pods, frozenset(), backoff, NOW)
    assert decide_end(view) is None
    assert decide_pods(view) == PodChanges()
    assert not is_complete(view, len(view.active))
    assert (view.start_time, view.terminating, view.ready) == (
        job["status"]["startTime"], job["status"]["terminating"], job["status"]["ready"],
    )  # fmt: skip
    tracking = decide_tracking(view, dict(view.status), None)
    assert same_status(tracking.status, job["status"]) and not tracking.release and tracking.end is None
    assert view.new_backoff == backoff


@settings(deadline=None, max_examples=300)
@given(PODS, st.lists(SPECS, max_size=2), st.lists(STATUSES, max_size=2), BACKOFFS)
def test_the_status_of_a_job_at_rest_is_what_the_whole_decision_would_write(
    drawn: list[tuple[str, bool, bool]], specs: list[JsonObject], statuses: list[JsonObject], backoff: Backoff
) -> None:
    pods = [pod_of(number, each) for number, each in enumerate(drawn)]
    job = job_of(pods, *((spec, {}) for spec in specs), *(({}, status) for status in statuses))
    status = status_at_rest(job, pods, SELECTOR)
    if status is None:
        return
    view = JobView(job, pods, frozenset(), backoff, NOW)
    assert decide_end(view) is None
    assert decide_pods(view) == PodChanges()
    assert not is_complete(view, len(view.active))
    counts = {"active": len(view.active), "ready": view.ready, "terminating": view.terminating}
    tracking = decide_tracking(view, {**view.status, **counts, "startTime": view.start_time}, None)
    assert same_status(tracking.status, status) and not tracking.release and tracking.end is None
    assert view.new_backoff == backoff
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


def test_a_job_rests_and_ends_well_with_failures_as_long_as_they_are_not_too_many() -> None:
    running, done = pod_of(0, ("Running", True, False)), pod_of(0, ("Succeeded", False, False))
    for limit, failed, is_plain in ((2, 2, True), (2, 3, False), (0, 1, False), (None, 9, True)):
        job = job_of([running], ({"backoffLimit": limit}, {"failed": failed}))
        assert runs_as_it_should(job, [running], SELECTOR) == is_plain
        job = job_of([done], ({"backoffLimit": limit}, {"failed": failed}))
        assert (good_end(job, [done], SELECTOR, NOW) is not None) == is_plain


def counted(view: JobView, changes: PodChanges) -> JsonObject:
    return JobReconciler._count(cast("Any", None), view, changes)


@settings(deadline=None, max_examples=300)
@given(st.lists(SPECS, max_size=2), st.sampled_from([{}, {}, {"startTime": ago(5)}, {"failed": 1}]), st.integers(0, 3))
def test_a_job_begins_with_the_pods_and_the_status_of_the_whole_decision(
    specs: list[JsonObject], status: JsonObject, parallelism: int
) -> None:
    job = job_of([], *((spec, {}) for spec in ({"parallelism": parallelism}, *specs)))
    job["status"] = status
    pods = first_pods(job)
    view = JobView(job, [], frozenset(), Backoff(), NOW)
    if not pods:
        plain = not specs and not status
        assert not plain or not decide_pods(view).create, "a plain Job begins at once"
        return
    assert decide_end(view) is None
    changes = decide_pods(view)
    assert (changes.create, changes.delete, changes.wait_s) == (pods, [], None)
    for made in (changes, PodChanges()):
        # The second is what it comes to if they could not be made.
        whole = counted(view, made)
        assert not is_complete(view, int(whole["active"]))
        tracking = decide_tracking(view, whole, None)
        assert list(_tidy(tracking.status).items()) == list(_tidy(first_status(len(made.create), NOW)).items())
        assert not tracking.release and tracking.end is None
    assert view.new_backoff == Backoff()


def test_a_job_that_is_being_deleted_or_wants_very_many_pods_does_not_begin_at_once() -> None:
    plain = {**job_of([]), "status": {}}
    assert len(first_pods({**plain, "spec": {**plain["spec"], "parallelism": 500}})) == 500
    assert not first_pods({**plain, "spec": {**plain["spec"], "parallelism": 501}})
    leaving = {**plain, "metadata": {**plain["metadata"], "deletionTimestamp": ago(0)}}
    assert not first_pods({**leaving, "spec": {**plain["spec"], "parallelism": 1}})


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from(["Succeeded", "Succeeded", "Succeeded", "Running", "Failed"]), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3), st.lists(SPECS, max_size=2), st.lists(STATUSES, max_size=1),
)  # fmt: skip
def test_a_job_ends_well_as_the_whole_decision_has_it(
    phases: list[str], leaving: list[bool], specs: list[JsonObject], statuses: list[JsonObject]
) -> None:
    pods = [pod_of(number, (phase, False, leaving[number])) for number, phase in enumerate(phases)]
    job = job_of(pods, *((spec, {}) for spec in specs), *(({}, status) for status in statuses))
    found = good_end(job, pods, SELECTOR, NOW)
    if found is None:
        assert specs or statuses or set(phases) != {"Succeeded"}, "a plain Job ends at once"
        return
    view = JobView(job, pods, frozenset(), Backoff(2, NOW), NOW)
    assert decide_end(view) is None
    assert decide_pods(view) == PodChanges()
    status = counted(view, PodChanges())
    assert is_complete(view, int(status["active"]))
    whole = decide_tracking(view, status, completed(NOW))
    assert list(_tidy(found.status).items()) == list(_tidy(whole.status).items())
    assert (found.release, found.end) == (whole.release, whole.end)
    assert not view.waiting.keys() - {pod["metadata"]["uid"] for pod in found.release}
    assert view.new_backoff == Backoff()


def test_a_job_that_has_more_to_do_or_too_much_to_count_does_not_end_at_once() -> None:
    pods = [pod_of(number, ("Succeeded", False, False)) for number in range(2)]
    assert good_end(job_of(pods, ({"completions": 2}, {})), pods, SELECTOR, NOW) is not None
    assert good_end(job_of(pods, ({"completions": 3}, {})), pods, SELECTOR, NOW) is None
    assert good_end(job_of(pods), pods, LabelSelector.from_labels({"app": "b"}), NOW) is None
    pods[0]["metadata"]["finalizers"] = []
    assert good_end(job_of(pods), pods, SELECTOR, NOW) is None, "it has been counted"
    many = [pod_of(number, ("Succeeded", False, False)) for number in range(UNCOUNTED_MAX)]
    assert good_end(job_of(many), many, SELECTOR, NOW) is None
    assert good_end(job_of(many[1:]), many[1:], SELECTOR, NOW) is not None


@pytest.mark.parametrize("selector", [
    {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "1", "b": "2"}}, {"matchLabels": {}}, {}, None,
    {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]},
])  # fmt: skip
def test_a_job_selects_what_its_selector_matches(selector: JsonObject | None) -> None:
    job = {"spec": {"selector": selector} if selector is not None else {}}
    for labels in ({}, {"a": "1"}, {"a": "2"}, {"b": "2"}, {"a": "1", "b": "2", "c": "3"}):
        assert matcher_of(job).matches(labels) == LabelSelector.from_json(selector).matches(labels)
