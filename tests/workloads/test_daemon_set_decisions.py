from __future__ import annotations

from typing import Any

import pytest

from holokube.workloads.daemon_set_decisions import (
    DaemonState,
    decide_daemons,
    decide_status,
    decide_update,
    group_by_node,
)
from tests.workloads.objects import NOW, a_pod, an_owner

JsonObject = dict[str, Any]
RUN, KEEP, LEAVE = (True, True), (False, True), (False, False)


def daemon_pod(node: str, name: str = "", *, digest: str = "new", **more: Any) -> JsonObject:
    more.setdefault("ready_s", 50)
    labels = {"controller-revision-hash": digest}
    return a_pod(name or f"on-{node}", node=node, labels=labels, **more)


def state(nodes: dict[str, tuple[bool, bool]], *pods: JsonObject, **rolling: Any) -> DaemonState:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling or {"maxUnavailable": 1}}
    return DaemonState(
        an_owner("DaemonSet", "agent", updateStrategy=strategy), "new", nodes, group_by_node(pods), NOW
    )


def names(pods: list[JsonObject]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


def test_every_node_that_should_have_a_pod_gets_one_and_others_lose_theirs() -> None:
    pods = [daemon_pod("b"), daemon_pod("c"), daemon_pod("d")]
    changes = decide_daemons(state({"a": RUN, "b": RUN, "c": KEEP, "d": LEAVE}, *pods), {})
    assert (changes.create, names(changes.delete)) == (["a"], ["on-d"])


def test_of_several_pods_on_a_node_the_oldest_stays() -> None:
    pods = [daemon_pod("a", "young", age_s=1), daemon_pod("a", "old", age_s=9)]
    assert names(decide_daemons(state({"a": RUN}, *pods), {}).delete) == ["young"]


def test_a_failed_pod_is_deleted_but_not_again_and_again() -> None:
    failed = state({"a": RUN}, daemon_pod("a", phase="Failed"))
    changes = decide_daemons(failed, {})
    assert (names(changes.delete), changes.killed_on) == (["on-a"], ["a"])
    assert changes.events == [
        ("Warning", "FailedDaemonPod", "Found failed daemon pod default/on-a on node a, will try to kill it")
    ]
    spared = decide_daemons(failed, {"a": 7.0})
    assert (spared.delete, spared.wait_s) == ([], 7.0)


def test_a_pod_for_a_node_that_is_gone_is_deleted_if_nobody_runs_it() -> None:
    unbound = daemon_pod("", "unbound")
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    unbound["spec"]["affinity"] = {"nodeAffinity": required}
    assert names(decide_daemons(state({}, unbound, daemon_pod("gone", "bound")), {}).delete) == ["unbound"]


@pytest.mark.parametrize(("unavailable", "expected"), [(1, 1), (2, 2), ("50%", 2), ("10%", 1)])
def test_as_many_old_pods_go_as_may_be_unavailable(unavailable: int | str, expected: int) -> None:
    pods = [daemon_pod(node, digest="old") for node in "abcd"]
    changes = decide_update(state(dict.fromkeys("abcd", RUN), *pods, maxUnavailable=unavailable))
    assert (len(changes.delete), changes.create) == (expected, [])


def test_old_pods_that_do_not_work_go_at_once_and_new_ones_that_do_not_work_hold_the_rest() -> None:
    broken = [daemon_pod("a", digest="old", ready_s=None), daemon_pod("b", digest="old")]
    assert names(decide_update(state(dict.fromkeys("ab", RUN), *broken)).delete) == ["on-a"]
    waiting = [daemon_pod("a", ready_s=None), daemon_pod("b", digest="old")]
    assert decide_update(state(dict.fromkeys("ab", RUN), *waiting)).delete == []


def test_with_surge_a_new_pod_comes_first_and_the_old_one_goes_when_it_is_available() -> None:
    old = [daemon_pod(node, f"old-{node}", digest="old") for node in "ab"]
    nodes = dict.fromkeys("ab", RUN)
    first = decide_update(state(nodes, *old, maxSurge=1))
    assert (len(first.create), first.delete) == (1, [])
    starting = daemon_pod("a", "new-a", ready_s=None)
    assert decide_update(state(nodes, *old, starting, maxSurge=1)).create == []
    done = decide_update(state(nodes, *old, daemon_pod("a", "new-a"), maxSurge=1))
    assert (names(done.delete), done.create) == (["old-a"], ["b"])


def test_the_status_counts_nodes() -> None:
    pods = [daemon_pod("a"), daemon_pod("b", digest="old", ready_s=None), daemon_pod("c")]
    status = decide_status(state({"a": RUN, "b": RUN, "c": KEEP, "d": RUN}, *pods), processed=True)
    assert status == {
        "desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberMisscheduled": 1, "numberReady": 1,
        "updatedNumberScheduled": 1, "numberAvailable": 1, "numberUnavailable": 2, "observedGeneration": 1,
    }  # fmt: skip
