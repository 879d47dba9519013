"""Groups that are not looked at."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.skipping import skip_reason
from tests.cluster_autoscaler.scale_up.objects import Opinion, group, template

WELL = Opinion()


def reason(opinion: Opinion = WELL, *, has_template: bool = True, cores: int = 100, total: int = 0,
           current: int = 0, **of_group: Any) -> str:
    quotas = QuotaTracker(ResourceLimiter({}, {"cpu": cores}), [], group_of_node={})
    return skip_reason(
        group("a", **of_group), {"a": template("a")} if has_template else {}, quotas,
        safety_of=lambda group_id: opinion, max_nodes_total=total, current_nodes=current,
    )  # fmt: skip


def test_a_healthy_group_with_room_is_looked_at() -> None:
    assert reason() == ""


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"opinion": Opinion(False, False)}, "not ready for scale-up"),
        ({"opinion": Opinion(False, True)}, "in backoff after failed scale-up"),
        ({"target": None}, "not ready for scale-up"),
        ({"target": 10}, "max node group size reached"),
        ({"target": 12}, "max node group size reached"),
        ({"has_template": False}, "not ready for scale-up"),
        ({"cores": 3}, 'exceeded quota: "cluster-wide", resources: cpu'),
    ],
)
def test_each_reason_is_upstreams(settings: dict[str, Any], text: str) -> None:
    assert reason(**settings) == text


def test_a_group_that_does_not_exist_yet_cannot_be_in_backoff() -> None:
    assert reason(Opinion(False, True), exists=False) == ""


def test_a_group_that_goes_from_zero_to_maximum_needs_room_for_all_of_it() -> None:
    assert reason(zero_or_max=True, cores=40) == ""
    assert reason(zero_or_max=True, cores=39) == 'exceeded quota: "cluster-wide", resources: cpu'
    assert reason(zero_or_max=True, target=3, cores=28) == ""
    assert reason(zero_or_max=True, total=12, current=3) == "atomic scale-up exceeds cluster node count limit"
    assert reason(zero_or_max=True, total=13, current=3) == ""
    assert reason(total=3, current=3) == ""
