from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.kwok.grouping import Template
from holokube.cluster_autoscaler.flags import parse_flags
from holokube.cluster_autoscaler.plan.snapshot_input import read_snapshot
from holokube.cluster_autoscaler.plan.snapshot_run import run_snapshot
from holokube.kube.types import JsonObject
from tests.builders import budget
from tests.cluster_autoscaler.plan.snapshots import node, pods, replica_set, template

_GIB = 1 << 30
_TEMPLATES = [
    Template(template("big", "mem-16", "128Gi", "0.9"), "t.yaml"),
    Template(template("small", "mem-8", "64Gi", "0.5"), "t.yaml"),
]


def _plan(
    *objects: JsonObject, templates: list[Template] | None = None, flags: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    parsed = parse_flags(flags)
    given = read_snapshot(
        objects, templates=templates or [], sizes=parsed.process.nodes, defaults=parsed.options.group_defaults())
    return run_snapshot(given, parsed.options, **more)


def _verdicts(plan: dict[str, Any]) -> dict[str, str]:
    return {row["node"]: row["verdict"] for row in plan["nodes"]}


@pytest.mark.parametrize(
    ("selector", "group", "wasted_gib"), [({"ratio": "mem-16"}, "mem-16", 2), ({"ratio": "mem-8"}, "mem-8", 1)])
def test_one_to_seven_pods_waste_two_gib_on_one_to_sixteen_nodes_and_one_on_one_to_eight(
    selector: dict[str, str], group: str, wasted_gib: int
) -> None:
    plan = _plan(replica_set("w", 16), *pods("w", 16, nodeSelector=selector), templates=_TEMPLATES)
    assert [(row["group"], row["pods"], row["wasted"]["memory"]) for row in plan["nodes"]] == [
        (group, 8, wasted_gib * _GIB)] * 2
    assert all(row["wasted"]["cpu"] == 0 for row in plan["nodes"])
    assert plan["pods"]["unplaced"] == []
    assert {place["node"] for place in plan["pods"]["placed"]} == set(_verdicts(plan))


def test_the_choice_is_told_with_every_option_and_its_score() -> None:
    plan = _plan(replica_set("w", 8), *pods("w", 8), templates=_TEMPLATES)
    (choice,) = plan["scaleUp"][0]["choices"]
    assert choice["chosen"] == "mem-8"
    assert {option["group"]: option["nodeCount"] for option in choice["options"]} == {"mem-16": 1, "mem-8": 1}
    (step,) = choice["expanders"]
    assert step["name"] == "least-waste" and set(step["scores"]) == {"mem-16", "mem-8"}
    assert plan["price"]["perHourAfter"] == 0.5


def test_a_pod_that_no_group_can_help_says_why_for_each() -> None:
    plan = _plan(replica_set("w", 2), *pods("w", 2, nodeSelector={"ratio": "none"}), templates=_TEMPLATES)
    (unplaced,) = plan["pods"]["unplaced"]
    assert len(unplaced["pods"]) == 2
    assert unplaced["reasons"] == {
        group: ["node(s) didn't match Pod's node affinity/selector"] for group in ("mem-16", "mem-8")}
    assert unplaced["message"] == (
        "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector")
    assert plan["nodes"] == []


def test_what_fits_nowhere_else_goes_to_the_free_room_first() -> None:
    plan = _plan(node("a", "blue"), replica_set("w", 3), *pods("w", 3))
    assert plan["scaleUp"] == []
    assert {place["node"] for place in plan["pods"]["placed"]} == {"a"}


def test_idle_nodes_go_and_their_pods_move() -> None:
    plan = _plan(
        *(node(name, "blue") for name in "abc"), replica_set("w", 6),
        *(pod for name in "abc" for pod in pods("w", 2, on=name)))
    verdicts = _verdicts(plan)
    assert sorted(verdicts.values()) == ["goes", "goes", "stays"]
    (left,) = [row for row in plan["nodes"] if row["verdict"] == "stays"]
    assert left["pods"] == 6
    assert sum(len(one["evicted"]) for step in plan["scaleDown"] for one in step["nodes"]) >= 4
    assert plan["groups"][0]["after"] == 1


def test_without_waiting_only_this_moment_is_planned() -> None:
    plan = _plan(*(node(name, "blue") for name in "abc"), waits=False)
    assert set(_verdicts(plan).values()) == {"stays"}
    assert len(plan["turns"]) == 1
    assert plan["turns"][0]["unneeded"] == ["a", "b", "c"]


def test_a_budget_that_allows_one_pod_at_a_time_only_slows_things_down() -> None:
    plan = _plan(
        *(node(name, "blue") for name in "abc"), replica_set("w", 3), budget("b", "w", allowed=1, healthy=3, desired=2),
        *(pod for name in "abc" for pod in pods("w", 1, on=name)))
    assert sorted(_verdicts(plan).values()) == ["goes", "goes", "stays"]


def test_a_drain_that_a_budget_holds_up_goes_on_when_the_first_pods_run_elsewhere() -> None:
    plan = _plan(
        *(node(name, "blue") for name in "abc"), replica_set("w", 9), budget("b", "w", allowed=1, healthy=9, desired=8),
        *(pod for name in "abc" for pod in pods("w", 3, on=name)))
    drained = [(one["node"], len(one["evicted"])) for step in plan["scaleDown"] for one in step["nodes"]]
    assert drained and len({name for name, _ in drained}) == len(drained), "no drain has to begin anew"
    assert all(count >= 3 for _, count in drained)


def test_every_node_that_stays_says_why() -> None:
    bare = pods("solo", 1, on="b")[0]
    bare["metadata"]["ownerReferences"] = []
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    plan = _plan(
        node("a", "blue"), node("b", "blue"), node("c", "blue", annotations=disabled), replica_set("w", 6),
        *pods("w", 6, on="a"), bare)
    why = {row["node"]: row["why"] for row in plan["nodes"]}
    assert why["a"]["reason"] == "NotUnderutilized" and why["a"]["threshold"] == 0.5
    assert (why["b"]["reason"], why["b"]["blockingPod"], why["b"]["blockingReason"]) == (
        "BlockedByPod", "default/solo-b-0", "NotReplicated")
    assert why["c"]["reason"] == "ScaleDownDisabledAnnotation"


def test_a_node_of_no_group_is_never_touched() -> None:
    plan = _plan(node("a", "blue"), node("b", "green"), flags=("--nodes=0:5:blue",))
    assert _verdicts(plan) == {"a": "goes", "b": "stays"}
    assert next(row for row in plan["nodes"] if row["node"] == "b")["why"]["reason"] == "NotAutoscaled"


def test_flags_of_the_autoscaler_count() -> None:
    plan = _plan(
        replica_set("w", 24), *pods("w", 24), templates=_TEMPLATES, flags=("--max-nodes-total=2", "--expander=price"))
    assert sum(group["after"] for group in plan["groups"]) == 2
    assert len(plan["pods"]["placed"]) == 16


def test_the_same_snapshot_gives_the_same_plan() -> None:
    objects = [*(node(name, "blue") for name in "abcd"), replica_set("w", 8), *pods("w", 8)]
    assert _plan(*objects, templates=_TEMPLATES) == _plan(*objects, templates=_TEMPLATES)
