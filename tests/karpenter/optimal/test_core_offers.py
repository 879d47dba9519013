"""Offers that matter: every place keeps some of every size, and what is left out is hardly missed."""

from __future__ import annotations

import numpy as np

from holokube.karpenter.optimal.core_offers import MAX_OFFERS, core_offers
from holokube.karpenter.optimal.model import PackingModel
from holokube.karpenter.optimal.reading import Reading
from holokube.karpenter.optimal.search import Effort, Search
from tests.karpenter.optimal import batches

EFFORT = Effort(improvement_rounds=40, column_rounds=5, value_rounds=0, whole_nodes=20, share_work=0)


def test_the_best_of_each_size_and_shape_stays_and_a_dearer_twin_goes() -> None:
    capacities = [[4, 8], [4, 8], [8, 8], [16, 64]]
    model = PackingModel.build([[1, 1]], [100], capacities, [1.0, 1.05, 1.1, 9.0])
    assert core_offers(model, 4, ["here"] * 4).tolist() == [0, 2, 3]


def test_every_place_keeps_its_own() -> None:
    model = PackingModel.build([[1, 1]], [10], [[4, 8]] * 3, [1.0, 1.01, 1.02])
    assert core_offers(model, 3, ["a", "b", "c"]).tolist() == [0, 1, 2]


def test_what_runs_out_is_never_left_out() -> None:
    model = PackingModel.build([[1, 1]], [10], [[4, 8]] * 2, [1.0, 1.05], max_counts=[1 << 40, 2])
    assert core_offers(model, 2, ["here"] * 2).tolist() == [0, 1]


def test_a_large_catalogue_becomes_small_and_plans_hardly_dearer() -> None:
    reading = Reading(batches.problem(batches.shaped_pods(1, batches.NINE), batches.cloud_catalogue()))
    model = reading.plan_model()
    narrow = reading.narrowed(model)
    assert 0 < int((narrow.max_counts > 0).sum()) <= MAX_OFFERS < model.bins
    assert (np.flatnonzero(narrow.max_counts) == core_offers(
        model, model.bins, [(o.template.pool.name, o.offering.zone, o.offering.capacity_type, "")
                            for o in reading.offers.offers])).all()  # fmt: skip
    all_offers, few = Search(model, EFFORT).run(), Search(narrow, EFFORT, known_bound=0.0).run()
    assert few.packing.price <= all_offers.packing.price * 1.05
