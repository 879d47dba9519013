from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from holokube.client.resources import NODES, PODS
from holokube.cluster_autoscaler.actuation.delay import DELAY_DELETION_PREFIX
from holokube.cluster_autoscaler.actuation.results import DeletionStart, NodeDeleteOutcome, ScaleDownResult
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind
from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.taints import TO_BE_DELETED
from holokube.kube.errors import Conflict
from holokube.kube.types import JsonObject
from tests.builders import budget
from tests.cluster_autoscaler.actuation.world import World, node, pod, world

_MARKED = [TO_BE_DELETED, "cordoned"]
_WHOLE = GroupOptions(zero_or_max_node_scaling=True)


async def _start(
    found: World, empty: Sequence[str] = (), drain: Sequence[str] = (), *, whole: int = 0
) -> DeletionStart:
    empty_batches = [await found.batch(*empty, whole=whole)] if empty else []
    drain_batches = [await found.batch(*drain, whole=whole)] if drain else []
    return await found.actuator.start_deletion(empty_batches, drain_batches, found.pods_on, lambda _: "{cpu 0.1}")


def _run(found: World, main: Coroutine[Any, Any, None]) -> None:
    async def with_kubelet() -> None:
        kubelet = asyncio.create_task(found.kubelet())
        try:
            await main
        finally:
            kubelet.cancel()
            await asyncio.wait([kubelet])

    found.cluster.run(with_kubelet())


def test_empty_nodes_are_tainted_at_once_and_deleted_after_a_delay() -> None:
    with world(node("a"), node("b"), node("c")) as found:
        async def main() -> None:
            began_s = found.clock.time()
            started = await _start(found, ["a", "b"])
            assert started.result is ScaleDownResult.NODE_DELETE_STARTED
            assert [one.node["metadata"]["name"] for one in started.nodes] == ["a", "b"]
            assert await found.taints() == {"a": _MARKED, "b": _MARKED, "c": []}
            assert found.tracker.in_flight() == (["a", "b"], [])
            await found.actuator.idle()
            assert found.clock.time() - began_s == pytest.approx(5)
            assert await found.taints() == {"c": []}

        _run(found, main())
        assert found.provider.books.calls == [
            {"op": "DeleteNodes", "group": "g", "nodes": ["a"]}, {"op": "DeleteNodes", "group": "g", "nodes": ["b"]}]
        assert found.reasons("a") == ["ScaleDown", "ScaleDown"]
        assert ("ScaleDownEmpty", 'Scale-down: removing empty node "a"') in found.status
        assert ("ScaleDownEmpty", "Scale-down: empty node a removed") in found.status
        assert ("deleted", "g", "a", False) in found.observed
        assert found.tracker.in_flight() == ([], [])
        assert {name: one.outcome for name, one in found.tracker.results()[0].items()} == {
            "a": NodeDeleteOutcome.OK, "b": NodeDeleteOutcome.OK}


def test_a_node_with_pods_is_drained_first() -> None:
    with world(node("a"), pod("p", "a"), pod("d", "a", owner="DaemonSet")) as found:
        found.controllers["DaemonSet", "default", "o"] = {}

        async def main() -> None:
            started = await _start(found, drain=["a"])
            assert [item["metadata"]["name"] for item in started.nodes[0].evicted] == ["p"]
            assert found.tracker.in_flight() == ([], ["a"])
            await found.actuator.idle()
            assert await found.taints() == {}

        _run(found, main())
        told = "Scale-down: removing node a, utilization: {cpu 0.1}, pods to reschedule: p"
        assert ("ScaleDown", told) in found.status
        assert ("ScaleDown", "Scale-down: node a removed with drain") in found.status
        assert ("deleted", "g", "a", True) in found.observed


def test_nothing_chosen_is_nothing_deleted() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            assert (await _start(found)).result is ScaleDownResult.NO_NODE_DELETED

        _run(found, main())


def test_an_empty_node_that_got_pods_meanwhile_is_given_back() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            await _start(found, ["a", "b"])
            found.pods.append(pod("late", "a"))
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())
        failed = [event for event in found.events if event[2] == "ScaleDownFailed"]
        assert failed == [("a", "Warning", "ScaleDownFailed", (
            'failed to delete empty node: failed to delete empty node "a", new pods scheduled'))]
        assert found.tracker.results()[0]["a"].outcome is NodeDeleteOutcome.INTERNAL


def test_an_empty_node_that_got_a_pod_to_wait_for_is_given_back() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            await _start(found, ["a"])
            annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "on-completion"}
            found.pods.append(pod("job", "a", annotations=annotations))
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())


def test_a_node_that_a_pod_blocks_by_now_is_given_back() -> None:
    with world(node("a"), pod("p", "a")) as found:
        found.pdbs.append(budget("b", "a", allowed=0))

        async def main() -> None:
            await _start(found, drain=["a"])
            await found.actuator.idle()
            assert await found.taints() == {"a": []}
            assert (await found.client.get(PODS, "p", "default"))["metadata"].get("deletionTimestamp") is None

        _run(found, main())


