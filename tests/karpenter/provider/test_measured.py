from __future__ import annotations

from holokube.karpenter.provider.faults import Faults
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, workload


def test_calls_to_the_provider_are_counted_by_who_asks_and_how_they_end() -> None:
    async def scenario() -> None:
        async with lab(cluster, node_pool(), workload("web", 1), faults=Faults(launch_failure=1.0)) as here:
            await cluster.clock.sleep(130)
            value = here.running.value
            labels = {"controller": "nodeclaim.lifecycle", "method": "Create", "provider": "kwok"}
            tries = value("karpenter_cloudprovider_duration_seconds_count", **labels)
            assert tries > 3
            assert value("karpenter_cloudprovider_errors_total", **labels, error="LaunchFailed") == tries
            assert value("karpenter_cloudprovider_duration_seconds_count", method="List") == 2

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario)
