"""The whole autoscaler on a living cluster, on virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from holokube.client.resources import CONFIG_MAPS, LEASES, NODES, PODS
from holokube.cluster.living import LivingOptions
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.provider import Instance
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, TO_BE_DELETED, has_taint
from holokube.kube.errors import NotFound
from holokube.runtime.leader import LeaderElector
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster
from tests.builders import node
from tests.cluster_autoscaler.loop.lab import Lab, lab, template, workload

QUICK = AutoscalerOptions(
    scale_down_delay_after_add_s=30.0, scale_down_unneeded_time_s=60.0, unremovable_node_recheck_timeout_s=10.0)

SMALL = [template("small")]


def test_nodes_come_with_the_pods_and_go_with_them() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")]) as found:
                await found.apply(workload("web", 10))
                await found.until_nodes(3, within_s=30)
                await found.clock.sleep(10)
                assert await found.running() == 10
                assert "cloudProviderTarget: 3" in await found.status()
                assert await found.reasons("Pod") == ["TriggeredScaleUp"] * 10
                await found.scale("web", 0)
                began_s = found.clock.monotonic()
                await found.until_nodes(0, within_s=900)
                assert found.clock.monotonic() - began_s > 600, "unneeded for ten minutes first"
                await found.clock.sleep(60)
                assert await found.reasons() == [
                    "ScaledUpGroup", "ScaledUpGroup", *["ScaleDownEmpty"] * 6,
                ]
                assert not [turn for turn in found.turns if turn.error is not None]

        cluster.run(main())


def test_unneeded_nodes_are_marked_and_needed_ones_unmarked() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")]) as found:
                await found.apply(workload("web", 4))
                await found.until_nodes(1)
                await found.clock.sleep(5)
                await found.scale("web", 0)
                await found.clock.sleep(20)
                assert all(has_taint(node, DELETION_CANDIDATE) for node in await found.nodes())
                await found.scale("web", 4)
                await found.clock.sleep(20)
                assert await found.running() == 4 and len(await found.nodes()) == 1
                assert not any(has_taint(node, DELETION_CANDIDATE) for node in await found.nodes())

        cluster.run(main())


def test_pods_that_come_while_a_turn_lasts_start_one_turn_together() -> None:
    def turns(turn_s_per_pod: float) -> list[TurnReport]:
        with Cluster(nodes=0) as cluster:

            async def main() -> list[TurnReport]:
                async with lab(cluster, SMALL, turn_s_per_pod=turn_s_per_pod) as found:
                    await found.apply(workload("too-large", 4, cpu="64"))
                    await found.clock.sleep(60)
                    for count in range(5, 15):
                        await found.scale("too-large", count)
                        await found.clock.sleep(0.1)
                    await found.clock.sleep(20)
                    return found.turns

            return cluster.run(main())

    at_once, lasting = turns(0.0), turns(0.5)
    assert len(at_once) > len(lasting) + 6
    assert at_once[-1].pending == lasting[-1].pending == 14
    for turn, after in pairwise(lasting):
        assert after.now_s - turn.now_s >= 0.5 * turn.pending


def test_pods_of_a_node_that_goes_find_another() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")], QUICK) as found:
                await found.apply(workload("web", 8), workload("tiny", 2, cpu="100m"))
                await found.until_nodes(2)
                await found.clock.sleep(10)
                await found.scale("web", 2)
                await found.until_nodes(1, within_s=300)
                await found.clock.sleep(30)
                assert await found.running() == 4
                assert "ScaleDown" in await found.reasons(), "one was drained"

        cluster.run(main())


def test_a_restart_in_the_middle_loses_nothing() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small", boot_delay="40s")], QUICK) as first:
                await first.apply(workload("web", 10))
                await first.clock.sleep(15)
                assert first.turns[-1].upcoming == {"small": 3}
            async with lab(cluster, [template("small")], QUICK) as second:
                await second.until_nodes(3, within_s=60)
                await second.clock.sleep(20)
                assert await second.running() == 10
                assert len(await second.nodes()) == 3
                await second.scale("web", 0)
                await second.clock.sleep(30)
            async with lab(cluster, [template("small")], QUICK) as third:
                await third.until_nodes(0, within_s=120)

        cluster.run(main())


def test_a_node_that_was_being_removed_is_given_back_by_a_stop_and_by_a_new_start() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")], QUICK) as found:
                await found.apply(workload("web", 1))
                await found.until_nodes(1)
                await found.clock.sleep(5)
                await found.scale("web", 0)

                async def is_tainted() -> bool:
                    return any(has_taint(node, TO_BE_DELETED) for node in await found.nodes())

                await found.until(is_tainted, within_s=120)
            (node,) = (await cluster.client.list_all(NODES)).items
            assert not has_taint(node, TO_BE_DELETED), "there were five seconds before it went"
            taint = {"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}
            spec = {**node["spec"], "taints": [taint], "unschedulable": True}
            await cluster.client.update(NODES, {**node, "spec": spec})
            async with lab(cluster, [template("small")]) as later:
                await later.clock.sleep(11)
                (node,) = await later.nodes()
                assert not has_taint(node, TO_BE_DELETED) and not node["spec"].get("unschedulable")
                assert "ClusterAutoscalerCleanup" in await later.reasons("Node")

        cluster.run(main())


def test_a_group_that_refuses_is_left_alone_and_another_tried() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(expander=("least-nodes",))
            async with lab(cluster, [template("big", cpu="16"), template("small")], options) as found:
                await found.clock.sleep(1)
                assert found.provider is not None
                big = next(group for group in found.provider.node_groups() if group.id == "big")

                async def refuse(delta: int) -> None:
                    raise CloudError(f"no room for {delta}")

                big.increase_size = refuse  # type: ignore[method-assign]  # a cloud that has run out
                await found.apply(workload("web", 10))
                await found.until_nodes(3, within_s=60)
                assert {name.split("-")[0] for name in await found.names()} == {"small"}
                failed = next(turn for turn in found.turns if turn.scale_up.result is ScaleUpResult.ERROR)
                assert failed.scale_up.failed_groups == ("big",) and failed.error is None
                helped = next(turn for turn in found.turns if turn.scale_up.increases)
                assert helped.scale_up.skipped == {"big": "in backoff after failed scale-up"}
                assert "errorMessage: 'failed to increase node group size: no room for 1'" in await found.status()
                assert (await found.reasons())[:2] == ["ScaledUpGroup", "FailedToScaleUpGroup"]

        cluster.run(main())


def test_machines_that_never_become_nodes_are_removed() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(max_node_provision_time_s=120.0)
            async with lab(cluster, [template("slow", boot_delay="1h")], options) as found:
                await found.apply(workload("web", 4))
                await found.clock.sleep(100)
                assert not await found.nodes() and found.turns[-1].upcoming == {"slow": 1}
                assert "unregistered: 1" in await found.status()
                await found.scale("web", 0)
                await found.clock.sleep(60)
                assert (await found.reasons()).count("DeleteUnregistered") == 1
                assert [len(turn.removed_unregistered) for turn in found.turns if turn.removed_unregistered] == [1]
                assert found.turns[-1].targets == {"slow": 0} and not await found.nodes()

        cluster.run(main())


def test_a_group_whose_machines_do_not_come_in_time_is_given_up_for_another() -> None:
    """The cloud has accepted the request and shows no machine for it."""
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(max_node_provision_time_s=120.0, expander=("least-nodes",))
            slow = template("slow", cpu="16", boot_delay="1h")
            async with lab(cluster, [slow, template("quick")], options) as found:
                await found.clock.sleep(1)
                assert found.provider is not None
                group = next(group for group in found.provider.node_groups() if group.id == "slow")

                async def nothing() -> list[Instance]:
                    return []

                group.nodes = nothing  # type: ignore[method-assign]  # a queue that nobody can see
                await found.apply(workload("web", 10))
                await found.clock.sleep(100)
                assert found.turns[-1].upcoming == {"slow": 1}
                await found.until_nodes(3, within_s=60)
                await found.clock.sleep(30)
                assert await found.running() == 10
                assert "ScaleUpTimedOut" in await found.reasons()
                assert found.turns[-1].targets == {"slow": 0, "quick": 3}

        cluster.run(main())


def test_machines_that_fail_are_removed_and_others_asked() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(expander=("least-nodes",))
            bad = template("bad", cpu="16", boot_failure_probability="1.0")
            async with lab(cluster, [bad, template("good")], options) as found:
                await found.apply(workload("web", 10))
                await found.until_nodes(3, within_s=120)
                await found.clock.sleep(30)
                assert await found.running() == 10
                assert "ScaleUpFailed" in await found.reasons()
                assert any(turn.deleted_failed for turn in found.turns)
                assert found.turns[-1].targets["bad"] == 0

        cluster.run(main())


def test_nothing_is_done_while_too_many_nodes_are_broken() -> None:
    with Cluster(options=LivingOptions(annotation_selector="kwok.x-k8s.io/node=fake")) as cluster:

        async def main() -> None:
            for i in range(4):
                await cluster.client.create(NODES, node(f"dead-{i}"))
            await cluster.clock.sleep(1000)
            async with lab(cluster, [template("small")]) as found:
                await found.apply(workload("web", 3))
                await found.clock.sleep(60)
                assert {turn.stopped for turn in found.turns} == {"Cluster is unhealthy"}
                assert len(await found.nodes()) == 4
                assert set(await found.reasons()) == {"ClusterUnhealthy"}
                assert not await found.reasons("Pod")

        cluster.run(main())


def test_a_node_of_somebody_else_is_never_touched() -> None:
    """It is empty for hours, and carries a taint that looks like ours."""
    with Cluster(nodes=1) as cluster:

        async def main() -> None:
            (before,) = (await cluster.client.list_all(NODES)).items
            marked = {"key": DELETION_CANDIDATE, "value": "1", "effect": "PreferNoSchedule"}
            before = await cluster.client.update(NODES, {**before, "spec": {**before["spec"], "taints": [marked]}})
            async with lab(cluster, [template("small")], QUICK) as found:
                await found.apply(workload("web", 40))
                await found.clock.sleep(60)
                assert len(await found.nodes()) > 1
                await found.scale("web", 0)
                await found.until_nodes(1, within_s=300)
                await found.clock.sleep(1000)
                (after,) = await found.nodes()
                assert after["metadata"]["uid"] == before["metadata"]["uid"] and after["spec"] == before["spec"]
                assert after["metadata"].get("annotations") == before["metadata"].get("annotations")

        cluster.run(main())


def test_the_minimum_is_kept_up_if_that_is_wanted() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            options = AutoscalerOptions(enforce_node_group_min_size=True)
            pool = template("pool", min_count="2", desired_count="2")
            async with lab(cluster, [pool], options) as found:
                await found.until_nodes(2)
                await found.client.delete(NODES, min(await found.names()))
                await found.until_nodes(2, within_s=60)
                raised = next(turn for turn in found.turns if turn.scale_up.minimum and turn.scale_up.minimum.increases)
                assert raised.targets == {"pool": 2}

        cluster.run(main())


def test_a_cluster_without_nodes_waits_if_that_is_wanted() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, [template("small")], AutoscalerOptions(scale_up_from_zero=False)) as found:
                await found.apply(workload("web", 3))
                await found.clock.sleep(60)
                assert not await found.nodes()
                assert {turn.stopped for turn in found.turns} == {"Cluster has no nodes."}
                assert "message: Cluster has no nodes." in await found.status()

        cluster.run(main())


def test_at_a_clean_end_nodes_and_status_are_removed_if_that_is_wanted() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, SMALL, clean_up=True) as found:
                await found.apply(workload("web", 3))
                await found.until_nodes(1)
            assert not (await cluster.client.list_all(NODES)).items
            try:
                await cluster.client.get(CONFIG_MAPS, "cluster-autoscaler-status", "kube-system")
            except NotFound:
                return
            raise AssertionError("the status is still there")

        cluster.run(main())


def test_who_does_not_lead_does_nothing_and_takes_over_when_the_leader_is_gone() -> None:
    with Cluster(nodes=0) as cluster:

        def candidate(name: str, found: Lab) -> LeaderElector:
            return LeaderElector(
                cluster.clock, cluster.client, lease_name="cluster-autoscaler", namespace="kube-system", identity=name,
                lead=found.autoscaler.run, rng=cluster.rng.fork(name))

        async def main() -> None:
            async with lab(cluster, SMALL, loop=False) as first, lab(cluster, SMALL, loop=False) as second:
                stops = [StopSignal(), StopSignal()]
                tasks = [asyncio.create_task(candidate("a", first).run(stops[0]))]
                await cluster.clock.sleep(1)
                tasks.append(asyncio.create_task(candidate("b", second).run(stops[1])))
                await first.apply(workload("web", 4))
                await first.until_nodes(1, within_s=30)
                assert first.turns and not second.turns
                stops[0].set()
                await tasks[0]
                await first.apply(workload("more", 4))
                await second.until_nodes(2, within_s=60)
                assert second.turns
                lease = await cluster.client.get(LEASES, "cluster-autoscaler", "kube-system")
                assert lease["spec"]["holderIdentity"] == "b"
                stops[1].set()
                await tasks[1]
                pods = (await cluster.client.list_all(PODS)).items
                assert len(pods) == 8

        cluster.run(main())


def test_a_leader_that_loses_its_lease_stops_and_begins_anew_when_it_leads_again() -> None:
    with Cluster(nodes=0) as cluster:

        async def main() -> None:
            async with lab(cluster, SMALL, loop=False) as found:
                elector = LeaderElector(
                    cluster.clock, cluster.client, lease_name="cluster-autoscaler", namespace="kube-system",
                    identity="a", lead=found.autoscaler.run, rng=cluster.rng.fork("a"))
                stop = StopSignal()
                task = asyncio.create_task(elector.run(stop))
                await found.apply(workload("web", 4))
                await found.until_nodes(1, within_s=30)
                lease = await cluster.client.get(LEASES, "cluster-autoscaler", "kube-system")
                await cluster.client.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
                await cluster.clock.sleep(5)
                assert not elector.is_leader
                turns = len(found.turns)
                await found.apply(workload("more", 4))
                await cluster.clock.sleep(8)
                assert len(found.turns) == turns and len(await found.nodes()) == 1
                await found.until_nodes(2, within_s=60)
                assert elector.is_leader
                stop.set()
                await task

        cluster.run(main())
