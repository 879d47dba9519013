"""Faults of scenarios, as a run shows them."""

from __future__ import annotations

from holokube.lab.results import RunResult
from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.curves import Constant, Step, Steps
from holokube.lab.scenario.faults import (
    ApiErrors,
    Fault,
    NodeSilence,
    SlowBoot,
    SpotReclaim,
    StockOut,
    ZoneLoss,
)
from holokube.lab.scenario.model import ClusterSpec, PolicySpec, Workload
from tests.lab.run.small_scenarios import KARPENTER, NO_POLICY, autoscaled, groups, scenario, web

STEADY = Workload("web", (web(),), curve=Constant(8))
LATER = Workload("web", (web(),), curve=Steps((Step(0.0, 1), Step(120.0, 8))))
SPOT_POOL = PolicySpec("karpenter", manifests=(
    {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}, "spec": {}},
    {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]},
            ],
        }}},
    },
))  # fmt: skip


def told(result: RunResult, kind: str, decision: str) -> list[float]:
    return [one.at_s for one in result.decisions if (one.kind, one.decision) == (kind, decision)]


def test_silent_nodes_are_found_out_as_soon_as_with_heartbeats_and_come_back() -> None:
    cluster = ClusterSpec(nodes=4)
    faults = (Fault(100.0, NodeSilence(count=1), until_s=400.0),)
    result = run_scenario(scenario(STEADY, cluster=cluster, faults=faults, sampling_s=5.0), NO_POLICY)
    ready = dict(zip(result.series.times_s, result.series.columns["nodes_ready"], strict=True))
    silent = [at_s for at_s, count in ready.items() if count == 3]
    # The last sign of life is up to ten seconds old; fifty seconds later, at the next fifth second, it is missed.
    assert 140 <= silent[0] <= 160
    assert silent[-1] < 410
    assert ready[595.0] == 4
    assert told(result, "fault", "begins") == [100.0]
    assert told(result, "fault", "ends") == [400.0]
    assert len(told(result, "node", "silenced")) == 1
    assert told(result, "node", "heard again") == [400.0]
    assert {one.reasons for one in result.decisions if one.kind == "fault"} == {("count: 1",)}


def test_a_lost_zone_is_replaced_in_another() -> None:
    policy = PolicySpec(
        "cluster-autoscaler", flags=("--balance-similar-node-groups",), node_groups=groups(zones=("a", "b"))
    )
    faults = (Fault(200.0, ZoneLoss("a")),)
    result = run_scenario(scenario(STEADY, faults=faults, minutes=15.0), policy)
    assert sorted(node.zone for node in result.nodes if node.created_s < 200) == ["a", "b"]
    later = [node.zone for node in result.nodes if node.created_s > 200]
    assert later
    assert set(later) == {"b"}
    # They stay in deletion: nobody is there to say that their containers have ended.
    assert result.summary["evictions"] == 4
    assert len(told(result, "pod", "evicted")) == 4, "the journal knows who sent them away"
    assert result.summary["pods_pending_end"] == 0


def test_machines_that_cannot_be_had_are_failed_scale_ups_until_there_are_some_again() -> None:
    faults = (Fault(60.0, StockOut(), until_s=400.0),)
    result = run_scenario(scenario(LATER, faults=faults, minutes=20.0), autoscaled())
    assert [node.created_s < 60 or node.created_s > 400 for node in result.nodes] == [True] * len(result.nodes)
    assert (result.summary["failed_scale_ups"] or 0) > 0
    assert result.summary["pods_pending_end"] == 0


def test_karpenter_finds_no_machines_either() -> None:
    faults = (Fault(60.0, StockOut(), until_s=400.0),)
    result = run_scenario(scenario(LATER, faults=faults, minutes=20.0), KARPENTER)
    assert all(node.created_s < 60 or node.created_s > 400 for node in result.nodes)
    assert (result.summary["failed_scale_ups"] or 0) > 0
    assert result.summary["pods_pending_end"] == 0


def test_a_pool_that_is_sold_out_is_at_its_limit() -> None:
    faults = (Fault(60.0, StockOut(groups=("default",)), until_s=400.0),)
    result = run_scenario(scenario(LATER, faults=faults, minutes=20.0), KARPENTER)
    assert all(node.created_s < 60 or node.created_s > 400 for node in result.nodes)
    assert result.summary["pods_pending_end"] == 0


def test_slow_machines_make_pods_wait() -> None:
    faults = (Fault(60.0, SlowBoot(factor=4.0, extra_s=10.0)),)
    usual = run_scenario(scenario(LATER), autoscaled())
    slow = run_scenario(scenario(LATER, faults=faults), autoscaled())
    assert usual.summary["pending_max_s"] is not None
    assert slow.summary["pending_max_s"] == usual.summary["pending_max_s"] + 30 * 3 + 10


def test_slow_machines_of_karpenter_too() -> None:
    usual = run_scenario(scenario(LATER), KARPENTER)
    slow = run_scenario(scenario(LATER, faults=(Fault(60.0, SlowBoot(extra_s=45.0)),)), KARPENTER)
    assert (slow.summary["pending_max_s"] or 0) >= (usual.summary["pending_max_s"] or 0) + 44


def test_spot_machines_are_taken_back_after_their_notice() -> None:
    faults = (Fault(200.0, SpotReclaim(share=1.0)),)
    result = run_scenario(scenario(STEADY, faults=faults, minutes=15.0), autoscaled(capacity_type="spot"))
    first = [node for node in result.nodes if node.created_s < 200]
    assert {node.removed_s for node in first} == {320.0}
    assert {node.why_removed for node in first} == {"the cloud took the machine back"}
    assert result.summary["pods_pending_end"] == 0
    assert result.summary["evictions"] == 8


def test_karpenter_drains_what_is_to_be_taken_back() -> None:
    faults = (Fault(200.0, SpotReclaim(share=1.0)),)
    result = run_scenario(scenario(STEADY, faults=faults, minutes=15.0), SPOT_POOL)
    first = [node for node in result.nodes if node.created_s < 200]
    assert first
    # Its pods leave in order as soon as there is the notice.
    assert all(200 < (node.removed_s or 0) <= 320 for node in first)
    assert result.summary["pods_pending_end"] == 0
    assert {node.capacity_type for node in result.nodes} == {"spot"}


def test_on_demand_machines_are_not_taken_back() -> None:
    faults = (Fault(200.0, SpotReclaim(per_hour=600.0), until_s=500.0),)
    result = run_scenario(scenario(STEADY, faults=faults), autoscaled(capacity_type="on-demand"))
    assert result.summary["node_removals"] == 0


def test_reclaims_by_the_hour_come_at_random_moments() -> None:
    faults = (Fault(100.0, SpotReclaim(per_hour=60.0), until_s=500.0),)
    result = run_scenario(scenario(STEADY, faults=faults), autoscaled(capacity_type="spot"))
    notices = told(result, "node", "is to be taken back")
    assert len(notices) >= 2
    assert len(set(notices)) == len(notices)
    assert all(100 < at_s < 500 for at_s in notices)


def test_a_cluster_lives_through_errors_of_its_api_server() -> None:
    faults = (Fault(60.0, ApiErrors(share=0.2), until_s=400.0),)
    result = run_scenario(scenario(LATER, faults=faults, minutes=20.0), autoscaled())
    assert result.summary["pods_pending_end"] == 0
    assert sum(pod.ended_s is None and pod.ready_s is not None for pod in result.pods) == 8
