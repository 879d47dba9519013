from __future__ import annotations

from holokube.client.resources import NODES
from holokube.cluster_autoscaler.actuation.node_taints import (
    NodeTaints,
    clean_stale_candidates,
    clean_stale_to_be_deleted,
)
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, TO_BE_DELETED, deletion_candidate, to_be_deleted
from holokube.kube.errors import Conflict, NotFound
from tests.cluster_autoscaler.actuation.world import World, node, world


def _taints(found: World, *, cordon: bool = True) -> NodeTaints:
    return NodeTaints(found.clock, found.client, cordon=cordon)


def test_a_marked_node_is_tainted_with_the_time_and_cordoned() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            now_s = int(found.clock.time())
            marked = await _taints(found).mark_to_be_deleted(await found.client.get(NODES, "a"))
            assert {"key": TO_BE_DELETED, "value": str(now_s), "effect": "NoSchedule"} in marked["spec"]["taints"]
            assert marked["spec"]["unschedulable"] is True
            await _taints(found).clean_to_be_deleted(marked)
            assert await found.taints() == {"a": []}

        found.cluster.run(main())


def test_without_cordon_the_node_stays_schedulable_and_a_foreign_cordon_survives() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            taints = _taints(found, cordon=False)
            await found.client.patch(NODES, "a", {"spec": {"unschedulable": True}})
            await taints.mark_to_be_deleted(await found.client.get(NODES, "a"))
            assert await found.taints() == {"a": [TO_BE_DELETED, "cordoned"]}
            await taints.clean_to_be_deleted(await found.client.get(NODES, "a"))
            assert await found.taints() == {"a": ["cordoned"]}

        found.cluster.run(main())


def test_a_change_of_somebody_else_is_not_lost() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            stale = await found.client.get(NODES, "a")
            await found.client.patch(NODES, "a", {"metadata": {"labels": {"theirs": "kept"}}})
            marked = await _taints(found).mark_to_be_deleted(stale)
            assert marked["metadata"]["labels"]["theirs"] == "kept"
            assert await found.taints() == {"a": [TO_BE_DELETED, "cordoned"]}

        found.cluster.run(main())


def test_conflicts_without_end_are_given_up_after_five_seconds() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            stale = await found.client.get(NODES, "a")

            class Busy(type(found.client)):  # type: ignore[misc]  # whatever client the cluster has
                async def update(self, *args: object, **kwargs: object) -> object:
                    raise Conflict("somebody was faster")

            busy = Busy(found.client.transport)
            began_s = found.clock.time()
            try:
                await NodeTaints(found.clock, busy, cordon=True).mark_to_be_deleted(stale)
            except Conflict:
                assert 5.0 <= found.clock.time() - began_s < 6.0
            else:
                raise AssertionError("the conflict was swallowed")

        found.cluster.run(main())


def test_a_node_that_is_gone_cannot_be_marked() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            stale = await found.client.get(NODES, "a")
            await found.client.delete(NODES, "a")
            try:
                await _taints(found).mark_to_be_deleted(stale)
            except NotFound:
                return
            raise AssertionError("a node that is gone was marked")

        found.cluster.run(main())


def test_a_taint_that_is_there_already_is_left_as_it_is() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            first = await _taints(found).mark_to_be_deleted(await found.client.get(NODES, "a"))
            await found.clock.sleep(10)
            again = await _taints(found).mark_to_be_deleted(first)
            assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

        found.cluster.run(main())


def test_what_a_dead_autoscaler_left_is_cleaned_and_told() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            taints = _taints(found)
            await taints.mark_to_be_deleted(await found.client.get(NODES, "a"))
            nodes = (await found.client.list(NODES)).items
            await clean_stale_to_be_deleted(taints, nodes, found)
            assert await found.taints() == {"a": [], "b": []}
            assert [(name, reason) for name, _, reason, _ in found.events] == [("a", "ClusterAutoscalerCleanup")]

        found.cluster.run(main())


def test_a_node_that_cannot_be_cleaned_is_told_of() -> None:
    with world(node("a")) as found:
        async def main() -> None:
            gone = node("gone")
            gone["spec"]["taints"] = [to_be_deleted(1)]
            await clean_stale_to_be_deleted(_taints(found), [gone], found)
            assert found.events[0][1:3] == ("Warning", "ClusterAutoscalerCleanup")

        found.cluster.run(main())


def test_young_candidate_marks_survive_a_restart() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            now_s = found.clock.time()
            for name, age_s in (("a", 30), ("b", 90)):
                await found.client.patch(NODES, name, {"spec": {"taints": [deletion_candidate(now_s - age_s)]}})
            nodes = (await found.client.list(NODES)).items
            await clean_stale_candidates(_taints(found), nodes, found, ttl_s=60, now_s=now_s)
            assert await found.taints() == {"a": [DELETION_CANDIDATE], "b": []}
            await clean_stale_candidates(_taints(found), nodes, found, ttl_s=0, now_s=now_s)
            assert await found.taints() == {"a": [], "b": []}

        found.cluster.run(main())