def test_a_drain_that_fails_gives_the_node_back() -> None:
    with world(node("a"), pod("p", "a"), budget("b", "a", allowed=0)) as found:
        async def main() -> None:
            await _start(found, drain=["a"])
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())
        result = found.tracker.results()[0]["a"]
        assert result.outcome is NodeDeleteOutcome.FAILED_TO_EVICT_PODS
        assert result.evictions["default/p"].timed_out
        assert found.reasons("a") == ["ScaleDown", "ScaleDownFailed"]
        assert found.provider.books.calls == []


def test_a_node_that_the_provider_does_not_delete_is_given_back() -> None:
    with world(node("a"), min_size=1) as found:
        async def main() -> None:
            await _start(found, ["a"])
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())
        assert ("failed", "g", ErrorKind.CLOUD_PROVIDER) in found.observed
        assert found.tracker.results()[0]["a"].outcome is NodeDeleteOutcome.FAILED_TO_DELETE


def test_a_node_without_a_group_is_not_deleted() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            found.provider.books.group_of.clear()
            await _start(found, ["a"])
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())


def test_if_one_node_cannot_be_tainted_none_is() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            batches = [await found.batch("a", "b")]
            await found.client.delete(NODES, "b")
            started = await found.actuator.start_deletion(batches, [], found.pods_on)
            assert started.result is ScaleDownResult.ERROR
            assert started.error is not None and "couldn't taint 1 nodes with ToBeDeleted" in started.error.message
            assert await found.taints() == {"a": []}
            assert found.tracker.in_flight() == ([], [])

        _run(found, main())
        assert found.reasons("b") == ["ScaleDownFailed", "ScaleDownFailed"]


def test_empty_nodes_go_even_if_the_nodes_to_drain_cannot_be_tainted() -> None:
    with world(node("a"), node("b"), pod("p", "b")) as found:
        async def main() -> None:
            empty, drain = [await found.batch("a")], [await found.batch("b")]
            await found.client.delete(NODES, "b")
            started = await found.actuator.start_deletion(empty, drain, found.pods_on)
            assert started.result is ScaleDownResult.ERROR
            assert [one.node["metadata"]["name"] for one in started.nodes] == ["a"]
            await found.actuator.idle()
            assert await found.taints() == {}

        _run(found, main())


def test_no_more_than_five_nodes_are_tainted_at_the_same_time() -> None:
    names = [f"n{index:02}" for index in range(12)]
    with world(*map(node, names)) as found:
        at_once, most = 0, 0
        mark = found.actuator.taints.mark_to_be_deleted

        async def counted(node: JsonObject) -> JsonObject:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await found.clock.sleep(1)
            at_once -= 1
            return await mark(node)

        found.actuator.taints.mark_to_be_deleted = counted  # type: ignore[method-assign]  # to look inside

        async def main() -> None:
            await _start(found, names)
            await found.actuator.stop()

        _run(found, main())
        assert most == 5


def test_a_group_that_goes_as_a_whole_goes_in_one_call() -> None:
    with world(node("a"), node("b"), pod("p", "b"), group=_WHOLE) as found:
        async def main() -> None:
            await _start(found, ["a"], ["b"], whole=2)
            await found.actuator.idle()
            assert await found.taints() == {}

        _run(found, main())
        assert [sorted(call["nodes"]) for call in found.provider.books.calls] == [["a", "b"]]


def test_a_group_that_goes_as_a_whole_stays_as_a_whole() -> None:
    with world(node("a"), node("b"), pod("p", "b"), budget("x", "a", allowed=0), group=_WHOLE) as found:
        async def main() -> None:
            await _start(found, ["a"], ["b"], whole=2)
            await found.actuator.idle()
            assert await found.taints() == {"a": [], "b": []}
            await _start(found)
            assert ("pending", 0) in found.observed

        _run(found, main())
        assert found.provider.books.calls == []
        assert found.tracker.results()[0]["a"].outcome is NodeDeleteOutcome.FAILED_TO_DELETE


def test_a_node_that_becomes_ready_after_another_of_its_whole_group_failed_is_given_back() -> None:
    with world(node("a"), node("b"), pod("p", "b"), group=_WHOLE) as found:
        async def main() -> None:
            await _start(found, ["a"], ["b"], whole=2)
            found.pods.append(pod("late", "a"))
            await found.actuator.idle()
            assert await found.taints() == {"a": [], "b": []}

        _run(found, main())
        assert found.provider.books.calls == []


def test_with_a_batch_interval_nodes_of_a_group_go_in_one_call() -> None:
    with world(node("a"), node("b"), pod("p", "b"), node_deletion_batcher_interval_s=60.0) as found:
        async def main() -> None:
            await _start(found, ["a"], ["b"])
            await found.actuator.idle()
            assert await found.taints() == {}

        _run(found, main())
        assert found.provider.books.calls == [{"op": "DeleteNodes", "group": "g", "nodes": ["a", "b"]}]
        assert ("deleted", "g", "a", False) in found.observed and ("deleted", "g", "b", True) in found.observed


