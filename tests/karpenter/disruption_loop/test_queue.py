"""Commands on virtual time: what is done when a replacement does not come, and what a restart leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.client.resources import NODES
from holokube.karpenter.api.labels import DISRUPTED_TAINT
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS
from holokube.karpenter.disruption_loop.marking import tainted, untainted
from holokube.karpenter.disruption_loop.queue import DisruptionQueue
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject
from holokube.testing import Cluster
from tests.karpenter.lab import Lab, lab, node_pool, workload
from tests.karpenter.objects import node

TAINT = DISRUPTED_TAINT.to_json()


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def commands(here: Lab) -> list[str]:
    queue = here.running.parts["disruption.queue"]
    assert isinstance(queue, DisruptionQueue)
    return [command.decision.value for command in queue.commands]


async def shrink(here: Lab) -> JsonObject:
    """Leaves a large node with so little that a small one would do; returns its claim when that is decided."""
    await here.until_running(8)
    (claim,) = await here.claims()
    await here.scale("web", 2)

    async def is_decided() -> bool:
        return commands(here) == ["replace"]

    await here.until(is_decided, within_s=300)
    return claim


def is_marked(made: JsonObject) -> bool:
    return TAINT in (made["spec"].get("taints") or [])


def test_the_taint_is_set_once_and_taken_away_unless_the_node_is_being_deleted() -> None:
    other = {"key": "other", "effect": "NoSchedule"}
    marked = tainted(node(taints=[other]))
    assert marked["spec"]["taints"] == [other, TAINT]
    assert tainted(marked) is marked
    assert untainted(marked)["spec"]["taints"] == [other]
    leaving = node(taints=[TAINT], deleted_s=0)
    assert untainted(leaving) is leaving
    plain = node()
    assert untainted(plain) is plain


def test_while_a_replacement_comes_the_old_node_is_tainted_and_its_pods_run_on() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8), delay="40s") as here:
            old = await shrink(here)
            await cluster.clock.sleep(2)
            assert len(await here.claims()) == 2
            first = next(one for one in await here.nodes() if one["metadata"]["name"] == old["status"]["nodeName"])
            assert is_marked(first)
            reason = get_condition(await here.claim(old["metadata"]["name"]), "DisruptionReason")
            assert reason is not None
            assert reason["reason"] == "Underutilized"
            assert await here.running_pods() == 2
            assert {"DisruptionLaunching", "DisruptionWaitingReadiness"} <= set(await here.reasons("NodeClaim"))
            await here.until_nodes(1, within_s=120)
            assert await here.types() == ["small"]
            assert commands(here) == []

    play(scenario)


def test_when_a_replacement_is_deleted_everything_is_taken_back() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8), delay="2m") as here:
            old = await shrink(here)
            (new,) = [one for one in await here.claims() if one["metadata"]["name"] != old["metadata"]["name"]]
            await cluster.client.delete(NODE_CLAIMS, new["metadata"]["name"])
            await cluster.clock.sleep(3)
            (kept,) = await here.nodes()
            assert kept["metadata"]["name"] == old["status"]["nodeName"]
            assert not is_marked(kept)
            assert get_condition(await here.claim(old["metadata"]["name"]), "DisruptionReason") is None
            value = here.running.value
            assert value("karpenter_voluntary_disruption_queue_failures_total", decision="replace") == 1
            assert commands(here) == []
            assert await here.running_pods() == 2

    play(scenario)


def test_the_journal_does_not_leave_it_at_a_removal_that_is_given_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8), delay="2m") as here:
            old = await shrink(here)
            (new,) = [one for one in await here.claims() if one["metadata"]["name"] != old["metadata"]["name"]]
            await cluster.client.delete(NODE_CLAIMS, new["metadata"]["name"])
            await cluster.clock.sleep(3)
            decisions = [one for one in here.running.journal if one.subject == old["status"]["nodeName"]]
            assert [one.decision for one in decisions][-2:] == ["removed", "stays: DisruptionFailed"]
            assert new["metadata"]["name"] in decisions[-1].reasons[0]

    play(scenario)


def test_a_replacement_that_does_not_come_within_ten_minutes_is_not_waited_for() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8), delay="30s") as here:
            old = await shrink(here)
            slow = {"spec": {"nodeRegistrationDelay": "1h"}}
            await cluster.client.patch(KWOK_NODE_CLASSES, "default", slow)
            await cluster.clock.sleep(595)
            assert commands(here) == ["replace"]
            await cluster.clock.sleep(15)
            value = here.running.value
            assert value("karpenter_voluntary_disruption_queue_failures_total") == 1
            (kept,) = await here.nodes()
            assert kept["metadata"]["name"] == old["status"]["nodeName"]

    play(scenario)


def test_marks_that_a_killed_controller_left_are_taken_away_by_the_next() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8), delay="40s") as here:
            old = await shrink(here)
            await here.running.kill()
            await cluster.client.patch(NODES, old["status"]["nodeName"], {"metadata": {"annotations": {
                "karpenter.sh/do-not-disrupt": "true"}}})  # fmt: skip
            here.start()

            async def is_clean() -> bool:
                first = await cluster.client.get(NODES, old["status"]["nodeName"])
                return not is_marked(first)

            await here.until(is_clean, within_s=120)
            assert get_condition(await here.claim(old["metadata"]["name"]), "DisruptionReason") is None
            # What it had launched is found empty, and goes.
            await here.until_nodes(1, within_s=300)
            assert await here.types() == ["large"]
            await here.assert_nothing_leaked()

    play(scenario)


def test_a_command_is_dropped_when_pods_come_during_the_second_look() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "10s"}), workload("web", 4)) as here:
            await here.until_running(4)
            await here.scale("web", 0)
            await here.until_running(0)
            # Decided about ten seconds after the last pod left, and looked at again fifteen seconds later.
            await cluster.clock.sleep(20)
            await here.scale("web", 2)
            await here.until_running(2)
            await cluster.clock.sleep(20)
            value = here.running.value
            assert value("karpenter_voluntary_disruption_failed_validations_total", consolidation_type="empty") == 1
            assert len(await here.nodes()) == 1

    play(scenario)
