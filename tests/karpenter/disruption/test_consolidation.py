from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.consolidation import Move, by_ratio, consolidate, consolidation_obstruction
from holokube.karpenter.disruption.types import Blocker, Candidate, DisruptionClass, Obstruction
from holokube.karpenter.disruption.view import DisruptionOptions, DisruptionView
from holokube.kube.requirements import Requirement
from tests.karpenter.disruption.objects import (
    LARGE,
    MEDIUM,
    SMALL,
    ToldSimulator,
    everything_fits,
    fits_with,
    instance_type,
    node,
    nothing_fits,
    pending,
    planned,
    pod,
    pool,
    view,
)

ON_DEMAND = Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand",))
BOTH = Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand", "spot"))
SPOT_TYPES = tuple(instance_type(f"s{i:02}", 1.0 + i / 100, spot=0.1 + i / 100) for i in range(20))


def candidates_of(cluster: DisruptionView) -> tuple[Candidate, ...]:
    return cluster.scan(DisruptionClass.GRACEFUL).candidates


def decide(answer: Any, *nodes: Any, **more: Any) -> Move | Obstruction:
    cluster = view(nodes or [node("n", pods=(pod("a"),))], simulator=ToldSimulator(answer), **more)
    return consolidate(cluster, candidates_of(cluster))


def obstruction_of(one: Any, **more: Any) -> Blocker | None:
    [candidate] = candidates_of(view([one], **more))
    found = consolidation_obstruction(candidate)
    return found.blocker if found else None


def test_a_quiet_node_with_pods_is_eligible() -> None:
    assert obstruction_of(node("n", pods=(pod("a"),))) is None


@pytest.mark.parametrize(
    ("spec", "pool_spec", "expected"),
    [
        ({}, {"replicas": 3}, Blocker.STATIC_POOL),
        ({"type": "gone"}, {}, Blocker.UNKNOWN_INSTANCE_TYPE),
        ({"without_labels": ("karpenter.sh/capacity-type",)}, {}, Blocker.NO_CAPACITY_TYPE),
        ({"without_labels": ("topology.kubernetes.io/zone",)}, {}, Blocker.NO_ZONE),
        ({}, {"after": "Never"}, Blocker.CONSOLIDATION_DISABLED),
        ({"pods": ()}, {}, Blocker.EMPTY),
        ({}, {"policy": "WhenEmpty"}, Blocker.POLICY_WHEN_EMPTY),
        ({"consolidatable": False}, {}, Blocker.NOT_CONSOLIDATABLE),
    ],
)
def test_each_reason_makes_a_node_ineligible(
    spec: dict[str, Any], pool_spec: dict[str, Any], expected: Blocker
) -> None:
    one = node("n", **{"pods": (pod("a"),), **spec})
    assert obstruction_of(one, pools=[pool(**pool_spec)]) is expected


def test_candidates_come_by_what_they_save_for_each_unit_of_disruption() -> None:
    nodes = [
        node("cheap", type="small", pods=(pod("a"),)),
        node("busy", type="large", pods=tuple(pod(f"b{i}") for i in range(9))),
        node("z", pods=(pod("c"),)),
        node("y", pods=(pod("d"),)),
    ]
    assert [one.name for one in by_ratio(candidates_of(view(nodes)))] == ["y", "z", "cheap", "busy"]


def test_nodes_whose_pods_fit_elsewhere_go() -> None:
    move = decide(everything_fits())
    assert isinstance(move, Move)
    assert move.replacement is None


def test_nodes_whose_pods_fit_nowhere_stay() -> None:
    found = decide(nothing_fits(pod("a")))
    assert isinstance(found, Obstruction)
    assert found.blocker is Blocker.PODS_DO_NOT_FIT
    assert found.pods == ("default/a",)
    assert "default/a => no room" in found.message


def test_a_pod_that_was_pending_before_may_stay_so() -> None:
    assert isinstance(decide(nothing_fits(pending("p"))), Move)


def test_one_node_is_never_replaced_by_two() -> None:
    claim = planned(pool(), (SMALL,), ON_DEMAND)
    found = decide(fits_with(claim, claim))
    assert isinstance(found, Obstruction)
    assert found.blocker is Blocker.SEVERAL_REPLACEMENTS


def test_a_replacement_must_be_strictly_cheaper() -> None:
    same = decide(fits_with(planned(pool(), (MEDIUM, LARGE), ON_DEMAND)))
    assert isinstance(same, Obstruction)
    assert same.blocker is Blocker.NOT_CHEAPER
    cheaper = decide(fits_with(planned(pool(), (SMALL, MEDIUM, LARGE), ON_DEMAND)))
    assert isinstance(cheaper, Move) and cheaper.replacement is not None
    assert [one.name for one in cheaper.replacement.options] == ["small"]


