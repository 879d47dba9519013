"""What is answered: by generations of the protocol, and where the autoscaler would stumble."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import pytest

from holokube.cluster_autoscaler.cloud.grpc.group_options import from_wire, to_wire
from holokube.cluster_autoscaler.cloud.grpc.messages import decode, encode
from holokube.cluster_autoscaler.cloud.grpc.service import CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.statuses import CallRefused
from holokube.cluster_autoscaler.cloud.provider import (
    ErrorClass,
    GroupOptions,
    Instance,
    InstanceError,
    InstanceState,
)
from holokube.kube.protobuf import decode_object, encode_object
from tests.cluster_autoscaler.cloud.grpc.cloud import FakeCloud, FakeGroup, FakePrices
from tests.cluster_autoscaler.cloud.grpc.serving import autoscaler, serving
from tests.cluster_autoscaler.cloud.grpc.upstream import NEWEST, OLD, PB, PRESENT, Messages
from tests.kube.protobuf.objects import full_node, full_pod

OF_OLD = Messages(PRESENT, OLD)
OF_NEWEST = Messages(PRESENT, NEWEST)
SPECIAL = GroupOptions(scale_down_utilization_threshold=0.3, scale_down_unneeded_time_s=90.5)


def ask(cloud: FakeCloud, method: str, question: dict[str, Any]) -> Any:
    return asyncio.run(CloudProviderService(cloud).answer(method, question))


def refused(cloud: FakeCloud, method: str, question: dict[str, Any]) -> CallRefused:
    with pytest.raises(CallRefused) as error:
        ask(cloud, method, question)
    return error.value


# Templates


def test_a_template_arrives_whole_in_every_generation() -> None:
    async def main() -> None:
        cloud = FakeCloud(FakeGroup("pool-a", template=full_node("template")))
        async with serving(cloud) as server, autoscaler(server.port) as real, autoscaler(
            server.port, messages=OF_OLD
        ) as old:
            raw = await real.template("pool-a")
            assert raw and decode_object(raw, "v1", "Node") == full_node("template")
            answer = await old.call("NodeGroupTemplateNodeInfo", PB.NodeGroupTemplateNodeInfoRequest(id="pool-a"))
            assert answer.nodeInfo == raw

    asyncio.run(main())


def test_a_group_without_a_template_is_not_implemented_and_never_empty() -> None:
    async def main() -> None:
        empty = FakeGroup("nothing", template={"apiVersion": "v1", "kind": "Node"})
        async with serving(FakeCloud(FakeGroup("none"), empty)) as server, autoscaler(server.port) as real:
            assert await real.template("none") is None
            with pytest.raises(grpc.aio.AioRpcError, match="the template of group nothing is empty"):
                await real.template("nothing")

    asyncio.run(main())


# Settings of groups


def defaults_of(messages: Messages) -> Any:
    """The autoscaler's own defaults, as it sends them."""
    options = GroupOptions()
    wire = messages.NodeGroupAutoscalingOptions
    known = {field.name for field in wire.DESCRIPTOR.fields}
    return wire.FromString(encode("Options", {key: value for key, value in to_wire(options).items() if key in known}))


@pytest.mark.parametrize("messages", [PB, OF_OLD, OF_NEWEST], ids=["present", "old", "newest"])
def test_a_group_without_settings_of_its_own_answers_nothing(messages: Messages) -> None:
    async def main() -> None:
        same = FakeGroup("same", overrides=GroupOptions())
        group = FakeGroup("pool-a")
        async with serving(FakeCloud(group, same)) as server, autoscaler(server.port, messages=messages) as real:
            assert await real.options("pool-a", defaults_of(messages)) is None
            # The defaults themselves, too: an answer would make a setting zero that is not on the wire.
            assert await real.options("same", defaults_of(messages)) is None
            assert group.asked == [GroupOptions()]

    asyncio.run(main())


def test_settings_are_answered_with_every_field_filled() -> None:
    async def main() -> None:
        cloud = FakeCloud(FakeGroup("pool-a", overrides=SPECIAL))
        async with serving(cloud) as server:
            async with autoscaler(server.port) as real:
                found = await real.options("pool-a", defaults_of(PB))
                assert found.scaleDownUtilizationThreshold == 0.3
                assert found.scaleDownGpuUtilizationThreshold == 0.5
                assert found.scaleDownUnneededDuration.ToMilliseconds() == 90_500
                assert found.scaleDownUnreadyDuration.seconds == 1200
                assert found.MaxNodeProvisionDuration.seconds == 900
            async with autoscaler(server.port, messages=OF_OLD) as old:
                found = await old.options("pool-a", defaults_of(OF_OLD))
                assert found.scaleDownUnneededTime.duration == 90_500_000_000
                assert found.scaleDownUnreadyTime.duration == 1_200_000_000_000
                assert found.MaxNodeProvisionTime.duration == 900_000_000_000
            async with autoscaler(server.port, messages=OF_NEWEST) as newest:
                found = await newest.options("pool-a", defaults_of(OF_NEWEST))
                assert found.maxNodeStartupDuration.seconds == 900

    asyncio.run(main())


