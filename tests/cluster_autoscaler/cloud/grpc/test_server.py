"""Calls over the wire: plain, with TLS, and with certificates on both sides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry

from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind, OutOfResourcesError
from holokube.cluster_autoscaler.cloud.grpc import library
from holokube.cluster_autoscaler.cloud.grpc.messages import SERVICE
from holokube.cluster_autoscaler.cloud.grpc.server import CloudProviderServer
from holokube.cluster_autoscaler.cloud.grpc.service import CleanupMode, CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.tls import ServerFiles
from holokube.kube.pki import Authority
from tests.cluster_autoscaler.cloud.grpc.cloud import FakeCloud, FakeGroup
from tests.cluster_autoscaler.cloud.grpc.serving import Pki, autoscaler, serving


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki.create(tmp_path_factory.mktemp("pki"))


def test_it_is_found_under_upstreams_name() -> None:
    assert SERVICE == "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"


@pytest.mark.parametrize("security", ["plain", "tls", "mutual"])
def test_groups_are_listed_over_every_kind_of_connection(pki: Pki, security: str) -> None:
    async def main() -> None:
        files = None if security == "plain" else pki.files(mutual=security == "mutual")
        credentials = None if files is None else pki.channel_credentials()
        async with serving(FakeCloud(), files=files) as server, autoscaler(server.port, credentials) as real:
            (group,) = await real.node_groups()
            assert (group.id, group.minSize, group.maxSize, group.debug) == ("pool-a", 0, 10, "pool-a (0:10)")

    asyncio.run(main())


@pytest.mark.parametrize("who", ["nobody", "stranger", "plain"])
def test_with_certificates_on_both_sides_others_are_refused(pki: Pki, who: str) -> None:
    stranger = Authority.create("another", WallClock().now()).issue_client("cluster-autoscaler")
    credentials = {
        "nobody": grpc.ssl_channel_credentials(pki.authority.cert_pem),
        "stranger": pki.channel_credentials(stranger),
        "plain": None,
    }[who]

    async def main() -> None:
        cloud = FakeCloud()
        async with serving(cloud, files=pki.files(mutual=True)) as server:
            async with autoscaler(server.port, credentials) as refused:
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await refused.refresh()
                assert error.value.code() is grpc.StatusCode.UNAVAILABLE
            assert cloud.refreshes == 0
            async with autoscaler(server.port, pki.channel_credentials()) as welcome:
                await welcome.refresh()
            assert cloud.refreshes == 1

    asyncio.run(main())


def test_a_client_does_not_trust_a_server_of_another_authority(tmp_path: Path, pki: Pki) -> None:
    async def main() -> None:
        other = Pki.create(tmp_path)
        cloud, credentials = FakeCloud(), other.channel_credentials()
        files = pki.files(mutual=False)
        async with serving(cloud, files=files) as server, autoscaler(server.port, credentials) as real:
            with pytest.raises(grpc.aio.AioRpcError):
                await real.refresh()
        assert cloud.refreshes == 0

    asyncio.run(main())


def test_certificates_are_read_again_when_they_change(tmp_path: Path) -> None:
    async def main() -> None:
        pki = Pki.create(tmp_path)
        async with serving(FakeCloud(), files=pki.files(mutual=True)) as server:
            async with autoscaler(server.port, pki.channel_credentials()) as real:
                await real.refresh()
            renewed = Pki.create(tmp_path)
            async with autoscaler(server.port, renewed.channel_credentials()) as real:
                await real.refresh()
            # Half of a pair, or garbage, does not take the place of what works.
            (tmp_path / "server.key").write_bytes(b"garbage")
            async with autoscaler(server.port, renewed.channel_credentials()) as real:
                await real.refresh()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (CloudError("too many", hint="ask for less"), "FAILED_PRECONDITION", "too many; ask for less"),
        (OutOfResourcesError("sold out"), "RESOURCE_EXHAUSTED", "sold out"),
        (CloudError("busy", kind=ErrorKind.TRANSIENT), "UNAVAILABLE", "busy"),
        (KeyError("oops"), "INTERNAL", "KeyError: 'oops'"),
        (CloudError("größer " * 2000), "FAILED_PRECONDITION", "größer " * 20),
    ],
)
def test_errors_arrive_with_a_code_and_their_words(error: Exception, code: str, text: str) -> None:
    async def main() -> None:
        cloud = FakeCloud(FakeGroup("pool-a", trouble=error))
        async with serving(cloud) as server, autoscaler(server.port) as real:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await real.increase_size("pool-a", 1)
            assert caught.value.code().name == code
            assert str(caught.value.details()).startswith(text)

    asyncio.run(main())


def test_a_failed_refresh_is_told_and_the_next_one_may_succeed() -> None:
    async def main() -> None:
        cloud = FakeCloud()
        cloud.trouble = CloudError("the cloud is away", kind=ErrorKind.TRANSIENT)
        async with serving(cloud) as server, autoscaler(server.port) as real:
            with pytest.raises(grpc.aio.AioRpcError, match="the cloud is away"):
                await real.refresh()
            cloud.trouble = None
            await real.refresh()

    asyncio.run(main())


def test_bytes_that_are_no_message_are_the_callers_fault() -> None:
    async def main() -> None:
        async with serving(FakeCloud()) as server, grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(f"/{SERVICE}/NodeGroupTargetSize")(b"\x0a\x7f")
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(f"/{SERVICE}/NodeGroupDance")(b"")
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(main())


def test_a_change_goes_on_when_the_caller_stops_waiting() -> None:
    async def main() -> None:
        group = FakeGroup("pool-a", gate=asyncio.Event())
        async with serving(FakeCloud(group)) as server, autoscaler(server.port) as real:
            impatient = asyncio.create_task(real.increase_size("pool-a", 3))
            await group.begun.wait()
            impatient.cancel()
            await asyncio.wait({impatient})
            assert await real.target_size("pool-a") == 0
            assert group.gate is not None
            group.gate.set()
        # The server does not end before what it has begun.
        assert len(group.instances) == 3

    asyncio.run(main())


def test_one_port_has_one_server() -> None:
    async def main() -> None:
        async with serving(FakeCloud()) as server:
            with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{server.port}"):
                async with serving(FakeCloud(), port=server.port):
                    raise AssertionError("two servers share a port")

    asyncio.run(main())


def test_all_interfaces_are_listened_on_without_a_host() -> None:
    async def main() -> None:
        async with serving(FakeCloud(), host="") as server, autoscaler(server.port) as real:
            await real.refresh()

    asyncio.run(main())


def test_calls_are_counted_by_method_and_code() -> None:
    async def main() -> None:
        registry = CollectorRegistry()
        async with serving(FakeCloud(), registry=registry) as server, autoscaler(server.port) as real:
            await real.refresh()
            await real.options("pool-a")
            with pytest.raises(grpc.aio.AioRpcError):
                await real.target_size("pool-b")

        def count(method: str, code: str) -> float | None:
            labels = {"grpc_type": "unary", "grpc_service": SERVICE, "grpc_method": method, "grpc_code": code}
            return registry.get_sample_value("grpc_server_handled_total", labels)

        assert count("Refresh", "OK") == 1
        assert count("NodeGroupGetOptions", "Unimplemented") == 1
        assert count("NodeGroupTargetSize", "NotFound") == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "asked", "at_exit"), [(CleanupMode.REQUEST, 1, 1), (CleanupMode.EXIT, 1, 1), (CleanupMode.NEVER, 0, 0)]
)
def test_machines_are_cleaned_away_when_that_is_wished_for(mode: CleanupMode, asked: int, at_exit: int) -> None:
    async def main() -> None:
        cloud = FakeCloud()
        async with serving(cloud, cleanup=mode) as server, autoscaler(server.port) as real:
            await real.cleanup()
            assert cloud.cleanups == asked
        assert cloud.cleanups == at_exit

    asyncio.run(main())


def test_with_exit_machines_are_cleaned_away_without_being_asked() -> None:
    async def main() -> None:
        cloud = FakeCloud()
        async with serving(cloud, cleanup=CleanupMode.EXIT):
            assert cloud.cleanups == 0
        assert cloud.cleanups == 1

    asyncio.run(main())


def test_after_a_clean_up_the_next_autoscaler_finds_a_new_provider() -> None:
    async def main() -> None:
        first, made = FakeCloud(FakeGroup("first")), []

        async def renew() -> FakeCloud:
            made.append(FakeCloud(FakeGroup("second")))
            return made[-1]

        async with serving(first, renew=renew) as server:
            async with autoscaler(server.port) as real:
                await real.cleanup()
                await real.cleanup()
                assert (first.cleanups, made) == (1, [])
            async with autoscaler(server.port) as another:
                await asyncio.gather(another.refresh(), another.node_groups(), another.gpu_label())
                assert [group.id for group in await another.node_groups()] == ["second"]
                assert len(made) == 1

    asyncio.run(main())


def test_certificates_that_cannot_be_used_are_refused_by_name(tmp_path: Path, pki: Pki) -> None:
    good = pki.files(mutual=True)
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    for bad, said in (
        (ServerFiles(tmp_path / "gone.key", good.cert_file), "gone.key cannot be read"),
        (ServerFiles(good.key_file, empty), "no certificate and its key"),
        (ServerFiles(good.key_file, good.cert_file, empty), "no certificate of an authority"),
    ):
        with pytest.raises(ConfigError, match=said):
            bad.check()


def test_without_grpcio_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(library.importlib, "import_module", missing)
    with pytest.raises(ConfigError, match="gRPC is not installed") as error:
        CloudProviderServer(WallClock(), CloudProviderService(FakeCloud()))
    assert "holokube[grpc]" in error.value.hint
