"""The expander of the user's own, played by a server in the test."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError
from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.expanders import grpc as expander_module
from holokube.cluster_autoscaler.expanders.chain import build_chain
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.expanders.grpc import GrpcExpander
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.kube.pki import Authority
from holokube.kube.protobuf import decode_object
from tests.kube.protobuf.objects import full_node, full_pod

Answer = Callable[[Any], Awaitable[Any]]


def messages() -> tuple[Any, Any]:
    """Upstream's messages in Google's library, by upstream's numbers."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="expander.proto", package="grpcplugin", syntax="proto3")
    option = file.message_type.add(name="Option")
    for name, number, kind in (
        ("nodeGroupId", 1, kinds.TYPE_STRING), ("nodeCount", 2, kinds.TYPE_INT32), ("debug", 3, kinds.TYPE_STRING),
    ):  # fmt: skip
        option.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    option.field.add(name="podBytes", number=5, type=kinds.TYPE_BYTES, label=kinds.LABEL_REPEATED)
    request = file.message_type.add(name="BestOptionsRequest")
    entry = request.nested_type.add(name="NodeBytesMapEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    for owner in (request, file.message_type.add(name="BestOptionsResponse")):
        owner.field.add(
            name="options", number=1, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
            type_name=".grpcplugin.Option",
        )  # fmt: skip
    request.field.add(
        name="nodeBytesMap", number=3, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
        type_name=".grpcplugin.BestOptionsRequest.NodeBytesMapEntry",
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("BestOptionsRequest", "BestOptionsResponse")
    found = [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"grpcplugin.{name}")) for name in names]
    return found[0], found[1]


REQUEST, RESPONSE = messages()


@asynccontextmanager
async def expander(tmp_path: Path, answer: Answer) -> AsyncIterator[GrpcExpander]:
    """An expander whose program answers so, over TLS as upstream demands it."""
    authority = Authority.create("tests", WallClock().now())
    pair = authority.issue_server(("localhost",), ("127.0.0.1",))
    cert = tmp_path / "ca.crt"
    cert.write_bytes(authority.cert_pem)

    async def handle(request: Any, _context: Any) -> Any:
        return await answer(request)

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    handler = grpc.unary_unary_rpc_method_handler(handle, REQUEST.FromString, RESPONSE.SerializeToString)
    handlers = grpc.method_handlers_generic_handler("grpcplugin.Expander", {"BestOptions": handler})
    server.add_generic_rpc_handlers((handlers,))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pair.key_pem, pair.cert_pem)]))
    await server.start()
    client = GrpcExpander(f"localhost:{port}", str(cert))
    try:
        yield client
    finally:
        await client.close()
        await server.stop(None)


def option(group: str, count: int = 1, pods: int = 1) -> Option:
    made = tuple(full_pod(f"{group}-{number}") for number in range(pods))
    return Option(group, count, made, NodeInfo(full_node(f"{group}-template")), debug=f"{group} for {pods}")


OPTIONS = [option("a", 2, 3), option("b"), option("c")]


def context() -> ExpanderContext:
    return ExpanderContext(0.0, Rng(1))


def named(*groups: str) -> Answer:
    async def answer(_request: Any) -> Any:
        return RESPONSE(options=[{"nodeGroupId": group} for group in groups])

    return answer


def choose(tmp_path: Path, answer: Answer) -> list[str]:
    async def main() -> list[str]:
        async with expander(tmp_path, answer) as asked:
            return [kept.group_id for kept in await asked.best_options(OPTIONS, context())]

    return asyncio.run(main())


def test_options_are_kept_in_the_order_of_the_answer(tmp_path: Path) -> None:
    assert choose(tmp_path, named("c", "a")) == ["c", "a"]


