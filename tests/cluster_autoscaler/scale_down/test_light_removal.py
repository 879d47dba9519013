"""Counting alone comes to what the snapshot comes to."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import rules_for
from holokube.cluster_autoscaler.scale_down.removal import RemovalSimulator
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove
from tests.cluster_autoscaler.scale_down.world import World, make_context, make_node, make_pod

RULES = rules_for(AutoscalerOptions())
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}]}}  # fmt: skip
PODS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=3, max_size=25)
TURNS = st.lists(st.permutations(range(7)), min_size=1, max_size=3)


def some_pod(number: int, node: int, kind: int) -> Any:
    name, on = f"p{number}", f"n{node}"
    if kind == 0:
        return make_pod(name, on, owner=("DaemonSet", "d"))
    if kind == 1:
        return make_pod(name, on, labels={"app": "b"}, affinity=APART)
    if kind == 2:
        return make_pod(name, on, cpu="1", priority=7)
    if kind == 3:
        return make_pod(name, on, owner=None)
    return make_pod(name, on, cpu=f"{kind * 200}m", labels={"app": f"a{kind % 2}"})


def outcome(world: World, simulator: RemovalSimulator, order: list[int], *, is_light: bool, least: int) -> Any:
    """What becomes of all nodes but some, in an order, and how the cluster looks like afterwards."""
    look = world.look(after_s=10.0)
    snapshot, found = look.snapshot, []
    destinations = {name for name in world.nodes if name != "n6"}
    with snapshot.trial():
        if is_light:
            simulator.begin(snapshot, destinations)
        for node in order[: len(order) - least]:
            name = f"n{node}"
            result = simulator.simulate(name, snapshot, destinations, make_context(now_s=world.now_s))
            found.append(result)
            if isinstance(result, NodeToRemove):
                destinations.discard(name)
        light = simulator._light
        if light is not None:
            light.catch_up()
        left = {
            name: (snapshot.state.free(snapshot.row(name)), sorted(map(pod_key, snapshot.pods_on(name))))
            for name in snapshot.node_names
        }
    simulator._light = None
    simulator.drop_old_hints()
    return found, left, snapshot.last_index


@settings(max_examples=150, deadline=None)
@given(PODS, TURNS, st.booleans(), st.integers(0, 4))
def test_removals_by_counting_are_those_of_the_snapshot(
    pods: list[tuple[int, int]], turns: list[list[int]], is_plain: bool, least: int
) -> None:
    made = [some_pod(i, node, max(kind, 4) if is_plain else kind) for i, (node, kind) in enumerate(pods)]
    nodes = [make_node(f"n{i}", cpu=str(2 + i % 3)) for i in range(7)]
    ours, theirs = World(nodes, made), World(nodes, made)
    light, heavy = RemovalSimulator(RULES), RemovalSimulator(RULES)
    for order in turns:
        one = outcome(ours, light, order, is_light=True, least=least)
        assert one == outcome(theirs, heavy, order, is_light=False, least=least)
        assert light._placing.hints._old == heavy._placing.hints._old
