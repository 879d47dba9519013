"""The status ConfigMap."""

from __future__ import annotations

from holokube.client.resources import CONFIG_MAPS
from holokube.cluster_autoscaler.cluster_state.status import initial_status
from holokube.cluster_autoscaler.loop.status_map import LAST_UPDATED, StatusMap
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.testing import Cluster
from tests.builders import config_map
from tests.cluster_autoscaler.loop.fakes import Told

NAME, SPACE = "cluster-autoscaler-status", "kube-system"


def test_it_is_made_kept_and_removed() -> None:
    with Cluster() as cluster:

        async def main() -> None:
            told = Told()
            status = StatusMap(cluster.client, told, AutoscalerOptions())
            status.event("Normal", "TooEarly", "nobody is there to tell")
            await status.begin(cluster.clock.time())
            found = await cluster.client.get(CONFIG_MAPS, NAME, SPACE)
            assert "autoscalerStatus: Initializing" in found["data"]["status"]
            assert found["metadata"]["annotations"][LAST_UPDATED] == "2026-01-01 00:00:00 +0000 UTC"
            await status.write({**initial_status(), "message": "hello"}, cluster.clock.time())
            assert "message: hello" in (await cluster.client.get(CONFIG_MAPS, NAME, SPACE))["data"]["status"]
            status.event("Warning", "ClusterUnhealthy", "Cluster is unhealthy")
            assert told.events == [("Warning", "ClusterUnhealthy", f"{NAME}: Cluster is unhealthy")]
            await status.delete()
            await status.delete()
            assert not [item for item in (await cluster.client.list(CONFIG_MAPS, SPACE)).items
                        if item["metadata"]["name"] == NAME]

        cluster.run(main())


def test_what_others_wrote_into_it_stays() -> None:
    with Cluster(objects=[config_map(NAME, SPACE, note="mine")]) as cluster:

        async def main() -> None:
            await StatusMap(cluster.client, Told(), AutoscalerOptions()).begin(cluster.clock.time())
            assert (await cluster.client.get(CONFIG_MAPS, NAME, SPACE))["data"]["note"] == "mine"

        cluster.run(main())


def test_where_it_cannot_be_written_the_loop_goes_on() -> None:
    with Cluster() as cluster:

        async def main() -> None:
            told = Told()
            status = StatusMap(cluster.client, told, AutoscalerOptions(namespace="missing"))
            await status.begin(cluster.clock.time())
            status.event("Normal", "ScaledUpGroup", "still")
            assert not told.events
            await status.delete()

        cluster.run(main())


def test_without_it_there_are_no_events_either() -> None:
    with Cluster() as cluster:

        async def main() -> None:
            told = Told()
            status = StatusMap(cluster.client, told, AutoscalerOptions(write_status_configmap=False))
            await status.begin(cluster.clock.time())
            status.event("Normal", "ScaledUpGroup", "more")
            await status.delete()
            assert not told.events

        cluster.run(main())
