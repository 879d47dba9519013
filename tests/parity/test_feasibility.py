"""The packing engine's verdicts are the real kube-scheduler's, as recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import pytest

from holokube.packing import ClusterState
from tests.builders import JsonObject
from tests.parity import recordings
from tests.parity.clusters import World, feasibility_world
from tests.parity.embedded import judge, state_of, state_that_learned_late

ROWS = recordings.load("feasibility")
_CHUNK = 40


def test_at_least_250_clusters_with_ten_pods_each_are_recorded() -> None:
    assert len(ROWS) >= 250
    assert sum(len(row["verdicts"]) for row in ROWS) == 10 * len(ROWS)


@pytest.mark.parametrize("first", range(0, len(ROWS), _CHUNK))
def test_feasible_nodes_and_reasons_are_those_of_the_real_scheduler(first: int) -> None:
    differences = [difference for row in ROWS[first : first + _CHUNK] for difference in verdict_differences(row)]
    assert not differences, "\n".join(differences[:20])


@pytest.mark.parametrize("first", range(0, len(ROWS), _CHUNK))
def test_it_does_not_matter_in_which_order_the_engine_learned_of_things(first: int) -> None:
    # Every third, so that each focus has its turn.
    rows = ROWS[first : first + _CHUNK : 3]
    differences = [difference for row in rows for difference in verdict_differences(row, state_that_learned_late)]
    assert not differences, "\n".join(differences[:20])


def verdict_differences(row: JsonObject, state_of: Callable[[World], ClusterState] = state_of) -> list[str]:
    """Where the packing engine disagrees with a recorded cluster."""
    world = feasibility_world(row["seed"])
    assert world.digest() == row["digest"], (
        f"seed {row['seed']}: the generator no longer makes the cluster that was recorded; record again"
    )
    state = state_of(world)
    found = []
    for pod, recorded in zip(world.pending, row["verdicts"], strict=True):
        ours = list(astuple(judge(state, pod)))
        if ours != recorded:
            found.append(f"seed {row['seed']}, {pod['metadata']['name']}:\n  real {recorded}\n  ours {ours}")
    return found
