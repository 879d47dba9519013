import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, system
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import make_context, make_pdb, make_pod


@pytest.mark.parametrize(("age_s", "outcome"), [(60, Outcome.BLOCK), (3600, Outcome.BLOCK), (3601, Outcome.DRAIN)])
def test_a_system_pod_holds_its_node_for_an_hour(age_s: float, outcome: Outcome) -> None:
    verdict = system.judge(make_pod("p", namespace="kube-system", age_s=age_s), make_context())
    assert verdict is not None and verdict.outcome is outcome


def test_a_system_pod_that_does_not_know_its_age_holds_its_node() -> None:
    pod = make_pod("p", namespace="kube-system")
    del pod["metadata"]["creationTimestamp"]
    verdict = system.judge(pod, make_context())
    assert verdict is not None and verdict.reason is BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD


def test_a_budget_makes_it_an_ordinary_pod() -> None:
    context = make_context(make_pdb(namespace="kube-system", allowed=0))
    assert system.judge(make_pod("p", namespace="kube-system"), context) is None
    assert system.judge(make_pod("p"), make_context()) is None


def test_the_rule_can_be_switched_off() -> None:
    assert system.RULE.is_on is not None
    assert not system.RULE.is_on(AutoscalerOptions(skip_nodes_with_system_pods=False))
