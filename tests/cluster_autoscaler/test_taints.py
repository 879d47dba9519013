"""The taints that mean something to the autoscaler."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler import taints
from holokube.cluster_autoscaler.objects import STARTUP_TAINTED, name_of, node_is_ready, readiness_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.taints import TaintConfig
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import NOW_S, ready_node
from tests.packing.objects import make_node

CONFIG = TaintConfig.of(
    AutoscalerOptions(
        ignore_taint=("old",),
        startup_taint=("starting",),
        startup_taint_prefix=("boot.example/",),
        status_taint=("busy",),
    )
)


def _tainted(*keys: str) -> JsonObject:
    return ready_node("n", taints=[{"key": key, "effect": "NoSchedule"} for key in keys])


@pytest.mark.parametrize(
    ("key", "reported"),
    [
        ("old", "startup-taint"),
        ("starting", "startup-taint"),
        ("boot.example/x", "startup-taint"),
        ("startup-taint.cluster-autoscaler.kubernetes.io/x", "startup-taint"),
        ("ignore-taint.cluster-autoscaler.kubernetes.io/x", "ignore-taint.cluster-autoscaler.kubernetes.io/"),
        ("busy", "status-taint"),
        ("status-taint.cluster-autoscaler.kubernetes.io/x", "status-taint"),
        ("node.kubernetes.io/not-ready", "node.kubernetes.io/not-ready"),
        ("ToBeDeletedByClusterAutoscaler", "ToBeDeletedByClusterAutoscaler"),
        ("dedicated", "other"),
    ],
)
def test_taints_are_told_apart(key: str, reported: str) -> None:
    assert CONFIG.reported_as(key) == reported
    assert taints.count_taints([_tainted(key), _tainted(key)], CONFIG) == {reported: 2}
    is_passing = reported != "other"
    assert taints.sanitised_taints(taints.taints_of(_tainted(key, "kept")), CONFIG) == [
        {"key": key, "effect": "NoSchedule"} for key in ([] if is_passing else [key]) + ["kept"]
    ]


@pytest.mark.parametrize("key", sorted(taints.NODE_CONDITION_TAINTS))
def test_a_passing_state_of_a_node_is_not_one_of_new_nodes(key: str) -> None:
    assert taints.sanitised_taints(taints.taints_of(_tainted(key)), TaintConfig()) == []


def test_the_autoscalers_own_taints_carry_their_time() -> None:
    node = taints.with_taint(make_node("n"), taints.to_be_deleted(NOW_S + 0.9), cordon=True)
    assert taints.taints_of(node) == [
        {"key": "ToBeDeletedByClusterAutoscaler", "value": "1800000000", "effect": "NoSchedule"}
    ]
    assert node["spec"]["unschedulable"] is True
    assert taints.is_to_be_deleted(node)
    assert taints.taint_time_s(node, taints.TO_BE_DELETED) == NOW_S
    assert taints.taint_time_s(node, taints.DELETION_CANDIDATE) is None
    assert taints.deletion_candidate(NOW_S)["effect"] == "PreferNoSchedule"


def test_a_taint_is_not_put_on_twice_and_then_nothing_else_changes() -> None:
    node = make_node("n", taints=[taints.to_be_deleted(1.0)])
    assert taints.with_taint(node, taints.to_be_deleted(2.0), cordon=True) is node


def test_taints_are_taken_off_by_key() -> None:
    plain = make_node("n", taints=[{"key": "a", "effect": "NoSchedule"}])
    node = taints.with_taint(plain, taints.to_be_deleted(1.0), cordon=True)
    clean = taints.without_taints(node, {taints.TO_BE_DELETED}, uncordon=True)
    assert taints.taints_of(clean) == plain["spec"]["taints"]
    assert not clean["spec"].get("unschedulable")
    assert taints.without_taints(node, {taints.TO_BE_DELETED})["spec"]["unschedulable"] is True
    assert taints.without_taints(plain, {taints.TO_BE_DELETED}) is plain
    assert "taints" not in taints.without_taints(plain, {"a"})["spec"]


def test_a_value_that_is_no_time_is_an_error() -> None:
    node = make_node("n", taints=[{"key": taints.TO_BE_DELETED, "value": "soon", "effect": "NoSchedule"}])
    with pytest.raises(ValueError, match="soon"):
        taints.taint_time_s(node, taints.TO_BE_DELETED)


def test_ready_nodes_with_a_start_up_taint_count_as_unready() -> None:
    starting = {**_tainted("starting"), "metadata": {"name": "starting"}}
    busy = {**_tainted("busy"), "metadata": {"name": "busy"}}
    unready = {**_tainted("starting"), "metadata": {"name": "unready"}, "status": {}}
    nodes, ready = taints.without_starting_nodes([starting, busy, unready], [starting, busy], CONFIG)
    assert [name_of(node) for node in nodes] == ["starting", "busy", "unready"]
    assert [name_of(node) for node in ready] == ["busy"]
    assert not node_is_ready(nodes[0]) and readiness_of(nodes[0]).reason == STARTUP_TAINTED
    assert nodes[2] is unready
