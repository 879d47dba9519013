from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.plan.waste import waste_of
from holokube.kube.types import JsonObject

_GIB = 1 << 30


def _node(cpu: str, memory: str) -> JsonObject:
    return {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}


def _pods(count: int, cpu: str, memory: str, owner: str = "ReplicaSet") -> list[JsonObject]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    reference = {"kind": owner, "name": "o", "uid": "o", "controller": True}
    return [
        {"metadata": {"name": f"p{i}", "namespace": "default", "ownerReferences": [reference]},
         "spec": {"containers": [container]}}
        for i in range(count)
    ]


@pytest.mark.parametrize(("memory", "wasted_gib", "stranded_gib"), [("128Gi", 2, 72), ("64Gi", 1, 8)])
def test_one_to_seven_pods_waste_more_memory_the_more_a_node_has(
    memory: str, wasted_gib: int, stranded_gib: int
) -> None:
    found = waste_of(_node("8", memory), _pods(8, "1", "7Gi")).as_json()
    assert found["wasted"] == {"cpu": 0, "memory": wasted_gib * _GIB}
    assert found["stranded"] == {"cpu": 0, "memory": stranded_gib * _GIB}


def test_room_for_more_pods_is_free_but_not_stranded() -> None:
    found = waste_of(_node("8", "64Gi"), _pods(2, "1", "7Gi")).as_json()
    assert found["free"] == {"cpu": 6, "memory": 50 * _GIB}
    assert found["stranded"] == {"cpu": 0, "memory": 8 * _GIB}


def test_a_node_with_nothing_but_daemons_wastes_nothing() -> None:
    found = waste_of(_node("8", "64Gi"), _pods(1, "1", "1Gi", "DaemonSet")).as_json()
    assert found["requested"] == {"cpu": 1, "memory": _GIB}
    assert "wasted" not in found


def test_the_commonest_kind_of_pod_decides() -> None:
    pods = [*_pods(3, "1", "1Gi"), *_pods(1, "2", "5Gi")]
    found = waste_of(_node("8", "10Gi"), pods).as_json()
    assert found["commonestRequest"] == {"cpu": 1, "memory": _GIB}


def test_pods_that_have_ended_take_no_room() -> None:
    ended = _pods(1, "1", "1Gi")[0]
    ended["status"] = {"phase": "Succeeded"}
    assert waste_of(_node("8", "64Gi"), [ended]).as_json()["free"]["cpu"] == 8


def test_a_node_with_more_asked_for_than_it_has_is_not_less_than_full() -> None:
    assert waste_of(_node("1", "1Gi"), _pods(2, "1", "1Gi")).as_json()["free"] == {"cpu": 0, "memory": 0}
