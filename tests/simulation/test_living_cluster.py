"""Whole clusters on virtual time, with everything that can go wrong, and what must hold all the same."""

from __future__ import annotations

import pytest

from holokube.client.client import PatchType
from holokube.client.resources import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS
from tests.simulation.actors import Actors, drain
from tests.simulation.invariants import HealthFloor
from tests.simulation.world import STORM, SimulatedCluster

QUIET_S = 900.0
"""Longer than any back-off, toleration and grace period in play."""


@pytest.mark.parametrize("seed", range(8))
def test_a_cluster_in_a_storm_breaks_no_rule_and_recovers(seed: int) -> None:
    with SimulatedCluster(seed, nodes=6, faults=STORM) as world:
        actors = Actors(world)
        world.cluster.run(actors.act(60, mean_pause_s=15))
        assert world.injected > 100
        assert world.invariants.broken == []
        world.calm()
        world.cluster.run(actors.heal(new_nodes=30))
        world.pass_time(QUIET_S)
        world.cluster.run(world.invariants.check_calm())
        assert world.invariants.broken == []
        assert world.invariants.events_seen > 500


@pytest.mark.parametrize("seed", range(100, 104))
def test_drains_never_take_an_app_below_its_budget(seed: int) -> None:
    with SimulatedCluster(seed, nodes=5, faults=STORM) as world:
        run = world.cluster.run
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
        spec = {"replicas": 10, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        run(world.client.create(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}))
        budget = {"minAvailable": 8, "selector": {"matchLabels": {"app": "web"}}}
        meta = {"name": "web", "namespace": "default"}
        run(world.client.create(POD_DISRUPTION_BUDGETS, {"metadata": meta, "spec": budget}))
        floor = HealthFloor(world.client, "web", 8)
        run(floor.start())
        world.pass_time(120)
        for name in sorted(world.invariants.nodes):
            run(world.client.patch(NODES, name, {"spec": {"unschedulable": True}}, type=PatchType.MERGE))
            assert run(drain(world, name, give_up_after_s=1200)), f"{name} was not drained"
            run(world.client.patch(NODES, name, {"spec": {"unschedulable": None}}, type=PatchType.MERGE))
        run(floor.stop())
        assert floor.broken == []
        # All ten had to move, so that a budget which stopped nothing would have shown.
        assert floor.lowest == 8
        assert world.invariants.broken == []


def test_the_same_seed_gives_the_same_history() -> None:
    def history() -> list[tuple[str, str, str]]:
        with SimulatedCluster(7, nodes=4, faults=STORM) as world:
            world.cluster.run(Actors(world).act(20, mean_pause_s=10))
            objects = [*world.invariants.pods.values(), *world.invariants.nodes.values()]
            found = [(o["metadata"]["name"], o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for o in objects]
            return sorted(found)

    first = history()
    assert first
    assert history() == first
