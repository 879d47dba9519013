from __future__ import annotations

from holokube.karpenter.api import labels
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.kube.taints import Taint
from holokube.kube.types import JsonObject

T0 = "2026-01-01T00:00:00Z"


def claim(**status: object) -> JsonObject:
    return {
        "metadata": {
            "name": "default-abc", "uid": "u-1", "creationTimestamp": T0, "finalizers": [labels.TERMINATION_FINALIZER],
            "labels": {
                "karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "c-1x-amd64-linux",
                "topology.kubernetes.io/zone": "a", "karpenter.sh/capacity-type": "spot",
            },
            "annotations": {labels.TERMINATION_TIMESTAMP: "2026-01-01T01:00:00Z"},
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "fast"},
            "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            "taints": [{"key": "t", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "s", "effect": "NoExecute"}],
            "expireAfter": "Never", "terminationGracePeriod": "10m",
        },
        "status": status,
    }  # fmt: skip


def test_spec_and_metadata_are_read() -> None:
    read = NodeClaim.of(claim())
    assert (read.name, read.uid, read.pool_name) == ("default-abc", "u-1", "default")
    assert (read.instance_type, read.zone, read.capacity_type) == ("c-1x-amd64-linux", "a", "spot")
    assert read.node_class_ref == NodeClassRef("karpenter.kwok.sh", "KWOKNodeClass", "fast")
    assert read.node_class_ref.label == "karpenter.kwok.sh/kwoknodeclass"
    assert read.requirements["topology.kubernetes.io/zone"].values == {"a"}
    assert read.requests == {"cpu": 1000, "memory": 2**30 * 1000}
    assert read.taints == (Taint("t", "", "NoSchedule"),) and read.startup_taints == (Taint("s", "", "NoExecute"),)
    assert read.expire_after_s is None and read.termination_grace_period_s == 600
    assert read.created_s == 1767225600 and read.termination_deadline_s == 1767225600 + 3600
    assert read.finalizers == ("karpenter.sh/termination",) and not read.is_deleting and read.deleted_s is None


def test_status_is_read() -> None:
    launched = {"type": "Launched", "status": "True", "lastTransitionTime": T0}
    conditions = [launched, {"type": "Registered", "status": "Unknown"}]
    read = NodeClaim.of(claim(
        providerID="kwok://n", nodeName="n", capacity={"cpu": "2"}, allocatable={"cpu": "1900m"},
        lastPodEventTime=T0, conditions=conditions,
    ))  # fmt: skip
    assert read.provider_id == "kwok://n" and read.node_name == "n"
    assert read.capacity == {"cpu": 2000} and read.allocatable == {"cpu": 1900}
    assert read.is_launched and not read.is_registered and not read.is_initialized
    assert read.since_s("Launched") == 1767225600 and read.since_s("Drifted") is None
    assert read.last_pod_event_s == 1767225600


def test_a_claim_of_a_users_own_has_no_pool_and_nothing_yet() -> None:
    read = NodeClaim.of({"metadata": {"name": "mine"}, "spec": {}})
    assert read.pool_name == "" and read.provider_id == "" and read.requests == {}
    assert read.created_s == 0 and read.termination_deadline_s is None and read.last_pod_event_s is None


def test_an_annotation_that_is_no_time_is_no_deadline() -> None:
    broken = claim()
    broken["metadata"]["annotations"][labels.TERMINATION_TIMESTAMP] = "tomorrow"
    assert NodeClaim.of(broken).termination_deadline_s is None
