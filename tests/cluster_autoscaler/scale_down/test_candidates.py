from collections.abc import Collection
from typing import Any

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.candidates import Candidates, find_candidates
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.cluster_autoscaler.scale_down.drain_rules import rules_for
from tests.cluster_autoscaler.scale_down.world import NOW_S, SAFE_TO_EVICT, World, make_group, make_node, make_pod


def find(
    world: World, previous: Collection[str] = (), delays: LocalDelays | None = None, **options: Any
) -> Candidates:
    settings = AutoscalerOptions(**options)
    return find_candidates(world.look(), settings, rules_for(settings), previous, delays or LocalDelays())


def names(found: Candidates) -> list[str]:
    return [node["metadata"]["name"] for node in found.nodes]


def test_empty_nodes_come_first_then_those_of_the_turn_before_then_list_order() -> None:
    nodes = [make_node(name) for name in ("a", "b", "c", "d", "e", "f")]
    pods = [
        make_pod("a", "a"), make_pod("b", "b"), make_pod("e", "e"),
        make_pod("d", "d", owner=("DaemonSet", "d")),
        make_pod("f", "f", annotations={SAFE_TO_EVICT: "on-completion"}),
    ]  # fmt: skip
    assert names(find(World(nodes, pods))) == ["c", "d", "f", "a", "b", "e"]
    assert names(find(World(nodes, pods), previous={"e", "d"})) == ["d", "c", "f", "e", "a", "b"]


def test_more_than_twelve_are_sorted_as_go_does() -> None:
    world = World([make_node(f"n{number:02}") for number in range(13)])
    world.pods = [make_pod(name, name) for name in world.nodes if name not in ("n07", "n09")]
    expected = [7, 9, 3, 0, 4, 5, 6, 2, 8, 1, 10, 11, 12]
    assert names(find(world)) == [f"n{number:02}" for number in expected]


def test_nodes_of_a_group_at_its_minimum_are_no_candidates() -> None:
    world = World([make_node("a"), make_node("b")], groups=[make_group(size=2, min_size=2)])
    found = find(world)
    assert names(found) == []
    assert [str(stays.reason) for stays in found.others] == ["NodeGroupMinSizeReached"] * 2
    world.groups = {"ng": make_group(size=3, min_size=2)}
    assert names(find(world)) == ["a", "b"]


def test_nodes_of_nobody_or_of_a_group_of_unknown_size_are_no_candidates() -> None:
    world = World([make_node("a"), make_node("b")], groups=[make_group(size=None)])
    world.group_of_node = {"b": "ng"}
    found = find(world)
    assert [str(stays.reason) for stays in found.others] == ["NotAutoscaled", "UnexpectedError"]


def test_groups_may_have_delays_of_their_own() -> None:
    delays = LocalDelays()
    delays.scaled_up("ng", NOW_S - 60)
    found = find(World([make_node("a")]), delays=delays, scale_down_delay_type_local=True)
    assert names(found) == []
    assert "scaled up 60 s ago" in found.others[0].detail
    assert names(find(World([make_node("a")]), delays=delays)) == ["a"]


def test_a_node_that_is_not_in_the_snapshot_is_not_taken_for_empty() -> None:
    world = World([make_node("a"), make_node("b")])
    given = world.look()
    given.snapshot.remove_node("a")
    settings = AutoscalerOptions()
    assert names(find_candidates(given, settings, rules_for(settings), (), LocalDelays())) == ["b", "a"]
