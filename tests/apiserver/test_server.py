"""The embedded server as a whole: where it listens, whom it lets in, what it keeps."""

from __future__ import annotations

import asyncio
import gc
import ssl
import stat
import warnings
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from holokube.apiserver.credentials import Credentials
from holokube.apiserver.server import EmbeddedServer, is_loopback, write_kubeconfig
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import VirtualClock, WallClock
from holokube.base.errors import ConfigError, CorruptData, DataDirInUse
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Resource
from holokube.store.store import Store

CATALOG = TypeCatalog()
WIDGETS = Resource("lab.example.com", "v1", "widgets", "Widget", namespaced=False)
CRD = {
    "metadata": {"name": "widgets.lab.example.com"},
    "spec": {
        "group": "lab.example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def server(
    data_dir: Path | None = None, *, host: str = "127.0.0.1", port: int | None = None, virtual: bool = False
) -> EmbeddedServer:
    clock = VirtualClock() if virtual else WallClock()
    return EmbeddedServer(clock, Rng(1), data_dir=data_dir, host=host, port=port, catalog=CATALOG)


def client_of(running: EmbeddedServer, folder: Path) -> Client:
    path = folder / "kubeconfig"
    write_kubeconfig(path, running.endpoint.kubeconfig())
    return Client(HttpTransport(WallClock(), load_access(str(path))))


def test_custom_resources_are_served_again_after_a_restart(tmp_path: Path) -> None:
    async def first() -> int:
        async with server(tmp_path / "data") as running, client_of(running, tmp_path) as client:
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, CRD)
            await client.create(WIDGETS, {"metadata": {"name": "w"}})
            return running.endpoint.port

    async def second(port: int) -> None:
        async with server(tmp_path / "data") as running, client_of(running, tmp_path) as client:
            assert running.endpoint.port == port
            assert [obj["metadata"]["name"] for obj in (await client.list(WIDGETS)).items] == ["w"]

    asyncio.run(second(asyncio.run(first())))


def test_an_old_kubeconfig_is_good_for_the_restarted_server(tmp_path: Path) -> None:
    async def kubeconfig() -> None:
        async with server(tmp_path / "data") as running:
            write_kubeconfig(tmp_path / "old", running.endpoint.kubeconfig())

    async def use() -> int:
        old = load_access(str(tmp_path / "old"))
        async with server(tmp_path / "data"), Client(HttpTransport(WallClock(), old)) as client:
            return len((await client.list(NAMESPACES)).items)

    asyncio.run(kubeconfig())
    assert asyncio.run(use()) == 4
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600


def test_an_explicit_port_wins_over_the_remembered_one(tmp_path: Path) -> None:
    async def port(wanted: int | None) -> int:
        async with server(tmp_path / "data", port=wanted) as running:
            return running.endpoint.port

    first = asyncio.run(port(None))
    assert asyncio.run(port(None)) == first
    (tmp_path / "data" / "port").write_text("nonsense")
    assert asyncio.run(port(None)) > 0


def test_certificates_are_dated_by_the_wall_even_on_virtual_time() -> None:
    async def certificate() -> x509.Certificate:
        async with server(virtual=True) as running:
            return x509.load_pem_x509_certificate(running.endpoint.ca_pem)

    now = WallClock().now()
    found = asyncio.run(certificate())
    assert found.not_valid_before_utc < now < found.not_valid_after_utc


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"])
def test_the_address_shown_is_one_that_can_be_dialled_and_trusted(tmp_path: Path, host: str) -> None:
    async def dial() -> int:
        try:
            running = await server(host=host).__aenter__()
        except ConfigError as error:
            if ":" in host:
                pytest.skip(f"no IPv6 here: {error}")
            raise
        try:
            async with client_of(running, tmp_path) as client:
                return len((await client.list(NAMESPACES)).items)
        finally:
            await running.stop()

    assert asyncio.run(dial()) == 4


def test_stopping_leaves_no_open_connection_behind(tmp_path: Path) -> None:
    async def linger() -> None:
        async with server() as running:
            context = ssl.create_default_context(cadata=running.endpoint.ca_pem.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", running.endpoint.port, ssl=context)
            writer.write(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            # The client keeps its end open and says nothing any more.
        writer.transport.abort()
        await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(linger())
        gc.collect()


def test_a_data_directory_has_one_server(tmp_path: Path) -> None:
    async def main() -> None:
        async with server(tmp_path / "data"):
            with pytest.raises(DataDirInUse):
                server(tmp_path / "data")

    asyncio.run(main())
    server(tmp_path / "data").store.close()


def test_a_damaged_data_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store.db").write_bytes(b"not a database, " * 100)
    with pytest.raises(CorruptData, match="damaged"):
        server(tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ca.key", None, "lacks ca.key"),
        ("token", b"", "does not hold a token"),
        ("sa.key", b"rubbish", "sa.key cannot be used"),
        ("ca.crt", b"rubbish", "authority cannot be read"),
    ],
)
def test_credentials_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    Credentials.keep_in(tmp_path / "c", WallClock().now())
    if content is None:
        (tmp_path / "c" / name).unlink()
    else:
        (tmp_path / "c" / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message) as refused:
        Credentials.keep_in(tmp_path / "c", WallClock().now())
    assert refused.value.hint


def test_credentials_are_kept_as_they_were_made(tmp_path: Path) -> None:
    now = WallClock().now()
    made = Credentials.keep_in(tmp_path / "c", now)
    kept = Credentials.keep_in(tmp_path / "c", now)
    assert kept.token == made.token
    assert kept.authority.cert_pem == made.authority.cert_pem
    claims = kept.signer.verify(made.signer.sign({"exp": int(now.timestamp()) + 60, "sub": "x"}), now)
    assert claims is not None
    assert claims["sub"] == "x"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "c").iterdir()} == {0o600}


def test_a_server_has_a_store_or_a_data_directory(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not both"):
        EmbeddedServer(WallClock(), Rng(1), store=Store(), data_dir=tmp_path)
    with pytest.raises(ConfigError, match="not been started"):
        _ = server().endpoint


def test_loopback_is_told_from_the_network() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.com"))


def test_a_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with server() as running:
            write_kubeconfig(tmp_path / "a" / "b" / "config", running.endpoint.kubeconfig())

    asyncio.run(main())
    config = yaml.safe_load((tmp_path / "a" / "b" / "config").read_text())
    assert config["current-context"] == "holokube"
    assert "certificate-authority-data" in config["clusters"][0]["cluster"]
    assert set(config["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
