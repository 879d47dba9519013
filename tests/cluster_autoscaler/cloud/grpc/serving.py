"""Starts servers, and clients of them: plain, with TLS, and with certificates on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from holokube.base.clock import WallClock
from holokube.cluster_autoscaler.cloud.grpc.server import CloudProviderServer
from holokube.cluster_autoscaler.cloud.grpc.service import CleanupMode, CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.tls import ServerFiles
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.kube.pki import Authority, KeyPair
from holokube.runtime.stop import StopSignal
from tests.cluster_autoscaler.cloud.grpc.upstream import PB, Autoscaler, Messages


@dataclass
class Pki:
    """An authority with what it signs, and its files."""

    folder: Path
    authority: Authority
    client: KeyPair

    @classmethod
    def create(cls, folder: Path) -> Pki:
        authority = Authority.create("tests", WallClock().now())
        pki = cls(folder, authority, authority.issue_client("cluster-autoscaler"))
        (folder / "ca.crt").write_bytes(authority.cert_pem)
        pki.write_server(authority.issue_server(("localhost",), ("127.0.0.1",)))
        return pki

    def write_server(self, pair: KeyPair) -> None:
        (self.folder / "server.key").write_bytes(pair.key_pem)
        (self.folder / "server.crt").write_bytes(pair.cert_pem)

    def files(self, *, mutual: bool) -> ServerFiles:
        ca_file = self.folder / "ca.crt" if mutual else None
        return ServerFiles(self.folder / "server.key", self.folder / "server.crt", ca_file)

    def channel_credentials(self, pair: KeyPair | None = None) -> Any:
        """As upstream's client, which always shows a certificate when it uses TLS."""
        own = pair or self.client
        return grpc.ssl_channel_credentials(self.authority.cert_pem, own.key_pem, own.cert_pem)


@asynccontextmanager
async def serving(
    provider: CloudProvider,
    *,
    files: ServerFiles | None = None,
    cleanup: CleanupMode = CleanupMode.REQUEST,
    renew: Callable[[], Awaitable[CloudProvider]] | None = None,
    **more: Any,
) -> AsyncIterator[CloudProviderServer]:
    service = CloudProviderService(provider, cleanup=cleanup, renew=renew)
    server = CloudProviderServer(WallClock(), service, files=files, **more)
    stop = StopSignal()
    task = asyncio.create_task(server.run(stop))
    started = asyncio.create_task(server.started.wait())
    try:
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield server
    finally:
        started.cancel()
        stop.set()
        await asyncio.wait({task, started})
        if started.done() and not started.cancelled():
            await task


@asynccontextmanager
async def autoscaler(port: int, credentials: Any = None, messages: Messages = PB) -> AsyncIterator[Autoscaler]:
    address = f"localhost:{port}"
    # A channel to the same address with other credentials must not be shared.
    options = [("grpc.use_local_subchannel_pool", 1)]
    if credentials is None:
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
    else:
        channel = grpc.aio.secure_channel(address, credentials, options=options)
    async with channel:
        yield Autoscaler(channel, messages)
