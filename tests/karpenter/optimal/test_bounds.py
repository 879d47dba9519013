"""Bounds never exceed what pods cost at best, which small problems let us know by trying everything."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.optimal.columns import Columns
from holokube.karpenter.optimal.construct import guide_for
from holokube.karpenter.optimal.dominance import useful_bins
from holokube.karpenter.optimal.knapsack import exact_filling, greedy_fillings, relaxed_values, swapped
from holokube.karpenter.optimal.model import PackingModel, violations
from holokube.karpenter.optimal.resource_bound import resource_bound, whole_node_bound
from holokube.karpenter.optimal.search import Effort, Search
from holokube.karpenter.optimal.share_bound import COARSE_STEPS, CUTS, STEPS, share_bound, shares_taken
from holokube.karpenter.optimal.solver_library import INFINITY

EFFORT = Effort(improvement_rounds=40, column_rounds=10, whole_nodes=50, target_gap=0.0)


@st.composite
def models(draw: st.DrawFn) -> PackingModel:
    """Up to five pods that all differ, up to three kinds of node; perhaps one of them is there and free."""
    amounts = st.integers(1, 6)
    pods = draw(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=5))
    bins = draw(st.lists(st.tuples(st.integers(4, 10), st.integers(4, 10)), min_size=1, max_size=3))
    prices = [draw(st.integers(1, 20)) / 4 for _ in bins]
    max_counts = [1 << 40] * len(bins)
    bins.append((20, 20))
    prices.append(9.0)
    max_counts.append(1 << 40)
    if draw(st.booleans()):
        bins.append((draw(amounts), draw(amounts)))
        prices.append(0.0)
        max_counts.append(1)
    allowed = np.array([[draw(st.integers(0, 3)) > 0 for _ in bins] for _ in pods])
    allowed[:, -2:] = True
    per_node = [draw(st.sampled_from([1, 1 << 40])) for _ in pods]
    return PackingModel.build(
        pods, [1] * len(pods), bins, prices, max_counts=max_counts, allowed=allowed, per_node=per_node
    )


def cheapest(model: PackingModel) -> float:
    """By trying every way to put pods together."""
    best = INFINITY
    for labels in product(range(model.classes), repeat=model.classes):
        if any(label > max(labels[:place], default=-1) + 1 for place, label in enumerate(labels)):
            continue
        parts = [[p for p, label in enumerate(labels) if label == part] for part in sorted(set(labels))]
        best = min(best, _priced(model, parts, 0, model.max_counts.copy()))
    return best


def _priced(model: PackingModel, parts: list[list[int]], place: int, left: np.ndarray) -> float:
    if place == len(parts):
        return 0.0
    best = INFINITY
    used = model.demands[parts[place]].sum(axis=0)
    for bin_ in range(model.bins):
        if left[bin_] and (used <= model.capacities[bin_]).all() and model.allowed[parts[place], bin_].all():
            left[bin_] -= 1
            best = min(best, float(model.prices[bin_]) + _priced(model, parts, place + 1, left))
            left[bin_] += 1
    return best


@settings(max_examples=60, deadline=None)
@given(models())
def test_no_bound_is_above_the_cheapest_plan_and_no_plan_below_it(model: PackingModel) -> None:
    best = cheapest(model)
    assert resource_bound(model).price <= best + 1e-6
    assert whole_node_bound(model, max_nodes=100) <= best + 1e-6
    shares = share_bound(model)
    assert shares is not None and shares[0] <= best + 1e-6
    columns = Columns(model, guide_for(model, shares[1]))
    columns.generate(10, lambda: INFINITY, exact=True)
    assert columns.proven(lambda: INFINITY) <= best + 1e-6
    found = Search(model, EFFORT).run()
    assert violations(model, found.packing) == []
    assert not found.packing.unplaced
    assert best - 1e-6 <= found.packing.price <= best * 1.35 + 1e-6
    assert found.bound <= best + 1e-6


@settings(max_examples=60, deadline=None)
@given(models())
def test_bins_that_are_left_out_are_never_missed(model: PackingModel) -> None:
    assert cheapest(model.of_bins(useful_bins(model))) == pytest.approx(cheapest(model))


@settings(max_examples=60, deadline=None)
@given(models(), st.lists(st.integers(0, 8), min_size=5, max_size=5))
def test_fillings_fit_and_bounds_on_them_hold(model: PackingModel, worth: list[int]) -> None:
    values = np.array(worth[: model.classes], dtype=np.float64)
    bins = np.arange(model.bins)
    relaxed = relaxed_values(model, values, bins, np.full(model.capacities.shape, 0.3))
    guide = guide_for(model, values)
    greedy = {f.bin: f for f in greedy_fillings(model, values, model.counts, bins, guide.weights)}
    for bin_ in range(model.bins):
        exact, bound = exact_filling(model, values, bin_, max_nodes=200)
        assert exact.value <= bound + 1e-6 and exact.value <= relaxed[bin_] + 1e-6
        guessed = [greedy[bin_], swapped(model, values, model.counts, greedy[bin_])] if bin_ in greedy else []
        for filling in [exact, *guessed]:
            assert (filling.taken @ model.demands <= model.capacities[bin_]).all()
            assert filling.value <= bound + 1e-6


def test_a_pod_that_takes_more_than_half_needs_a_node_of_its_own_by_shares_but_not_by_resources() -> None:
    model = PackingModel.build([[6]], [10], [[10]], [1.0])
    assert resource_bound(model).price == pytest.approx(6.0, abs=1e-4)
    found = share_bound(model)
    assert found is not None and found[0] == pytest.approx(10.0, abs=1e-4)


@given(
    st.lists(st.integers(0, 1 << 20) | st.integers(0, 1 << 62), min_size=1, max_size=5),
    st.integers(1, 1 << 20) | st.integers(1, 1 << 62), st.booleans(),
)  # fmt: skip
def test_what_pods_take_of_a_bin_by_steps_and_cuts_is_what_whole_numbers_of_any_size_say(
    demand: list[int], capacity: int, is_fine: bool
) -> None:
    shares = [one / capacity for one in map(float, demand)]
    expected = [shares]
    for step in STEPS if is_fine else COARSE_STEPS:
        parts = [one * (step + 1) for one in demand]
        expected.append([
            share if part % capacity == 0 else float(part // capacity) / step
            for part, share in zip(parts, shares, strict=True)
        ])
    expected += [
        [
            1.0 if one * 100 > (100 - percent) * capacity else 0.0 if one * 100 < percent * capacity else share
            for one, share in zip(demand, shares, strict=True)
        ]
        for percent in (CUTS if is_fine else ())
    ]
    assert shares_taken(np.array(demand, dtype=np.int64), capacity, is_fine=is_fine).tolist() == expected


def test_pods_that_no_node_takes_do_not_raise_the_bound() -> None:
    model = PackingModel.build([[50], [5]], [3, 2], [[10]], [1.0])
    assert resource_bound(model).price == pytest.approx(1.0, abs=1e-4)
    found = Search(model, EFFORT).run()
    assert found.packing.unplaced == {0: 3} and found.status == "optimal"
