from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.conditions import CLAIM_CONDITIONS, CLASS_CONDITIONS, POOL_CONDITIONS, ConditionSet
from holokube.kube.types import JsonObject
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


TYPES = ("Launched", "Registered", "Initialized")
steps = st.lists(
    st.tuples(
        st.sampled_from([*TYPES, "Drifted", "Consolidatable"]),
        st.sampled_from(["True", "True", "True", "False", "gone"]),
        st.integers(0, 3),
    ),
    max_size=8,
)
blemishes = st.sampled_from(["", "", "", "order", "generation", "message", "time", "ready", "twice", "more"])


def spoiled(obj: JsonObject, blemish: str, at_place: int) -> JsonObject:
    """The object after somebody else has written its conditions."""
    conditions = [dict(one) for one in obj["status"]["conditions"]]
    if not conditions:
        return obj
    one = conditions[at_place % len(conditions)]
    if blemish == "order":
        conditions.reverse()
    elif blemish == "generation":
        one["observedGeneration"] = 7
    elif blemish == "message":
        one.pop("message")
    elif blemish == "time":
        one["lastTransitionTime"] = ""
    elif blemish == "ready":
        conditions[-1]["reason"] = "Whatever"
    elif blemish == "twice":
        conditions.append(dict(one))
    elif blemish == "more":
        one["more"] = True
    return {**obj, "status": {**obj["status"], "conditions": conditions}}


@settings(max_examples=300, deadline=None)
@given(steps, blemishes, st.integers(0, 9))
def test_conditions_that_are_observed_are_those_that_another_look_leaves_as_they_are(
    changes: list[tuple[str, str, int]], blemish: str, place: int
) -> None:
    made = claim(created_s=-100)
    for name in TYPES:
        made = CLAIM_CONDITIONS.with_true(made, name, NOW_S)
    for name, status, after_s in changes:
        if status == "True":
            made = CLAIM_CONDITIONS.with_true(made, name, NOW_S + after_s)
        elif status == "False":
            made = CLAIM_CONDITIONS.with_false(made, name, NOW_S + after_s, "No", "no")
        elif name not in TYPES:
            made = CLAIM_CONDITIONS.without(made, name)
    made = spoiled(made, blemish, place)
    are_true = all(CLAIM_CONDITIONS.is_true(made, name) for name in TYPES)
    stays = all(CLAIM_CONDITIONS.observed(made, name, NOW_S + 9) is made for name in TYPES)
    if blemish == "twice":
        assert not CLAIM_CONDITIONS.are_observed(made, *TYPES)
    else:
        assert CLAIM_CONDITIONS.are_observed(made, *TYPES) == (are_true and stays)


class _OneByOne(ConditionSet):
    """Without the short way for one more condition of an object that is well."""

    def _takes_one_more(self, *_: object) -> bool:
        return False


@settings(max_examples=300, deadline=None)
@given(steps, blemishes, st.integers(0, 9), st.sampled_from([*TYPES, "Drifted", "Consolidatable", "Ready"]))
def test_a_condition_more_comes_where_it_would_be_sorted_to(
    changes: list[tuple[str, str, int]], blemish: str, place: int, type: str
) -> None:
    slow = _OneByOne(CLAIM_CONDITIONS.dependents)
    made = claim(created_s=-100)
    for name in TYPES:
        made = CLAIM_CONDITIONS.with_true(made, name, NOW_S)
    for name, status, after_s in changes:
        if status == "gone" and name in TYPES:
            continue
        ways = []
        for one in (CLAIM_CONDITIONS, slow):
            if status == "True":
                ways.append(one.with_true(made, name, NOW_S + after_s))
            elif status == "False":
                ways.append(one.with_false(made, name, NOW_S + after_s, "No", "no"))
            else:
                ways.append(one.without(made, name))
        assert ways[0] == ways[1]
        made = ways[0]
    made = spoiled(made, blemish, place)
    assert CLAIM_CONDITIONS.with_true(made, type, NOW_S + 2) == slow.with_true(made, type, NOW_S + 2)
