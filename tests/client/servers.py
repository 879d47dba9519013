"""Small web servers on loopback, for tests that need real sockets and real TLS."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from aiohttp import web

from holokube.base.clock import WallClock
from holokube.kube.pki import Authority, KeyPair

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serves every path with one handler; the server's URL."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def status(code: int, reason: str, message: str, **details: object) -> dict[str, object]:
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    }  # fmt: skip


class Certificates:
    """An authority, a server certificate of it, and client certificates on demand."""

    def __init__(self, folder: Path, names: tuple[str, ...] = ("localhost",), ips: tuple[str, ...] = ("127.0.0.1",)):
        self._folder = folder
        self.authority = Authority.create("test", WallClock().now())
        self.server = self.authority.issue_server(names, ips)

    @property
    def ca_data(self) -> str:
        return base64.b64encode(self.authority.cert_pem).decode()

    def client(self, user: str) -> KeyPair:
        return self.authority.issue_client(user)

    def server_context(self, *, client_certificates: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file = self._folder / "server.pem"
        file.write_bytes(self.server.cert_pem + self.server.key_pem)
        context.load_cert_chain(file)
        context.verify_mode = client_certificates
        context.load_verify_locations(cadata=self.authority.cert_pem.decode())
        return context


def common_name(request: web.Request) -> str:
    """Who the client certificate of a request says it is."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert")
    if not certificate:
        return ""
    return next(str(value) for part in certificate["subject"] for key, value in part if key == "commonName")


def kubeconfig(
    cluster: dict[str, object], user: dict[str, object] | None = None, /, **context: object
) -> dict[str, object]:
    """A kubeconfig with one of each."""
    return {
        "kind": "Config",
        "apiVersion": "v1",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", **context}}],
    }


def write_kubeconfig(path: Path, document: object) -> str:
    path.write_text(yaml.safe_dump(document))
    return str(path)
