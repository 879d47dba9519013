"""Removals that still stand are those that trying again would find."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, rules_for
from holokube.cluster_autoscaler.scale_down.input import controllers_of
from holokube.cluster_autoscaler.scale_down.light_removal import LightRemovals
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.cluster_autoscaler.scale_down.removal import RemovalSimulator
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove
from tests.builders import JsonObject
from tests.cluster_autoscaler.scale_down.world import World, make_node, make_pod

OPTIONS = AutoscalerOptions()
AGAINST_A = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}]}}  # fmt: skip
NODE = st.integers(0, 5)
PODS = st.lists(st.tuples(NODE, st.integers(1, 4)), min_size=2, max_size=10)
WHAT = st.sampled_from(["go", "come", "refuse", "cordon", "state", "nothing", "nothing"])
CHANGE = st.tuples(WHAT, NODE, st.integers(1, 4))
TURNS = st.lists(st.tuples(CHANGE, st.sets(NODE, max_size=2), st.booleans()), min_size=2, max_size=8)


def a_pod(number: int, node: int, size: int) -> JsonObject:
    return make_pod(f"p{number}", f"n{node}", cpu=f"{size * 200}m", labels={"app": "ab"[size % 2]})


def change(world: World, what: str, node: int, size: int, number: int) -> None:
    if what == "go":
        world.pods = [pod for pod in world.pods if pod["spec"]["nodeName"] != f"n{node}" or size > 2]
    elif what == "come":
        world.pods.append(a_pod(number, node, size))
    elif what == "refuse":
        world.pods.append(make_pod(f"p{number}", f"n{node}", cpu="10m", affinity=AGAINST_A))
    elif what == "state":
        world.pods = [
            {**pod, "status": {**pod.get("status", {}), "message": str(number)}}
            if pod["spec"]["nodeName"] == f"n{node}" else pod for pod in world.pods
        ]  # fmt: skip
    elif what == "cordon":
        name = f"n{node}"
        taints = [{"key": "no", "effect": "NoSchedule"}]
        world.nodes = {**world.nodes, name: {**world.nodes[name], "spec": {"taints": taints}}}


def outcome(world: World, simulator: RemovalSimulator, order: list[str], barred: set[int], *, is_light: bool) -> Any:
    """What becomes of nodes, in an order."""
    look = world.look(after_s=10.0)
    snapshot, found = look.snapshot, []
    destinations = {name for name in world.nodes if name not in {f"n{node}" for node in barred}}
    context = DrainContext(world.now_s, OPTIONS, PdbTracker(()), controllers_of(look.observation))
    with snapshot.trial():
        if is_light:
            simulator.begin(snapshot, destinations, order)
        for name in order:
            result = simulator.simulate(name, snapshot, destinations, context)
            found.append(result)
            if isinstance(result, NodeToRemove):
                destinations.discard(name)
    simulator.drop_old_hints()
    return found, snapshot.last_index


@settings(max_examples=300, deadline=None)
@given(PODS, TURNS, st.permutations(range(6)))
def test_what_stands_is_what_trying_again_finds(
    pods: list[tuple[int, int]], turns: list[Any], order: list[int]
) -> None:
    made = [a_pod(i, node, size) for i, (node, size) in enumerate(pods)]
    nodes = [make_node(f"n{i}", cpu=str(1 + i % 3), labels={"zone": f"z{i % 2}"}) for i in range(6)]
    ours, theirs = World(nodes, made), World(nodes, made)
    light, heavy = RemovalSimulator(rules_for(OPTIONS)), RemovalSimulator(rules_for(OPTIONS))
    tried = [f"n{i}" for i in order[:2]]
    for number, ((what, node, size), barred, takes_fewer) in enumerate(turns, 100):
        for world in (ours, theirs):
            change(world, what, node, size, number)
        names = tried[1:] if takes_fewer else tried
        one = outcome(ours, light, names, barred, is_light=True)
        assert one == outcome(theirs, heavy, names, barred, is_light=False)
        assert light._placing.hints._old == heavy._placing.hints._old


def test_pods_are_not_counted_again_where_nothing_stands_against_them(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(
        [make_node(f"n{i}", cpu="4") for i in range(4)], [a_pod(i, i // 2, 2) for i in range(4)])
    simulator = RemovalSimulator(rules_for(OPTIONS))
    order = ["n0", "n1"]
    first = [outcome(world, simulator, order, set(), is_light=True) for _ in range(3)]
    monkeypatch.setattr(LightRemovals, "remove", None)
    assert outcome(world, simulator, order, set(), is_light=True) == first[-1]
    world.pods.append(make_pod("tiny", "n3", cpu="1m"))
    assert outcome(world, simulator, order, set(), is_light=True) == first[-1], "there is room all the same"
    change(world, "state", 0, 0, 1)
    renewed, _ = outcome(world, simulator, order, set(), is_light=True)
    assert renewed[0].pods_to_reschedule == tuple(world.pods[:2]) != first[-1][0][0].pods_to_reschedule
    change(world, "state", 0, 0, 2)
    assert outcome(world, simulator, order[1:], set(), is_light=True) == (first[-1][0][1:], first[-1][1])
    monkeypatch.undo()
    found, _ = outcome(world, simulator, order, set(), is_light=True)
    assert found[0].pods_to_reschedule == tuple(world.pods[:2]) and found[1] == first[-1][0][1], "from scratch"


def test_a_node_that_has_changed_ends_it_for_those_before_it_too() -> None:
    world = World(
        [make_node(f"n{i}", cpu="4") for i in range(4)], [a_pod(i, i // 2, 2) for i in range(4)])
    simulator = RemovalSimulator(rules_for(OPTIONS))
    for _ in range(3):
        outcome(world, simulator, ["n0", "n1"], set(), is_light=True)
    world.pods.append(a_pod(9, 1, 3))
    found, _ = outcome(world, simulator, ["n0", "n1"], set(), is_light=True)
    assert [len(result.pods_to_reschedule) for result in found] == [2, 3]
    assert simulator._light is not None
    assert [name for name, _ in simulator._light.removed()] == ["n0", "n1"]


def test_there_has_to_be_room_for_all_that_went_to_a_node_together() -> None:
    world = World([make_node(f"n{i}", cpu="2") for i in range(2)], [a_pod(i, 0, 3) for i in range(3)])
    simulator = RemovalSimulator(rules_for(OPTIONS))
    for _ in range(3):
        [result], _ = outcome(world, simulator, ["n0"], set(), is_light=True)
        assert isinstance(result, NodeToRemove)
    world.pods.append(a_pod(9, 1, 2))
    [result], _ = outcome(world, simulator, ["n0"], set(), is_light=True)
    assert not isinstance(result, NodeToRemove), "there is room for two of the three"


def test_what_was_found_of_one_snapshot_does_not_stand_for_another() -> None:
    worlds = [
        World([make_node(f"n{i}", cpu=cpu) for i in range(2)], [a_pod(i, 0, 3) for i in range(3)])
        for cpu in ("2", "1")
    ]  # fmt: skip
    simulator = RemovalSimulator(rules_for(OPTIONS))
    for _ in range(3):
        [result], _ = outcome(worlds[0], simulator, ["n0"], set(), is_light=True)
        assert isinstance(result, NodeToRemove)
    [result], _ = outcome(worlds[1], simulator, ["n0"], set(), is_light=True)
    assert not isinstance(result, NodeToRemove)
