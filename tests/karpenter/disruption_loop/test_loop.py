from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.karpenter.api.resources import NODE_POOLS
from holokube.testing import Cluster
from tests.karpenter.lab import Lab, lab, node_pool, workload

SEARCHES = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count"


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


async def searches(here: Lab, seconds: float) -> float:
    """How often methods looked for something to do in a while."""
    before = here.running.value(SEARCHES)
    await here.clock.sleep(seconds)
    return here.running.value(SEARCHES) - before


def test_nothing_is_searched_twice_while_nothing_changes_and_again_after_five_minutes() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 3)) as here:
            await here.until_running(3)
            await cluster.clock.sleep(120)
            assert await searches(here, 100) == 0
            assert await searches(here, 300) > 0

    play(scenario)


def test_a_change_of_a_pool_or_of_pods_is_looked_at_in_the_next_pass() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 3)) as here:
            await here.until_running(3)
            await cluster.clock.sleep(120)
            await cluster.client.patch(NODE_POOLS, "default", {"spec": {"disruption": {"budgets": [{"nodes": "5"}]}}})
            assert await searches(here, 11) > 0
            await cluster.clock.sleep(60)
            await here.scale("web", 2)
            assert await searches(here, 11) > 0

    play(scenario)


def test_where_time_decides_every_pass_looks() -> None:
    async def scenario(cluster: Cluster) -> None:
        held = workload("web", 3)
        held["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "1h"}
        async with lab(cluster, node_pool(), held) as here:
            await here.until_running(3)
            await cluster.clock.sleep(120)
            assert await searches(here, 100) >= 4 * 9

    play(scenario)
