"""Any nodes to any other: what is moved keeps every rule, budgets hold, and it saves at least what Karpenter saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.types import Candidate
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.optimal.global_consolidation import GlobalMove, MoveLimits, consolidate_globally
from holokube.karpenter.scheduling.problem import CONSOLIDATION_OPTIONS, Problem, pod_key
from holokube.karpenter.scheduling.simulation import Simulation
from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.disruption import clusters, objects
from tests.karpenter.disruption.real import problem_of, real_view

METHOD = MultiNodeConsolidation()


def checked(
    problem: Problem, candidates: list[Candidate], budgets: dict[str, int], *, spot_to_spot: bool = False
) -> GlobalMove:
    move = consolidate_globally(problem, candidates, budgets, limits=MoveLimits(rounds=60), spot_to_spot=spot_to_spot)
    gone = set(move.removed)
    pods = [pod for candidate in candidates if candidate.name in gone for pod in candidate.movable_pods]
    nodes = [replace(node, is_marked=True) if node.name in gone else node for node in problem.state_nodes]
    after = replace(problem, state_nodes=nodes, pods=pods)
    assert check_placements(after, move.claims, move.existing) == []
    placed = [pod_key(pod) for claim in move.claims for pod in claim.pods]
    placed += [pod_key(pod) for there in move.existing.values() for pod in there]
    assert sorted(placed) == sorted(map(pod_key, pods))
    for pool, most in budgets.items():
        assert sum(candidate.pool.name == pool and candidate.name in gone for candidate in candidates) <= most
    new = sum(claim.price_usd_per_hour for claim in move.claims)
    stay = sum(candidate.price for candidate in candidates if candidate.name not in gone)
    assert move.price_after == pytest.approx(stay + new)
    assert move.bound <= move.price_after + 1e-6
    return move


@pytest.mark.parametrize(
    ("shape", "budget"),
    [(clusters.PLAIN, "100%"), (clusters.PLAIN, "10%"), (clusters.CONSTRAINED, "100%"), (clusters.CONSTRAINED, "20%")],
)
def test_a_cluster_becomes_cheaper_and_no_rule_is_broken(shape: clusters.Shape, budget: str) -> None:
    given = clusters.build(3, replace(shape, nodes=40, types=60, budgets=({"nodes": budget},)))
    problem = Problem(
        given.pools, given.types_of_pool, state_nodes=given.nodes, now_s=clusters.NOW_S, options=CONSOLIDATION_OPTIONS
    )
    pools = {pool.name: pool for pool in given.pools}
    view = DisruptionView(clusters.NOW_S, given.nodes, pools, given.types_of_pool, Simulation(problem))
    move = checked(problem, view.candidates(METHOD), view.budget_left(METHOD.reason))
    theirs = METHOD.compute(view, Memory()).command
    assert theirs is not None
    assert move.savings >= theirs.savings - 1e-6


def _candidates(view: DisruptionView) -> list[Candidate]:
    return view.candidates(METHOD)


def test_two_wrong_nodes_become_two_right_ones() -> None:
    """Neither Karpenter's methods nor any single replacement would help: one becomes no cheaper one, two no one."""
    cpu = objects.instance_type("cpu", 1.0, cpu=8, memory_gib=8)
    memory = objects.instance_type("memory", 1.0, cpu=2, memory_gib=64)
    both = objects.instance_type("both", 1.8, cpu=8, memory_gib=64)
    nodes = [
        objects.node(f"n{n}", type="both", cpu="7900m", memory="64Gi", pods=[
            objects.pod(f"a{n}", cpu="3500m", memory="1Gi"), objects.pod(f"b{n}", cpu="100m", memory="30Gi"),
        ])
        for n in range(2)
    ]  # fmt: skip
    pool = objects.pool()
    types = [cpu, memory, both]
    view = real_view(nodes, pools=[pool], types=types)
    problem = problem_of(nodes, [pool], types)
    move = checked(problem, _candidates(view), {"default": 2})
    assert move.price_before == pytest.approx(3.6)
    assert move.price_after == pytest.approx(1.8), "one node of both holds all four"


def test_nothing_goes_without_budget_or_without_savings() -> None:
    nodes = [objects.node(f"n{n}", pods=[objects.pod(f"p{n}", cpu="1500m")]) for n in range(2)]
    pool = objects.pool()
    view = real_view(nodes, pools=[pool])
    problem = problem_of(nodes, [pool], objects.TYPES)
    assert checked(problem, _candidates(view), {"default": 0}).removed == ()
    full = [objects.node("full", type="small", cpu="1900m", memory="8Gi", pods=[objects.pod("p", cpu="1800m")])]
    view = real_view(full, pools=[pool])
    move = checked(problem_of(full, [pool], objects.TYPES), _candidates(view), {"default": 1})
    assert move.removed == () and move.savings == 0.0 and move.gap < 1e-5


def test_spot_nodes_are_not_exchanged_for_spot_nodes_unless_that_is_wanted() -> None:
    large = objects.instance_type("large", 1.0, cpu=8, memory_gib=32, spot=0.5)
    little = objects.instance_type("little", 0.2, cpu=2, memory_gib=8, spot=0.1)
    nodes = [objects.node("n", type="large", capacity_type="spot", cpu="7900m", memory="32Gi", pods=[objects.pod("p")])]
    pool = objects.pool(requirements=[{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}])
    view = real_view(nodes, pools=[pool], types=[large, little])
    problem = problem_of(nodes, [pool], [large, little])
    assert checked(problem, _candidates(view), {"default": 1}).removed == ()
    move = checked(problem, _candidates(view), {"default": 1}, spot_to_spot=True)
    assert move.removed == ("n",) and move.price_after == pytest.approx(0.1)


def test_pods_bound_to_a_zone_by_topology_stay_in_it() -> None:
    spread = {
        "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    nodes = [
        objects.node(f"n{zone}", type="large", zone=zone, cpu="7900m", memory="32Gi", pods=[
            objects.pod(f"p{zone}", labels={"app": "web"}, topologySpreadConstraints=[spread])
        ])
        for zone in "ab"
    ]  # fmt: skip
    pool = objects.pool()
    view = real_view(nodes, pools=[pool])
    move = checked(problem_of(nodes, [pool], objects.TYPES), _candidates(view), {"default": 2})
    assert move.price_after == pytest.approx(0.2), "a small node in each zone"
