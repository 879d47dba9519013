"""What a kubelet refuses, and with which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow.addresses import PodAddresses
from holokube.hollow.admission import check_admission, choose_victims, is_critical, lacking_resources
from holokube.hollow.node_record import NodeRecord
from holokube.kube.resources import parse_resources, pod_requests
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


def pressed(*kinds: str) -> dict[str, Any]:
    return {**node(), "status": {"conditions": [{"type": kind, "status": "True"} for kind in kinds]}}


TOLERATING = pod(tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}])
CRITICAL = pod(priority=2_000_001_000)


@pytest.mark.parametrize(
    ("given", "pressures", "taken"),
    [
        (pod(), (), True),
        (pod(), ("MemoryPressure",), False),
        (asking(cpu="1"), ("MemoryPressure",), True),
        (TOLERATING, ("MemoryPressure",), True),
        (asking(cpu="1"), ("DiskPressure",), False),
        (TOLERATING, ("MemoryPressure", "PIDPressure"), False),
        (CRITICAL, ("DiskPressure",), True),
    ],
)
def test_a_node_under_pressure_refuses_as_a_kubelet_does(
    given: dict[str, Any], pressures: tuple[str, ...], taken: bool
) -> None:
    refused = check_admission(given, pressed(*pressures), allocatable=ROOM, used={}, pods=0)
    if taken:
        assert refused is None
    else:
        assert refused is not None and refused.reason == "Evicted"
        assert refused.message == f"The node had condition: [{' '.join(pressures)}]. "


def test_static_pods_and_their_mirrors_are_critical() -> None:
    def annotated(**annotations: str) -> dict[str, Any]:
        keys = {f"kubernetes.io/config.{key}": value for key, value in annotations.items()}
        return {"metadata": {"name": "p", "annotations": keys}, "spec": {}}

    assert is_critical(annotated(mirror="x")) and is_critical(annotated(source="file"))
    assert not is_critical(annotated(source="api")) and not is_critical(pod(priority=1_999_999_999))


def test_what_is_lacking_counts_pods_and_leaves_cluster_resources_out() -> None:
    given = asking(cpu="2", **{"example.com/cluster-wide": "1"})
    room = {"cpu": 4000, "pods": 1000}
    assert lacking_resources(given, allocatable=room, used={"cpu": 3000}, pods=1) == {"cpu": 1000, "pods": 1000}
    assert lacking_resources(given, allocatable=room, used={}, pods=0) == {}


def named(name: str, requests: dict[str, str], limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    made = pod(containers=[{"name": "c", "image": "i", "resources": resources}], **spec)
    made["metadata"]["name"] = name
    return made


FULL = {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("others", "lacking", "victims"),
    [
        ([named("small", {"cpu": "1"}), named("big", {"cpu": "3"})], {"cpu": 2500}, ["big"]),
        ([named("small", {"cpu": "1"}), named("big", {"cpu": "3"})], {"cpu": 900}, ["small"]),
        ([named("guaranteed", FULL, FULL), named("burstable", {"cpu": "2"})], {"cpu": 1500}, ["burstable"]),
        ([named("g", FULL, FULL), named("b", {"cpu": "2"})], {"cpu": 3500}, ["b", "g"]),
        ([named("none", {}), named("some", {"cpu": "1"})], {"pods": 1000}, ["none"]),
        ([named("critical", {"cpu": "4"}, priority=2_000_001_000)], {"cpu": 1000}, None),
        ([named("less", {"cpu": "4"}, priority=2_000_000_000)], {"cpu": 1000}, ["less"]),
        ([named("small", {"cpu": "1"})], {"cpu": 2000}, None),
    ],
)  # fmt: skip
def test_a_critical_pod_takes_the_place_of_the_fewest_and_least(
    others: list[dict[str, Any]], lacking: dict[str, int], victims: list[str] | None
) -> None:
    chosen = choose_victims(CRITICAL, others, lacking)
    assert (None if chosen is None else [v["metadata"]["name"] for v in chosen]) == victims
    assert choose_victims(pod(), others, lacking) is None


NAMES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "example.com/thing"])
REQUESTS = st.dictionaries(NAMES, st.sampled_from(["0", "1", "3", "2500m", "1Gi"]), max_size=3)
SPECS = st.builds(
    lambda requests, more: {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}], **more},
    REQUESTS,
    st.sampled_from([
        {}, {}, {}, {"nodeSelector": {"zone": "b"}}, {"overhead": {"cpu": "2"}},
        {"resources": {"requests": {"cpu": "3"}}},
        {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "4"}}}]}, {"priority": 2_000_000_000},
        {"tolerations": [{"operator": "Exists"}]},
    ]),
)  # fmt: skip
CONDITIONS = st.lists(
    st.builds(lambda kind, status: {"type": kind, "status": status},
              st.sampled_from(["Ready", "MemoryPressure", "DiskPressure"]), st.sampled_from(["True", "False"])),
    max_size=2,
)  # fmt: skip
TAINTS = st.sampled_from([[], [], [{"key": "k", "effect": "NoExecute"}], [{"key": "k", "effect": "NoSchedule"}]])
OFFERS = st.dictionaries(NAMES, st.sampled_from(["1", "4", "2Gi"]), max_size=4)


@given(st.lists(SPECS, min_size=1, max_size=4), CONDITIONS, TAINTS, OFFERS, st.sampled_from(["0", "1", "2", "110"]))
def test_a_node_admits_whom_all_checks_admit(
    specs: list[dict[str, Any]], conditions: Any, taints: Any, offers: dict[str, str], pods_max: str
) -> None:
    """With what is remembered of nodes and templates, and without."""
    host = node(zone="a")
    host["spec"] = {"taints": taints}
    host["status"] = {"conditions": conditions, "allocatable": {**offers, "pods": pods_max}}
    record = NodeRecord("n", "u", host, ("100.64.0.1",), "", PodAddresses(()), 1.0, {})
    allocatable, used, count = parse_resources(host["status"]["allocatable"]), dict[str, int](), 0
    for number, spec in enumerate([*specs, *specs]):
        made = pod(f"p{number}")
        made["spec"] = spec
        expected = check_admission(made, host, allocatable=allocatable, used=used, pods=count)
        assert record.admit(made) == expected
        if expected is None:
            record.count(f"default/p{number}", made)
            count += 1
            for name, amount in pod_requests(made).items():
                used[name] = used.get(name, 0) + amount
    counted = {} if record.load is None else record.load.used
    assert {name: amount for name, amount in counted.items() if amount} == {k: v for k, v in used.items() if v}
