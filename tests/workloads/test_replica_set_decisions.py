from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.workloads.pod_control import BURST_PODS
from holokube.workloads.pod_status import Standings, is_active, is_terminated, is_terminating
from holokube.workloads.replica_set_decisions import (
    call_roll,
    decide_replicas,
    decide_status,
    decide_surplus,
    replicas_of,
    roll_of,
    template_labels_of,
)
from tests.workloads.objects import NOW, a_pod, ago, an_owner

JsonObject = dict[str, Any]


def owner(replicas: int = 3, **more: Any) -> JsonObject:
    template = {"metadata": {"labels": {"app": "a", "tier": "x"}}}
    return an_owner("ReplicaSet", "web", replicas=replicas, template=template, **more)


def status_of(
    of: JsonObject, pods: list[JsonObject], terminating: int | None, failure: str, now: datetime
) -> JsonObject:
    roll = roll_of(pods, terminating or 0, template_labels_of(of))
    return decide_status(of, roll, failure, now, counts_terminating=terminating is not None)


# A busy machine is no reason to fail.
@settings(deadline=None)
@given(st.integers(0, 1200), st.integers(0, 40))
def test_pods_are_created_or_deleted_but_never_both_and_never_too_many_at_once(wanted: int, present: int) -> None:
    pods = [a_pod(f"p{n}", ready_s=n) for n in range(present)]
    changes = decide_replicas(wanted, pods, pods, NOW)
    assert changes.create == min(max(0, wanted - present), BURST_PODS)
    assert len(changes.delete) == max(0, present - wanted)


def test_those_missed_least_go_first() -> None:
    pods = [
        a_pod("ready", ready_s=50, node="n1"), a_pod("unready", node="n1"), a_pod("pending", "Pending", node="n1"),
        a_pod("unbound", "Pending"), a_pod("cheap", ready_s=50, node="n1", annotations={
            "controller.kubernetes.io/pod-deletion-cost": "-5"}),
    ]  # fmt: skip
    gone = [pod["metadata"]["name"] for pod in decide_replicas(0, pods[:-1] + pods[-1:], pods, NOW).delete]
    assert sorted(gone) == sorted(pod["metadata"]["name"] for pod in pods)
    order = [pod["metadata"]["name"] for pod in decide_replicas(1, pods, pods, NOW).delete]
    assert order == ["unbound", "pending", "unready", "cheap"]


DRAWN = st.tuples(
    st.sampled_from(["", "n1", "n2", "n3"]), st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.one_of(st.none(), st.sampled_from([5, 100, 120, 1000])), st.booleans(),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(DRAWN, max_size=12), st.integers(0, 12)), max_size=3), st.lists(DRAWN, max_size=5))
def test_who_goes_is_found_from_all_pods_of_an_owner_as_from_its_active_ones(rounds: Any, drawn_others: Any) -> None:
    def made(name: str, drawn: Any) -> JsonObject:
        node, phase, ready_s, is_leaving = drawn
        return a_pod(name, phase, ready_s=ready_s, node=node, leaving=is_leaving)

    others = [made(f"other{n}", drawn) for n, drawn in enumerate(drawn_others)]
    pods: list[JsonObject] = []
    known: Standings = {}
    for number, (drawn_pods, wanted) in enumerate(rounds):
        pods = [*pods[::2], *(made(f"p{number}-{n}", drawn) for n, drawn in enumerate(drawn_pods))]
        active = [pod for pod in pods if is_active(pod)]
        expected = decide_replicas(wanted, active, [*pods, *others], NOW).delete
        assert list(decide_surplus(wanted, pods, others, NOW, known)) == list(expected)


def test_the_status_counts_and_leaves_zeros_out() -> None:
    labels = {"app": "a", "tier": "x"}
    pods = [a_pod("a", ready_s=20, labels=labels), a_pod("b", ready_s=3, labels={"app": "a"}), a_pod("c")]
    status = status_of(owner(minReadySeconds=10), pods, 2, "", NOW)
    assert status == {
        "replicas": 3, "fullyLabeledReplicas": 1, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 1,
        "terminatingReplicas": 2,
    }  # fmt: skip
    assert status_of(owner(0), [], None, "", NOW) == {"replicas": 0, "observedGeneration": 1}


def test_the_first_failure_stands_until_all_is_well() -> None:
    failing = status_of(owner(), [], None, "quota", NOW)
    assert failing["conditions"] == [{
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota",
        "lastTransitionTime": ago(0),
    }]  # fmt: skip
    again = status_of({**owner(), "status": failing}, [], None, "another text", NOW)
    assert again["conditions"] == failing["conditions"]
    assert "conditions" not in status_of({**owner(), "status": failing}, [], None, "", NOW)
    too_many = status_of(owner(0), [a_pod()], None, "refused", NOW)
    assert too_many["conditions"][0]["reason"] == "FailedDelete"


PHASES = st.sampled_from(["Running", "Failed", "Pending"])


@given(st.lists(st.tuples(st.booleans(), PHASES, st.booleans(), st.booleans())))
def test_one_look_at_each_pod_counts_as_many_looks_do(drawn: list[tuple[bool, str, bool, bool]]) -> None:
    pods = []
    for number, (is_ready, phase, is_leaving, has_all) in enumerate(drawn):
        labels = {"app": "a", "tier": "x"} if has_all else {"app": "a"}
        pod = a_pod(f"p{number}", phase, ready_s=5 if is_ready else None, labels=labels)
        if is_leaving:
            pod["metadata"]["deletionTimestamp"] = ago(0)
        pods.append(pod)
    wanted = template_labels_of(owner())
    roll = call_roll(pods, LabelSelector.from_labels({"app": "a"}), wanted)
    active = [pod for pod in pods if is_active(pod)]
    terminating = sum(is_terminating(pod) and not is_terminated(pod) for pod in pods)
    assert roll == roll_of(active, terminating, wanted)
    stranger = a_pod("stranger", labels={"app": "b"})
    assert call_roll([*pods, stranger], LabelSelector.from_labels({"app": "a"}), wanted) is None


def test_no_number_means_one() -> None:
    assert replicas_of(an_owner("ReplicaSet", "web")) == 1
    assert replicas_of(owner(0)) == 0
