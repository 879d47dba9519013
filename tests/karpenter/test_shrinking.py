"""A cluster that was put in as it is, larger than it needs to be: it is taken as it is, and shrinks to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from holokube.apiserver.restore import restore
from holokube.cluster.components import PARTS, Part
from holokube.cluster.living import LivingOptions
from holokube.pricing.instance_types import Catalog
from holokube.testing import Cluster
from tests.karpenter.disruption import clusters
from tests.karpenter.lab import Lab, lab
from tests.karpenter.restored import PACKING, objects_of, scheduled_by

SHAPE = clusters.Shape(nodes=8, types=90)


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    options = LivingOptions(parts=PARTS - {Part.SCHEDULER}, quiet_heartbeats=True)
    with Cluster(nodes=0, options=options) as cluster:
        cluster.run(scenario, cluster)


@asynccontextmanager
async def put_in(cluster: Cluster, given: clusters.Cluster) -> AsyncIterator[Lab]:
    """Karpenter on a cluster that was there before."""
    pools = [{name: value for name, value in pool.object.items() if name != "status"} for pool in given.pools]
    async with (
        scheduled_by(cluster, PACKING),
        lab(cluster, *pools, catalog=Catalog(given.types), delay="30s") as here,
    ):
        await here.running.stop()
        report = await restore(cluster.registry, objects_of(given))
        assert not report.left_out
        here.start()
        yield here


def test_nodes_and_pods_that_were_put_in_stay_until_a_command_is_begun() -> None:
    given = clusters.build(1, SHAPE)

    async def scenario(cluster: Cluster) -> None:
        async with put_in(cluster, given) as here:
            before = {pod["metadata"]["uid"] for pod in await here.pods()}
            await cluster.clock.sleep(10)
            assert len(before) == sum(len(node.pods) for node in given.nodes)
            assert {pod["metadata"]["uid"] for pod in await here.pods()} == before
            assert {node["metadata"]["name"] for node in await here.nodes()} == {one.name for one in given.nodes}
            assert here.running.value("karpenter_nodeclaims_created_total") == 0
            await here.assert_nothing_leaked()

    play(scenario)


def test_a_cluster_shrinks_until_nothing_is_left_to_do() -> None:
    given = clusters.build(1, SHAPE)
    catalog = Catalog(given.types)

    async def price(here: Lab) -> float:
        total = 0.0
        for node in await here.nodes():
            labels = node["metadata"]["labels"]
            one = catalog.by_name[labels["node.kubernetes.io/instance-type"]]
            offering = one.offering(labels["topology.kubernetes.io/zone"], labels["karpenter.sh/capacity-type"])
            assert offering is not None
            total += offering.price_usd_per_hour
        return total

    async def scenario(cluster: Cluster) -> None:
        async with put_in(cluster, given) as here:
            before = await price(here)
            await cluster.clock.sleep(3600)
            # All but every third core was idle.
            assert await price(here) < before / 2
            assert await here.running_pods() == sum(len(node.pods) for node in given.nodes)
            await here.assert_nothing_leaked()
            names = [node["metadata"]["name"] for node in await here.nodes()]
            await cluster.clock.sleep(1200)
            assert [node["metadata"]["name"] for node in await here.nodes()] == names

    play(scenario)