def test_the_program_is_told_all_options_with_pods_and_nodes(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def answer(request: Any) -> Any:
        seen.append(request)
        return RESPONSE(options=[{"nodeGroupId": "a", "nodeCount": 77}])

    assert choose(tmp_path, answer) == ["a"]
    (request,) = seen
    assert [(told.nodeGroupId, told.nodeCount, told.debug) for told in request.options] == [
        ("a", 2, "a for 3"), ("b", 1, "b for 1"), ("c", 1, "c for 1"),
    ]  # fmt: skip
    pods = [decode_object(raw, "v1", "Pod") for raw in request.options[0].podBytes]
    assert [pod["metadata"]["name"] for pod in pods] == ["a-0", "a-1", "a-2"]
    expected = full_pod("a-1")
    del expected["spec"]["hostNetwork"]  # false and nothing are the same in protobuf
    assert pods[1] == expected
    assert {group: decode_object(raw, "v1", "Node") for group, raw in request.nodeBytesMap.items()} == {
        group: full_node(f"{group}-template") for group in "abc"
    }


def test_an_empty_answer_means_no_option(tmp_path: Path) -> None:
    assert choose(tmp_path, named()) == []


def test_groups_that_were_not_offered_are_ignored(tmp_path: Path) -> None:
    assert choose(tmp_path, named("x", "b")) == ["b"]


def test_an_answer_of_unknown_groups_only_filters_nothing(tmp_path: Path) -> None:
    assert choose(tmp_path, named("x", "y")) == ["a", "b", "c"]


def test_a_failed_call_filters_nothing_and_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(_request: Any) -> Any:
        raise ValueError("no idea")

    with caplog.at_level(logging.WARNING, logger="holokube"):
        assert choose(tmp_path, answer) == ["a", "b", "c"]
    assert "No option is left out" in caplog.text


def test_a_program_that_does_not_answer_in_time_filters_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expander_module.TIMEOUT_S == 5.0
    monkeypatch.setattr(expander_module, "TIMEOUT_S", 0.05)

    async def answer(_request: Any) -> Any:
        await asyncio.Event().wait()

    assert choose(tmp_path, answer) == ["a", "b", "c"]


def test_a_program_that_is_not_there_filters_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with expander(tmp_path, named("a")) as asked:
            pass
        assert len(await asked.best_options(OPTIONS, context())) == 3
        await asked.close()

    asyncio.run(main())


def test_a_server_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    async def main() -> None:
        async with expander(tmp_path, named("a")) as asked:
            other = tmp_path / "other.crt"
            other.write_bytes(Authority.create("other", WallClock().now()).cert_pem)
            suspicious = GrpcExpander(asked._url, str(other))
            assert len(await suspicious.best_options(OPTIONS, context())) == 3
            await suspicious.close()

    asyncio.run(main())


def test_it_is_a_link_of_the_chain_and_says_what_it_thought(tmp_path: Path) -> None:
    async def main() -> None:
        async with expander(tmp_path, named("b")) as asked:
            ctx = context()
            chosen = await build_chain(["grpc", "random"], {"grpc": asked}).choose(OPTIONS, ctx)
            assert chosen is OPTIONS[1]
            assert [(score.group_id, score.value) for score in ctx.steps[0].scores] == [("a", 0), ("b", 1), ("c", 0)]

    asyncio.run(main())


def test_many_pods_go_over_the_wire(tmp_path: Path) -> None:
    """More than the 4 MiB that gRPC allows unless told."""
    large = option("large", 100, 4000)
    counts: list[int] = []

    async def answer(request: Any) -> Any:
        counts.append(len(request.options[0].podBytes))
        return RESPONSE(options=request.options)

    async def main() -> None:
        async with expander(tmp_path, answer) as asked:
            assert await asked.best_options([large], context()) == [large]

    asyncio.run(main())
    assert counts == [4000]


def test_it_needs_an_address_and_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no address"):
        GrpcExpander("", "ca.crt")
    with pytest.raises(ConfigError, match="no certificate"):
        GrpcExpander("localhost:1", "")
    with pytest.raises(ConfigError, match="cannot be read"):
        GrpcExpander("localhost:1", str(tmp_path / "gone.crt"))
