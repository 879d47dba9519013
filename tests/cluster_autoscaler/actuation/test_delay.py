from __future__ import annotations

import asyncio

import pytest

from holokube.client.resources import NODES
from holokube.cluster_autoscaler.actuation.delay import DELAY_DELETION_PREFIX, wait_while_delayed
from holokube.kube.errors import NotFound
from tests.cluster_autoscaler.actuation.world import World, node, world

_KEY = f"{DELAY_DELETION_PREFIX}backup"


async def _wait(found: World, timeout_s: float = 120) -> float:
    began_s = found.clock.time()
    await wait_while_delayed(found.clock, found.client, await found.client.get(NODES, "a"), timeout_s)
    return found.clock.time() - began_s


def test_a_node_without_the_annotation_is_not_waited_for() -> None:
    with world(node("a", annotations={"other": "x"})) as found:
        assert found.cluster.run(_wait(found)) == 0


def test_the_deletion_waits_until_the_annotation_is_gone() -> None:
    with world(node("a", annotations={_KEY: "x"})) as found:
        async def lift() -> None:
            await found.clock.sleep(12)
            await found.client.patch(NODES, "a", {"metadata": {"annotations": {_KEY: None}}})

        async def main() -> float:
            async with asyncio.TaskGroup() as group:
                group.create_task(lift())
                waited = group.create_task(_wait(found))
            return waited.result()

        assert found.cluster.run(main()) == pytest.approx(15)


def test_nobody_can_delay_a_deletion_for_ever() -> None:
    with world(node("a", annotations={_KEY: "x"})) as found:
        assert found.cluster.run(_wait(found, 12)) == pytest.approx(12)


def test_without_a_time_out_nobody_is_waited_for() -> None:
    with world(node("a", annotations={_KEY: "x"})) as found:
        assert found.cluster.run(_wait(found, 0)) == 0


def test_a_node_that_goes_away_meanwhile_ends_the_wait_with_an_error() -> None:
    with world(node("a", annotations={_KEY: "x"})) as found:
        async def main() -> None:
            stale = await found.client.get(NODES, "a")
            await found.client.delete(NODES, "a")
            with pytest.raises(NotFound):
                await wait_while_delayed(found.clock, found.client, stale, 60)

        found.cluster.run(main())
