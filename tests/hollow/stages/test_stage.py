"""Which stage comes next, and when."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from holokube.hollow.draws import KeyedDraws
from holokube.hollow.stages import spec
from holokube.hollow.stages.stage import Stage, choose, decide, finalizer_operations
from tests.hollow.stages.samples import COMPLETE, DELETE, START, pending_pod, stage, stages

NOW_S = 1_750_000_000.0


def lifecycle() -> list[Stage]:
    return stages(START, COMPLETE, DELETE).of_kind("Pod")


def name_of(pod: dict[str, Any], candidates: list[Stage] | None = None) -> str:
    chosen = choose(candidates or lifecycle(), pod, lambda: 0.0)
    return chosen.name if chosen is not None else ""


def test_the_selector_decides_by_the_state_of_the_object() -> None:
    pod = pending_pod()
    assert name_of(pod) == "start"
    assert name_of({**pod, "status": {"phase": "Running"}}) == ""
    job = pending_pod(ownerReferences=[{"kind": "Other"}, {"kind": "Job"}])
    assert name_of({**job, "status": {"phase": "Running"}}) == "complete"
    assert name_of(pending_pod(deletionTimestamp="2026-01-01T00:00:00Z")) == "delete"
    ready = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}
    assert name_of({**pod, "status": ready}) == ""


@pytest.mark.parametrize(
    ("annotations", "low", "high"),
    [
        ({}, 1.0, 5.0),
        ({"delay": "2s"}, 2.0, 5.0),
        ({"delay": "7s"}, 5.0, 5.0),
        ({"delay": "2s", "jitter-delay": "4s"}, 2.0, 4.0),
        ({"jitter-delay": "500ms"}, 0.5, 0.5),
        ({"delay": "nonsense"}, 1.0, 5.0),
        ({"delay": ""}, 0.0, 0.0),
        ({"delay": "2025-06-15T15:06:50Z", "jitter-delay": "2025-06-15T15:06:50Z"}, 10.0, 10.0),
        ({"delay": "2020-01-01T00:00:00Z", "jitter-delay": ""}, 0.0, 0.0),
    ],
)  # fmt: skip
def test_delays_are_kwoks(annotations: dict[str, str], low: float, high: float) -> None:
    """Jitter is the upper end; one below the delay replaces it; times count from now."""
    pod = pending_pod(annotations={f"start.stage.example.com/{key}": value for key, value in annotations.items()})
    (start,) = stages(START).of_kind("Pod")
    assert start.delay_s(pod, NOW_S, lambda: 0.0) == pytest.approx(low)
    assert start.delay_s(pod, NOW_S, lambda: 1.0) == pytest.approx(high)


def weighted(name: str, weight: int, key: str = "") -> str:
    source = f"weightFrom: {{expressionFrom: '.metadata.annotations[\"{key}\"]'}}\n" if key else ""
    return stage(name, f"selector: {{matchLabels: {{app: x}}}}\nweight: {weight}\n{source}next: {{delete: true}}")


def drawn(documents: list[str], **annotations: str) -> Counter[str]:
    found = stages(*documents).of_kind("Pod")
    draw = KeyedDraws(7)
    names: Counter[str] = Counter()
    for number in range(2000):
        pod = pending_pod(labels={"app": "x"}, annotations=annotations, resourceVersion=str(number))
        decision = decide(found, pod, NOW_S, draw)
        assert decision is not None
        names[decision.stage.name] += 1
    return names


def test_weights_share_out_in_proportion() -> None:
    names = drawn([weighted("a", 3), weighted("b", 1), weighted("zero", 0)])
    assert set(names) == {"a", "b"} and 1400 < names["a"] < 1600


def test_without_any_weight_all_are_equal() -> None:
    names = drawn([weighted("a", 0), weighted("b", 0)])
    assert 900 < names["a"] < 1100


def test_a_weight_of_the_object_wins_and_a_bad_one_leaves_the_stage_out() -> None:
    assert set(drawn([weighted("a", 1), weighted("b", 1, "w")], w="0")) == {"a"}
    assert set(drawn([weighted("a", 0), weighted("b", 5, "w")], w="much")) == {"a"}


def test_the_same_state_draws_the_same_again() -> None:
    found = stages(START).of_kind("Pod")
    first, second = (decide(found, pending_pod(), NOW_S, KeyedDraws(1)) for _ in range(2))
    assert first is not None and second is not None and first.due_s == second.due_s


def test_labels_and_annotations_select_too() -> None:
    found = stages(stage("s", "selector: {matchLabels: {a: b}, matchAnnotations: {c: d}}\nnext: {delete: true}"))
    assert name_of(pending_pod(labels={"a": "b"}, annotations={"c": "d"}), found.of_kind("Pod")) == "s"
    assert name_of(pending_pod(labels={"a": "b"}), found.of_kind("Pod")) == ""


@pytest.mark.parametrize(
    ("value", "listed", "matches"),
    [(3, "3", True), (True, "true", True), ("3", "3", True), (3, "4", False), (["3"], "3", False), ({}, "3", False)],
)
def test_values_are_compared_by_their_text(value: Any, listed: str, matches: bool) -> None:
    found = stages(stage("s", f"selector: {{matchExpressions: [{{key: .x, operator: In, values: ['{listed}']}}]}}"))
    assert found.stages["s"].matches({"metadata": {}, "x": value}) is matches


@pytest.mark.parametrize(
    ("current", "wanted", "after"),
    [
        ([], {"add": ["a"]}, ["a"]),
        (["a"], {"add": ["a", "b"]}, ["a", "b"]),
        (["a", "b", "c"], {"remove": ["a", "c"]}, ["b"]),
        (["a"], {"remove": ["a"]}, None),
        (["a", "b"], {"empty": True}, None),
        (["a"], {"empty": True, "add": ["z"]}, ["z"]),
    ],
)
def test_finalizers_become_one_operation(current: list[str], wanted: dict[str, Any], after: list[str] | None) -> None:
    lists = {key: [spec.Finalizer(v) for v in value] for key, value in wanted.items() if key != "empty"}
    (operation,) = finalizer_operations(current, spec.Finalizers(empty=bool(wanted.get("empty")), **lists))
    if after is None:
        assert operation == {"op": "remove", "path": "/metadata/finalizers"}
    else:
        assert operation == {"op": "add", "path": "/metadata/finalizers", "value": after}


def test_finalizers_that_are_right_already_are_left_alone() -> None:
    assert finalizer_operations(["a"], spec.Finalizers(add=[spec.Finalizer("a")])) == []
    assert finalizer_operations([], spec.Finalizers(empty=True)) == []
