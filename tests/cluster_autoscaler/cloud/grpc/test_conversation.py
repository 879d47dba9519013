"""A scripted conversation with the real autoscaler's calls, over TCP, with the kwok provider on an embedded cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from holokube.base.clock import WallClock
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.grpc.service import CleanupMode
from holokube.cluster_autoscaler.cloud.kwok.provider import KwokProvider
from holokube.kube.protobuf import decode_object, encode_object
from tests.cluster_autoscaler.cloud.conformance import fake_node
from tests.cluster_autoscaler.cloud.grpc.script import Script
from tests.cluster_autoscaler.cloud.grpc.serving import Pki, autoscaler, serving
from tests.cluster_autoscaler.cloud.grpc.upstream import Autoscaler
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, template
from tests.kube.protobuf.objects import full_pod

QUICK, SLOW, BROKEN, SPECIAL = "quick", "slow", "broken", "special"
TEMPLATES = (
    template("a", QUICK, max_count=10, labels={"size": "s"}),
    template("b", SLOW, max_count=5, boot_delay="1h"),
    template("c", BROKEN, max_count=5, stock=0),
    template("d", SPECIAL, max_count=5, scale_down_unneeded_time="90s", price_per_hour=0.4),
)


class Stage:
    """A cluster, its provider, and the autoscaler."""

    def __init__(self, world: KwokWorld, real: Autoscaler, port: int) -> None:
        self.world = world
        self.real = real
        self.port = port
        self.script = Script(real, world.client)

    async def node_names(self, group: str) -> list[str]:
        return sorted(name for name in await self.world.nodes() if name.startswith(f"{group}-"))


@asynccontextmanager
async def stage(
    pki: Pki | None = None, *, mutual: bool = False, cleanup: CleanupMode = CleanupMode.REQUEST
) -> AsyncIterator[Stage]:
    world = await KwokWorld.in_process(WallClock())
    await world.client.create(NODES, {**template("metal"), "spec": {"providerID": "metal://1"}})
    await world.start(TEMPLATES)

    async def renew() -> KwokProvider:
        await world.restart()
        return world.provider

    files = pki.files(mutual=mutual) if pki is not None else None
    credentials = pki.channel_credentials() if pki is not None else None
    try:
        async with (
            serving(world.provider, files=files, cleanup=cleanup, renew=renew) as server,
            autoscaler(server.port, credentials) as real,
        ):
            yield Stage(world, real, server.port)
    finally:
        await world.close()


@pytest.mark.parametrize("security", ["plain", "tls", "mutual"])
def test_nodes_come_and_go_as_the_real_autoscaler_asks_for_them(
    tmp_path_factory: pytest.TempPathFactory, security: str
) -> None:
    pki = None if security == "plain" else Pki.create(tmp_path_factory.mktemp("pki"))

    async def main() -> None:
        async with stage(pki, mutual=security == "mutual") as at:
            first = await at.script.run_once(increase={QUICK: 4})
            assert first.owners == {"metal": None}
            assert first.targets == {QUICK: 4, SLOW: 0, BROKEN: 0, SPECIAL: 0}
            names = await at.node_names(QUICK)
            assert len(names) == 4
            # What the second turn finds, it found by ids: nothing is unregistered.
            second = await at.script.run_once()
            assert second.owners == {"metal": None, **dict.fromkeys(names, QUICK)}
            assert second.unregistered == {} and second.failed == {}
            # Three nodes at once, each by a call of its own; the fourth stays.
            third = await at.script.run_once(remove=names[:3])
            assert third.targets[QUICK] == 4
            assert await at.node_names(QUICK) == names[3:]
            # The core still has the old list of instances: the removed ones look unregistered, and are nobody's.
            fourth = await at.script.run_once()
            assert fourth.unregistered == {f"kwok:{name}": None for name in names[:3]}
            assert fourth.targets[QUICK] == 1
            await at.script.delete_unregistered(fourth)
            assert await at.node_names(QUICK) == names[3:]
            await at.real.cleanup()
            assert list(await at.world.nodes()) == ["metal"]

    asyncio.run(main())


def test_calls_are_as_many_as_with_the_real_one() -> None:
    """Answers are remembered where upstream remembers them, so that what goes over the wire is what it sends."""

    async def main() -> None:
        async with stage() as at:
            first = await at.script.run_once(increase={QUICK: 2})
            assert first.calls == {
                "GPULabel": 1, "GetAvailableGPUTypes": 1, "Refresh": 1, "NodeGroups": 1,
                # A node that is nobody's is asked about each time: such answers are not remembered.
                "NodeGroupForNode": 2, "NodeGroupTemplateNodeInfo": 4, "NodeGroupTargetSize": 12 + 4 + 1,
                "NodeGroupNodes": 4, "NodeGroupGetOptions": 4, "NodeGroupIncreaseSize": 1,
            }  # fmt: skip
            second = await at.script.run_once()
            assert second.calls == {
                "Refresh": 1, "NodeGroups": 1, "NodeGroupForNode": 2 + 2, "NodeGroupTemplateNodeInfo": 4,
                "NodeGroupTargetSize": 12, "NodeGroupNodes": 1, "NodeGroupGetOptions": 2 + 2,
            }  # fmt: skip

    asyncio.run(main())


def test_machines_that_take_too_long_are_given_up_by_their_id() -> None:
    async def main() -> None:
        async with stage() as at:
            await at.script.run_once(increase={SLOW: 3})
            turn = await at.script.run_once()
            assert turn.targets[SLOW] == 3
            assert set(turn.unregistered.values()) == {SLOW} and len(turn.unregistered) == 3
            # Requests that were not fulfilled can be taken back, existing nodes cannot.
            await at.real.decrease_target_size(SLOW, -1)
            assert await at.real.target_size(SLOW) == 2
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await at.real.decrease_target_size(SLOW, -3)
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            # One of the three is gone, and the core does not know it yet.
            await at.script.delete_unregistered(turn)
            assert (await at.script.run_once()).targets[SLOW] == 0

    asyncio.run(main())


def test_machines_that_could_not_be_made_are_told_and_deleted() -> None:
    async def main() -> None:
        async with stage() as at:
            first = await at.script.run_once(increase={BROKEN: 2})
            assert first.targets[BROKEN] == 2
            second = await at.script.run_once()
            assert len(second.failed) == 2
            assert set(second.failed.values()) == {("OUT_OF_RESOURCES", 1)}
            assert second.targets[BROKEN] == 0
            third = await at.script.run_once()
            assert third.failed == {} and third.targets[BROKEN] == 0

    asyncio.run(main())


def test_templates_say_what_new_nodes_will_be_like() -> None:
    async def main() -> None:
        async with stage() as at:
            turn = await at.script.run_once()
            raw = turn.templates[QUICK]
            assert raw
            node = decode_object(raw, "v1", "Node")
            assert node["status"]["allocatable"]["cpu"] == "4"
            assert node["metadata"]["labels"]["size"] == "s"

    asyncio.run(main())


def test_prices_of_new_nodes_and_of_pods_are_known() -> None:
    """The autoscaler asks about its own copy of the template, under a name of its own, and about whole pods."""

    async def main() -> None:
        async with stage() as at:
            raw = await at.real.template(SPECIAL)
            assert raw
            node = decode_object(raw, "v1", "Node")
            node["metadata"]["name"] = f"template-node-for-{SPECIAL}-123"
            hour = {"startTimestamp": {"seconds": 1_767_225_600}, "endTimestamp": {"seconds": 1_767_229_200}}
            request = at.real.pb.PricingNodePriceRequest(node=at.real.wire_node(node), **hour)
            assert (await at.real.call("PricingNodePrice", request)).price == pytest.approx(0.4)
            pod = encode_object(full_pod(), "v1", "Pod")
            request = at.real.pb.PricingPodPriceRequest(pod_bytes=pod, **hour)
            assert 0 < (await at.real.call("PricingPodPrice", request)).price < 0.4

    asyncio.run(main())


def test_only_groups_with_settings_of_their_own_answer_for_them() -> None:
    async def main() -> None:
        async with stage() as at:
            options = at.real.pb.NodeGroupAutoscalingOptions
            defaults = options(scaleDownUtilizationThreshold=0.5, scaleDownUnneededDuration={"seconds": 600})
            assert await at.real.options(QUICK, defaults) is None
            found = await at.real.options(SPECIAL, defaults)
            assert (found.scaleDownUtilizationThreshold, found.scaleDownUnneededDuration.seconds) == (0.5, 90)

    asyncio.run(main())


def test_foreign_nodes_are_nobodys_and_never_deleted() -> None:
    async def main() -> None:
        async with stage() as at:
            metal = (await at.world.nodes())["metal"]
            assert await at.real.node_group_for_node(metal) is None
            await at.real.increase_size(QUICK, 1)
            with pytest.raises(grpc.aio.AioRpcError, match="not managed by the kwok provider") as refused:
                await at.real.delete_nodes(QUICK, metal)
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert "metal" in await at.world.nodes()
            assert await at.real.node_group_for_node(fake_node("kwok:never-was")) is None
            assert await at.real.node_group_for_node(fake_node("aws:///x/i-1")) is None

    asyncio.run(main())


def test_many_deletions_at_once_leave_the_right_size() -> None:
    async def main() -> None:
        async with stage() as at:
            await at.script.run_once(increase={QUICK: 10})
            names = await at.node_names(QUICK)
            turn = await at.script.run_once(remove=names)
            assert turn.calls["NodeGroupDeleteNodes"] == 10
            assert await at.real.target_size(QUICK) == 0
            assert list(await at.world.nodes()) == ["metal"]

    asyncio.run(main())


def test_an_increase_above_the_maximum_is_refused() -> None:
    async def main() -> None:
        async with stage() as at:
            with pytest.raises(grpc.aio.AioRpcError, match="size increase too large") as refused:
                await at.script.run_once(increase={QUICK: 11})
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert await at.real.target_size(QUICK) == 0

    asyncio.run(main())


def test_after_a_clean_up_the_next_autoscaler_starts_afresh() -> None:
    async def main() -> None:
        async with stage() as at:
            await at.script.run_once(increase={QUICK: 2})
            await at.real.cleanup()
            async with autoscaler(at.port) as another:
                turn = await Script(another, at.world.client).run_once(increase={QUICK: 3})
                assert turn.owners == {"metal": None} and turn.targets[QUICK] == 3
                again = await Script(another, at.world.client).run_once()
                assert again.unregistered == {} and again.targets[QUICK] == 3

    asyncio.run(main())


def test_an_autoscaler_that_restarts_finds_its_nodes_where_clean_ups_are_off() -> None:
    async def main() -> None:
        async with stage(cleanup=CleanupMode.NEVER) as at:
            await at.script.run_once(increase={QUICK: 2, SLOW: 1})
            await at.real.cleanup()
            async with autoscaler(at.port) as another:
                turn = await Script(another, at.world.client).run_once()
                assert turn.targets == {QUICK: 2, SLOW: 1, BROKEN: 0, SPECIAL: 0}
                assert list(turn.unregistered.values()) == [SLOW]

    asyncio.run(main())
