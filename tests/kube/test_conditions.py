from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.conditions import (
    get_condition,
    is_false,
    is_true,
    remove_condition,
    set_condition,
    with_condition,
    without_condition,
)

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def node(status: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": status, "reason": "Old", "lastTransitionTime": EARLY}
    conditions = [{"type": "A"}, ready, {"type": "B"}]
    return {"metadata": {"name": "n"}, "status": {"phase": "x", "conditions": conditions}}


def test_conditions_are_read() -> None:
    assert is_true(node("True"), "Ready")
    assert is_false(node("False"), "Ready")
    assert not is_true(node("Unknown"), "Ready")
    assert not is_false({}, "Ready")
    assert get_condition({"status": {}}, "Ready") is None


def test_the_transition_time_moves_only_with_the_status() -> None:
    same = with_condition(node("True"), {"type": "Ready", "status": "True", "reason": "New"}, now=LATE)
    assert get_condition(same, "Ready") == {
        "type": "Ready", "status": "True", "reason": "New", "lastTransitionTime": EARLY
    }  # fmt: skip
    changed = with_condition(node("True"), {"type": "Ready", "status": "False"}, now=LATE)
    assert get_condition(changed, "Ready") == {
        "type": "Ready", "status": "False", "reason": "Old", "lastTransitionTime": LATE
    }  # fmt: skip


def test_a_transition_time_given_by_the_caller_counts_on_a_change_only() -> None:
    given_time = {"type": "Ready", "lastTransitionTime": LATE}
    kept = with_condition(node("True"), {**given_time, "status": "True"}, now="never")
    assert kept["status"]["conditions"][1]["lastTransitionTime"] == EARLY
    moved = with_condition(node("True"), {**given_time, "status": "False"}, now="never")
    assert moved["status"]["conditions"][1]["lastTransitionTime"] == LATE


def test_a_new_condition_is_appended() -> None:
    obj = with_condition({"kind": "X"}, {"type": "Ready", "status": "True"}, now=LATE)
    assert obj == {
        "kind": "X",
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LATE}]},
    }


def test_nothing_changes_in_what_was_given() -> None:
    old = node("True")
    with_condition(old, {"type": "Ready", "status": "False"}, now=LATE)
    without_condition(old, "Ready")
    assert old == node("True")


def test_no_change_gives_the_very_same_object() -> None:
    old = node("True")
    assert with_condition(old, {"type": "Ready", "status": "True", "reason": "Old"}, now=LATE) is old
    assert without_condition(old, "Missing") is old
    bare: dict[str, Any] = {}
    assert without_condition(bare, "Missing") is bare


def test_a_condition_is_removed_and_the_others_stay() -> None:
    left = without_condition(node("True"), "Ready")
    assert left["status"] == {"phase": "x", "conditions": [{"type": "A"}, {"type": "B"}]}
    assert remove_condition([{"type": "A"}], "A") == []


statuses = st.sampled_from(["True", "False", "Unknown"])
steps = st.lists(st.tuples(st.sampled_from("ABC"), statuses), max_size=12)


@given(steps)
def test_any_history_leaves_one_condition_per_type_with_its_last_change(
    history: list[tuple[str, str]],
) -> None:
    conditions: list[dict[str, Any]] = []
    changed: dict[str, tuple[str, str]] = {}
    for i, (kind, status) in enumerate(history):
        conditions = set_condition(conditions, {"type": kind, "status": status}, now=str(i))
        if kind not in changed or changed[kind][0] != status:
            changed[kind] = (status, str(i))
    assert {c["type"]: (c["status"], c["lastTransitionTime"]) for c in conditions} == changed
    assert len(conditions) == len(changed)
