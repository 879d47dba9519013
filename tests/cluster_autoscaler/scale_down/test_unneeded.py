from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.scale_down import Deletions, NodeToRemove, Removals
from holokube.cluster_autoscaler.scale_down.minimum_resources import MinimumResources
from holokube.cluster_autoscaler.scale_down.unneeded import UnneededNodes
from holokube.cluster_autoscaler.taints import deletion_candidate
from tests.cluster_autoscaler.scale_down.world import NOW_S, World, make_group, make_node, make_pod


def removals(*names: str, pods: int = 0, **node: Any) -> list[NodeToRemove]:
    moved = tuple(make_pod(f"p{number}") for number in range(pods))
    return [NodeToRemove(make_node(name, **node), moved) for name in names]


def removable(unneeded: UnneededNodes, world: World, after_s: float) -> Removals:
    given = world.look(after_s)
    minimum = MinimumResources(world.limiter, world.nodes.values(), given.group_of)
    return unneeded.removable(given, minimum, world.now_s)


def names(found: list[NodeToRemove]) -> list[str]:
    return [removal.name for removal in found]


def reasons(found: Removals) -> dict[str, str]:
    return {stays.name: str(stays.reason) for stays in found.unremovable}


@pytest.mark.parametrize(("ready", "unneeded_s"), [(True, 600), (False, 1200)])
def test_exactly_as_long_as_asked_for_is_not_long_enough(ready: bool, unneeded_s: float) -> None:
    world = World([make_node("a", ready=ready)])
    unneeded = UnneededNodes()
    unneeded.update(removals("a", ready=ready), world.look().group_of, NOW_S)
    found = removable(unneeded, world, unneeded_s)
    assert names(found.empty) == []
    assert reasons(found) == {"a": "NotUnneededLongEnough" if ready else "NotUnreadyLongEnough"}
    assert f"unneeded for {unneeded_s} s" in found.unremovable[0].detail
    assert names(removable(unneeded, world, 1).empty) == ["a"]


def test_dropping_out_once_starts_anew() -> None:
    world = World([make_node("a"), make_node("b")])
    unneeded = UnneededNodes()
    of = world.look().group_of
    unneeded.update(removals("a", "b"), of, NOW_S)
    unneeded.update(removals("b"), of, NOW_S + 300)
    unneeded.update(removals("a", "b"), of, NOW_S + 400)
    assert names(removable(unneeded, world, 601).empty) == ["b"]
    assert [(entry.since_s, entry.removal_threshold_s) for entry in unneeded.as_list()] == [
        (NOW_S + 400, 600), (NOW_S, 600),
    ]  # fmt: skip


def test_with_no_time_to_wait_a_node_goes_at_once() -> None:
    world = World([make_node("a")], groups=[make_group(size=1, scale_down_unneeded_time_s=0)])
    unneeded = UnneededNodes()
    unneeded.update(removals("a"), world.look().group_of, NOW_S)
    assert names(removable(unneeded, world, 0).empty) == ["a"]


def test_the_minimum_size_is_counted_down_with_deletions_in_flight() -> None:
    world = World([make_node(name) for name in "abcde"], groups=[make_group(size=5, min_size=2)])
    world.deletions = Deletions(empty=("x",), per_group={"ng": 1})
    unneeded = UnneededNodes()
    unneeded.update(removals("a", "b", "c"), world.look().group_of, NOW_S)
    found = removable(unneeded, world, 601)
    assert names(found.empty) == ["a", "b"]
    assert reasons(found) == {"c": "NodeGroupMinSizeReached"}


def test_where_not_all_can_go_those_go_that_disturb_least_in_the_order_they_were_found() -> None:
    world = World([make_node(name) for name in "abcd"], groups=[make_group(size=4, min_size=1)])
    unneeded = UnneededNodes()
    found_order = [*removals("a", pods=3), *removals("b", pods=2), *removals("c"), *removals("d", pods=1)]
    unneeded.update(found_order, world.look().group_of, NOW_S)
    found = removable(unneeded, world, 601)
    assert (names(found.empty), names(found.drain)) == (["c"], ["b", "d"])
    assert reasons(found) == {"a": "NodeGroupMinSizeReached"}


def test_minimum_resources_are_kept() -> None:
    world = World([make_node("a"), make_node("b")])
    world.limiter = ResourceLimiter({"cpu": 4})
    unneeded = UnneededNodes()
    unneeded.update(removals("a", "b"), world.look().group_of, NOW_S)
    found = removable(unneeded, world, 601)
    assert names(found.empty) == ["a"]
    assert reasons(found) == {"b": "MinimalResourceLimitExceeded"}
    assert "cpu" in found.unremovable[0].detail


def test_an_annotation_that_came_later_keeps_the_node() -> None:
    world = World([make_node("a")])
    unneeded = UnneededNodes()
    disabled = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    unneeded.update(removals("a", annotations=disabled), world.look().group_of, NOW_S)
    assert reasons(removable(unneeded, world, 601)) == {"a": "ScaleDownDisabledAnnotation"}


def test_a_group_that_vanished_or_lost_its_size_keeps_its_nodes() -> None:
    world = World([make_node("a")])
    unneeded = UnneededNodes()
    unneeded.update(removals("a"), world.look().group_of, NOW_S)
    world.groups = {"ng": make_group(size=None)}
    assert reasons(removable(unneeded, world, 601)) == {"a": "UnexpectedError"}
    world.groups = {}
    assert reasons(removable(unneeded, world, 0)) == {"a": "NotAutoscaled"}


def test_times_are_restored_from_taints_that_are_not_too_old() -> None:
    world = World([
        make_node("fresh", taints=[deletion_candidate(NOW_S - 300)]),
        make_node("edge", taints=[deletion_candidate(NOW_S - 900)]),
        make_node("stale", taints=[deletion_candidate(NOW_S - 901)]),
        make_node("strange", taints=[{**deletion_candidate(NOW_S), "value": "now"}]),
        make_node("plain"),
    ])  # fmt: skip
    unneeded = UnneededNodes()
    unneeded.restore(world.nodes.values(), world.look().group_of, NOW_S, 900)
    assert {entry.node["metadata"]["name"]: entry.since_s for entry in unneeded.as_list()} == {
        "fresh": NOW_S - 300, "edge": NOW_S - 900,
    }  # fmt: skip


def test_nodes_can_be_forgotten() -> None:
    world = World([make_node("a"), make_node("b")])
    unneeded = UnneededNodes()
    unneeded.update(removals("a", "b"), world.look().group_of, NOW_S)
    unneeded.drop("a")
    assert "a" not in unneeded and "b" in unneeded
    unneeded.clear()
    assert len(unneeded) == 0
