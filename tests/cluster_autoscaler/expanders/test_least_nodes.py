"""least-nodes."""

from __future__ import annotations

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.expanders.least_nodes import LeastNodesExpander
from tests.cluster_autoscaler.scale_up.objects import option, pods_of


def test_the_options_with_the_fewest_nodes_win_however_few_pods_they_help() -> None:
    options = [option("a", 2, pods_of("x", 9)), option("b", 1, pods_of("x", 1)), option("c", 1), option("d", 0)]
    best = LeastNodesExpander().best_options(options, ExpanderContext(0.0, Rng(1)))
    assert [one.group_id for one in best] == ["b", "c"]
