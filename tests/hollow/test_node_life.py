"""What a node reports about itself."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.hollow.images import ImageStore
from holokube.hollow.node_life import (
    Fault,
    asks_for_reboot,
    boot_id,
    desired_status,
    faults_of,
    internal_addresses,
    registration,
    status_patch,
    transition_events,
    unknown_words,
)
from holokube.hollow.profile import NodeProfile

PROFILE = NodeProfile()


def bare(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", "uid": "u"}, "status": status}


def reported(node: dict[str, Any], *faults: Fault, now_s: float = 1000.0) -> dict[str, Any]:
    """The node after its patch."""
    desired = desired_status(node, PROFILE, faults, addresses=["100.64.0.1"], boot="b")
    patch = status_patch(node, desired, now_s)
    assert patch is not None and patch["metadata"] == {"uid": "u"}
    return {**node, "status": {**node["status"], **patch["status"]}}


def conditions(node: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c["status"] for c in node["status"]["conditions"]}


def test_a_bare_node_gets_everything() -> None:
    status = reported(bare())["status"]
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "100.64.0.1"}, {"type": "Hostname", "address": "n"}]  # fmt: skip
    assert status["capacity"]["pods"] == status["allocatable"]["pods"] == "110"
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.3" and status["nodeInfo"]["bootID"] == "b"
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert conditions({"status": status}) == {
        "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True",
        "NetworkUnavailable": "False"}  # fmt: skip


def test_what_the_node_says_already_is_kept() -> None:
    given = bare(
        capacity={"cpu": "2"},
        nodeInfo={"kubeletVersion": "v1.30.0", "architecture": "arm64", "osImage": ""},
        addresses=[{"type": "InternalIP", "address": "192.0.2.7"}],
        daemonEndpoints={"kubeletEndpoint": {"Port": 10247}},
    )
    status = reported(given)["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "2"}
    info = status["nodeInfo"]
    assert (info["kubeletVersion"], info["architecture"]) == ("v1.30.0", "arm64")
    assert info["osImage"] == PROFILE.os_image
    assert status["addresses"] == [{"type": "InternalIP", "address": "192.0.2.7"}]
    assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10247


def test_nothing_is_said_twice_but_heartbeats() -> None:
    node = reported(bare())
    desired = desired_status(node, PROFILE, (), addresses=["100.64.0.1"], boot="b")
    assert status_patch(node, desired, 2000) is None
    beat = status_patch(node, desired, 2000, heartbeat=True)
    assert beat is not None and list(beat["status"]) == ["conditions"]
    ready = next(c for c in beat["status"]["conditions"] if c["type"] == "Ready")
    assert ready["lastHeartbeatTime"] == "1970-01-01T00:33:20Z"
    assert ready["lastTransitionTime"] == "1970-01-01T00:16:40Z"


def test_the_network_condition_of_others_is_left_alone() -> None:
    foreign = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRoute", "message": "m"}
    node = bare(conditions=[foreign])
    desired = desired_status(node, PROFILE, (), addresses=[], boot="b")
    assert "NetworkUnavailable" not in [c["type"] for c in desired["conditions"]]


@pytest.mark.parametrize(
    ("fault", "condition", "status"),
    [(Fault.NETWORK_UNAVAILABLE, "NetworkUnavailable", "True"),
     (Fault.NOT_READY, "Ready", "False"), (Fault.MEMORY_PRESSURE, "MemoryPressure", "True"),
     (Fault.DISK_PRESSURE, "DiskPressure", "True"), (Fault.PID_PRESSURE, "PIDPressure", "True")],
)  # fmt: skip
def test_faults_show_in_the_conditions_and_move_their_times(fault: Fault, condition: str, status: str) -> None:
    node = reported(bare())
    broken = reported(node, fault, now_s=5000)
    assert conditions(broken)[condition] == status
    found = next(c for c in broken["status"]["conditions"] if c["type"] == condition)
    assert found["lastTransitionTime"] == "1970-01-01T01:23:20Z"
    desired = desired_status(node, PROFILE, (fault,), addresses=[], boot="b")
    events = transition_events(node, desired)
    if fault is Fault.NETWORK_UNAVAILABLE:
        assert events == []  # It is no kubelet that tells of the network.
        return
    (event,) = events
    assert event[2] == f"Node n status is now: {event[1]}"


def test_faults_are_asked_for_by_label_and_annotation() -> None:
    def of(labels: dict[str, str], annotations: dict[str, str]) -> frozenset[Fault]:
        return faults_of({"metadata": {"labels": labels, "annotations": annotations}})

    assert of({}, {}) == frozenset()
    assert of({"holokube.dev/fault": "silent"}, {}) == {Fault.SILENT}
    assert of({}, {"holokube.dev/fault": "slow, disk-pressure,nonsense"}) == {Fault.SLOW, Fault.DISK_PRESSURE}
    assert of({"node-not-ready.stage.kwok.x-k8s.io": "true"}, {}) == {Fault.NOT_READY}


def test_a_network_fault_can_be_healed_but_the_networks_own_condition_stays() -> None:
    down = reported(reported(bare()), Fault.NETWORK_UNAVAILABLE)
    assert conditions(reported(down))["NetworkUnavailable"] == "False"
    foreign = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRoute", "message": "m"}
    assert conditions(reported(bare(conditions=[foreign]), Fault.NETWORK_UNAVAILABLE))["NetworkUnavailable"] == "True"


def test_a_reboot_is_asked_for_by_token_or_word_and_not_by_healing() -> None:
    def node(**annotations: str) -> dict[str, Any]:
        return {"metadata": {"annotations": {f"holokube.dev/{key}": value for key, value in annotations.items()}}}

    assert asks_for_reboot(node(reboot="1"), node(reboot="2"))
    assert asks_for_reboot(node(fault="slow"), node(fault="slow,reboot"))
    assert not asks_for_reboot(node(fault="slow,reboot"), node(fault="slow"))
    assert not asks_for_reboot(node(fault="reboot"), node(fault="reboot,slow"))


def test_kwoks_annotations_say_why_a_node_is_not_ready() -> None:
    key = "node-not-ready.stage.kwok.x-k8s.io"
    meta = {"name": "n", "uid": "u", "labels": {key: "true"},
            "annotations": {f"{key}/reason": "Fire", f"{key}/message": "in the rack", f"{key}/type": "DiskPressure"}}
    node = {"metadata": meta, "status": {}}
    found = {c["type"]: c for c in reported(node, *faults_of(node))["status"]["conditions"]}
    for kind, status in (("Ready", "False"), ("DiskPressure", "True")):
        assert {f: found[kind][f] for f in ("status", "reason", "message")} == {
            "status": status, "reason": "Fire", "message": "in the rack"}  # fmt: skip
    assert found["MemoryPressure"]["status"] == "False"


def test_conditions_of_the_profile_are_reported_too_and_settle() -> None:
    profile = NodeProfile(conditions=[{"type": "KernelDeadlock", "status": "False"}])
    node = bare()
    desired = desired_status(node, profile, (), addresses=[], boot="b")
    patch = status_patch(node, desired, 1000)
    assert patch is not None and patch["status"]["conditions"][-1]["type"] == "KernelDeadlock"
    sent = [{k: v for k, v in c.items() if v} for c in patch["status"]["conditions"]]
    after = {**node, "status": {**patch["status"], "conditions": sent}}
    assert status_patch(after, desired_status(after, profile, (), addresses=[], boot="b"), 2000) is None
    with pytest.raises(ValueError, match="needs the type"):
        NodeProfile(conditions=[{"status": "True"}])


def test_images_are_told_with_the_next_report_and_not_before() -> None:
    node = reported(bare())
    images = ImageStore()
    images.add("registry.example/app:1")
    desired = desired_status(node, PROFILE, (), addresses=[], boot="b", images=images.report())
    assert status_patch(node, desired, 2000) is None
    beat = status_patch(node, desired, 2000, heartbeat=True)
    assert beat is not None and beat["status"]["images"][0]["names"][1] == "registry.example/app:1"


def test_at_most_fifty_images_are_kept_the_largest_first() -> None:
    images = ImageStore()
    for number in range(60):
        images.add(f"registry.example/app:{number}")
    images.add("registry.example/app:59")
    listed = images.report()
    assert len(listed) == 50 and not any("registry.example/app:0" in entry["names"] for entry in listed)
    sizes = [entry["sizeBytes"] for entry in listed]
    assert sizes == sorted(sizes, reverse=True)


def test_words_that_mean_nothing_can_be_named() -> None:
    key = "holokube.dev/fault"
    node = {"metadata": {"labels": {key: "fire"}, "annotations": {key: "slow,reboot,x"}}}
    assert unknown_words(node) == ["x", "fire"]


def test_a_new_node_says_so_in_its_events() -> None:
    desired = desired_status(bare(), PROFILE, (), addresses=[], boot="b")
    assert [event[1] for event in transition_events(bare(), desired)] == [
        "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]  # fmt: skip


def test_registration_carries_what_the_profile_says() -> None:
    profile = NodeProfile(labels={"pool": "gpu"}, taints=[{"key": "gpu", "effect": "NoSchedule"}],
                          capacity={"cpu": "8", "nvidia.com/gpu": "4"})  # fmt: skip
    made = registration("n", profile, addresses=["192.0.2.1"])
    assert made["metadata"]["labels"]["pool"] == "gpu" and made["spec"]["taints"] == profile.taints
    assert made["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert internal_addresses(made) == ["192.0.2.1"]


def test_internal_addresses_come_first_and_once_per_family() -> None:
    listed = [("ExternalIP", "203.0.113.1"), ("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1")]
    node = bare(addresses=[{"type": kind, "address": address} for kind, address in listed])
    assert internal_addresses(node) == ["10.0.0.1", "fd00::1"]


def test_boot_ids_differ_by_token_only() -> None:
    assert boot_id("u", "1") == boot_id("u", "1") != boot_id("u", "2")
