"""The comparison with recorded decisions can fail."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.cluster_autoscaler.compare import differences

_HERE = Path(__file__).parent


def _record(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((_HERE / name).read_text())
    return record


def _run(record: dict[str, Any], number: int = 0) -> dict[str, Any]:
    run: dict[str, Any] = copy.deepcopy(record["runs"][number])
    return run


def test_every_recorded_run_agrees_with_its_own_record() -> None:
    for path in sorted(_HERE.glob("*.json")):
        record = json.loads(path.read_text())
        for run in record["runs"]:
            assert differences(record, run) == [], path.name


def test_there_are_as_many_records_as_the_readme_says() -> None:
    assert len(list(_HERE.glob("*.json"))) == 120


def test_pods_of_one_controller_are_interchangeable() -> None:
    record = _record("0000-up.json")
    answer = _run(record)
    pods = answer["loops"][0]["best"]["pods"]
    assert "default/c2-1" in pods and "default/c2-20" not in pods
    pods[pods.index("default/c2-1")] = "default/c2-20"
    assert differences(record, answer) == []


def _other_group(loop: dict[str, Any]) -> None:
    loop["best"]["group"] = "ng2"


def _one_node_more(loop: dict[str, Any]) -> None:
    loop["best"]["nodeCount"] += 1


def _pod_of_another_controller(loop: dict[str, Any]) -> None:
    loop["best"]["pods"][0] = "default/c0-0"


def _option_lost(loop: dict[str, Any]) -> None:
    loop["options"].pop()


def _no_best(loop: dict[str, Any]) -> None:
    del loop["best"]


def _other_result(loop: dict[str, Any]) -> None:
    loop["scaleUp"]["result"] = "NotNeeded"


def _other_size(loop: dict[str, Any]) -> None:
    loop["scaleUp"]["infos"][0]["new"] -= 1


def _node_needed(loop: dict[str, Any]) -> None:
    loop["unneeded"].remove("node1")


def _other_reason(loop: dict[str, Any]) -> None:
    loop["scaleDown"]["unremovable"][0]["reason"] = "NotAutoscaled"


def _other_scale_down(loop: dict[str, Any]) -> None:
    loop["scaleDown"]["result"] = "NoNodeDeleted"


def _event_lost(loop: dict[str, Any]) -> None:
    loop["events"].pop()


def _one_trigger_less(loop: dict[str, Any]) -> None:
    loop["scaleUp"]["triggered"].pop()


def _one_waits_less(loop: dict[str, Any]) -> None:
    loop["scaleUp"]["awaitEvaluation"].pop()


def _one_more_unhelped(loop: dict[str, Any]) -> None:
    loop["scaleUp"]["remainUnschedulable"].append({"pod": "default/c0-1", "rejected": {}, "skipped": {}})


def _other_target(loop: dict[str, Any]) -> None:
    loop["targets"]["ng0"] += 1


@pytest.mark.parametrize(
    ("perturb", "field"),
    [
        (_other_group, "best"),
        (_one_node_more, "best"),
        (_pod_of_another_controller, "best"),
        (_no_best, "best"),
        (_option_lost, "options"),
        (_other_result, "scale-up result"),
        (_other_size, "scale-up infos"),
        (_node_needed, "unneeded"),
        (_other_reason, "unremovable"),
        (_other_scale_down, "scale-down result"),
        (_event_lost, "events"),
        (_one_trigger_less, "triggered"),
        (_one_waits_less, "await evaluation"),
        (_one_more_unhelped, "remain unschedulable"),
        (_other_target, "targets"),
    ],
)
def test_a_wrong_scale_up_is_found(perturb: Callable[[dict[str, Any]], None], field: str) -> None:
    record = _record("0000-up.json")
    answer = _run(record)
    perturb(answer["loops"][0])
    found = differences(record, answer)
    assert len(found) == 1
    assert found[0].startswith(f"loop 0: {field}: ")


def test_another_blocking_reason_is_found() -> None:
    record = _record("0001-down.json")
    answer = _run(record)
    answer["loops"][1]["scaleDown"]["unremovable"][0]["blockingReason"] = "NotReplicated"
    assert [problem.split(": ")[1] for problem in differences(record, answer)] == ["unremovable"]


def test_a_node_that_should_have_been_deleted_is_missed() -> None:
    record = _record("0001-down.json")
    answer = _run(record)
    answer["loops"][1]["scaleDown"]["deleting"] = []
    assert differences(record, answer) == ["loop 1: deleted: [] instead of ['n02']"]


def test_another_reason_why_a_group_cannot_help_is_found() -> None:
    record = _record("0020-up.json")
    answer = _run(record)
    answer["loops"][0]["scaleUp"]["remainUnschedulable"][0]["skipped"]["ng0"] = ["in backoff after failed scale-up"]
    assert [problem.split(": ")[1] for problem in differences(record, answer)] == ["remain unschedulable"]


def test_a_missing_loop_is_found() -> None:
    record = _record("0001-down.json")
    answer = _run(record)
    answer["loops"].pop()
    assert differences(record, answer) == ["1 loops instead of 2"]


def _with_different_deletions() -> dict[str, Any]:
    """Two runs that delete one of two equal nodes each."""
    loop = {"unneeded": ["a", "b"], "scaleDown": {"deleting": [{"node": "a"}], "unremovable": [], "result": "x"}}
    other = copy.deepcopy(loop)
    other["scaleDown"]["deleting"][0]["node"] = "b"  # type: ignore[index]  # a dict of dicts
    return {"scenario": {}, "runs": [{"loops": [loop]}, {"loops": [other]}]}


def test_where_the_runs_delete_different_nodes_the_number_counts() -> None:
    record = _with_different_deletions()
    answer = _run(record)
    assert differences(record, answer) == []
    answer["loops"][0]["scaleDown"]["deleting"] = [{"node": "a"}, {"node": "b"}]
    assert "as many as in none of" in differences(record, answer)[0]


def test_where_all_runs_delete_the_same_nodes_others_are_wrong() -> None:
    record = _with_different_deletions()
    record["runs"].pop()
    answer = _run(record)
    answer["loops"][0]["scaleDown"]["deleting"] = [{"node": "b"}]
    assert differences(record, answer) == ["loop 0: deleted: ['b'] instead of ['a']"]


def test_runs_that_take_the_same_of_more_nodes_in_turns_show_chance_as_well() -> None:
    record = _with_different_deletions()
    for run, names in zip(record["runs"], ("ab", "ba"), strict=True):
        run["loops"][0]["unneeded"] = ["a", "b", "c"]
        run["loops"][0]["scaleDown"]["deleting"] = [{"node": name} for name in names]
    answer = _run(record)
    answer["loops"][0]["scaleDown"]["deleting"] = [{"node": "b"}, {"node": "c"}]
    assert differences(record, answer) == []
    for run in record["runs"]:
        run["loops"][0]["unneeded"] = ["a", "b"]
    answer["loops"][0]["unneeded"] = ["a", "b"]
    assert differences(record, answer) == ["loop 0: deleted: ['b', 'c'] instead of ['a', 'b']"]


def test_an_eviction_more_or_less_is_found() -> None:
    eviction = "Normal ScaleDown deleting pod for node scale down"
    record = _with_different_deletions()
    answer = _run(record)
    answer["loops"][0]["events"] = [eviction]
    assert differences(record, answer) == ["loop 0: evictions: 1 were told of, 0 happened"]
    answer["loops"][0]["evicted"] = ["default/p"]
    assert differences(record, answer) == []
    record["runs"].pop()
    assert differences(record, answer) == ["loop 0: evictions: 1 instead of 0"]


def test_where_the_runs_delete_different_nodes_only_unneeded_ones_may_go() -> None:
    record = _with_different_deletions()
    answer = _run(record)
    answer["loops"][0]["scaleDown"]["deleting"] = [{"node": "c"}]
    assert differences(record, answer) == ["loop 0: deleted: ['c'] which is not unneeded"]
