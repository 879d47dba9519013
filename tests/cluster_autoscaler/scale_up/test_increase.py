"""Capping and sharing what was chosen."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.increase import NodesTotalReached, cap_by_nodes_total, plan_increases
from holokube.cluster_autoscaler.scale_up.options import find_options
from tests.cluster_autoscaler.scale_up.objects import given, group, node, option, pods_of, template


@pytest.mark.parametrize(
    ("nodes", "current", "total", "found"),
    [(3, 5, 0, (3, False)), (3, 5, 8, (3, False)), (3, 5, 7, (2, True)), (3, 5, 5, (0, True)), (3, 6, 5, (-1, True))],
)
def test_the_cluster_has_so_much_room(nodes: int, current: int, total: int, found: tuple[int, bool]) -> None:
    assert cap_by_nodes_total(nodes, current, total) == found


def test_a_full_cluster_is_a_passing_error() -> None:
    told = given([group("a")], {"a": template("a")}, pods_of("x", 1), nodes=[node("n")],
                 options=AutoscalerOptions(max_nodes_total=1))
    with pytest.raises(NodesTotalReached) as caught:
        plan_increases(option("a", 1, told.pods), told, find_options(told), told.quotas())
    assert caught.value.kind is ErrorKind.TRANSIENT


def test_the_size_of_the_group_caps_the_increase_and_says_so() -> None:
    told = given([group("a", target=8)], {"a": template("a")}, pods_of("x", 1))
    plan = plan_increases(option("a", 5, told.pods), told, find_options(told), told.quotas())
    assert [str(increase) for increase in plan.increases] == ["{a 8->10 (max: 10)}"]
    assert plan.caps == ("max size of the groups leaves 2 of 5 nodes",)
