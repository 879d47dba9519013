"""Karpenter is killed again and again, wherever it happens to be, and started anew: in the end nothing is left over."""

from __future__ import annotations

import pytest

from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults as ServerFaults
from holokube.client.faulty import FaultyTransport
from holokube.client.resources import NODES
from holokube.karpenter.api.labels import REGISTERED_LABEL
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.provider.faults import Faults
from holokube.testing import Cluster
from tests.karpenter.lab import Lab, lab, node_pool, workload
from tests.karpenter.slow_transport import SlowTransport

KILLS = 25
SEEDS = range(4)


def slow_client(cluster: Cluster, rng: Rng) -> Client:
    return Client(SlowTransport(cluster.clock, cluster.client.transport, rng))


async def disturb(here: Lab, rng: Rng) -> None:
    """Life goes on meanwhile: pods come and go, and somebody deletes a claim or a node by hand."""
    await here.scale("web", rng.randrange(25))
    for _ in range(3):
        await here.clock.sleep(rng.expovariate(1 / 6))
        claims = await here.claims()
        # A node that nobody knows any more must be found by Karpenter, not by this.
        nodes = [node for node in await here.nodes() if REGISTERED_LABEL in node["metadata"]["labels"]]
        if claims and rng.random() < 0.4:
            await here.client.delete(NODE_CLAIMS, rng.choice(claims)["metadata"]["name"])
        if nodes and rng.random() < 0.2:
            await here.client.delete(NODES, rng.choice(nodes)["metadata"]["name"])


async def kill_again_and_again(here: Lab, rng: Rng) -> None:
    for round_ in range(KILLS):
        await disturb(here, rng)
        await here.running.kill()
        await here.clock.sleep(rng.uniform(0, 5))
        here.start(slow_client(here.cluster, rng.fork(f"slow/{round_}")))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_node_no_claim_and_no_finalizer_is_left_behind(seed: int) -> None:
    async def scenario() -> None:
        rng = Rng(f"kills/{seed}")
        faults = Faults(launch_failure=0.2, insufficient_capacity=0.1, never_registers=0.1, slow=0.2, slow_by_s=60)
        pool = node_pool(disruption={"consolidateAfter": "5s"}, terminationGracePeriod="10m")
        async with lab(cluster, pool, workload("web", 5), faults=faults, delay="5s") as here:
            await kill_again_and_again(here, rng)
            await here.scale("web", 12)
            await here.until_running(12, within_s=3600)

            async def is_settled() -> bool:
                claims = await here.claims()
                return all(
                    (claim.get("status") or {}).get("nodeName") and not claim["metadata"].get("deletionTimestamp")
                    for claim in claims
                ) and not any(node["metadata"].get("deletionTimestamp") for node in await here.nodes())

            await here.until(is_settled, within_s=3600)
            await here.assert_nothing_leaked()
            await here.scale("web", 0)
            await here.until_nodes(0, within_s=7200)

    with Cluster(nodes=0, seed=seed) as cluster:
        cluster.run(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_misbehaves_is_borne(seed: int) -> None:
    """Conflicts, refusals, answers that get lost after the write was done, watches that break off."""

    async def scenario() -> None:
        rng = Rng(f"faults/{seed}")
        faults = ServerFaults(
            conflict=0.05, too_many_requests=0.03, internal_error=0.03, timeout_before=0.02, timeout_after=0.02,
            watch_drop=0.02, watch_stale=0.01, event_delay=0.02,
        )  # fmt: skip
        pool = node_pool(disruption={"consolidateAfter": "5s"})
        async with lab(cluster, pool, workload("web", 12)) as here:
            await here.running.kill()
            here.start(Client(FaultyTransport(cluster.clock, cluster.client.transport, rng, faults)))
            for replicas in (12, 3, 20, 6):
                await here.scale("web", replicas)
                await here.until_running(replicas, within_s=3600)
            await here.scale("web", 0)
            await here.until_nodes(0, within_s=7200)

    with Cluster(nodes=0, seed=seed) as cluster:
        cluster.run(scenario)
