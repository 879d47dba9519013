"""The kwok provider against the real kube-apiserver, beside nodes of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.cluster_autoscaler.cloud.provider import InstanceState
from holokube.kube.types import JsonObject
from holokube.testing.controlplane import ControlPlane
from tests.cli.program import Inside, untouched_logging
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, template

GROUP = "real-kwok"


@pytest.fixture
def inside(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Inside:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Inside(capsys)


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await check():  # noqa: ASYNC110 - nothing tells when a watch has caught up
            await asyncio.sleep(0.05)


def strangers() -> list[JsonObject]:
    """A real node, and a hollow one that no group made."""
    real = template("kwok-test-real", labels={"pool": "x"})
    real["spec"] = {"providerID": "metal://kwok-test-real"}
    hollow = template("kwok-test-hollow")
    hollow["metadata"]["annotations"]["kwok.x-k8s.io/node"] = "fake"
    return [real, hollow]


def test_groups_grow_shrink_survive_a_restart_and_go_beside_strangers(
    real_apiserver: ControlPlane, inside: Inside, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml.safe_dump(template("n1", GROUP, min_count=1, max_count=60, boot_delay="200ms")))

    async def made_by_us(world: KwokWorld) -> list[JsonObject]:
        return [node for node in (await world.nodes()).values() if group_of(node) == GROUP]

    async def test(world: KwokWorld) -> list[JsonObject]:
        before = [await world.client.create(NODES, node) for node in strangers()]
        await world.start(environ={"KWOK_TEMPLATES_PATH": str(path)})
        group = world.group(GROUP)
        await group.increase_size(49)
        assert await group.target_size() == 50

        async def has(count: int) -> bool:
            running = [each for each in await world.group(GROUP).nodes() if each.state is InstanceState.RUNNING]
            return len(running) == count == len(await made_by_us(world)) == await world.group(GROUP).target_size()

        await eventually(lambda: has(50))
        with pytest.raises(CloudError):
            await group.delete_nodes([before[0]])
        with pytest.raises(CloudError):
            await group.delete_nodes([before[1]])
        doomed = (await made_by_us(world))[:20]
        await asyncio.gather(*(group.delete_nodes([node]) for node in doomed))
        assert await group.target_size() == 30
        await eventually(lambda: has(30))
        await world.restart()
        assert await has(30)
        await world.group(GROUP).increase_size(3)
        await eventually(lambda: has(33))
        await world.provider.cleanup()
        assert await made_by_us(world) == []
        await world.restart()
        await eventually(lambda: has(1))
        return before

    async def main() -> list[JsonObject]:
        clock = WallClock()
        client = Client(HttpTransport(clock, load_access(str(real_apiserver.kubeconfig))))
        world = KwokWorld(clock, client)
        try:
            async with asyncio.timeout(60):
                return await test(world)
        finally:
            await world.close()

    before = asyncio.run(main())
    with untouched_logging():
        done = inside("cleanup", "--node-group", GROUP, "--kubeconfig", str(real_apiserver.kubeconfig))
    assert (done.returncode, done.stderr) == (0, "1 nodes of 1 groups removed\n")

    async def rest() -> None:
        async with Client(HttpTransport(WallClock(), load_access(str(real_apiserver.kubeconfig)))) as client:
            for node in before:
                name = node["metadata"]["name"]
                assert await client.get(NODES, name) == node
                await client.delete(NODES, name)
            assert not [node for node in (await client.list(NODES)).items if group_of(node) == GROUP]

    asyncio.run(rest())
