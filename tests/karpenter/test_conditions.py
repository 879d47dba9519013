from __future__ import annotations

import pytest

from holokube.karpenter.conditions import CLAIM_CONDITIONS, CLASS_CONDITIONS, POOL_CONDITIONS
from tests.karpenter.objects import NOW_S, at, claim, pool


def statuses(obj: dict[str, object]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in obj["status"]["conditions"]}  # type: ignore[index] # a JSON object


def test_a_condition_that_ready_needs_is_unknown_since_the_object_was_made() -> None:
    fresh = claim(created_s=-100)
    assert CLAIM_CONDITIONS.status(fresh, "Launched") == "Unknown"
    assert CLAIM_CONDITIONS.since_s(fresh, "Launched") == NOW_S - 100
    assert CLAIM_CONDITIONS.since_s(fresh, "Drifted") is None


def test_setting_one_condition_writes_all_that_ready_needs_and_ready_last() -> None:
    launched = CLAIM_CONDITIONS.with_true(claim(created_s=-100), "Launched", NOW_S)
    assert statuses(launched) == {
        "Registered": "Unknown", "Initialized": "Unknown", "Launched": "True", "Ready": "Unknown",
    }  # fmt: skip
    ready = launched["status"]["conditions"][-1]
    assert ready["type"] == "Ready"
    assert (ready["reason"], ready["message"]) == (
        "ReconcilingDependents", "Registered=Unknown, Initialized=Unknown",
    )  # fmt: skip


def test_ready_is_true_when_all_are_and_false_as_soon_as_one_is() -> None:
    made = claim()
    for name in ("Launched", "Registered", "Initialized"):
        made = CLAIM_CONDITIONS.with_true(made, name, NOW_S)
    assert statuses(made)["Ready"] == "True"
    made = CLAIM_CONDITIONS.with_false(made, "Registered", NOW_S, "MultipleNodesFound", "two")
    ready = made["status"]["conditions"][-1]
    assert (ready["status"], ready["reason"]) == ("False", "UnhealthyDependents")


def test_the_time_moves_with_the_status_alone_and_nothing_new_is_the_same_object() -> None:
    first = CLAIM_CONDITIONS.with_unknown(claim(), "Launched", NOW_S, "LaunchFailed", "once")
    second = CLAIM_CONDITIONS.with_unknown(first, "Launched", NOW_S + 50, "LaunchFailed", "twice")
    launched = next(one for one in second["status"]["conditions"] if one["type"] == "Launched")
    assert (launched["message"], launched["lastTransitionTime"]) == ("twice", at(0))
    assert CLAIM_CONDITIONS.with_unknown(second, "Launched", NOW_S + 90, "LaunchFailed", "twice") is second


def test_a_condition_speaks_of_the_generation_it_was_last_seen_at() -> None:
    made = POOL_CONDITIONS.with_true(pool(), "ValidationSucceeded", NOW_S)
    made["metadata"]["generation"] = 2
    seen = POOL_CONDITIONS.observed(made, "ValidationSucceeded", NOW_S)
    found = next(one for one in seen["status"]["conditions"] if one["type"] == "ValidationSucceeded")
    assert found["observedGeneration"] == 2


def test_conditions_that_ready_does_not_need_can_be_taken_away_and_others_cannot() -> None:
    made = CLAIM_CONDITIONS.with_true(claim(), "Drifted", NOW_S)
    assert "Drifted" not in statuses(CLAIM_CONDITIONS.without(made, "Drifted"))
    assert CLAIM_CONDITIONS.without(claim(), "Drifted") == claim()
    with pytest.raises(AssertionError, match="Ready depends on Launched"):
        CLAIM_CONDITIONS.without(made, "Launched")


def test_an_object_without_dependents_gets_no_ready_of_its_own() -> None:
    made = CLASS_CONDITIONS.with_true({"metadata": {"name": "x"}}, "Other", NOW_S)
    assert statuses(made) == {"Other": "True"}
