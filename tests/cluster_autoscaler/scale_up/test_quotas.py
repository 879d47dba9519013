"""The limits of the whole cluster."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.cloud.provider import NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker, limits_of
from tests.cluster_autoscaler.scale_up.objects import JsonObject, node, template

GPU = "cloud.google.com/gke-accelerator"


def tracker(*nodes: JsonObject, groups: dict[str, str] | None = None, templates: dict[str, NodeInfo] | None = None,
            **limits: int) -> QuotaTracker:
    return QuotaTracker(ResourceLimiter({}, limits), nodes, group_of_node=groups or {}, gpu_label=GPU,
                        provider_templates=templates)


def test_cores_are_rounded_up_for_each_node() -> None:
    left = tracker(node("a", "3920m"), node("b", "3920m"), cpu=20).left
    assert left == {"cpu": 12}
    assert tracker(cpu=20).check("", node("n", "3920m"), 6).allowed == 5


def test_memory_is_counted_in_bytes() -> None:
    quotas = tracker(node("a", memory="10Gi"), memory=25 * 2**30)
    assert quotas.check("g", node("n", memory="6Gi"), 3).allowed == 2


def test_the_message_is_upstreams() -> None:
    check = tracker(cpu=3, memory=2**30).check("g", node("n"), 1)
    assert check.allowed == 0
    assert check.reason == 'exceeded quota: "cluster-wide", resources: cpu, memory'
    assert tracker(cpu=4).check("g", node("n"), 1).reason == ""


def test_virtual_kubelets_do_not_count() -> None:
    assert tracker(node("v", "1000", labels={"type": "virtual-kubelet"}), cpu=8).left == {"cpu": 8}


def test_a_cluster_beyond_its_limits_has_nothing_left_but_owes_nothing() -> None:
    assert tracker(node("a", "16"), cpu=8).left == {"cpu": 0}


def test_nodes_of_a_group_count_as_much_as_its_first() -> None:
    quotas = tracker(node("a", "4"), node("b", "8"), groups={"a": "g", "b": "g"}, cpu=16)
    assert quotas.left == {"cpu": 8}
    assert quotas.check("g", node("n", "2"), 3).allowed == 2


def test_what_is_consumed_is_gone() -> None:
    quotas = tracker(cpu=10)
    quotas.consume("g", node("n"), 2)
    assert quotas.left == {"cpu": 2}
    quotas.consume("g", node("n"), 1)
    assert quotas.left == {"cpu": 2}, "what is too much as a whole is not consumed in part"


def test_accelerators_are_counted_by_type() -> None:
    gpus: dict[str, Any] = {"nvidia.com/gpu": "4"}
    fast = node("a", labels={GPU: "t4"}, **gpus)
    quotas = tracker(fast, t4=10, cpu=100)
    assert quotas.left["t4"] == 6
    assert quotas.check("g", fast, 2).exceeded == ("t4",)


def test_accelerators_that_do_not_show_yet_are_known_from_the_template() -> None:
    booting = node("a", labels={GPU: "t4"})
    templates = {"g": template("g", **{"nvidia.com/gpu": "8"})}
    assert tracker(booting, groups={"a": "g"}, templates=templates, t4=10).left == {"t4": 2}
    assert tracker(booting, groups={"a": "g"}, templates={"g": template("g")}, t4=10).left == {"t4": 10}


def test_accelerators_that_nobody_can_count_are_an_error() -> None:
    with pytest.raises(AutoscalerError, match="belongs to no node group"):
        tracker(node("a", labels={GPU: "t4"}), t4=10)
    with pytest.raises(AutoscalerError, match="cannot tell how many"):
        tracker(node("a", labels={GPU: "t4"}), groups={"a": "g"}, t4=10)


def test_the_flags_become_limits() -> None:
    limiter = limits_of((0, 320_000), (4, 6_400_000), [("t4", 0, 16)])
    assert limiter.maximum == {"cpu": 320_000, "memory": 6_400_000 * 2**30, "t4": 16}
    assert limiter.minimum == {"memory": 4 * 2**30}
