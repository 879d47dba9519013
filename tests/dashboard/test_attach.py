"""From a living cluster to a scene: informers, journal, faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holokube.base.pace import Pace
from holokube.client.resources import NODES, PODS
from holokube.cluster.living import LivingOptions
from holokube.dashboard.attach import FaultWrites, attach
from holokube.dashboard.scene import Scene
from holokube.hollow.profile import named_profile
from holokube.testing import Cluster
from tests import builders


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    options = LivingOptions(profile=named_profile("fast"), zones=("a", "b"))
    with Cluster(nodes=4, options=options) as made:
        yield made


def attached(cluster: Cluster, **more: Any) -> Scene:
    async def make() -> Scene:
        assert cluster.living is not None
        informers = cluster.living.informers
        return attach(
            cluster.clock, informers.get(NODES), informers.get(PODS), journal=cluster.living.journal,
            client=cluster.client, **more,
        )  # fmt: skip

    return cluster.run(make)


def states(scene: Scene) -> dict[str, str]:
    return {row[0]: row[5] for row in scene.view.snapshot()["rows"]}


def test_the_view_follows_the_cluster(cluster: Cluster) -> None:
    scene = attached(cluster, pace=Pace(), title="none")
    assert scene.is_virtual and scene.title == "none" and set(states(scene).values()) == {"ready"}
    assert scene.view.decisions.lines() == [], "what was there has not just come"
    cluster.run(cluster.client.create(PODS, builders.pod("p"), "default"))
    cluster.pass_time(5)
    assert scene.view.totals()["pods"]["running"] == 1
    cluster.run(cluster.client.delete(NODES, "node-3"))
    cluster.pass_time(5)
    assert set(states(scene)) == {"node-0", "node-1", "node-2"}
    assert [line["decision"] for line in scene.view.decisions.lines()] == ["left"]


def test_decisions_of_before_and_after_are_shown(cluster: Cluster) -> None:
    assert cluster.living is not None
    cluster.living.journal.note(1.0, "scale-up", "g", "enlarged")
    scene = attached(cluster)
    cluster.living.journal.note(2.0, "node", "n", "removed")
    assert [line["decision"] for line in scene.view.decisions.lines()] == ["enlarged", "removed"]


def test_a_zone_is_broken_and_healed_as_the_command_does_it(cluster: Cluster) -> None:
    scene = attached(cluster)
    assert cluster.run(scene.act("break", {"zone": "b"}, ["not-ready"])).done == 2
    cluster.pass_time(60)
    assert states(scene) == {"node-0": "ready", "node-1": "not-ready", "node-2": "ready", "node-3": "not-ready"}
    node = cluster.run(cluster.client.get(NODES, "node-1"))
    assert node["metadata"]["annotations"]["holokube.dev/fault"] == "not-ready"
    assert cluster.run(scene.act("heal", {"zone": "b"}, [])).done == 2
    cluster.pass_time(60)
    assert set(states(scene).values()) == {"ready"}
    told = [line["decision"] for line in scene.view.decisions.lines()]
    assert told == ["broken by hand: not-ready", "healed by hand"]
    assert cluster.living is not None
    assert [entry.kind for entry in cluster.living.journal] == ["fault"] * 4


def test_a_node_that_is_gone_is_a_problem_not_an_end(cluster: Cluster) -> None:
    writes = FaultWrites(cluster.clock, cluster.client)
    outcome = cluster.run(writes.break_nodes(["gone", "node-0"], ["slow"]))
    assert outcome.done == 1 and len(outcome.problems) == 1 and "gone" in outcome.problems[0]
    outcome = cluster.run(writes.heal_nodes(["gone", "node-0", "node-1"], []))
    assert outcome.done == 1 and len(outcome.problems) == 1


def test_without_a_client_the_page_only_looks_on(cluster: Cluster) -> None:
    async def make() -> Scene:
        assert cluster.living is not None
        return attach(cluster.clock, cluster.living.informers.get(NODES), cluster.living.informers.get(PODS))

    scene = cluster.run(make)
    assert scene.status()["can"] == {"pace": False, "faults": False}
