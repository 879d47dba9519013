"""Scores of a state that has been through changes and rollbacks are those of one made afresh."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holokube.base.rng import Rng
from holokube.packing import ClusterState
from holokube.scheduler.scores import ScoreProfile, plugin_scores
from tests.builders import JsonObject
from tests.parity.clusters import World, scores_world
from tests.parity.embedded import as_stored, state_of
from tests.parity.test_scores import default_selector


def all_scores(state: ClusterState, world: World) -> list[dict[str, dict[str, int]]]:
    """By pending pod, plugin and node; asked of all nodes, feasible or not."""
    found = []
    for pod in world.pending:
        stored = as_stored(pod)
        cls, selector = state.class_of(stored), default_selector(world, pod)
        scores = plugin_scores(state, cls, stored, state.rows, ScoreProfile(), default_selector=selector)
        names = [state.name_of(int(row)) for row in state.rows]
        found.append({
            plugin: dict(sorted(zip(names, points.tolist(), strict=True))) for plugin, points in scores.items()
        })  # fmt: skip
    return found


@pytest.mark.parametrize("seed", range(25))
def test_changes_and_rollbacks_leave_no_trace_in_scores(seed: int) -> None:
    rng = Rng(f"incremental-{seed}")
    world = scores_world(seed)
    state = state_of(world)
    before = all_scores(state, world)
    assert before == all_scores(state_of(world), world)
    nodes = {node["metadata"]["name"]: node for node in world.nodes}
    bound = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod for pod in world.bound}
    with state.trial():
        for _ in range(6):
            _change(rng, state, nodes, bound)
            changed = replace(world, nodes=list(nodes.values()), bound=list(bound.values()))
            assert all_scores(state, changed) == all_scores(state_of(changed), changed)
    assert all_scores(state, world) == before


def _change(rng: Rng, state: ClusterState, nodes: dict[str, JsonObject], bound: dict[str, JsonObject]) -> None:
    kind = rng.randrange(4)
    if kind == 0 and bound:
        key = rng.choice(sorted(bound))
        state.remove_pod(key)
        del bound[key]
    elif kind == 1 and len(nodes) > 1:
        name = rng.choice(sorted(nodes))
        state.remove_node(name)
        del nodes[name]
    elif kind == 2:
        name, other = rng.choice(sorted(nodes)), rng.choice(sorted(nodes))
        # The node takes over what another one is like.
        nodes[name] = {**nodes[other], "metadata": {**nodes[other]["metadata"], "name": name}}
        state.update_node(nodes[name])
    elif bound:
        key = rng.choice(sorted(bound))
        original = bound[key]
        pod = {**original, "spec": {**original["spec"], "nodeName": rng.choice(sorted(nodes))}}
        bound[key] = pod
        state.add_pod(as_stored(pod))
