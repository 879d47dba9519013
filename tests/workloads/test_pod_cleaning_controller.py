from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holokube.client.resources import NODES, PODS
from holokube.workloads import pod_cleaning_controller
from tests.builders import node, pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]


def house(*objects: JsonObject, **options: Any) -> House:
    threshold = options.pop("threshold", 3)
    build = partial(pod_cleaning_controller.build, terminated_threshold=threshold)
    return House(build, objects=objects, **options)


def over(name: str, created: str, **status: Any) -> JsonObject:
    obj = pod(name, node="n1")
    meta = {**obj["metadata"], "creationTimestamp": f"2026-01-01T00:00:{created}Z"}
    return {**obj, "metadata": meta, "status": {"phase": "Succeeded", **status}}


def test_pods_of_a_node_that_is_gone_fail_and_go_after_a_quarantine() -> None:
    with house(node("n1"), pod("p", node="n1"), pod("q", node="n1")) as home:
        held = {"metadata": {"finalizers": ["example.com/hold"]}}
        home.patch(PODS, "q", held)
        home.delete(NODES, "n1")
        home.pass_time(40)
        assert home.exists(PODS, "p")
        home.pass_time(41)
        assert not home.exists(PODS, "p")
        kept = home.get(PODS, "q")
        assert kept["status"]["phase"] == "Failed"
        target = [c for c in kept["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert [(c["status"], c["reason"], c["message"]) for c in target] == [
            ("True", "DeletionByPodGC", "PodGC: node no longer exists")
        ]


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    with house(node("n1"), pod("p", node="n1")) as home:
        home.delete(NODES, "n1")
        home.pass_time(30)
        home.create(NODES, node("n1"))
        home.pass_time(100)
        assert home.exists(PODS, "p")


def test_the_quarantine_begins_anew_when_a_node_has_been_back() -> None:
    with house(node("n1"), pod("p", node="n1")) as home:
        home.delete(NODES, "n1")
        home.pass_time(30)
        home.create(NODES, node("n1"))
        home.pass_time(30)
        home.delete(NODES, "n1")
        home.pass_time(40)
        assert home.exists(PODS, "p")
        home.pass_time(41)
        assert not home.exists(PODS, "p")


def test_only_so_many_terminated_pods_are_kept_and_evicted_ones_go_first() -> None:
    pods = [over(f"p{n}", f"{n:02}") for n in range(4)]
    evicted = over("evicted", "30", phase="Failed", reason="Evicted")
    with house(node("n1"), *pods, evicted, pod("running", node="n1")) as home:
        home.pass_time(21)
        assert home.names(PODS) == ["p1", "p2", "p3", "running"]


def test_a_threshold_of_zero_keeps_all() -> None:
    with house(node("n1"), *(over(f"p{n}", f"{n:02}") for n in range(4)), threshold=0) as home:
        home.pass_time(100)
        assert len(home.names(PODS)) == 4


def test_a_terminating_pod_on_a_node_out_of_service_is_forced_out() -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    broken = {**node("n1"), "spec": {"taints": [taint]}}
    with house(broken, node("n2"), *(pod(f"p{n}", node=f"n{n}") for n in (1, 2))) as home:
        for name in ("p1", "p2"):
            home.delete(PODS, name)
        home.pass_time(25)
        assert home.names(PODS) == ["p2"]


def test_a_terminating_pod_that_was_never_bound_is_removed() -> None:
    held = pod("p")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    with house(held) as home:
        home.delete(PODS, "p")
        home.pass_time(25)
        assert home.get(PODS, "p")["status"]["phase"] == "Failed"
        home.patch(PODS, "p", {"metadata": {"finalizers": None}})
        assert home.names(PODS) == []


@pytest.mark.parametrize("seed", range(3))
def test_orphans_go_whatever_the_network_does(seed: int) -> None:
    pods = [pod(f"p{n}", node=f"n{n % 4}") for n in range(20)]
    with house(*(node(f"n{n}") for n in range(4)), *pods, faults=STORM, seed=seed) as home:
        home.delete(NODES, "n0")
        home.delete(NODES, "n1")
        home.pass_time(200)
        home.calm()
        home.pass_time(100)
        assert home.names(PODS) == sorted(f"p{n}" for n in range(20) if n % 4 > 1)
        assert home.faulty.injected.total() > 3
