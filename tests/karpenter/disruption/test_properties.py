"""What holds for every command on every cluster: blockers stand, budgets hold, and nothing gets dearer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.budgets import count_nodes
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.types import Command, Reason
from holokube.karpenter.disruption.view import DisruptionOptions, DisruptionView
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.disruption.clusters import NOW_S, Cluster, Shape, build
from tests.karpenter.disruption.objects import pdb
from tests.karpenter.disruption.rebuilding import RebuildingSimulator

PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
BUDGETS: list[list[dict[str, Any]]] = [
    [{"nodes": "100%"}],
    [{"nodes": "30%"}],
    [{"nodes": "2"}, {"nodes": "1", "reasons": ["Underutilized"]}],
    [{"nodes": "0", "reasons": ["Drifted"]}],
    [{"nodes": "3", "schedule": "0 0 * * *", "duration": "8h"}],
]
POLICIES = ["WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"]


def with_annotation(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "annotations": PROTECTED}}


def disturbed(rng: Rng, node: StateNode) -> StateNode:
    """The node as it is, or with one of the things that disruption has to mind."""
    draw = rng.randrange(10)
    assert node.node is not None
    assert node.node_claim is not None
    if draw == 0:
        return replace(node, is_marked=True)
    if draw == 1:
        return replace(node, nominated_until_s=NOW_S + 10)
    if draw == 2:
        return replace(node, node=with_annotation(node.node))
    if draw == 3 and node.pods:
        return replace(node, pods=(with_annotation(node.pods[0]), *node.pods[1:]))
    if draw == 4:
        conditions = [*node.node_claim["status"]["conditions"]]
        conditions.append({"type": "Drifted", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"})
        status = {**node.node_claim["status"], "conditions": conditions}
        return replace(node, node_claim={**node.node_claim, "status": status})
    if draw == 5:
        return replace(node, pods=())
    return node


def pool_like(pool: NodePool, rng: Rng) -> NodePool:
    disruption = {
        "consolidationPolicy": rng.choice(POLICIES), "consolidateAfter": "0s", "budgets": rng.choice(BUDGETS),
    }  # fmt: skip
    return NodePool.of({**pool.object, "spec": {**pool.object["spec"], "disruption": disruption}})


def cluster_of(seed: int) -> tuple[Cluster, list[JsonObject]]:
    rng = Rng(f"disturbed {seed}")
    shape = Shape(
        nodes=3 + rng.randrange(12), types=24, pools=1 + rng.randrange(3), fill=0.2 + 0.6 * rng.random(),
        constrained=rng.random() < 0.6, spot=rng.random() < 0.4, node_cpu=(2, 8),
    )  # fmt: skip
    made = build(seed, shape)
    pools = tuple(pool_like(pool, rng) for pool in made.pools)
    nodes = tuple(disturbed(rng, node) for node in made.nodes)
    apps = sorted({pod["metadata"]["labels"]["app"] for node in nodes for pod in node.pods})
    pdbs = [pdb(f"b-{app}", app, allowed=rng.randrange(2)) for app in apps[:2]]
    return Cluster(pools, made.types, nodes), pdbs


def problem_of(cluster: Cluster) -> Problem:
    leaving = [pod for node in cluster.nodes if node.is_marked_for_deletion for pod in node.pods]
    return Problem(
        cluster.pools, cluster.types_of_pool, pods=leaving, state_nodes=cluster.nodes, now_s=NOW_S
    )


def view_of(cluster: Cluster, pdbs: list[JsonObject], simulator: Any, *, spot_to_spot: bool = False) -> DisruptionView:
    return DisruptionView(
        now_s=NOW_S,
        nodes=cluster.nodes,
        pools={pool.name: pool for pool in cluster.pools},
        types_of_pool=cluster.types_of_pool,
        simulator=simulator,
        pdbs=pdbs,
        options=DisruptionOptions(spot_to_spot=spot_to_spot),
    )


def commands_of(view: DisruptionView) -> list[Command]:
    found = (method.compute(view, Memory()).command for method in METHODS)
    return [command for command in found if command is not None]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), spot_to_spot=st.booleans())
def test_blockers_stand_budgets_hold_and_nothing_gets_dearer(seed: int, spot_to_spot: bool) -> None:
    cluster, pdbs = cluster_of(seed)
    view = view_of(cluster, pdbs, Simulation(problem_of(cluster)), spot_to_spot=spot_to_spot)
    blocked_apps = {
        one["spec"]["selector"]["matchLabels"]["app"] for one in pdbs if not one["status"]["disruptionsAllowed"]
    }
    for command in commands_of(view):
        assert len(set(command.names)) == len(command.names)
        for candidate in command.candidates:
            _assert_nothing_stands_against(candidate.node, blocked_apps)
        _assert_within_budgets(cluster, command)
        if command.reason is Reason.UNDERUTILIZED:
            _assert_cheaper(command)
        if command.results is not None:
            _assert_every_pod_has_a_place(command)
            assert _violations(problem_of(cluster), command) == []


def _assert_nothing_stands_against(node: StateNode, blocked_apps: set[str]) -> None:
    assert node.node is not None
    assert not node.is_marked
    assert node.nominated_until_s == 0.0
    assert node.node["metadata"].get("annotations") is None
    for pod in node.pods:
        assert pod["metadata"].get("annotations") is None
        assert pod["metadata"]["labels"]["app"] not in blocked_apps


def _assert_within_budgets(cluster: Cluster, command: Command) -> None:
    counts = count_nodes(cluster.nodes)
    taken = Counter(candidate.pool.name for candidate in command.candidates)
    for pool in cluster.pools:
        if taken[pool.name]:
            count = counts[pool.name]
            assert taken[pool.name] + count.disrupting <= pool.allowed_disruptions(NOW_S, count.total, command.reason)


def _assert_cheaper(command: Command) -> None:
    price = sum(candidate.price for candidate in command.candidates)
    assert len(command.replacements) <= 1
    assert command.savings > 0
    for claim in command.replacements:
        capacity_types = claim.requirements["karpenter.sh/capacity-type"].values
        assert claim.instance_types
        for one in claim.instance_types:
            launchable = [
                offering.price_usd_per_hour for offering in one.launchable(claim.requirements, claim.well_known)
            ]
            assert launchable
            assert max(launchable) < price
        assert len(capacity_types) == 1


def _violations(problem: Problem, command: Command) -> list[Any]:
    """What an independent look finds wrong with the cluster after the command."""
    assert command.results is not None
    gone = set(command.names)
    moved = [pod for candidate in command.candidates for pod in candidate.movable_pods]
    after = replace(
        problem,
        pods=[*problem.pods, *moved],
        state_nodes=[node for node in problem.state_nodes if node.name not in gone],
    )
    return check_placements(after, command.replacements, command.results.existing, command.results.errors)


def _assert_every_pod_has_a_place(command: Command) -> None:
    results = command.results
    assert isinstance(results, Results)
    placed = [pod for pods in results.existing.values() for pod in pods]
    placed += [pod for claim in results.new_claims for pod in claim.pods]
    names = {pod["metadata"]["name"] for pod in placed}
    gone = set(command.names)
    assert not gone & results.existing.keys()
    for candidate in command.candidates:
        assert {pod["metadata"]["name"] for pod in candidate.movable_pods} <= names


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_simulating_by_taking_back_gives_what_simulating_anew_gives(seed: int) -> None:
    cluster, pdbs = cluster_of(seed)
    problem = problem_of(cluster)
    quick = commands_of(view_of(cluster, pdbs, Simulation(problem)))
    plain = commands_of(view_of(cluster, pdbs, RebuildingSimulator(problem)))
    assert [_told(command) for command in quick] == [_told(command) for command in plain]


def _told(command: Command) -> tuple[Any, ...]:
    placed: dict[str, list[str]] = {}
    if command.results is not None:
        for name, pods in command.results.existing.items():
            placed[name] = _names(pods)
    claims = [
        (claim.pool.name, [one.name for one in claim.instance_types], _names(claim.pods))
        for claim in command.replacements
    ]
    return command.method, command.names, command.savings, placed, claims


def _names(pods: Sequence[JsonObject]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)
