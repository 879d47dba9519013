from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import LEASES, NODES, PODS
from holokube.kube.conditions import get_condition
from holokube.kube.errors import NotFound
from holokube.kube.timeformat import format_micro_time, format_time
from holokube.workloads import node_lifecycle_controller, taint_eviction_controller
from tests.builders import pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]
STAMP = "2026-01-01T00:00:00Z"
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def conditions(ready: str = "True", stamp: str = STAMP) -> list[JsonObject]:
    times = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    rest = [{"type": type_, "status": "False", "reason": "ok", "message": "ok", **times} for type_ in PRESSURES]
    return [{"type": "Ready", "status": ready, "reason": "KubeletReady", "message": "ok", **times}, *rest]


def ready_node(name: str, zone: str = "z1", ready: str = "True") -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone, "kubernetes.io/os": "linux"}},
        "status": {"conditions": conditions(ready)},
    }  # fmt: skip


def running_pod(name: str, node: str, **spec: Any) -> JsonObject:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": STAMP}
    return {**pod(name, node=node, **spec), "status": {"phase": "Running", "conditions": [ready]}}


def house(*objects: JsonObject, **options: Any) -> House:
    return House(node_lifecycle_controller.build, taint_eviction_controller.build, objects=objects, **options)


def renew(home: House, name: str) -> None:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format_micro_time(home.clock.now())}
    try:
        home.patch(LEASES, name, {"spec": spec}, "kube-node-lease")
    except NotFound:
        home.create(LEASES, {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec})


