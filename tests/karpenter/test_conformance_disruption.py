"""Behaviours of disruption that are worth a test each, with the real solver; numbered as in the specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Blocker, Command, Decision, DisruptionClass, Method
from holokube.karpenter.disruption.view import DisruptionOptions, DisruptionView
from tests.karpenter.disruption.objects import (
    LARGE,
    MEDIUM,
    NOW_S,
    SMALL,
    daemon,
    instance_type,
    node,
    pdb,
    pending,
    pod,
    pool,
)
from tests.karpenter.disruption.real import real_view

EMPTINESS, DRIFT = Emptiness(), Drift()
MULTI, SINGLE = MultiNodeConsolidation(), SingleNodeConsolidation()
PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}
ON_DEMAND_ONLY = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
BIG_NODE: dict[str, Any] = {"type": "large", "cpu": "7900m", "memory": "32Gi"}
SMALL_NODE: dict[str, Any] = {"type": "small", "cpu": "1900m", "memory": "8Gi"}


def command_of(method: Method, cluster: DisruptionView) -> Command | None:
    return method.compute(cluster, Memory()).command


def done(method: Method, cluster: DisruptionView) -> Command:
    command = command_of(method, cluster)
    assert command is not None
    return command


def blockers(cluster: DisruptionView, disruption_class: DisruptionClass = DisruptionClass.GRACEFUL) -> list[Blocker]:
    return [obstruction.blocker for _, obstruction in cluster.scan(disruption_class).blocked]


def options_of(command: Command) -> list[str]:
    return [one.name for one in command.replacements[0].instance_types]


def placed(command: Command) -> dict[str, list[str]]:
    assert command.results is not None
    return {name: [one["metadata"]["name"] for one in pods] for name, pods in command.results.existing.items()}


def test_19_pods_on_deleting_nodes_are_rescheduled_but_protected_ones_are_not() -> None:
    going = node("going", marked=True, pods=(pod("moves", cpu="1"), pod("stays", cpu="1", annotations=PROTECTED)))
    command = done(SINGLE, real_view([going, node("a", pods=(pod("x", cpu="500m"),)), node("b", **BIG_NODE)]))
    assert command.names == ("a",)
    assert sorted(name for names in placed(command).values() for name in names) == ["moves", "x"]


def test_20_empty_nodes_are_deleted_in_one_command_within_the_budget() -> None:
    nodes = [node(f"e{i}", pods=(daemon(f"d{i}"),)) for i in range(5)]
    command = done(EMPTINESS, real_view(nodes, pools=[pool(budgets=[{"nodes": "60%"}])]))
    assert command.decision is Decision.DELETE
    assert len(command.candidates) == 3
    assert command.reason == "Empty"


def test_21_whether_nodes_are_deleted_or_replaced_is_what_the_simulation_finds() -> None:
    busy = node("a", pods=(pod("x", cpu="1500m"),))
    command = done(SINGLE, real_view([busy, node("b", pods=(pod("y", cpu="1"),), consolidatable=False)]))
    assert command.decision is Decision.DELETE
    assert placed(command) == {"b": ["x"]}
    full = node("b", pods=(pod("y", cpu="3"),), consolidatable=False)
    command = done(SINGLE, real_view([busy, full], pools=[pool(requirements=ON_DEMAND_ONLY)]))
    assert command.decision is Decision.REPLACE
    assert options_of(command) == ["small"]


def test_21_pods_that_would_need_two_nodes_keep_theirs() -> None:
    crowded = node("a", **BIG_NODE, pods=(pod("x", cpu="1500m"), pod("y", cpu="1500m")))
    assert command_of(SINGLE, real_view([crowded], types=(SMALL,))) is None


def test_22_a_replacement_is_strictly_cheaper() -> None:
    one = node("a", pods=(pod("x", cpu="1500m"),))
    twin = instance_type("twin", 0.2, cpu=4)
    assert command_of(SINGLE, real_view([one], types=(MEDIUM, twin))) is None
    cheaper = instance_type("cheaper", 0.199999, cpu=4)
    assert options_of(done(SINGLE, real_view([one], types=(MEDIUM, twin, cheaper)))) == ["cheaper"]


def test_22_an_on_demand_node_that_may_become_spot_is_pinned_to_spot() -> None:
    mixed = instance_type("mixed", 0.19, cpu=4, spot=0.05)
    command = done(SINGLE, real_view([node("a", pods=(pod("x"),))], types=(MEDIUM, mixed)))
    requirement = command.replacements[0].requirements["karpenter.sh/capacity-type"]
    assert requirement.values == {"spot"}
    assert command.savings == pytest.approx(0.15)


def same_type_cluster(types: Sequence[Any]) -> DisruptionView:
    """The pods of two large nodes and of a small one fit on one small node, and on no node that is there."""
    closed = ({"key": "closed", "effect": "NoSchedule"},)
    nodes = [
        node("l1", **BIG_NODE, taints=closed, pods=(pod("x", cpu="500m"),)),
        node("l2", **BIG_NODE, taints=closed, pods=(pod("y", cpu="500m"),)),
        node("s", **SMALL_NODE, taints=closed, pods=(pod("z", cpu="400m"),)),
    ]
    return real_view(nodes, types=types, pools=[pool(requirements=ON_DEMAND_ONLY)])


def test_23_several_nodes_do_not_become_one_of_a_type_among_them() -> None:
    command = done(MULTI, same_type_cluster((SMALL, MEDIUM, LARGE)))
    assert command.names == ("l1", "l2")
    assert options_of(command) == ["small", "medium"]


def test_23_unless_it_is_cheaper_than_the_cheapest_of_them() -> None:
    tiny = instance_type("tiny", 0.05, cpu=2)
    command = done(MULTI, same_type_cluster((tiny, SMALL, MEDIUM, LARGE)))
    assert len(command.candidates) == 3
    assert options_of(command) == ["tiny"]


def spot_cluster(cheaper: int, *, enabled: bool) -> DisruptionView:
    types = tuple(instance_type(f"s{i:02}", 9.0, spot=0.1 + i / 100, cpu=4) for i in range(cheaper + 1))
    one = node("a", type=f"s{cheaper:02}", capacity_type="spot", pods=(pod("x"),))
    return real_view([one], types=types, options=DisruptionOptions(spot_to_spot=enabled))


def test_24_spot_is_not_replaced_by_spot_unless_the_gate_is_on() -> None:
    cluster = spot_cluster(20, enabled=False)
    outcome = SINGLE.compute(cluster, Memory())
    assert outcome.command is None
    assert [notice.obstruction and notice.obstruction.blocker for notice in outcome.notices] == [
        Blocker.SPOT_TO_SPOT_DISABLED
    ]


def test_24_with_the_gate_fifteen_cheaper_types_are_needed_and_fifteen_are_sent() -> None:
    assert command_of(SINGLE, spot_cluster(14, enabled=True)) is None
    command = done(SINGLE, spot_cluster(20, enabled=True))
    assert options_of(command) == [f"s{i:02}" for i in range(15)]


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ([{"nodes": "10%"}], 2),
        ([{"nodes": "5"}, {"nodes": "3", "reasons": ["Empty"]}], 3),
        ([{"nodes": "5"}, {"nodes": "3", "reasons": ["Drifted"]}], 5),
        ([{"nodes": "5"}, {"nodes": "0", "schedule": "0 0 * * *", "duration": "1h"}], 0),
        ([{"nodes": "5"}, {"nodes": "0", "schedule": "0 1 * * *", "duration": "1h"}], 5),
        ([{"nodes": "5"}, {"nodes": "1", "schedule": "@daily", "duration": "10m"}], 1),
    ],
)
def test_25_budgets_round_up_have_windows_and_reasons(budgets: list[dict[str, Any]], expected: int) -> None:
    nodes = [node(f"n{i}") for i in range(11)]
    command = command_of(EMPTINESS, real_view(nodes, pools=[pool(budgets=budgets)]))
    assert (len(command.candidates) if command else 0) == expected


def test_26_a_nominated_node_is_not_disrupted() -> None:
    nominated = node("a", nominated_until_s=NOW_S + 1)
    assert command_of(EMPTINESS, real_view([nominated])) is None
    assert blockers(real_view([nominated])) == [Blocker.NOMINATED]
    assert done(EMPTINESS, real_view([node("a", nominated_until_s=NOW_S - 1)])).names == ("a",)


@pytest.mark.parametrize(
    ("pods", "pdbs", "expected"),
    [
        ((pod("web"),), [pdb("b", "web", allowed=0)], Blocker.PDB),
        ((pod("web"),), [pdb("b", "web"), pdb("c", "web")], Blocker.SEVERAL_PDBS),
        ((pod("web", annotations=PROTECTED),), [], Blocker.POD_DO_NOT_DISRUPT),
        (
            (pod("web", annotations={"karpenter.sh/do-not-disrupt": "30m"}, started_s=NOW_S - 60),),
            [],
            Blocker.POD_DO_NOT_DISRUPT,
        ),
    ],
)
def test_27_pods_that_may_not_be_evicted_keep_their_node(
    pods: tuple[Any, ...], pdbs: list[Any], expected: Blocker
) -> None:
    nodes = [node("a", pods=pods), node("b", pods=(pod("x", cpu="1"),))]
    cluster = real_view(nodes, pdbs=pdbs)
    assert blockers(cluster) == [expected]
    assert done(SINGLE, cluster).names == ("b",)
    assert command_of(MULTI, cluster) is None


def test_27_a_protection_that_has_ended_protects_no_longer() -> None:
    old = pod("web", annotations={"karpenter.sh/do-not-disrupt": "30m"}, started_s=NOW_S - 3600)
    assert blockers(real_view([node("a", pods=(old,)), node("b")])) == []


def test_28_a_node_within_consolidate_after_is_neither_candidate_nor_target() -> None:
    patient = pool(after="1h")
    fresh = {"lastPodEventTime": "2026-01-01T23:30:00Z"}
    quiet = {"lastPodEventTime": "2026-01-01T22:00:00Z"}

    def cluster(of_target: dict[str, str], *, consolidatable: bool) -> DisruptionView:
        nodes = [
            node("a", pods=(pod("x", cpu="500m"),), claim_status=quiet),
            node("b", pods=(pod("y", cpu="1"),), claim_status=of_target, consolidatable=consolidatable),
        ]
        return real_view(nodes, pools=[patient], types=(MEDIUM, LARGE))

    assert command_of(SINGLE, cluster(fresh, consolidatable=False)) is None
    command = done(SINGLE, cluster(quiet, consolidatable=True))
    assert command.decision is Decision.DELETE


def test_28_a_pending_pod_may_still_go_to_such_a_node() -> None:
    patient = pool(after="1h")
    fresh = {"lastPodEventTime": "2026-01-01T23:30:00Z"}
    nodes = [
        node("a", pods=(pod("x", cpu="500m"),)),
        node("b", pods=(pod("y", cpu="1"),), claim_status=fresh, consolidatable=False),
        node("c", pods=(pod("z", cpu="3"),)),
    ]
    command = done(SINGLE, real_view(nodes, pools=[patient], types=(MEDIUM, LARGE), pending=[pending("p", cpu="2")]))
    assert placed(command)["b"] == ["p"]


def test_29_drift_takes_empty_nodes_first_and_then_the_oldest() -> None:
    nodes = [
        node("old", drifted_since_s=NOW_S - 1000, pods=(pod("x"),)),
        node("young", drifted_since_s=NOW_S - 10, pods=(pod("y"),)),
        node("empty", drifted_since_s=NOW_S - 1, pods=(daemon("d"),)),
    ]
    assert done(DRIFT, real_view(nodes)).names == ("empty",)
    assert done(DRIFT, real_view(nodes[:2])).names == ("old",)


def test_30_a_balanced_pool_turns_down_a_score_below_a_half() -> None:
    # The move saves a hundredth of the pool's cost, and disturbs a sixth of it.
    balanced = pool(policy="Balanced")
    nodes = [
        node("a", pods=(pod("x", cpu="500m"),), **SMALL_NODE),
        node("b", pods=tuple(pod(f"y{i}", cpu="100m") for i in range(9)), consolidatable=False),
    ]
    assert command_of(SINGLE, real_view(nodes, pools=[balanced], pool_costs={"default": 10.0})) is None
    command = done(SINGLE, real_view(nodes, pools=[balanced]))
    assert command.names == ("a",)
    assert command.scores["default"].value == pytest.approx((0.1 / 0.3) / (2.0 / 12.0))


def test_30_other_policies_take_every_saving() -> None:
    nodes = [
        node("a", pods=(pod("x", cpu="500m"),), **SMALL_NODE),
        node("b", pods=tuple(pod(f"y{i}", cpu="100m") for i in range(9)), consolidatable=False),
    ]
    assert done(SINGLE, real_view(nodes, pool_costs={"default": 10.0})).names == ("a",)
