"""Groups below their minimum."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.minimum import plan_minimum_sizes
from tests.cluster_autoscaler.scale_up.objects import Opinion, given, group, template


def test_groups_below_their_minimum_are_raised_to_it() -> None:
    groups = [group("low", target=1, least=3), group("right", target=3, least=3), group("none", target=0)]
    plan = plan_minimum_sizes(given(groups, {one.id: template(one.id) for one in groups}, []))
    assert [str(increase) for increase in plan.increases] == ["{low 1->3 (max: 10)}"]


def test_limits_hold_for_minimum_sizes_too() -> None:
    told = given([group("a", least=5)], {"a": template("a")}, [], limiter=ResourceLimiter({}, {"cpu": 11}))
    assert [increase.new_size for increase in plan_minimum_sizes(told).increases] == [2]
    told = given([group("a", least=5)], {"a": template("a")}, [], options=AutoscalerOptions(max_nodes_total=4))
    assert [increase.new_size for increase in plan_minimum_sizes(told).increases] == [4]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"opinions": {"a": Opinion(False, True)}}, "in backoff after failed scale-up"),
        ({"opinions": {"a": Opinion(False, False)}}, "not ready for scale-up"),
        ({"limiter": ResourceLimiter({}, {"cpu": 3})}, 'exceeded quota: "cluster-wide", resources: cpu'),
        ({"templates": {}}, "no node info"),
    ],
)
def test_a_group_that_stays_below_says_why(more: dict[str, Any], reason: str) -> None:
    templates = more.pop("templates", {"a": template("a")})
    plan = plan_minimum_sizes(given([group("a", least=2)], templates, [], **more))
    assert (plan.increases, plan.skipped) == ((), {"a": reason})


def test_groups_that_do_not_exist_or_do_not_tell_their_size_are_left_alone() -> None:
    groups = [group("a", least=2, exists=False), group("b", least=2, target=None)]
    plan = plan_minimum_sizes(given(groups, {"a": template("a"), "b": template("b")}, []))
    assert (plan.increases, plan.skipped) == ((), {})
