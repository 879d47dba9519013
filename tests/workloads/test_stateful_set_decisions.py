from __future__ import annotations

from typing import Any

from holokube.workloads.stateful_set_decisions import StatefulState, decide, decide_status
from tests.workloads.objects import NOW, a_pod, an_owner

JsonObject = dict[str, Any]


def revision(name: str) -> JsonObject:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": name}]}}
    return {"metadata": {"name": name}, "data": {"spec": {"template": template}}}


def replica(ordinal: int, of: str = "new", **more: Any) -> JsonObject:
    more.setdefault("ready_s", 50)
    return a_pod(f"db-{ordinal}", labels={"controller-revision-hash": of}, **more)


def state(replicas: int, *pods: JsonObject, current: str = "new", **spec: Any) -> StatefulState:
    stateful_set = an_owner("StatefulSet", "db", replicas=replicas, serviceName="db", **spec)
    return StatefulState(stateful_set, revision(current), revision("new"), pods, NOW)


def step(view: StatefulState) -> tuple[list[str], list[str]]:
    plan = decide(view)
    return [p["metadata"]["name"] for p in plan.create], [p["metadata"]["name"] for p in plan.delete]


def rolling(**options: Any) -> JsonObject:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": options}}


def test_in_order_each_pod_waits_for_the_ones_before() -> None:
    assert step(state(3)) == (["db-0"], [])
    assert step(state(3, replica(0, ready_s=None))) == ([], [])
    assert step(state(3, replica(0))) == (["db-1"], [])


def test_in_parallel_all_come_and_go_at_once() -> None:
    parallel = {"podManagementPolicy": "Parallel"}
    assert step(state(3, replica(1, ready_s=None), **parallel)) == (["db-0", "db-2"], [])
    assert step(state(1, replica(0), replica(1), replica(2), **parallel)) == ([], ["db-2", "db-1"])


def test_shrinking_takes_the_highest_first_and_waits_until_it_is_gone() -> None:
    pods = [replica(n) for n in range(3)]
    assert step(state(1, *pods)) == ([], ["db-2"])
    assert step(state(1, *pods[:2], replica(2, leaving=True))) == ([], [])


def test_ordinals_may_begin_anywhere() -> None:
    shifted = {"ordinals": {"start": 5}}
    assert step(state(1, **shifted)) == (["db-5"], [])
    assert step(state(1, replica(4), replica(5), **shifted)) == ([], ["db-4"])


def test_a_pod_that_ended_makes_way_for_another() -> None:
    assert step(state(2, replica(0, phase="Failed"))) == ([], ["db-0"])


def test_an_update_goes_from_the_top_to_the_partition_one_at_a_time() -> None:
    old = [replica(n, "old") for n in range(3)]
    assert step(state(3, *old, current="old", **rolling())) == ([], ["db-2"])
    assert step(state(3, *old[:2], replica(2), current="old", **rolling(partition=2))) == ([], [])
    assert step(state(3, *old[:2], replica(2, ready_s=None), current="old", **rolling())) == ([], [])
    assert step(state(3, *old, current="old", updateStrategy={"type": "OnDelete"})) == ([], [])


def test_several_may_be_replaced_at_once_if_so_many_may_be_unavailable() -> None:
    old = [replica(n, "old") for n in range(4)]
    parallel = {"podManagementPolicy": "Parallel", **rolling(maxUnavailable="50%")}
    assert step(state(4, *old, current="old", **parallel)) == ([], ["db-3", "db-2"])


def test_below_the_partition_pods_come_back_as_they_were() -> None:
    plan = decide(state(2, replica(1), current="old", **rolling(partition=1)))
    assert plan.create[0]["spec"]["containers"][0]["image"] == "old"


def test_the_status_moves_to_the_new_revision_when_all_pods_have_it() -> None:
    half = state(2, replica(0, "old"), replica(1), current="old", **rolling())
    status = decide_status(half, decide(half))
    assert (status["currentRevision"], status.get("currentReplicas", 0)) == ("old", 0)
    done = state(2, replica(0), replica(1), current="old", **rolling())
    status = decide_status(done, decide(done))
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == ("new", 2, 2)


def test_nothing_is_decided_for_a_set_that_is_being_deleted() -> None:
    view = state(3)
    view.stateful_set["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert step(view) == ([], [])
