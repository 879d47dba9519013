from __future__ import annotations

from typing import Any

import pytest

from holokube.workloads.volume_decisions import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    Bind,
    Provision,
    WaitForVolume,
    bound_claim,
    claims_of,
    find_volume,
    is_in_use,
    made_up_volume,
    plan,
    reserved_volume,
    volume_phase,
)
from tests.workloads.objects import a_pod, an_owner

JsonObject = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def claim(size: str = "1Gi", **spec: Any) -> JsonObject:
    resources = {"requests": {"storage": size}}
    made = an_owner("PersistentVolumeClaim", "data", accessModes=["ReadWriteOnce"], resources=resources, **spec)
    made["metadata"]["resourceVersion"] = "7"
    return made


def volume(name: str, size: str = "1Gi", **spec: Any) -> JsonObject:
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], **spec}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": body}


def storage_class(mode: str = "Immediate", **more: Any) -> JsonObject:
    return {"metadata": {"name": "fast"}, "provisioner": "x.example", "volumeBindingMode": mode, **more}


def node(name: str, zone: str) -> JsonObject:
    return {"metadata": {"name": name, "labels": {ZONE: zone}}}


def test_the_smallest_volume_that_fits_is_taken() -> None:
    volumes = [
        volume("huge", "50Gi"), volume("fits", "2Gi"), volume("small", "1Gi"),
        volume("taken", "2Gi", claimRef={"name": "x"}),
        volume("other-class", "2Gi", storageClassName="slow"), volume("block", "2Gi", volumeMode="Block"),
    ]  # fmt: skip
    found = find_volume(claim("2Gi"), volumes, None)
    assert found is not None and found["metadata"]["name"] == "fits"
    assert find_volume(claim("60Gi"), volumes, None) is None


def test_a_volume_that_was_reserved_is_bound_even_before_there_is_a_consumer() -> None:
    reserved = volume("mine", claimRef={"name": "data", "namespace": "default"})
    decided = plan(claim(storageClassName="fast"), [reserved], storage_class("WaitForFirstConsumer"), [], None)
    assert decided == Bind(reserved)


@pytest.mark.parametrize(
    ("name", "found", "reason"),
    [
        (None, None, "FailedBinding"), ("", None, "FailedBinding"), ("fast", None, "ProvisioningFailed"),
        ("fast", storage_class("WaitForFirstConsumer"), "WaitForFirstConsumer"),
        ("fast", storage_class() | {"provisioner": "kubernetes.io/no-provisioner"}, "ProvisioningFailed"),
    ],
)  # fmt: skip
def test_why_a_claim_waits(name: str | None, found: JsonObject | None, reason: str) -> None:
    decided = plan(claim(storageClassName=name), [], found, [], None)
    assert isinstance(decided, WaitForVolume) and decided.reason == reason


def test_a_volume_is_made_up_where_the_pod_goes_or_where_nodes_are() -> None:
    nodes = [node("a", "z1"), node("b", "z2")]
    assert plan(claim(storageClassName="fast"), [], storage_class(), nodes, None) == Provision(
        storage_class(), ("z1", "z2")
    )
    waiting = storage_class("WaitForFirstConsumer")
    assert plan(claim(storageClassName="fast"), [], waiting, nodes, nodes[1]) == Provision(waiting, ("z2",))
    made = made_up_volume(claim(), storage_class(), "z2")
    assert made["spec"]["claimRef"]["uid"] == "uid-data" and made["metadata"]["labels"] == {ZONE: "z2"}


def test_the_claim_is_written_into_the_volume_with_its_version() -> None:
    bound = reserved_volume(volume("v"), claim())
    assert bound is not None
    assert bound["spec"]["claimRef"]["resourceVersion"] == "7"
    assert bound["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert reserved_volume(bound, claim()) is None


def test_a_claim_that_named_its_volume_was_not_bound_by_the_controller() -> None:
    by_us = bound_claim(claim(), volume("v"))
    by_user = bound_claim(claim(volumeName="v"), volume("v"))
    assert by_us is not None and by_user is not None
    assert by_us["metadata"]["annotations"] == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert by_user["metadata"]["annotations"] == {BIND_COMPLETED: "yes"}
    assert bound_claim(by_us, volume("v")) is None


def test_phases_of_a_volume() -> None:
    mine = {"claimRef": {"name": "data", "namespace": "default", "uid": "uid-data"}}
    assert volume_phase(volume("v"), None) == "Available"
    assert volume_phase(volume("v", claimRef={"name": "data"}), None) == "Available"
    assert volume_phase(volume("v", **mine), None) == "Released"
    assert volume_phase(volume("v", **mine), claim(volumeName="v")) == "Bound"
    assert volume_phase(volume("v", **mine), claim()) == "Pending"


def test_claims_are_in_use_while_a_pod_on_a_node_may_have_them_open() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}}, {"name": "c"},
    ]  # fmt: skip
    assert claims_of(a_pod("user", volumes=volumes)) == ["default/data", "default/user-b"]
    assert is_in_use([a_pod(node="n")])
    assert not is_in_use([a_pod(), a_pod("over", "Succeeded", node="n")])
