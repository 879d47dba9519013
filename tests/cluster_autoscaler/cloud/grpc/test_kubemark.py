"""The kubemark provider behind the service, with both of its clusters, on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.cluster_autoscaler.cloud.grpc.service import CloudProviderService
from holokube.kube.protobuf import decode_object
from tests.cluster_autoscaler.cloud.grpc.local import LocalChannel
from tests.cluster_autoscaler.cloud.grpc.script import Script
from tests.cluster_autoscaler.cloud.grpc.upstream import Autoscaler
from tests.cluster_autoscaler.cloud.kubemark.worlds import World

GROUP = "workers"


def play(scene: Callable[[World, Script, Autoscaler], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        world = await World.start(clock, f"0:5:{GROUP}")
        try:
            await world.add_foreign_node("metal")
            real = Autoscaler(LocalChannel(CloudProviderService(world.provider)))
            await scene(world, Script(real, world.clusters.kubemark_client), real)
        finally:
            await world.close()

    run_virtual(main)


def test_hollow_nodes_come_and_go() -> None:
    async def scene(world: World, script: Script, real: Autoscaler) -> None:
        first = await script.run_once(increase={GROUP: 3})
        assert first.targets == {GROUP: 3} and first.owners == {"metal": None}
        await world.settle()
        script.forget_instances(GROUP)
        second = await script.run_once()
        names = sorted(set(second.owners) - {"metal"})
        assert len(names) == 3 and {second.owners[name] for name in names} == {GROUP}
        assert second.unregistered == {}
        third = await script.run_once(remove=names[:2])
        assert third.calls["NodeGroupDeleteNodes"] == 2
        assert await real.target_size(GROUP) == 1
        await world.settle()
        # The list that the core remembers has two ids too many, which are nobody's.
        fourth = await script.run_once()
        assert fourth.unregistered == {f"kubemark://{name}": None for name in names[:2]}
        assert sorted(await world.nodes()) == ["metal", names[2]]

    play(scene)


def test_hollow_nodes_that_do_not_come_are_given_up_by_their_id() -> None:
    async def scene(world: World, script: Script, real: Autoscaler) -> None:
        await world.hold()
        await script.run_once(increase={GROUP: 2})
        await world.settle()
        script.forget_instances(GROUP)
        turn = await script.run_once()
        assert list(turn.unregistered.values()) == [GROUP, GROUP]
        await script.delete_unregistered(turn)
        assert await real.target_size(GROUP) == 0
        await world.release()
        await world.settle()
        assert list(await world.nodes()) == ["metal"]

    play(scene)


def test_an_empty_group_has_a_template_and_prices_are_not_offered() -> None:
    async def scene(world: World, script: Script, real: Autoscaler) -> None:
        turn = await script.run_once()
        raw = turn.templates[GROUP]
        assert raw and decode_object(raw, "v1", "Node")["status"]["allocatable"]["cpu"]
        node = real.pb.PricingNodePriceRequest(node={"name": "n"})
        assert await real._unless_unimplemented("PricingNodePrice", node) is None
        assert await real.gpu_types() == {"nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100"}

    play(scene)
