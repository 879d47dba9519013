"""Over whole deployments the embedded scheduler leaves as many pods pending as the real one, as recorded."""

from __future__ import annotations

import pytest

from holokube.client.resources import NAMESPACES, PODS, REPLICA_SETS
from holokube.scheduler.scheduler import build
from tests.parity import recordings
from tests.parity.random_deployments import deployments_world, pending_by_deployment
from tests.workloads.housekeeping import House

ROWS = recordings.load("deployments")
_CHUNK = 10


def test_at_least_40_clusters_are_recorded_most_of_them_too_small() -> None:
    assert len(ROWS) >= 40
    assert sum(any(row["pending"].values()) for row in ROWS) > len(ROWS) // 2


@pytest.mark.parametrize("first", range(0, len(ROWS), _CHUNK))
def test_as_many_pods_stay_pending_as_with_the_real_scheduler(first: int) -> None:
    for row in ROWS[first : first + _CHUNK]:
        world = deployments_world(row["seed"])
        assert world.digest() == row["digest"], (
            f"seed {row['seed']}: the generator no longer makes the cluster that was recorded; record again"
        )
        with House(build, objects=world.nodes, seed=row["seed"]) as home:
            for namespace in world.namespaces:
                home.create(NAMESPACES, namespace)
            for resource, objects in ((REPLICA_SETS, world.owners), (PODS, world.pending)):
                for obj in objects:
                    home.create(resource, obj)
            home.pass_time(60)
            pods = home.run(home.client.list(PODS)).items
            pending = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
            assert pending_by_deployment(world, pending) == row["pending"], f"seed {row['seed']}"
