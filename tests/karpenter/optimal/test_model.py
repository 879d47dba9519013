from __future__ import annotations

import numpy as np

from holokube.karpenter.optimal.model import PackedNode, Packing, PackingModel, packing_of, violations

MODEL = PackingModel.build(
    [[2, 1], [1, 4]], [3, 2], [[4, 4], [8, 8]], [1.0, 1.9], max_counts=[2, 1],
    conflicts=np.array([[False, True], [True, False]]), per_node=[2, 1], limit_weights=[[4, 8]], limit_totals=[12],
)  # fmt: skip


def broken(*nodes: PackedNode) -> list[str]:
    return violations(MODEL, packing_of(MODEL, nodes))


def test_a_class_is_allowed_only_where_one_of_its_pods_fits() -> None:
    model = PackingModel.build([[5, 1], [1, 1]], [1, 1], [[4, 4], [8, -1]], [1.0, 1.0])
    assert model.allowed.tolist() == [[False, False], [True, False]]


def test_a_good_plan_breaks_nothing_and_counts_who_is_left_out() -> None:
    plan = packing_of(MODEL, [PackedNode(0, {0: 2}), PackedNode(0, {1: 1})])
    assert violations(MODEL, plan) == []
    assert plan.unplaced == {0: 1, 1: 1} and plan.unplaced_pods == 2 and plan.price == 2.0


def test_every_rule_is_looked_at() -> None:
    assert any("over-committed" in one for one in broken(PackedNode(0, {0: 3})))
    assert any("too often" in one for one in broken(PackedNode(1, {1: 2})))
    assert any("conflict" in one for one in broken(PackedNode(1, {0: 1, 1: 1})))
    assert any("opened too often" in one for one in broken(*[PackedNode(0, {0: 1})] * 3))
    assert any("limit" in one for one in broken(PackedNode(0, {0: 1}), PackedNode(0, {0: 1}), PackedNode(1, {0: 1})))
    assert any("lost" in one for one in violations(MODEL, Packing((), {}, 0.0)))


def test_plans_rank_by_pods_then_price_then_nodes() -> None:
    all_placed = Packing((PackedNode(0, {0: 1}),), {}, 5.0)
    cheaper = Packing((), {0: 1}, 1.0)
    assert min(cheaper, all_placed, key=lambda plan: plan.rank) is all_placed
