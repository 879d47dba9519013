from __future__ import annotations

from typing import Any

from holokube.base.errors import HolokubeError
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.actuation.node_taints import NodeTaints
from holokube.cluster_autoscaler.actuation.soft_taints import update_soft_taints
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, TO_BE_DELETED
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.actuation.world import World, node, world


async def _update(
    found: World, unneeded: list[str], needed: list[str], *, calls_max: int = 10, time_max_s: float = 3.0,
    taints: NodeTaints | None = None,
) -> list[HolokubeError]:
    async def get(names: list[str]) -> list[JsonObject]:
        return [await found.client.get(NODES, name) for name in names]

    return await update_soft_taints(
        found.clock, taints or NodeTaints(found.clock, found.client, cordon=True), await get(unneeded),
        await get(needed), calls_max=calls_max, time_max_s=time_max_s)


def test_unneeded_nodes_are_marked_and_needed_ones_are_not_any_more() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            assert await _update(found, ["a"], ["b"]) == []
            assert await found.taints() == {"a": [DELETION_CANDIDATE], "b": []}
            await _update(found, ["b"], ["a"])
            assert await found.taints() == {"a": [], "b": [DELETION_CANDIDATE]}

        found.cluster.run(main())


def test_no_more_changes_than_allowed_are_made_in_a_turn_and_needed_nodes_come_first() -> None:
    with world(*(node(name) for name in "abcd")) as found:
        async def main() -> None:
            await _update(found, ["a"], [])
            await _update(found, ["b", "c", "d"], ["a"], calls_max=2)
            assert await found.taints() == {"a": [], "b": [DELETION_CANDIDATE], "c": [], "d": []}
            await _update(found, ["b", "c", "d"], ["a"], calls_max=2)
            assert [name for name, keys in (await found.taints()).items() if keys] == ["b", "c", "d"]

        found.cluster.run(main())


class _Slow(NodeTaints):
    async def mark_candidate(self, node: JsonObject) -> JsonObject:
        await self._clock.sleep(2)
        return await super().mark_candidate(node)


def test_no_change_is_begun_when_the_time_is_up() -> None:
    with world(*(node(name) for name in "abc")) as found:
        async def main() -> None:
            slow = _Slow(found.clock, found.client, cordon=True)
            await _update(found, ["a", "b", "c"], [], taints=slow)
            assert [name for name, keys in (await found.taints()).items() if keys] == ["a", "b"]

        found.cluster.run(main())


def test_nodes_that_are_being_deleted_are_left_alone() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            taints = NodeTaints(found.clock, found.client, cordon=False)
            for name in "ab":
                await taints.mark_to_be_deleted(await found.client.get(NODES, name))
            await taints.mark_candidate(await found.client.get(NODES, "b"))
            await _update(found, ["a"], ["b"])
            assert await found.taints() == {"a": [TO_BE_DELETED], "b": [TO_BE_DELETED, DELETION_CANDIDATE]}

        found.cluster.run(main())


def test_one_node_that_fails_does_not_keep_the_others_from_being_marked() -> None:
    with world(node("a"), node("b")) as found:
        async def main() -> None:
            gone: Any = node("gone")
            taints = NodeTaints(found.clock, found.client, cordon=True)
            errors = await update_soft_taints(
                found.clock, taints, [gone, await found.client.get(NODES, "b")], [], calls_max=10, time_max_s=3)
            assert len(errors) == 1
            assert (await found.taints())["b"] == [DELETION_CANDIDATE]

        found.cluster.run(main())
