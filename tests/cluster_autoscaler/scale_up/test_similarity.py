"""Which groups are alike."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.similarity import Comparator
from tests.cluster_autoscaler.scale_up.objects import node, pod, template


def difference(one: NodeInfo, other: NodeInfo, **options: Any) -> str:
    comparator = Comparator.of(AutoscalerOptions(**options))
    assert bool(comparator.difference(one, other)) == bool(comparator.difference(other, one))
    return comparator.difference(one, other)


def test_the_same_machines_are_alike() -> None:
    assert difference(template("a"), template("b")) == ""


def test_cpu_must_be_equal() -> None:
    assert difference(template("a", "4"), template("b", "4001m")) == 'capacity resource "cpu" does not match'


@pytest.mark.parametrize(("memory", "alike"), [("16384Mi", True), ("16139Mi", True), ("16138Mi", False)])
def test_memory_may_differ_by_one_and_a_half_percent_of_the_larger(memory: str, alike: bool) -> None:
    assert (difference(template("a", memory="16384Mi"), template("b", memory=memory)) == "") is alike


def test_the_measured_16384_and_16100_mebibytes_are_not_alike() -> None:
    found = difference(template("a", memory="16384Mi"), template("b", memory="16100Mi"))
    assert found == "memory not within tolerance: 1.73% apart"


def test_a_resource_on_one_side_only_tells_them_apart() -> None:
    assert difference(template("a"), template("b", **{"nvidia.com/gpu": "1"})) == 'missing capacity "nvidia.com/gpu"'


def test_allocatable_may_differ_by_five_percent() -> None:
    one, other = template("a"), template("b")
    other.node["status"]["allocatable"]["cpu"] = "3800m"
    assert difference(one, other) == ""
    other.node["status"]["allocatable"]["cpu"] = "3799m"
    assert difference(one, other) == 'allocatable resources not within tolerance: "cpu" 5.03% apart'


def test_pods_of_the_template_reduce_what_is_free() -> None:
    one, other = template("a"), template("b")
    assert difference(one, NodeInfo(other.node, (pod("d", "200m", "1Mi"),))) == ""
    found = difference(one, NodeInfo(other.node, (pod("d", "201m", "1Mi"),)))
    assert found == 'free resources not within tolerance: "cpu" 5.03% apart'


def test_labels_of_place_do_not_count_and_others_do() -> None:
    zones = [template(name, labels={"topology.kubernetes.io/zone": name, "kubernetes.io/hostname": name})
             for name in ("a", "b")]
    assert difference(*zones) == ""
    tiers = [template(name, labels={"tier": name}) for name in ("a", "b")]
    assert difference(*tiers) == 'label "tier" does not match'
    assert difference(*tiers, balancing_ignore_label=("tier",)) == ""


def test_a_provider_has_labels_of_its_own_that_mean_nothing() -> None:
    pools = [template(name, labels={"pool": name}) for name in ("a", "b")]
    assert Comparator.of(AutoscalerOptions(), ["pool"]).difference(*pools) == ""


def test_balancing_labels_replace_everything_else() -> None:
    one, other = template("a", "4", labels={"set": "x"}), template("b", "64", labels={"set": "x"})
    assert difference(one, other, balancing_label=("set",)) == ""
    assert difference(one, template("c"), balancing_label=("set",)) == 'label "set" is missing'
    third = NodeInfo(node("n", labels={"set": "y"}))
    assert difference(one, third, balancing_label=("set",)) == 'label "set" does not match'
