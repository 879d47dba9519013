from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from holokube.base.rng import Rng
from holokube.karpenter.optimal.improve import Improver
from holokube.karpenter.optimal.model import PackedNode, PackingModel, packing_of, violations
from holokube.karpenter.optimal.search import Effort, Search, gap_of

EFFORT = Effort(improvement_rounds=60, column_rounds=10, whole_nodes=50)


def random_model(seed: int, pods: int = 40, **more: object) -> PackingModel:
    rng = Rng(seed)
    demands = [(1 + rng.randrange(40), 1 + rng.randrange(60)) for _ in range(pods)]
    bins = [(size * cpu, size * memory) for size in (1, 2, 4) for cpu, memory in ((32, 64), (32, 128), (64, 64))]
    prices = [round((cpu + memory / 3) * rng.uniform(0.9, 1.1), 3) for cpu, memory in bins]
    return PackingModel.build(demands, [1] * pods, bins, prices, **more)  # type: ignore[arg-type]  # by keyword


@pytest.mark.parametrize("seed", range(4))
def test_plans_are_near_their_bound(seed: int) -> None:
    model = random_model(seed)
    found = Search(model, EFFORT).run()
    assert violations(model, found.packing) == [] and not found.packing.unplaced
    assert found.gap < 0.06


def test_the_same_effort_gives_the_same_plan() -> None:
    first, second = (Search(random_model(5), EFFORT).run() for _ in range(2))
    assert first == second


def test_out_of_time_there_is_a_plan_all_the_same() -> None:
    ticks = count()
    found = Search(random_model(6), EFFORT, seconds_left=lambda: 3.0 - next(ticks)).run()
    assert not found.packing.unplaced and found.status == "limit"


def test_limits_and_conflicts_are_kept() -> None:
    apart = np.zeros((40, 40), dtype=np.bool_)
    apart[0, 1:] = apart[1:, 0] = True
    weights = [[cpu for size in (1, 2, 4) for cpu in (32 * size, 32 * size, 64 * size)]]
    model = random_model(7, conflicts=apart, limit_weights=weights, limit_totals=[300])
    found = Search(model, EFFORT).run()
    assert violations(model, found.packing) == []
    assert found.packing.unplaced, "300 of cpu are not enough for all"
    assert all(set(node.taken) == {0} for node in found.packing.nodes if 0 in node.taken)


def test_nodes_that_are_paid_for_are_used_first() -> None:
    model = PackingModel.build([[4]], [5], [[8], [16]], [1.0, 0.0], max_counts=[1 << 40, 1])
    found = Search(model, EFFORT).run()
    assert found.packing.price == 1.0
    assert sorted(sum(node.taken.values()) for node in found.packing.nodes if node.bin == 1) == [4]


def test_an_improver_merges_two_half_empty_nodes() -> None:
    model = PackingModel.build([[4], [3]], [1, 1], [[8]], [1.0])
    start = packing_of(model, [PackedNode(0, {0: 1}), PackedNode(0, {1: 1})])
    improver = Improver(model, np.array([0.5, 0.4]), start, Rng(1))
    improver.run(60, lambda price: price <= 1.0, lambda: False)
    assert improver.packing.price == 1.0


def test_a_gap_is_a_share_of_the_bound() -> None:
    assert gap_of(1.1, 1.0) == pytest.approx(0.1)
    assert gap_of(0.0, 0.0) == 0.0 and gap_of(0.9, 1.0) == 0.0
    assert gap_of(1.0, 0.0) == float("inf")
