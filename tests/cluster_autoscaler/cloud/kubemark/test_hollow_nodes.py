"""What the objects of both clusters say about hollow nodes."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import (
    GROUP_LABEL,
    cancellable,
    controller_of,
    instance_of,
    is_left_behind,
    machine_of,
    replicas_of,
)
from holokube.cluster_autoscaler.cloud.provider import Instance, InstanceState
from holokube.kube.types import JsonObject
from tests.builders import node, pod


def hollow_pod(name: str, *, phase: str = "Running", on: str = "host", leaving: bool = False) -> JsonObject:
    made = {**pod(name, "kubemark", node=on), "status": {"phase": phase}}
    if leaving:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return made


def hollow_node(name: str, *, ready: str = "Unknown", group: str = "a", provider_id: str = "") -> JsonObject:
    made = node(name, **({GROUP_LABEL: group} if group else {}))
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {**made, "spec": {"providerID": provider_id or f"kubemark://{name}"}, "status": {"conditions": conditions}}


def controller(name: str, **spec: Any) -> JsonObject:
    return {"metadata": {"name": name, "labels": {GROUP_LABEL: "a"}}, "spec": spec}


def test_a_machine_is_known_by_the_provider_id_of_its_node() -> None:
    assert machine_of(hollow_node("x")) == "x"
    fake = {"metadata": {"name": "kubemark://x"}, "spec": {"providerID": "kubemark://x"}}
    assert machine_of(fake) == "x"
    assert machine_of(node("x")) == ""
    assert machine_of(hollow_node("x", provider_id="kubemarket://x")) == ""


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (hollow_pod("p"), InstanceState.RUNNING),
        (hollow_pod("q"), InstanceState.CREATING),
        (hollow_pod("q", phase="Pending"), InstanceState.CREATING),
        (hollow_pod("p", leaving=True), InstanceState.DELETING),
    ],
)
def test_a_machine_runs_as_soon_as_there_is_a_node(given: JsonObject, state: InstanceState) -> None:
    assert instance_of(given, {"p"}) == Instance(f"kubemark://{given['metadata']['name']}", state)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_no_machine(phase: str) -> None:
    assert instance_of(hollow_pod("p", phase=phase), {"p"}) is None


def test_the_controller_of_a_pod_is_its_owner_or_else_what_its_label_says() -> None:
    owned = hollow_pod("p")
    owned["metadata"]["labels"] = {"name": "labelled"}
    assert controller_of(owned) == "labelled"
    owned["metadata"]["ownerReferences"] = [
        {"kind": "ReplicationController", "name": "helper"},
        {"kind": "ReplicaSet", "name": "set", "controller": True},
        {"kind": "ReplicationController", "name": "owner", "controller": True},
    ]
    assert controller_of(owned) == "owner"


def test_a_controller_has_one_replica_unless_told() -> None:
    assert [replicas_of(controller("x")), replicas_of(controller("x", replicas=0))] == [1, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (hollow_node("n"), True),
        (hollow_node("n", ready="False"), True),
        (hollow_node("n", ready="True"), False),
        (hollow_node("n", ready=""), False),
        (hollow_node("n", group="b"), False),
        (hollow_node("n", group=""), False),
        (hollow_node("removed", group=""), True),
        (hollow_node("removed", ready="True"), False),
        (hollow_node("n", provider_id="kubemark://other"), False),
        (hollow_node("n", provider_id="gce://n"), False),
    ],
)
def test_only_silent_nodes_of_ours_are_left_behind(given: JsonObject, expected: bool) -> None:
    assert is_left_behind(given, {"a"}, {"removed"}) is expected


def test_requests_without_a_node_are_cancelled_the_least_advanced_first() -> None:
    names = ("running", "registered", "bound", "pending", "nothing", "also-nothing")
    controllers = [controller(name, replicas=1) for name in names]
    controllers += [controller("template", replicas=0), controller("many", replicas=2)]
    pods = {
        "running": [hollow_pod("p1")],
        "registered": [hollow_pod("old", leaving=True), hollow_pod("p2")],
        "bound": [hollow_pod("p3", phase="Pending")],
        "pending": [hollow_pod("p4", phase="Pending", on="")],
    }
    found = cancellable(controllers, pods, {"p2"})
    assert [each["metadata"]["name"] for each in found] == ["nothing", "also-nothing", "pending", "bound", "running"]
