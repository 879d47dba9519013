from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import ConfigError, UsageError
from holokube.cluster_autoscaler.cloud.kwok.grouping import Template
from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.plan.snapshot_input import SnapshotInput, read_snapshot
from tests.cluster_autoscaler.plan.snapshots import node, pods, replica_set, template


def _read(*objects: Any, **more: Any) -> SnapshotInput:
    return read_snapshot(objects, defaults=GroupOptions(), **more)


def test_nodes_of_a_pool_are_a_group_under_the_pool_s_own_name() -> None:
    found = _read(node("a", "blue"), node("b", "blue"), node("c", "green"))
    assert [(spec.id, spec.min_size, spec.max_size) for spec in found.groups] == [("blue", 0, 200), ("green", 0, 200)]
    assert found.group_of == {"a": "blue", "b": "blue", "c": "green"}


def test_sizes_given_by_flag_choose_the_groups_that_are_autoscaled() -> None:
    found = _read(node("a", "blue"), node("c", "green"), sizes=["1:4:green"])
    assert [(spec.id, spec.min_size, spec.max_size) for spec in found.groups] == [("green", 1, 4)]
    assert found.group_of == {"c": "green"}


@pytest.mark.parametrize("text", ["green", "1:green", "a:2:green", "3:2:green", "1:2:"])
def test_sizes_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not MIN:MAX:NAME"):
        _read(node("c", "green"), sizes=[text])


def test_sizes_of_a_group_that_is_not_there_are_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no group 'red'") as caught:
        _read(node("c", "green"), sizes=["1:2:red"])
    assert "green" in caught.value.hint


def test_templates_make_groups_without_nodes() -> None:
    given = template("t", "big", "128Gi", "0.9", **{"cluster-autoscaler.kwok.nodegroup/max-count": "7"})
    found = _read(node("a", "blue"), templates=[Template(given, "t.yaml")])
    big = next(spec for spec in found.groups if spec.id == "big")
    assert (big.max_size, big.price_usd_per_hour) == (7, 0.9)
    assert big.template is not None and big.template.node["status"]["allocatable"]["memory"] == "128Gi"
    assert "t.yaml" in found.sources["big"]


def test_a_bad_template_is_an_error_that_names_it() -> None:
    given = template("t", "big", "128Gi", **{"cluster-autoscaler.kwok.nodegroup/max-count": "many"})
    with pytest.raises(ConfigError, match=r"node t \(t.yaml\).*max-count"):
        _read(node("a", "blue"), templates=[Template(given, "t.yaml")])


def test_the_control_plane_is_left_alone() -> None:
    found = _read(node("a", "blue", labels={"node-role.kubernetes.io/control-plane": ""}))
    assert found.groups == [] and found.group_of == {}
    assert "control plane" in found.notes[0]


def test_a_pod_that_nobody_tried_to_schedule_waits_for_a_place() -> None:
    found = _read(node("a", "blue"), *pods("w", 1), *pods("w", 1, on="a"))
    conditions = {
        obj["metadata"]["name"]: obj["status"]["conditions"][0]["type"]
        for obj in found.objects if obj["kind"] == "Pod"}
    assert conditions == {"w-p-0": "PodScheduled", "w-a-0": "Ready"}


def test_a_pod_behind_a_gate_is_left_there() -> None:
    found = _read(*pods("w", 1, schedulingGates=[{"name": "quota"}]))
    assert "status" not in found.objects[0]


def test_what_decisions_do_not_depend_on_is_left_out_and_told() -> None:
    found = _read(node("a", "blue"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert [obj["kind"] for obj in found.objects] == ["Node"]
    assert "not looked at: 1 Secret" in found.notes


def test_an_object_that_is_given_twice_counts_once_and_the_last_one_wins() -> None:
    found = _read(node("a", "blue"), node("a", "green"))
    assert found.group_of == {"a": "green"}


@pytest.mark.parametrize("bad", ["text", {"metadata": {"name": "x"}}, {"kind": "Pod", "metadata": {}}])
def test_what_is_no_object_is_refused(bad: Any) -> None:
    with pytest.raises(UsageError, match=r"no kind or no metadata\.name"):
        _read(node("a"), bad)


def test_a_snapshot_without_nodes_and_pods_is_refused() -> None:
    with pytest.raises(UsageError, match="neither nodes nor pods"):
        _read(replica_set("w", 0))


def test_controllers_with_fewer_pods_than_they_want_get_them() -> None:
    wanting = replica_set("w", 5)
    wanting["spec"]["template"] = {"spec": {"containers": [{"name": "c"}]}}
    given = _read(node("a"), wanting)
    pods = [obj for obj in given.objects if obj["kind"] == "Pod"]
    assert len(pods) == 5 and all(pod["status"]["conditions"][0]["reason"] == "Unschedulable" for pod in pods)
    assert any("5 pods that workloads want" in note for note in given.notes)


def test_a_snapshot_without_controllers_is_told() -> None:
    assert any("ControllerNotFound" in note for note in _read(*pods("w", 1)).notes)


def test_the_time_is_that_of_the_snapshot() -> None:
    assert _read(node("a")).now.isoformat() == "2026-05-01T00:01:00+00:00"


def test_a_node_without_a_provider_id_gets_one() -> None:
    bare = node("a", "blue")
    del bare["spec"]["providerID"]
    assert _read(bare).objects[0]["spec"]["providerID"] == "plan://blue/a"
