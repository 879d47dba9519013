"""most-pods."""

from __future__ import annotations

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.expanders.most_pods import MostPodsExpander
from tests.cluster_autoscaler.scale_up.objects import option, pods_of


def test_the_options_with_the_most_pods_win_whatever_they_cost() -> None:
    options = [option("a", 100, pods_of("x", 5)), option("b", 1, pods_of("x", 4)), option("c", 2, pods_of("x", 5))]
    best = MostPodsExpander().best_options(options, ExpanderContext(0.0, Rng(1)))
    assert [one.group_id for one in best] == ["a", "c"]