def live(home: House, seconds: int, *alive: str) -> None:
    """Time passes in which the kubelets of some nodes renew their leases every ten seconds."""
    for _ in range(seconds // 10):
        for name in alive:
            renew(home, name)
        home.pass_time(10)


def post(home: House, name: str, ready: str = "True") -> None:
    stamp = format_time(home.clock.now())
    home.patch(NODES, name, {"status": {"conditions": conditions(ready, stamp)}}, subresource="status")


def taints(home: House, name: str) -> set[tuple[str, str]]:
    listed = home.get(NODES, name)["spec"].get("taints") or []
    assert all("timeAdded" in t for t in listed)
    return {(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in listed}


def ready_of(home: House, name: str) -> tuple[str, str]:
    ready = get_condition(home.get(NODES, name), "Ready")
    assert ready is not None
    return ready["status"], ready["reason"]


UNREACHABLE = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
NOT_READY = {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}


def test_a_silent_node_becomes_unknown_after_the_grace_period_and_its_pods_not_ready() -> None:
    with house(ready_node("n1"), ready_node("n2"), running_pod("p", "n1")) as home:
        live(home, 40, "n2")
        assert ready_of(home, "n1")[0] == "True" and taints(home, "n1") == set()
        live(home, 20, "n2")
        assert ready_of(home, "n1") == ("Unknown", "NodeStatusUnknown")
        silent = home.get(NODES, "n1")
        for type_ in PRESSURES:
            condition = get_condition(silent, type_)
            assert condition is not None and condition["status"] == "Unknown"
            assert condition["message"] == "Kubelet stopped posting node status."
            assert condition["lastHeartbeatTime"] == STAMP
        ready = get_condition(home.get(PODS, "p"), "Ready")
        assert ready is not None and ready["status"] == "False"
        assert taints(home, "n1") == UNREACHABLE
        assert ready_of(home, "n2")[0] == "True" and taints(home, "n2") == set()
        assert ("n1", "NodeNotReady", "Node n1 status is now: NodeNotReady") in home.events()
        assert ("p", "NodeNotReady", "Node is not ready") in home.events()
        assert ("n1", "RegisteredNode", "Node n1 event: Registered Node n1 in Controller") in home.events()


def test_a_node_that_is_back_loses_its_taints() -> None:
    with house(ready_node("n1"), ready_node("n2")) as home:
        live(home, 70, "n2")
        assert taints(home, "n1") == UNREACHABLE
        post(home, "n1")
        home.pass_time(1)
        assert taints(home, "n1") == set()
        live(home, 120, "n1", "n2")
        assert ready_of(home, "n1")[0] == "True"


def test_the_taints_follow_the_kubelets_own_word() -> None:
    with house(ready_node("n1"), ready_node("n2")) as home:
        post(home, "n1", "False")
        home.pass_time(1)
        assert taints(home, "n1") == NOT_READY
        live(home, 60, "n2")
        assert ready_of(home, "n1") == ("Unknown", "NodeStatusUnknown")
        assert taints(home, "n1") == UNREACHABLE
        post(home, "n1", "False")
        home.pass_time(1)
        assert taints(home, "n1") == NOT_READY
        home.patch(NODES, "n2", {"spec": {"unschedulable": True}})
        pressed = [{**c, "status": "True"} if c["type"] == "DiskPressure" else c for c in conditions()]
        home.patch(NODES, "n2", {"status": {"conditions": pressed}}, subresource="status")
        home.pass_time(1)
        assert taints(home, "n2") == {("disk-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")}


def test_a_node_that_never_posted_anything_gets_a_longer_start() -> None:
    with house(ready_node("n2")) as home:
        home.create(NODES, {"metadata": {"name": "n1"}})
        live(home, 50, "n2")
        assert "conditions" not in home.get(NODES, "n1")["status"]
        live(home, 20, "n2")
        assert ready_of(home, "n1") == ("Unknown", "NodeStatusNeverUpdated")


def test_old_label_names_are_kept_in_step() -> None:
    with house(ready_node("n1")) as home:
        assert home.get(NODES, "n1")["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"


def test_pods_leave_when_their_toleration_runs_out() -> None:
    patient = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    pods = [
        running_pod("usual", "n1", tolerations=[{**patient, "tolerationSeconds": 300}]),
        running_pod("forever", "n1", tolerations=[patient]),
        running_pod("impatient", "n1", tolerations=[]),
        running_pod("elsewhere", "n2", tolerations=[]),
    ]
    with house(ready_node("n1"), ready_node("n2"), *pods) as home:
        live(home, 60, "n2")
        leaving = home.get(PODS, "impatient")
        assert leaving["metadata"]["deletionTimestamp"]
        target = get_condition(leaving, "DisruptionTarget")
        assert target is not None and target["reason"] == "DeletionByTaintManager"
        live(home, 280, "n2")
        assert "deletionTimestamp" not in home.get(PODS, "usual")["metadata"]
        live(home, 30, "n2")
        assert home.get(PODS, "usual")["metadata"]["deletionTimestamp"]
        for name in ("forever", "elsewhere"):
            assert "deletionTimestamp" not in home.get(PODS, name)["metadata"]
        assert sorted(home.events("TaintManagerEviction")) == [
            (name, "TaintManagerEviction", f"Marking for deletion Pod default/{name}")
            for name in ("impatient", "usual")
        ]


def test_an_eviction_to_come_is_cancelled_when_the_node_is_back() -> None:
    patient = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    toleration = {**patient, "tolerationSeconds": 300}
    with house(ready_node("n1"), ready_node("n2"), running_pod("p", "n1", tolerations=[toleration])) as home:
        live(home, 100, "n2")
        post(home, "n1")
        live(home, 400, "n1", "n2")
        assert "deletionTimestamp" not in home.get(PODS, "p")["metadata"]
        assert home.events("TaintManagerEviction") == [
            ("p", "TaintManagerEviction", "Cancelling deletion of Pod default/p")
        ]


def test_nodes_of_a_zone_are_given_up_one_by_one() -> None:
    nodes = [ready_node(f"n{i}") for i in range(10)]
    with house(*nodes) as home:
        alive = [f"n{i}" for i in range(3, 10)]
        live(home, 60, *alive)
        tainted = [name for name in ("n0", "n1", "n2") if taints(home, name) == UNREACHABLE]
        assert len(tainted) == 1
        assert all(("unreachable", "NoSchedule") in taints(home, name) for name in ("n0", "n1", "n2"))
        live(home, 20, *alive)
        assert all(taints(home, name) == UNREACHABLE for name in ("n0", "n1", "n2"))


def test_a_small_zone_in_trouble_is_not_given_up_but_a_zone_that_is_gone_is() -> None:
    nodes = [ready_node(f"a{i}", "a") for i in range(5)] + [ready_node(f"b{i}", "b") for i in range(2)]
    with house(*nodes) as home:
        live(home, 120, "a0", "a1")
        silent = [f"a{i}" for i in range(2, 5)]
        assert all(taints(home, name) == {("unreachable", "NoSchedule")} for name in silent)
        assert all(taints(home, name) == UNREACHABLE for name in ("b0", "b1"))


def test_nobody_is_evicted_when_all_nodes_are_silent_and_all_get_a_new_start() -> None:
    with house(*(ready_node(f"n{i}") for i in range(3)), running_pod("p", "n1", tolerations=[])) as home:
        home.pass_time(300)
        assert all(taints(home, f"n{i}") == {("unreachable", "NoSchedule")} for i in range(3))
        assert "deletionTimestamp" not in home.get(PODS, "p")["metadata"]
        post(home, "n0")
        live(home, 120, "n0")
        assert taints(home, "n0") == set()
        assert taints(home, "n1") == UNREACHABLE


@pytest.mark.parametrize("seed", range(3))
def test_silent_nodes_are_found_whatever_the_network_does(seed: int) -> None:
    nodes = [ready_node(f"n{i}") for i in range(8)]
    pods = [running_pod(f"p{i}", f"n{i}", tolerations=[]) for i in range(8)]
    with house(*nodes, *pods, faults=STORM, seed=seed) as home:
        alive = [f"n{i}" for i in range(2, 8)]
        live(home, 300, *alive)
        home.calm()
        # Leases that did not get through made healthy nodes look silent; their kubelets post anew.
        for name in alive:
            post(home, name)
        live(home, 300, *alive)
        for i in range(8):
            assert taints(home, f"n{i}") == (UNREACHABLE if i < 2 else set())
        for i in range(2):
            assert home.get(PODS, f"p{i}")["metadata"]["deletionTimestamp"]
        assert home.faulty.injected.total() > 5


def test_a_pod_that_has_to_go_at_once_is_told_that_its_later_eviction_is_off() -> None:
    patient = [{"key": "soon", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    with house(ready_node("n1"), running_pod("p", "n1", tolerations=patient)) as home:
        soon, now = {"key": "soon", "effect": "NoExecute"}, {"key": "now", "effect": "NoExecute"}
        home.patch(NODES, "n1", {"spec": {"taints": [soon]}})
        home.pass_time(5)
        assert home.events("TaintManagerEviction") == []
        home.patch(NODES, "n1", {"spec": {"taints": [soon, now]}})
        home.pass_time(5)
        told = [message for _, _, message in home.events("TaintManagerEviction")]
        assert sorted(told) == ["Cancelling deletion of Pod default/p", "Marking for deletion Pod default/p"]
