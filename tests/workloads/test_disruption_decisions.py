from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.workloads.disruption_controller import claims_disruption
from holokube.workloads.disruption_decisions import (
    BudgetError,
    expected_and_desired,
    failed,
    go_selector,
    judge,
    needs_scale,
    scaled,
    stale_in_s,
    unmanaged,
)
from tests.workloads.objects import NOW, a_pod, ago, an_owner

JsonObject = dict[str, Any]


def budget(status: JsonObject | None = None, generation: int = 1, **spec: Any) -> JsonObject:
    made = an_owner("PodDisruptionBudget", "b", **spec)
    made["metadata"]["generation"] = generation
    return {**made, "status": status or {}}


def allowed(status: JsonObject) -> JsonObject:
    (condition,) = status["conditions"]
    assert isinstance(condition, dict)
    return condition


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxUnavailable": 1}, (10, 9)), ({"maxUnavailable": "25%"}, (10, 7)), ({"maxUnavailable": 20}, (10, 0)),
        ({"minAvailable": 2}, (3, 2)), ({"minAvailable": "25%"}, (10, 3)), ({}, (0, 0)),
    ],
)  # fmt: skip
def test_percentages_are_of_the_scale_rounded_up_and_numbers_of_the_pods(
    spec: JsonObject, expected: tuple[int, int]
) -> None:
    pods = [a_pod(f"p{n}") for n in range(3)]
    assert expected_and_desired(budget(**spec), pods, 10) == expected
    assert needs_scale(budget(**spec)) == (expected[0] == 10)


def test_a_word_that_is_no_percentage_is_refused() -> None:
    with pytest.raises(BudgetError, match="string is not a percentage"):
        scaled("half", 10)


def test_only_ready_pods_that_stay_are_healthy() -> None:
    pods = [a_pod("a", ready_s=1), a_pod("b", ready_s=1), a_pod("c"), a_pod("d", ready_s=1, leaving=True)]
    status = judge(budget(), pods, 4, 1, NOW).status
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 1)
    assert allowed(status)["reason"] == "SufficientPods"


def test_an_eviction_that_was_granted_counts_for_two_minutes() -> None:
    granted = {"disruptedPods": {"a": ago(30), "b": ago(121), "gone": ago(1)}}
    verdict = judge(budget(granted), [a_pod("a", ready_s=1), a_pod("b", ready_s=1)], 2, 1, NOW)
    assert verdict.status["disruptedPods"] == {"a": ago(30)} and verdict.status["currentHealthy"] == 1
    assert [pod["metadata"]["name"] for pod in verdict.not_deleted] == ["b"]
    assert verdict.recheck_s == 90


def test_the_condition_follows_the_generation_and_keeps_its_time() -> None:
    pods = [a_pod("a", ready_s=1), a_pod("b", ready_s=1)]
    first = judge(budget(), pods, 2, 1, NOW).status
    old = [{**allowed(first), "lastTransitionTime": ago(500)}]
    second = judge(budget({**first, "conditions": old}, generation=2), pods, 2, 1, NOW).status
    assert (allowed(second)["observedGeneration"], allowed(second)["lastTransitionTime"]) == (2, ago(500))


def test_what_cannot_be_worked_out_allows_nothing() -> None:
    status = failed(budget({"disruptionsAllowed": 3, "observedGeneration": 1}), "no scale", NOW)
    assert status["disruptionsAllowed"] == 0
    assert (allowed(status)["reason"], allowed(status)["message"]) == ("SyncFailed", "no scale")


def test_pods_without_a_controller_are_unmanaged() -> None:
    owner = an_owner("ReplicaSet", "web")
    assert unmanaged([a_pod("alone"), a_pod("owned", owner=owner)]) == ["alone"]


def test_a_selector_is_printed_as_go_does() -> None:
    term = {"key": "tier", "operator": "In", "values": ["x", "y"]}
    assert go_selector({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [term]}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:tier,Operator:In,Values:[x y],},},}"
    )
    assert go_selector(None) == "nil"


@given(
    st.booleans(), st.sampled_from(["Running", "Failed"]), st.sampled_from(["True", "False", ""]),
    st.sampled_from(["EvictionByEvictionAPI", "TerminationByKubelet"]),
)  # fmt: skip
def test_a_pod_of_which_nothing_is_heard_has_no_claim_that_could_become_stale(
    leaving: bool, phase: str, claim: str, reason: str
) -> None:
    pod = a_pod(phase=phase, leaving=leaving)
    if claim:
        pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": claim, "reason": reason}]
    assert claims_disruption(None, pod) or stale_in_s(pod, NOW) is None
    assert claims_disruption(None, pod) == (claim == "True" and not leaving)


def test_a_claim_to_be_disrupted_is_stale_after_two_minutes_unless_a_kubelet_makes_it() -> None:
    pod = a_pod()
    condition = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": ago(50)}
    pod["status"]["conditions"] = [condition]
    assert stale_in_s(pod, NOW) == 70
    condition["reason"] = "TerminationByKubelet"
    assert stale_in_s(pod, NOW) is None
    assert stale_in_s(a_pod(), NOW) is None