def test_several_nodes_are_worth_their_prices_together() -> None:
    nodes = [node(f"n{i}", pods=(pod(f"p{i}"),)) for i in range(3)]
    move = decide(fits_with(planned(pool(), (SMALL, MEDIUM, LARGE), ON_DEMAND)), *nodes)
    assert isinstance(move, Move) and move.replacement is not None
    assert [one.name for one in move.replacement.options] == ["small", "medium", "large"]


def test_the_price_that_counts_is_the_worst_that_could_be_launched() -> None:
    skewed = instance_type("skewed", zones=("a",)).with_offerings(
        (*instance_type("x", 0.05, zones=("a",)).offerings, *instance_type("x", 0.3, zones=("b",)).offerings)
    )
    assert isinstance(decide(fits_with(planned(pool(), (skewed,), ON_DEMAND))), Obstruction)
    zone = Requirement.new("topology.kubernetes.io/zone", "In", ("a",))
    assert isinstance(decide(fits_with(planned(pool(), (skewed,), ON_DEMAND, zone))), Move)


def test_a_node_on_demand_that_may_become_spot_is_pinned_to_spot() -> None:
    mixed = instance_type("mixed", 5.0, spot=0.15)
    move = decide(fits_with(planned(pool(), (mixed,), BOTH)))
    assert isinstance(move, Move) and move.replacement is not None
    assert move.replacement.requirements["karpenter.sh/capacity-type"].values == {"spot"}


def test_min_values_must_hold_after_dear_types_are_gone() -> None:
    flexible = pool(
        requirements=[{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]
    )
    found = decide(fits_with(planned(flexible, (SMALL, MEDIUM, LARGE), ON_DEMAND)), pools=[flexible])
    assert isinstance(found, Obstruction)
    assert found.blocker is Blocker.MIN_VALUES


def spot_move(types: Any, *nodes: Any, enabled: bool = True, owner: Any = None) -> Move | Obstruction:
    owner = owner or pool()
    spot_nodes = nodes or [node("n", type="s19", capacity_type="spot", pods=(pod("a"),))]
    return decide(
        fits_with(planned(owner, types, BOTH)),
        *spot_nodes,
        types=SPOT_TYPES,
        pools=[owner],
        options=DisruptionOptions(spot_to_spot=enabled),
    )


def test_spot_for_spot_is_off_unless_a_gate_is_on() -> None:
    found = spot_move(SPOT_TYPES, enabled=False)
    assert isinstance(found, Obstruction)
    assert found.blocker is Blocker.SPOT_TO_SPOT_DISABLED


def test_spot_for_spot_needs_fifteen_cheaper_types_and_sends_fifteen() -> None:
    few = spot_move(SPOT_TYPES[5:])
    assert isinstance(few, Obstruction)
    assert few.blocker is Blocker.SPOT_TO_SPOT_INFLEXIBLE
    assert few.message.endswith("got 14")
    enough = spot_move(SPOT_TYPES)
    assert isinstance(enough, Move) and enough.replacement is not None
    assert [one.name for one in enough.replacement.options] == [f"s{i:02}" for i in range(15)]
    assert enough.replacement.requirements["karpenter.sh/capacity-type"].values == {"spot"}


def test_spot_for_spot_sends_more_where_min_values_ask_for_more() -> None:
    flexible = pool(
        requirements=[{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 17}]
    )
    move = spot_move(SPOT_TYPES, owner=flexible)
    assert isinstance(move, Move) and move.replacement is not None
    assert len(move.replacement.options) == 17


def test_several_spot_nodes_need_no_choice_of_types() -> None:
    nodes = [node(f"n{i}", type="s19", capacity_type="spot", pods=(pod(f"p{i}"),)) for i in range(2)]
    move = spot_move(SPOT_TYPES[:1], *nodes)
    assert isinstance(move, Move) and move.replacement is not None
    assert [one.name for one in move.replacement.options] == ["s00"]


def test_a_spot_node_that_can_only_become_on_demand_is_an_ordinary_move() -> None:
    spot_node = node("n", type="s19", capacity_type="spot", pods=(pod("a"),))
    claim = planned(pool(), (SMALL,), ON_DEMAND)
    move = decide(fits_with(claim), spot_node, types=SPOT_TYPES)
    assert isinstance(move, Move)


def test_spot_and_on_demand_nodes_together_need_no_gate() -> None:
    nodes = [
        node("n0", type="s19", capacity_type="spot", pods=(pod("a"),)),
        node("n1", type="s19", capacity_type="on-demand", pods=(pod("b"),)),
    ]
    move = spot_move(SPOT_TYPES, *nodes, enabled=False)
    assert isinstance(move, Move)
    assert move.replacement is not None
    assert move.replacement.requirements["karpenter.sh/capacity-type"].values == {"spot"}
