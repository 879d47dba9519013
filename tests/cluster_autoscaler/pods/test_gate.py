"""Whether this is the moment to think about new nodes."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.gate import Gate, scale_up_gate
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from tests.builders import JsonObject
from tests.packing.objects import make_pod

CREATED_S = 1000.0


def _pod(name: str = "p", **fields: object) -> JsonObject:
    pod = make_pod(name, **fields)  # type: ignore[arg-type]  # a test passes on what make_pod takes
    pod["metadata"]["creationTimestamp"] = "1970-01-01T00:16:40Z"
    return pod


def test_without_pods_nothing_is_needed() -> None:
    assert scale_up_gate([], 5, AutoscalerOptions(max_nodes_total=1), CREATED_S) is Gate.NOT_NEEDED


@pytest.mark.parametrize(
    ("limit", "ready", "gate"), [(0, 9, Gate.OPEN), (3, 2, Gate.OPEN), (3, 3, Gate.TOO_MANY_NODES)]
)
def test_a_cluster_with_all_its_nodes_gets_no_more(limit: int, ready: int, gate: Gate) -> None:
    assert scale_up_gate([_pod()], ready, AutoscalerOptions(max_nodes_total=limit), CREATED_S + 10) is gate


@pytest.mark.parametrize(
    ("age_s", "gpu", "gate"),
    [
        (0.0, False, Gate.TOO_YOUNG),
        (1.9, False, Gate.TOO_YOUNG),
        (2.0, False, Gate.OPEN),
        (29.0, True, Gate.TOO_YOUNG),
        (30.0, True, Gate.OPEN),
        (-5.0, False, Gate.TOO_YOUNG),
    ],
)
def test_the_oldest_pod_waits_for_others(age_s: float, gpu: bool, gate: Gate) -> None:
    pods = [_pod("old", requests={"nvidia.com/gpu": "1"} if gpu else {})]
    for remembered in (None, PodKinds()):
        assert scale_up_gate(pods, 0, AutoscalerOptions(), CREATED_S + age_s, remembered) is gate


def test_one_old_pod_is_enough_unless_accelerators_are_asked_for() -> None:
    old = make_pod("old")
    young, young_gpu = _pod("young"), _pod("gpu", requests={"amd.com/gpu": "1"})
    options = AutoscalerOptions()
    assert scale_up_gate([young, old], 0, options, CREATED_S) is Gate.OPEN
    assert scale_up_gate([young_gpu, old], 0, options, CREATED_S + 20) is Gate.TOO_YOUNG


def test_an_old_pod_that_asks_for_accelerators_is_enough_for_young_ones_that_do() -> None:
    old, young = make_pod("old", requests={"amd.com/gpu": "1"}), _pod("young", requests={"amd.com/gpu": "1"})
    assert scale_up_gate([young, old], 0, AutoscalerOptions(), CREATED_S + 20) is Gate.OPEN


def test_nobody_waits_where_schedulers_are_bypassed() -> None:
    assert scale_up_gate([_pod()], 0, AutoscalerOptions(bypassed_scheduler_names=("x",)), CREATED_S) is Gate.OPEN
