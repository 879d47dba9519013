"""What the page tells of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.dashboard.pod_facts import (
    ENDING,
    FAILING,
    LOST,
    REASON_MAX,
    RUNNING,
    STARTING,
    pending_reason,
    read_pod,
)
from tests.dashboard.made import CREATED_S, bound_pod, unschedulable


def test_requests_state_and_workload_are_read() -> None:
    facts = read_pod(bound_pod("web-7d-x", "n1", owner=("ReplicaSet", "web-7d"), labels={"pod-template-hash": "7d"}),
                     None, None)
    assert facts is not None
    assert (facts.key, facts.workload, facts.node) == ("default/web-7d-x", "default/web", "n1")
    assert (facts.state, facts.cpu_milli, facts.memory_mib, facts.created_s) == (RUNNING, 500, 1024, CREATED_S)


@pytest.mark.parametrize(("owner", "workload"), [
    (None, "default/p"), (("StatefulSet", "db"), "default/db"), (("Job", "report-29433600"), "default/report"),
    (("Job", "once"), "default/once"), (("Job", "once-2"), "default/once-2"),
])  # fmt: skip
def test_a_workload_is_what_a_person_calls_it(owner: tuple[str, str] | None, workload: str) -> None:
    facts = read_pod(bound_pod("p", "n", owner=owner), None, None)
    assert facts is not None and facts.workload == workload


def test_a_pod_that_is_over_takes_no_room() -> None:
    for phase in ("Succeeded", "Failed"):
        assert read_pod({**bound_pod("p", "n"), "status": {"phase": phase}}, None, None) is None
    assert read_pod(bound_pod("p", "", deletionTimestamp="2026-01-01T00:00:01Z"), None, None) is None


def test_states_of_pods_on_nodes() -> None:
    def state(pod: dict[str, Any]) -> int:
        facts = read_pod(pod, None, None)
        assert facts is not None
        return facts.state

    assert state(bound_pod("p", "n", ready="False")) == STARTING
    assert state(bound_pod("p", "n", deletionTimestamp="2026-01-01T00:00:01Z")) == ENDING
    crashing = bound_pod("p", "n", ready="False")
    crashing["status"]["containerStatuses"] = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    assert state(crashing) == FAILING


def test_a_pod_whose_node_is_gone_quiet_is_lost_and_does_not_start() -> None:
    pod = bound_pod("p", "n", ready="False")
    pod["status"]["conditions"].append({"type": "ContainersReady", "status": "True"})
    facts = read_pod(pod, None, None)
    assert facts is not None and facts.state == LOST
    pod["spec"]["readinessGates"] = [{"conditionType": "example.com/balanced"}]
    facts = read_pod(pod, None, None)
    assert facts is not None and facts.state == STARTING, "a gate that is still closed"


def test_what_cannot_have_changed_is_not_read_again() -> None:
    before = bound_pod("p", "n")
    known = read_pod(before, None, None)
    assert known is not None
    remembered = known._replace(cpu_milli=7)
    after = {**before, "status": {"phase": "Running"}}
    facts = read_pod(after, before, remembered)
    assert facts is not None and facts.cpu_milli == 7, "the spec is the same object"
    bound = {**before, "spec": {**before["spec"], "nodeName": "other"}}
    facts = read_pod(bound, before, remembered)
    assert facts is not None and (facts.cpu_milli, facts.node) == (7, "other"), "its containers are the same objects"
    facts = read_pod(bound_pod("p", "n", cpu="2"), before, remembered)
    assert facts is not None and facts.cpu_milli == 2000
    another = {**before, "metadata": {**before["metadata"], "uid": "another"}}
    facts = read_pod(another, before, remembered)
    assert facts is not None and facts.cpu_milli == 500, "a pod of the same name is another one"


def test_a_pending_pod_says_why_without_second_thoughts() -> None:
    pod = bound_pod("p", "")
    assert pending_reason(pod) == "waiting for the scheduler"
    told = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes"
    assert pending_reason(unschedulable(pod, told)) == "0/3 nodes are available: 3 Insufficient cpu."
    gated = unschedulable(pod, "Scheduling is blocked", "SchedulingGated")
    assert pending_reason(gated) == "held back by a scheduling gate"
    assert len(pending_reason(unschedulable(pod, "x" * 10_000))) == REASON_MAX
