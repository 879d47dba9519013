"""A cluster in which much changes at random; limits and budgets are looked at every second of it."""

from __future__ import annotations

import pytest

from holokube.base.rng import Rng
from holokube.karpenter.api.labels import DISRUPTED_TAINT
from holokube.kube.conditions import is_true
from holokube.kube.quantity import milli_of
from holokube.testing import Cluster
from tests.karpenter.lab import Lab, lab, node_pool, workload

LIMIT_MILLI = 40_000
BUDGET = 2
ROUNDS = 12


async def check(here: Lab) -> None:
    # A node that is being replaced no longer counts: its replacement has to come before it goes.
    staying = [
        claim
        for claim in await here.claims()
        if not claim["metadata"].get("deletionTimestamp") and not is_true(claim, "DisruptionReason")
    ]
    sizes = [(claim.get("status") or {}).get("capacity", {}).get("cpu", "0") for claim in staying]
    assert sum(map(milli_of, sizes)) <= LIMIT_MILLI
    going = [
        node["metadata"]["name"]
        for node in await here.nodes()
        if node["metadata"].get("deletionTimestamp") or DISRUPTED_TAINT.to_json() in (node["spec"].get("taints") or ())
    ]
    assert len(going) <= BUDGET, going


@pytest.mark.parametrize("seed", range(3))
def test_no_limit_and_no_budget_is_ever_exceeded(seed: int) -> None:
    async def scenario() -> None:
        rng = Rng(f"invariants/{seed}")
        disruption = {"consolidateAfter": "5s", "budgets": [{"nodes": str(BUDGET)}]}
        pool = node_pool(disruption=disruption, limits={"cpu": str(LIMIT_MILLI // 1000)})
        sizes = {"tiny": "200m", "small": "900m", "large": "3"}
        made = [workload(name, 0, cpu=cpu) for name, cpu in sizes.items()]
        async with lab(cluster, pool, *made, delay="3s") as here:
            for _ in range(ROUNDS):
                for name in sizes:
                    await here.scale(name, rng.randrange(15))
                for _ in range(rng.randrange(90)):
                    await cluster.clock.sleep(1.0)
                    await check(here)
            for name in sizes:
                await here.scale(name, 0)
            await here.until_nodes(0, within_s=1800)

    with Cluster(nodes=0, seed=seed) as cluster:
        cluster.run(scenario)