def test_settings_that_cannot_be_told_are_warned_about_once_and_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        cloud = FakeCloud(FakeGroup("pool-a", overrides=GroupOptions(max_node_startup_time_s=60)))
        async with serving(cloud) as server:
            async with autoscaler(server.port) as real:
                assert await real.options("pool-a", defaults_of(PB)) is None
                assert await real.options("pool-a", defaults_of(PB)) is None
            async with autoscaler(server.port, messages=OF_NEWEST) as newest:
                found = await newest.options("pool-a", defaults_of(OF_NEWEST))
                assert found.maxNodeStartupDuration.seconds == 60

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [record.getMessage() for record in caplog.records].count("A setting cannot be told to this autoscaler") == 1


def test_settings_survive_the_wire() -> None:
    options = GroupOptions(0.25, 0.75, 1.5, 0.0, -2.25, 3.0, True, True, True)
    assert from_wire(decode("Options", encode("Options", to_wire(options)))) == options


# Prices


@pytest.mark.parametrize(
    ("messages", "times"),
    [(PB, ("startTimestamp", "endTimestamp")), (OF_OLD, ("startTime", "endTime"))],
    ids=["present", "old"],
)
def test_prices_are_for_the_period_that_was_asked_about(messages: Messages, times: tuple[str, str]) -> None:
    async def main() -> None:
        prices = FakePrices()
        period = {times[0]: {"seconds": 1_767_225_600}, times[1]: {"seconds": 1_767_229_200, "nanos": 0}}
        pod = {"pod_bytes" if messages is PB else "pod": encode_object(full_pod(), "v1", "Pod")}
        async with serving(FakeCloud(prices=prices)) as server, autoscaler(server.port, messages=messages) as real:
            node = real.pb.ExternalGrpcNode(name="four", providerID="fake://x")
            price = await real.call("PricingNodePrice", real.pb.PricingNodePriceRequest(node=node, **period))
            assert price.price == 4.0
            price = await real.call("PricingPodPrice", real.pb.PricingPodPriceRequest(**pod, **period))
            assert price.price == 0.5
        (asked,) = prices.pods
        assert asked["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "900m"
        assert asked["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] == "10m"

    asyncio.run(main())


def test_without_prices_they_are_not_implemented() -> None:
    async def main() -> None:
        async with serving(FakeCloud()) as server, autoscaler(server.port) as real:
            node = real.pb.ExternalGrpcNode(name="n")
            for method, request in (
                ("PricingNodePrice", real.pb.PricingNodePriceRequest(node=node)),
                ("PricingPodPrice", real.pb.PricingPodPriceRequest()),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await real.call(method, request)
                assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(main())


# Instances


def test_instances_carry_their_state_and_what_went_wrong() -> None:
    async def main() -> None:
        group = FakeGroup("pool-a")
        sold_out = InstanceError(ErrorClass.OUT_OF_RESOURCES, "STOCKOUT", "none left in z-1")
        nameless = InstanceError(ErrorClass.OTHER, "", "who knows")
        for instance in (
            Instance("fake://silent"), Instance("fake://runs", InstanceState.RUNNING),
            Instance("fake://comes", InstanceState.CREATING), Instance("fake://goes", InstanceState.DELETING),
            Instance("fake://failed", InstanceState.CREATING, sold_out),
            Instance("fake://nameless", InstanceState.CREATING, nameless),
        ):  # fmt: skip
            group.instances[instance.id] = instance
        async with serving(FakeCloud(group)) as server, autoscaler(server.port) as real:
            found = {instance.id: instance for instance in await real.nodes("pool-a")}
        states = {id_.removeprefix("fake://"): instance.status.instanceState for id_, instance in found.items()}
        assert states == {"silent": 0, "runs": 1, "comes": 2, "goes": 3, "failed": 2, "nameless": 2}
        failed = found["fake://failed"].status.errorInfo
        assert (failed.errorCode, failed.errorMessage, failed.instanceErrorClass) == ("STOCKOUT", "none left in z-1", 1)
        assert found["fake://comes"].status.errorInfo.errorCode == ""
        # An empty code would hide the error.
        assert found["fake://nameless"].status.errorInfo.errorCode == "Other"
        assert found["fake://nameless"].status.errorInfo.instanceErrorClass == 99

    asyncio.run(main())


# What makes no sense


@pytest.mark.parametrize(
    ("method", "question", "code", "said"),
    [
        ("NodeGroupTargetSize", {"id": "pool-x"}, "NOT_FOUND", "no node group 'pool-x'; there are: pool-a"),
        ("NodeGroupTargetSize", {}, "NOT_FOUND", "no node group ''"),
        ("NodeGroupIncreaseSize", {"id": "pool-a"}, "INVALID_ARGUMENT", "increased by 0"),
        ("NodeGroupIncreaseSize", {"id": "pool-a", "delta": -1}, "INVALID_ARGUMENT", "increased by -1"),
        ("NodeGroupDecreaseTargetSize", {"id": "pool-a", "delta": 1}, "INVALID_ARGUMENT", "decreased by 1"),
        ("NodeGroupForNode", {}, "INVALID_ARGUMENT", "names no node"),
    ],
)
def test_calls_that_make_no_sense_are_refused(method: str, question: dict[str, Any], code: str, said: str) -> None:
    error = refused(FakeCloud(), method, question)
    assert error.code == code and said in str(error)


def test_a_pod_price_needs_a_pod() -> None:
    assert refused(FakeCloud(prices=FakePrices()), "PricingPodPrice", {}).code == "INVALID_ARGUMENT"


def test_deleting_no_nodes_is_no_change() -> None:
    assert ask(FakeCloud(), "NodeGroupDeleteNodes", {"id": "pool-a"}) == {}
