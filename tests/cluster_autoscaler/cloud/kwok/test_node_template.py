"""What is taken off a Node before others are made from it, and what is put on."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.cluster_autoscaler.cloud.kwok.node_template import KWOK_TAINT, name_prefix, node_info, node_of, sanitised
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.kube.names import is_dns1123_subdomain, is_label_value
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.cloud.kwok.worlds import template


def clean(node: JsonObject, *, taint: bool = False, live: bool = False) -> JsonObject:
    problems = Problems()
    made = sanitised(node, "g", "node n", problems, taint=taint, live=live)
    assert problems.errors == []
    return made


def live_node() -> JsonObject:
    """As ``kubectl get node -o json`` prints one."""
    node = template("ip-10-0-0-1", labels={"kubernetes.io/hostname": "ip-10-0-0-1", "disk": "ssd"})
    node["metadata"].update(
        uid="86716ec7",
        resourceVersion="506",
        generation=3,
        creationTimestamp="2026-01-01T00:00:00Z",
        managedFields=[{"manager": "kubelet"}],
        finalizers=["x/y"],
        ownerReferences=[{"kind": "Machine"}],
    )
    node["metadata"]["annotations"].update(
        {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "csi.volume.kubernetes.io/nodeid": "{}",
            "team": "blue",
            "holokube.dev/fault": "silent",
        }
    )
    node["metadata"]["labels"]["holokube.dev/node-set"] = "node"
    node["spec"] = {
        "podCIDR": "10.244.0.0/24",
        "podCIDRs": ["10.244.0.0/24"],
        "providerID": "aws:///i-0",
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
        ],
    }
    node["status"].update(
        addresses=[{"type": "InternalIP", "address": "10.0.0.1"}],
        conditions=[{"type": "Ready", "status": "False"}],
        images=[{"names": ["a"]}],
        nodeInfo={"kubeletVersion": "v1.30.0", "bootID": "b", "machineID": "m", "architecture": "arm64"},
    )
    return node


def test_what_belongs_to_one_machine_is_taken_off() -> None:
    made = clean(live_node())
    assert set(made["metadata"]) == {"name", "labels", "annotations"}
    assert made["spec"] == {
        "providerID": "kwok:kwok-fake-ip-10-0-0-1",
        "taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}],
    }
    assert set(made["status"]) == {"capacity", "allocatable", "nodeInfo"}
    assert made["status"]["nodeInfo"] == {"kubeletVersion": "fake", "architecture": "arm64"}
    assert made["metadata"]["annotations"]["team"] == "blue"
    assert made["metadata"]["labels"] == {"kubernetes.io/hostname": "kwok-fake-ip-10-0-0-1", "disk": "ssd"}
    assert not any("last-applied" in key or "csi" in key for key in made["metadata"]["annotations"])


def test_faults_in_a_file_are_meant_and_those_of_a_live_node_are_its_own() -> None:
    assert clean(live_node())["metadata"]["annotations"]["holokube.dev/fault"] == "silent"
    assert "holokube.dev/fault" not in clean(live_node(), live=True)["metadata"]["annotations"]


def test_the_original_is_not_changed() -> None:
    node = live_node()
    made = node_of(clean(node, taint=True), "g-abcde")
    made["metadata"]["labels"]["x"] = "y"
    assert node == live_node()


def test_a_template_is_marked_as_ours() -> None:
    assert group_of(clean(template())) == "g"
    assert group_of(node_of(clean(template()), "g-abcde")) == "g"


def test_the_taint_is_put_on_once() -> None:
    once = clean(template(), taint=True)
    assert once["spec"]["taints"] == [KWOK_TAINT]
    assert clean(once, taint=True)["spec"]["taints"] == [KWOK_TAINT]
    assert "taints" not in clean(template())["spec"]


def test_a_node_has_its_own_name_everywhere() -> None:
    made = node_of(clean(template(labels={"kubernetes.io/hostname": "worker"})), "g-abcde")
    assert made["metadata"]["name"] == "g-abcde"
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "g-abcde"
    assert made["spec"]["providerID"] == "kwok:g-abcde"
    path = made["metadata"]["annotations"]["metrics.k8s.io/resource-metrics-path"]
    assert path == "/metrics/nodes/g-abcde/metrics/resource"
    assert "conditions" not in made["status"]


def test_the_node_of_the_template_is_ready_and_runs_a_static_pod() -> None:
    info = node_info(clean(template()), "g", kube_proxy=True)
    assert [(each["type"], each["status"]) for each in info.node["status"]["conditions"]] == [("Ready", "True")]
    (pod,) = info.pods
    assert "kubernetes.io/config.mirror" in pod["metadata"]["annotations"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m"}
    assert node_info(clean(template()), "g", kube_proxy=False).pods == ()


def test_allocatable_and_capacity_stand_in_for_each_other() -> None:
    node = template()
    del node["status"]["capacity"]
    assert clean(node)["status"]["capacity"] == node["status"]["allocatable"]
    other = template()
    del other["status"]["allocatable"]
    assert clean(other)["status"]["allocatable"] == other["status"]["capacity"]


def test_a_template_for_no_pod_at_all_is_told() -> None:
    problems = Problems()
    node = template()
    node["status"] = {"allocatable": {"cpu": "much", "example.com/x": "-1"}}
    sanitised(node, "g", "node n", problems, taint=False, live=False)
    assert any("status.allocatable.cpu is 'much'" in text for text in problems.errors)
    assert any("example.com/x is negative" in text for text in problems.errors)
    assert any("has no memory" in text for text in problems.errors)
    assert problems.warnings == ["node n: status.allocatable has no pods; 110 are taken"]


@pytest.mark.parametrize(
    ("group", "prefix"),
    [
        ("pool-1", "pool-1"),
        ("My_Pool", "my-pool"),
        ("ocid1.nodepool.oc1..aaaa", "ocid1.nodepool.oc1.aaaa"),
        ("m5.large-eu-west-1a-kwok", "m5.large-eu-west-1a-kwok"),
        ("-.-", "kwok"),
        ("Größe", "gr-e"),
        ("a-.-b", "a.b"),
    ],
)
def test_names_of_groups_begin_names_of_nodes(group: str, prefix: str) -> None:
    assert name_prefix(group) == prefix


@pytest.mark.parametrize("group", ["a" * 200, "a." * 60, "x" * 56 + ".-b", "_", "é" * 80])
def test_names_of_nodes_are_always_valid(group: str) -> None:
    name: Any = f"{name_prefix(group)}-bcdfg"
    assert is_dns1123_subdomain(name) == [] and is_label_value(name) == []