def test_an_annotation_delays_the_deletion() -> None:
    with world(node("a", annotations={f"{DELAY_DELETION_PREFIX}x": "1"})) as found:
        async def main() -> None:
            began_s = found.clock.time()
            await _start(found, ["a"])
            await found.actuator.idle()
            assert found.clock.time() - began_s == pytest.approx(5 + 120)
            assert await found.taints() == {}

        _run(found, main())


def test_a_stop_gives_back_what_waits_and_what_is_being_drained() -> None:
    with world(node("a"), node("b"), pod("p", "b"), budget("x", "a", allowed=0)) as found:
        async def main() -> None:
            await _start(found, ["a"], ["b"])
            await found.clock.sleep(1)
            await found.actuator.stop()
            assert await found.taints() == {"a": [], "b": []}
            assert found.tracker.in_flight() == ([], [])

        _run(found, main())
        assert found.provider.books.calls == []
        assert found.reasons("a") == ["ScaleDown", "ScaleDownFailed"]


def test_a_stop_in_the_middle_of_a_drain_gives_the_node_back() -> None:
    with world(node("b"), pod("p", "b"), budget("x", "a", allowed=0)) as found:
        async def main() -> None:
            await _start(found, drain=["b"])
            await found.clock.sleep(40)
            await found.actuator.stop()
            assert await found.taints() == {"b": []}

        _run(found, main())


def test_a_stop_gives_back_nodes_that_wait_for_their_batch() -> None:
    with world(node("a"), node_deletion_batcher_interval_s=60.0) as found:
        async def main() -> None:
            await _start(found, ["a"])
            await found.clock.sleep(20)
            await found.actuator.stop()
            assert await found.taints() == {"a": []}

        _run(found, main())


def test_a_stop_waits_for_what_the_provider_is_doing() -> None:
    with world(node("a")) as found:
        group = found.provider.groups["g"]
        delete = group.delete_nodes

        async def slow(nodes: Sequence[JsonObject]) -> None:
            await found.clock.sleep(30)
            await delete(nodes)

        group.delete_nodes = slow  # type: ignore[method-assign]  # a slow cloud

        async def main() -> None:
            await _start(found, ["a"])
            await found.clock.sleep(10)
            await found.actuator.stop()
            assert await found.taints() == {}
            assert found.tracker.results()[0]["a"].outcome is NodeDeleteOutcome.OK

        _run(found, main())


def test_a_turn_that_is_cancelled_while_it_taints_leaves_no_taint() -> None:
    names = [f"n{index:02}" for index in range(8)]
    with world(*map(node, names)) as found:
        mark = found.actuator.taints.mark_to_be_deleted

        async def slow(node: JsonObject) -> JsonObject:
            marked = await mark(node)
            await found.clock.sleep(1)
            return marked

        found.actuator.taints.mark_to_be_deleted = slow  # type: ignore[method-assign]  # a slow server

        async def main() -> None:
            turn = asyncio.create_task(_start(found, names))
            await found.clock.sleep(1.5)
            assert any(await _marked(found))
            turn.cancel()
            await asyncio.wait([turn])
            assert turn.cancelled()
            assert not any(await _marked(found))

        _run(found, main())


async def _marked(found: World) -> list[bool]:
    return [bool(keys) for keys in (await found.taints()).values()]


def test_an_unexpected_error_of_the_provider_gives_the_node_back() -> None:
    with world(node("a")) as found:
        async def broken(nodes: Sequence[JsonObject]) -> None:
            raise ZeroDivisionError("a bug")

        found.provider.groups["g"].delete_nodes = broken  # type: ignore[method-assign]  # a faulty cloud

        async def main() -> None:
            await _start(found, ["a"])
            await found.actuator.idle()
            assert await found.taints() == {"a": []}

        _run(found, main())
        assert "a bug" in found.events[-1][3]


def test_an_unexpected_error_of_the_second_look_gives_all_nodes_back() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            await _start(found, ["a", "b"])
            found.pods.append({"not": "a pod", "spec": {"nodeName": "a"}})
            await found.actuator.idle()
            assert await found.taints() == {"a": [], "b": []}

        _run(found, main())


def test_a_node_that_cannot_be_given_back_is_still_told_of() -> None:
    with world(node("a"), min_size=1) as found:
        async def main() -> None:
            await _start(found, ["a"])

            async def busy(node: JsonObject) -> JsonObject:
                raise Conflict("somebody was faster")

            found.actuator.taints.clean_to_be_deleted = busy  # type: ignore[method-assign]  # a busy server
            await found.actuator.idle()
            assert found.tracker.in_flight() == ([], [])

        _run(found, main())
        assert found.reasons("a") == ["ScaleDown", "ScaleDownFailed"]


def test_the_provider_refuses_nodes_of_others() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            stranger = node("z")
            with pytest.raises(CloudError, match="is not in group"):
                await found.provider.groups["g"].delete_nodes([stranger])

        _run(found, main())
