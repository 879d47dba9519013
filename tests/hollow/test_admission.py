"""What a kubelet refuses, and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.hollow.admission import check_admission
from tests.builders import node, pod

GI = 1024**3 * 1000
ROOM = {"cpu": 4000, "memory": 8 * GI, "pods": 110_000, "nvidia.com/gpu": 1000}


def asking(**requests: str) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "image": "i", "resources": {"requests": requests}}])


@pytest.mark.parametrize(
    ("given", "reason", "message"),
    [
        (asking(cpu="2"), "OutOfcpu",
         "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"),
        (asking(memory="8Gi"), "OutOfmemory",
         "Node didn't have enough resource: memory, requested: 8589934592, used: 1073741824, capacity: 8589934592"),
        (asking(**{"nvidia.com/gpu": "2"}), "OutOfnvidia.com/gpu",
         "Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 0, capacity: 1"),
        (asking(**{"ephemeral-storage": "1"}), "OutOfephemeral-storage",
         "Node didn't have enough resource: ephemeral-storage, requested: 1, used: 0, capacity: 0"),
        (pod(nodeSelector={"zone": "b"}), "NodeAffinity",
         "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"),
        (pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]), "NodePorts",
         "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"),
    ],
)  # fmt: skip
def test_refusals_are_worded_like_a_kubelets(given: dict[str, Any], reason: str, message: str) -> None:
    used, ports = {"cpu": 3000, "memory": GI}, [("127.0.0.1", "TCP", 80)]
    refused = check_admission(given, node(zone="a"), allocatable=ROOM, used=used, pods=3, host_ports=ports)
    assert refused is not None and (refused.reason, refused.message) == (reason, message)


@pytest.mark.parametrize(
    "given",
    [asking(cpu="1"), asking(**{"example.com/unknown": "5"}), pod(nodeSelector={"zone": "a"}), pod(),
     pod(containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}])],
)  # fmt: skip
def test_what_fits_is_taken(given: dict[str, Any]) -> None:
    ports = [("127.0.0.1", "TCP", 80)]
    used = {"cpu": 3000}
    assert check_admission(given, node(zone="a"), allocatable=ROOM, used=used, pods=3, host_ports=ports) is None


def test_a_full_node_takes_no_more_pods() -> None:
    refused = check_admission(pod(), node(), allocatable=ROOM, used={}, pods=110)
    assert refused is not None and refused.reason == "OutOfpods"


@pytest.mark.parametrize(("effect", "taken"), [("NoExecute", False), ("NoSchedule", True)])
def test_only_taints_that_evict_concern_a_kubelet(effect: str, taken: bool) -> None:
    tainted = {**node(), "spec": {"taints": [{"key": "k", "effect": effect}]}}
    refused = check_admission(pod(), tainted, allocatable=ROOM, used={}, pods=0)
    assert (refused is None) == taken
    assert refused is None or refused.reason == "TaintToleration"
    tolerant = pod(tolerations=[{"operator": "Exists"}])
    assert check_admission(tolerant, tainted, allocatable=ROOM, used={}, pods=0) is None
