"""Pods that are equal to a scheduler, put together."""

from __future__ import annotations

from holokube.cluster_autoscaler.pods.equivalence import PodEquivalenceGroup, build_equivalence_groups
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from tests.cluster_autoscaler.pod_objects import owned_pod
from tests.packing.objects import make_pod


def names(groups: list[PodEquivalenceGroup]) -> list[list[str]]:
    return [[pod["metadata"]["name"] for pod in group.pods] for group in groups]


def test_equal_pods_of_one_controller_are_one_group_in_the_order_they_came() -> None:
    pods = [owned_pod("a0", "a"), owned_pod("b0", "b"), owned_pod("a1", "a"), owned_pod("a2", "a", priority=1)]
    assert names(build_equivalence_groups(pods)) == [["a0", "a1"], ["b0"], ["a2"]]


def test_pods_without_a_controller_and_daemons_stand_alone() -> None:
    pods = [make_pod("x"), make_pod("y"), owned_pod("d0", kind="DaemonSet"), owned_pod("d1", kind="DaemonSet")]
    assert names(build_equivalence_groups(pods)) == [["x"], ["y"], ["d0"], ["d1"]]


def test_a_controller_has_ten_groups_that_grow_and_any_number_of_odd_pods() -> None:
    pods = [owned_pod(f"p{i}", requests={"cpu": f"{i}m"}) for i in range(12)]
    pods += [owned_pod("like-9", requests={"cpu": "9m"}), owned_pod("like-10", requests={"cpu": "10m"})]
    groups = names(build_equivalence_groups(pods))
    assert groups[9] == ["p9", "like-9"]
    assert groups[10:] == [["p10"], ["p11"], ["like-10"]]


def test_the_first_pod_speaks_for_all() -> None:
    pods = [owned_pod("a"), owned_pod("b")]
    group = build_equivalence_groups(pods, PodKinds())[0]
    assert group.exemplar is pods[0]
