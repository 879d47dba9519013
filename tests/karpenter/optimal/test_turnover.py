"""Commands that come true: plans are judged by what a scheduler, that does not know them, makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import Meter
from holokube.karpenter.optimal.model import UNLIMITED, PackedNode, Packing, PackingModel, violations
from holokube.karpenter.optimal.rehearsal import MARKUP, Rehearsal
from holokube.karpenter.optimal.standing import Cluster, Regrouping, RunningNode
from holokube.karpenter.optimal.turnover import turn_over
from holokube.karpenter.pausing import without_pauses

SMALL, LARGE = 0, 1
OFFERS = ([[4, 8], [16, 32]], [1.0, 4.0])


def cluster_of(
    demands: list[list[int]], contents: list[dict[int, int]], room: list[int], price: float = 4.0, **changes: object
) -> Cluster:
    """Nodes of one size, with a small and a large offer; a pod is worth what it takes of the small one."""
    counts = [sum(content.get(index, 0) for content in contents) for index in range(len(demands))]
    offers, prices = OFFERS
    model = PackingModel.build(
        demands, counts, [*offers, *([room] * len(contents))], [*prices, *([price] * len(contents))],
        max_counts=[1 << 40, 1 << 40, *([1] * len(contents))],
    )  # fmt: skip
    nodes = [RunningNode(price, content, "pool", is_candidate=True) for content in contents]
    values = np.array([max(cpu / 4, memory / 8) for cpu, memory in demands])
    made = Cluster(
        model, nodes, {"pool": len(nodes)}, values, np.zeros(2, dtype=np.bool_), least_saving=0.01, scored=(0, 1)
    )
    return replace(made, **changes)  # type: ignore[arg-type] # any field


def best(cluster: Cluster, work: int = UNLIMITED) -> Regrouping:
    return without_pauses(turn_over(cluster, seed=0, work=work)).plan


def test_nodes_whose_pods_fit_elsewhere_go_for_nothing() -> None:
    found = best(cluster_of([[1, 2]], [{0: 4}] * 6, [16, 32], price=1.0))
    assert len(found.removed) == 3
    assert not found.new_nodes
    assert found.savings == 3.0


def test_a_node_that_is_too_large_becomes_a_small_one() -> None:
    found = best(cluster_of([[2, 4]], [{0: 2}], [16, 32]))
    assert found.removed == {0}
    assert [node.bin for node in found.new_nodes] == [SMALL]


def test_full_nodes_at_the_going_price_stay() -> None:
    assert not best(cluster_of([[1, 2]], [{0: 16}] * 4, [16, 32])).removed


def test_budgets_and_the_most_that_may_go_are_kept() -> None:
    roomy = cluster_of([[1, 2]], [{0: 2}] * 8, [16, 32])
    assert len(best(replace(roomy, budgets={"pool": 2})).removed) == 2
    assert len(best(replace(roomy, most_removed=3)).removed) == 3
    assert not best(replace(roomy, budgets={})).removed


def test_the_same_cluster_gets_the_same_command() -> None:
    made = [best(cluster_of([[1, 3], [2, 3]], [{0: 2, 1: n % 4} for n in range(9)], [16, 32])) for _ in range(2)]
    assert made[0].removed == made[1].removed
    assert made[0].new_nodes == made[1].new_nodes


def test_without_work_nothing_is_looked_for_but_what_is_known_is_judged() -> None:
    roomy = cluster_of([[1, 2]], [{0: 2}] * 8, [16, 32])
    assert not best(roomy, work=0).removed
    known = Regrouping(removed={0}, received={1: {0: 2}}, savings=4.0)
    found = without_pauses(turn_over(roomy, seed=0, work=0, known=[known])).plan
    assert found.removed == {0}
    assert found.received == {1: {0: 2}}


def test_a_scheduler_that_meets_the_plan_pays_for_the_plan() -> None:
    cluster = cluster_of([[4, 8]], [{0: 2}, {0: 4}], [16, 32])
    new = [PackedNode(SMALL, {0: 1}), PackedNode(SMALL, {0: 1})]
    assert Rehearsal(cluster).price_of([0], new, Rng(0), Meter()) == 2.0


def test_pods_that_find_no_place_are_paid_for_above_their_price() -> None:
    cluster = cluster_of([[4, 8]], [{0: 2}, {0: 4}], [16, 32])
    assert Rehearsal(cluster).price_of([0], [PackedNode(SMALL, {0: 2})], Rng(0), Meter()) == 1.0 + MARKUP


def test_a_new_node_that_nobody_goes_to_is_not_paid_for() -> None:
    cluster = cluster_of([[1, 2]], [{0: 1}, {0: 1}], [16, 32])
    assert Rehearsal(cluster).price_of([0], [PackedNode(SMALL, {0: 1})], Rng(0), Meter()) == 0.0


def test_a_plan_that_only_a_planner_could_carry_out_is_not_begun() -> None:
    """Pods of two shapes fill two kinds of nodes exactly; a scheduler mixes them, and as many again must be bought."""
    offers, prices = [[8, 16], [8, 32]], [1.0, 1.4]
    demands = [[1, 1], [1, 3], [1, 4]]
    content = {0: 2, 1: 2, 2: 4}
    model = PackingModel.build(
        demands, [2 * n for n in content.values()], [*offers, [10, 30], [10, 30]], [*prices, 1.29, 1.29],
        max_counts=[1 << 40, 1 << 40, 1, 1],
    )  # fmt: skip
    nodes = [RunningNode(1.29, content, "pool", is_candidate=True) for _ in range(2)]
    values = np.array([0.1, 0.15, 0.175])
    cluster = Cluster(model, nodes, {"pool": 2}, values, np.zeros(2, dtype=np.bool_), scored=(0, 1))
    plan = Regrouping({0, 1}, [PackedNode(0, {0: 4, 1: 4}), PackedNode(1, {2: 8})], {}, 2.58 - 2.4)
    assert not violations(model, Packing(tuple(plan.new_nodes), {}, 2.4))
    rehearsed = Rehearsal(cluster).price_of(plan.removed, plan.new_nodes, Rng(0), Meter())
    assert rehearsed > 2.58
    assert not without_pauses(turn_over(cluster, seed=0, work=0, known=[plan])).plan.removed


def test_rules_of_nodes_hold_in_a_rehearsal() -> None:
    apart = cluster_of([[1, 2]], [{0: 1}, {0: 1}, {0: 1}], [16, 32])
    model = replace(apart.model, per_node=np.array([1]))
    cluster = replace(apart, model=model)
    one_each = Rehearsal(cluster).price_of([0], [PackedNode(SMALL, {0: 1})], Rng(0), Meter())
    assert one_each == 1.0, "the others have one of them already"
    crowded = Rehearsal(cluster).price_of([0, 1], [PackedNode(SMALL, {0: 2})], Rng(0), Meter())
    assert crowded > 1.0, "a new node takes one as well"


contents = st.lists(
    st.dictionaries(st.integers(0, 2), st.integers(1, 3), max_size=3), min_size=1, max_size=9
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(0, 9), st.integers(0, 9))
def test_whatever_is_found_keeps_every_rule_and_saves_money(
    held: list[dict[int, int]], budget: int, most: int
) -> None:
    demands = [[1, 1], [1, 3], [2, 2]]
    cluster = cluster_of(demands, held, [18, 30], 3.5, budgets={"pool": budget}, most_removed=most)
    found = best(cluster)
    assert len(found.removed) <= min(budget, most)
    assert not found.removed & set(found.received)
    for place, taken in found.received.items():
        after = dict(held[place])
        for index, number in taken.items():
            after[index] = after.get(index, 0) + number
        used = sum(np.array(demands[index]) * number for index, number in after.items())
        assert (used <= np.array([18, 30])).all()
    moved = [0, 0, 0]
    for place in found.removed:
        for index, number in held[place].items():
            moved[index] += number
    for got in (*(node.taken for node in found.new_nodes), *found.received.values()):
        for index, number in got.items():
            moved[index] -= number
    assert moved == [0, 0, 0]
    new = Packing(tuple(found.new_nodes), {}, 0.0)
    assert [one for one in violations(cluster.model, new) if "lost" not in one] == []
    price = 3.5 * len(found.removed) - sum(float(cluster.model.prices[node.bin]) for node in found.new_nodes)
    assert abs(found.savings - price) < 1e-9
    assert found.savings > 0 or not found.removed
