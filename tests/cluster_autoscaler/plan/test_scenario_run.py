from __future__ import annotations

from typing import Any

from holokube.cluster_autoscaler.plan.scenario import read_scenario
from holokube.cluster_autoscaler.plan.scenario_run import run_scenario

_GROUP = {"id": "g", "min": 0, "max": 5, "template": {"cpu": "4", "memory": "8Gi"}}
_PODS = {"name": "p", "count": 4, "cpu": "2", "memory": "1Gi", "ownerKind": "ReplicaSet", "ownerName": "o"}


def _run(**fields: Any) -> list[dict[str, Any]]:
    loops: list[dict[str, Any]] = run_scenario(
        read_scenario({"nodeGroups": [_GROUP], "pods": [_PODS], **fields}, "s"))["loops"]
    return loops


def test_the_answer_has_the_keys_of_the_records() -> None:
    (loop,) = _run()
    assert set(loop) == {
        "loop", "options", "best", "scaleUp", "unneeded", "scaleDown", "calls", "evicted", "events", "targets"}
    assert loop["best"] == {"group": "g", "nodeCount": 2, "pods": [f"default/p-{i}" for i in range(4)]}
    assert loop["scaleUp"]["infos"] == [{"group": "g", "current": 0, "new": 2, "max": 5}]
    assert loop["calls"] == [{"op": "IncreaseSize", "group": "g", "delta": 2}]
    assert loop["targets"] == {"g": 2}


def test_nodes_that_were_asked_for_do_not_come_by_themselves() -> None:
    first, second = _run(loops=[{}, {"advance": "1m"}])
    assert first["scaleUp"]["result"] == "Successful"
    # They are on their way, which is enough for the pods.
    assert second["scaleUp"]["result"] == "NotNeeded"
    assert second["targets"] == {"g": 2}


def test_a_scale_up_that_never_comes_true_is_taken_back() -> None:
    loops = _run(loops=[{}, {"advance": "16m"}])
    assert "Warning ScaleUpTimedOut" in " ".join(loops[1]["events"])


def test_with_create_nodes_are_there_in_the_next_loop() -> None:
    first, second, third = _run(onIncrease="create", loops=[{}, {"advance": "1m"}, {"advance": "12m"}])
    assert first["targets"] == second["targets"] == third["targets"] == {"g": 2}
    assert {node["node"]: node["reason"] for node in third["scaleDown"]["unremovable"]} == {
        "g-new-1": "NotUnderutilized", "g-new-2": "NotUnderutilized"}


def test_a_group_that_cannot_grow_fails_the_scale_up() -> None:
    group = {**_GROUP, "failIncrease": "the zone is full"}
    first, second = _run(nodeGroups=[group], loops=[{}, {"advance": "1m"}])
    assert first["scaleUp"]["result"] == "Error"
    assert "the zone is full" in first["scaleUp"]["error"]
    assert second["scaleUp"]["remainUnschedulable"][0]["skipped"] == {"g": ["in backoff after failed scale-up"]}


def test_the_same_seed_gives_the_same_answer() -> None:
    groups = [{**_GROUP, "id": name} for name in "abcdef"]
    answers = {
        seed: run_scenario(
            read_scenario({"nodeGroups": groups, "pods": [_PODS], "flags": ["--expander=random"]}, "s"), seed=seed)
        for seed in range(8)
    }
    again = run_scenario(
        read_scenario({"nodeGroups": groups, "pods": [_PODS], "flags": ["--expander=random"]}, "s"), seed=3)
    assert again == answers[3]
    assert len({answer["loops"][0]["best"]["group"] for answer in answers.values()}) > 1


def test_evicted_pods_are_gone_at_once_whatever_a_budget_says() -> None:
    nodes = [{"name": name, "group": "g", "cpu": "4", "memory": "8Gi"} for name in ("a", "b")]
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    pods = [{"name": name, "node": node, "cpu": "1", "memory": "1Gi", "ownerKind": "ReplicaSet", "ownerName": "o",
             "labels": {"app": "x"}, "annotations": annotations} for name, node in (("p", "a"), ("q", "b"))]
    budget = {
        "metadata": {"name": "x", "namespace": "default"}, "status": {"disruptionsAllowed": 0},
        "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    _, second = _run(nodes=nodes, pods=pods, pdbs=[budget], loops=[{}, {"advance": "11m"}])
    (gone,) = second["scaleDown"]["deleting"]
    assert second["evicted"] == gone["evicted"]
    assert second["targets"] == {"g": 1}
