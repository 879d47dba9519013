import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import replica_count
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod


@pytest.mark.parametrize("kind", ["ReplicationController", "ReplicaSet", "Job", "StatefulSet", "DaemonSet"])
def test_a_pod_whose_controller_is_gone_blocks(kind: str) -> None:
    pod = make_pod("p", owner=(kind, "c"))
    verdict = replica_count.judge(pod, make_context(controllers={}))
    assert verdict is not None and verdict.reason is BlockingReason.CONTROLLER_NOT_FOUND
    there = {(kind, "default", "c"): {"spec": {"replicas": 1}}}
    assert replica_count.judge(pod, make_context(controllers=there)) is None


@pytest.mark.parametrize("kind", ["ReplicationController", "ReplicaSet"])
def test_a_small_set_blocks(kind: str) -> None:
    there = {(kind, "default", "c"): {"spec": {"replicas": 2}}}
    pod = make_pod("p", owner=(kind, "c"))
    verdict = replica_count.judge(pod, make_context(controllers=there, min_replica_count=3))
    assert verdict is not None and verdict.reason is BlockingReason.MIN_REPLICAS_REACHED
    assert "2 replicas" in verdict.message
    assert replica_count.judge(pod, make_context(controllers=there, min_replica_count=2)) is None


def test_a_small_stateful_set_does_not_block() -> None:
    there = {("StatefulSet", "default", "c"): {"spec": {"replicas": 1}}}
    pod = make_pod("p", owner=("StatefulSet", "c"))
    assert replica_count.judge(pod, make_context(controllers=there, min_replica_count=3)) is None


def test_a_namesake_of_another_api_group_is_not_looked_for() -> None:
    pod = make_pod("p", owner=("StatefulSet", "c"))
    pod["metadata"]["ownerReferences"][0]["apiVersion"] = "apps.kruise.io/v1"
    assert replica_count.judge(pod, make_context(controllers={})) is None


def test_a_pod_that_is_to_be_treated_as_a_daemon_is_not_looked_for() -> None:
    pod = make_pod("p", annotations={"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"})
    assert replica_count.judge(pod, make_context(controllers={})) is None


def test_nothing_is_asked_without_controllers_or_without_an_owner() -> None:
    assert replica_count.judge(make_pod("p"), make_context()) is None
    assert replica_count.judge(make_pod("p", owner=None), make_context(controllers={})) is None


def test_the_rule_is_off_when_custom_controllers_are_trusted() -> None:
    assert replica_count.RULE.is_on is not None
    assert replica_count.RULE.is_on(AutoscalerOptions())
    assert not replica_count.RULE.is_on(AutoscalerOptions(skip_nodes_with_custom_controller_pods=False))
