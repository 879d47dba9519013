"""The embedded scores are the real kube-scheduler's, plugin by plugin and node by node, as recorded."""

from __future__ import annotations

import numpy as np
import pytest

from holokube.kube.selectors import LabelSelector
from holokube.scheduler.scores import ScoreProfile, plugin_scores, spread_selector, total_scores
from tests.builders import JsonObject
from tests.parity import recordings
from tests.parity.clusters import World, scores_world
from tests.parity.embedded import as_stored, state_of

ROWS = recordings.load("scores")
_CHUNK = 20


def test_at_least_60_clusters_are_recorded_with_every_plugin_at_work() -> None:
    assert len(ROWS) >= 60
    by_plugin: dict[str, set[int]] = {}
    for row in ROWS:
        for _, _, scores in row["placements"]:
            for plugin, points in scores.items():
                by_plugin.setdefault(plugin, set()).update(points)
    assert {plugin for plugin, points in by_plugin.items() if len(points) > 1} == {
        "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeResourcesBalancedAllocation", "NodeResourcesFit",
        "PodTopologySpread", "TaintToleration",
    }  # fmt: skip


@pytest.mark.parametrize("first", range(0, len(ROWS), _CHUNK))
def test_scores_are_those_of_the_real_scheduler(first: int) -> None:
    differences = [difference for row in ROWS[first : first + _CHUNK] for difference in score_differences(row)]
    assert not differences, "\n".join(differences[:20])


def score_differences(row: JsonObject) -> list[str]:
    world = scores_world(row["seed"])
    assert world.digest() == row["digest"], (
        f"seed {row['seed']}: the generator no longer makes the cluster that was recorded; record again"
    )
    state = state_of(world)
    found = []
    for pod, (feasible, node, recorded) in zip(world.pending, row["placements"], strict=True):
        stored = as_stored(pod)
        cls = state.class_of(stored)
        where = f"seed {row['seed']}, {pod['metadata']['name']}"
        rows = np.flatnonzero(state.feasible(cls))
        names = [state.name_of(int(each)) for each in rows]
        if sorted(names) != feasible:
            found.append(f"{where}: feasible {sorted(names)} instead of {feasible}")
        elif recorded:
            order = rows[np.argsort(names)]
            selector = default_selector(world, pod)
            ours = plugin_scores(state, cls, stored, order, ScoreProfile(), default_selector=selector)
            for plugin in sorted(ours.keys() | recorded.keys()):
                mine = ours[plugin].tolist() if plugin in ours else [0] * len(feasible)
                theirs = recorded.get(plugin, [0] * len(feasible))
                if mine != theirs:
                    found.append(f"{where}: {plugin}\n  real {theirs}\n  ours {mine}")
            total = total_scores(state, cls, stored, order, ScoreProfile(), default_selector=selector)
            best = {feasible[i] for i in np.flatnonzero(total == total.max())}
            if node not in best:
                found.append(f"{where}: went to {node}, best are {sorted(best)}")
        if node:
            state.assume_pod(stored, state.node_names[node])
    return found


def default_selector(world: World, pod: JsonObject) -> LabelSelector | None:
    """What the services and the owner of a pod say."""
    metadata = pod["metadata"]
    near = [obj for obj in world.owners if obj["metadata"]["namespace"] == metadata["namespace"]]
    names = [reference["name"] for reference in metadata.get("ownerReferences", ())]
    owners = [obj for obj in near if obj["kind"] == "ReplicaSet" and obj["metadata"]["name"] in names]
    services = [obj for obj in near if obj["kind"] == "Service"]
    return spread_selector(pod, services, owners[0] if owners else None)
