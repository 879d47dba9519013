"""An API server to start and stop: store, registry, certificates, HTTPS, kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import errno
import ipaddress
import os
import socket
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml
from aiohttp import web

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.credentials import Credentials, write_private
from holokube.apiserver.http.auth import AUTHENTICATED, Authenticator
from holokube.apiserver.http.connections import DEFAULT_LIMITS, Limits
from holokube.apiserver.http.server import ApiHandler, serve
from holokube.apiserver.registry import Registry
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import Clock, WallClock
from holokube.base.errors import ConfigError
from holokube.base.rng import Rng
from holokube.kube import pki
from holokube.kube.types import JsonObject
from holokube.store.journal import FIRST_REVISION, SqliteJournal
from holokube.store.store import Store

ADMIN = "holokube-admin"
ADMIN_GROUPS = ("system:masters",)
CONTEXT = "holokube"
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
# What a client on this machine dials when the server listens on all interfaces.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the user asks for it
_PORT_FILE = "port"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the server listens, and how to be let in."""

    url: str
    token: str
    ca_pem: bytes
    client: pki.KeyPair

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kubeconfig(self, name: str = CONTEXT) -> JsonObject:
        """A kubeconfig with everything inline, so that the file can be moved."""
        cluster = {"server": self.url, "certificate-authority-data": _b64(self.ca_pem)}
        user = {
            "client-certificate-data": _b64(self.client.cert_pem),
            "client-key-data": _b64(self.client.key_pem),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": ADMIN, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN, "namespace": "default"}}],
        }


class EmbeddedServer:
    """The embedded API server behind HTTPS. ``start`` and ``stop`` it, or use it with ``async with``.

    With a ``data_dir``, objects, credentials and the port are kept there: a server started again on the same
    directory is the same server to whoever has a kubeconfig. ``port=None`` means that port, or a free one.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Rng,
        *,
        store: Store | None = None,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        tracks_managed_fields: bool = True,
        catalog: TypeCatalog | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if store is not None and data_dir is not None:
            raise ValueError("a server has a store or a data directory of its own, not both")
        self._clock = clock
        self._limits = limits
        self._host = host
        self._port = port
        self._data_dir = data_dir
        if data_dir is not None:
            store = Store(journal=SqliteJournal(data_dir))
            if store.revision > FIRST_REVISION:
                # The same seed again must not give the same uids again, to other objects.
                rng = rng.fork(f"revision {store.revision}")
        self.store = store or Store()
        self.registry = Registry(
            clock, rng, self.store, tracks_managed_fields=tracks_managed_fields, catalog=catalog
        )
        # Over HTTP, pods get their token volume as everywhere else; that the account exists is taken for
        # granted where no controller would have made it.
        self.registry.admission.strict_service_accounts = True
        self.registry.admission.assumes_default_service_account = True
        try:
            self.registry.custom_resources.load_all()
        except BaseException:
            self.store.close()
            raise
        self._handler: ApiHandler | None = None
        self._runner: web.ServerRunner | None = None
        self._endpoint: Endpoint | None = None

    @property
    def endpoint(self) -> Endpoint:
        if self._endpoint is None:
            raise _not_started()
        return self._endpoint

    @property
    def is_fresh(self) -> bool:
        """Whether nothing has ever been written to the store."""
        return self.store.revision == FIRST_REVISION

    def metrics(self) -> tuple[bytes, str]:
        """What ``/metrics`` shows, and its content type."""
        if self._handler is None:
            raise _not_started()
        return self._handler.metrics.render()

    async def start(self) -> Endpoint:
        """Listen, and fill a fresh store with what every cluster has."""
        # Certificates are judged by the clock on the peer's wall, whatever time the cluster lives in.
        now = WallClock().now()
        if self._data_dir is None:
            credentials = Credentials.create(now)
        else:
            credentials = Credentials.keep_in(self._data_dir / "credentials", now)
        authority = credentials.authority
        serving = _serving_certificate(authority, self._host)
        admin = Caller(ADMIN, groups=(*ADMIN_GROUPS, AUTHENTICATED))
        authenticator = Authenticator({credentials.token: admin}, credentials.signer)
        self.registry.subresources.use_authenticator(authenticator)
        self._handler = ApiHandler(self._clock, self.registry, authenticator, self._limits)
        port = self._listen_port()
        try:
            self._runner, host, bound_port = await serve(
                self._handler, self._host, port, _tls_context(authority.cert_pem, serving)
            )
        except OSError as error:
            raise _cannot_listen(self._host, port, error) from error
        await bootstrap(self.registry, port=bound_port)
        self._remember_port(bound_port)
        shown = _EVERYWHERE.get(host, host)
        url = f"https://[{shown}]:{bound_port}" if ":" in shown else f"https://{shown}:{bound_port}"
        client = authority.issue_client(ADMIN, ADMIN_GROUPS)
        self._endpoint = Endpoint(url, credentials.token, authority.cert_pem, client)
        return self._endpoint

    async def stop(self) -> None:
        """Stop listening, end watches, let requests under way finish, and close the store."""
        runner, self._runner = self._runner, None
        if runner is not None:
            for site in tuple(runner.sites):
                await site.stop()
        # Before the rest of the clean-up, which waits for all requests to end: this is what ends watches.
        self.store.close()
        if runner is not None:
            await _clean_up(runner)
        await self.registry.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _listen_port(self) -> int:
        if self._port is not None:
            return self._port
        if self._data_dir is None:
            return 0
        try:
            port = int((self._data_dir / _PORT_FILE).read_text())
        except (OSError, ValueError):
            # The port is a convenience: without it kubeconfigs have to be written anew, nothing worse.
            return 0
        return port if 0 < port < 65536 else 0

    def _remember_port(self, port: int) -> None:
        if self._data_dir is not None:
            write_private(self._data_dir / _PORT_FILE, f"{port}\n".encode())


async def _clean_up(runner: web.ServerRunner) -> None:
    """Let requests end, then hang up on clients that would keep their connection open.

    Closing a TLS connection waits for the peer's goodbye, which an idle client never sends.
    """
    server = runner.server
    handlers = [] if server is None else server.connections
    transports = [handler.transport for handler in handlers if handler.transport is not None]
    await runner.cleanup()
    for transport in transports:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
    # The loop closes the sockets one turn later, TLS ones two.
    for _ in range(3):
        await asyncio.sleep(0)


def write_kubeconfig(path: Path, config: JsonObject) -> None:
    """Write a kubeconfig that only its owner can read; an existing file is replaced in one step."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _not_started() -> ConfigError:
    return ConfigError("the API server has not been started", hint="await server.start() first")


def _serving_certificate(authority: pki.Authority, host: str) -> pki.KeyPair:
    """Good for the usual names and addresses, and for however else this host is reached."""
    names, addresses = list(_SERVER_NAMES), list(_SERVER_ADDRESSES)
    extra = socket.gethostname() if host in _EVERYWHERE else host
    try:
        address = str(ipaddress.ip_address(extra))
    except ValueError:
        if extra in names:
            extra = ""
    else:
        extra = ""
        if address not in addresses:
            addresses.append(address)
    if extra:
        try:
            return authority.issue_server([*names, extra], addresses)
        except ValueError:
            # Not every machine's name fits into a certificate; clients then use one of the others.
            pass
    return authority.issue_server(names, addresses)


def _cannot_listen(host: str, port: int, error: OSError) -> ConfigError:
    if isinstance(error, socket.gaierror):
        return ConfigError(
            f"the host name {host!r} cannot be resolved: {error.strerror}",
            hint="Listen on an address of this machine, such as 127.0.0.1.",
        )
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"port {port} on {host} is in use by another program",
            hint="Choose another port, 0 for a free one, or stop that program.",
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return ConfigError(
            f"{host} is not an address of this machine",
            hint="Listen on 127.0.0.1, or on 0.0.0.0 for all of them.",
        )
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ConfigError(
        f"cannot listen on port {port} of {host}: {reason}", hint="Choose another port, for example 6443."
    )


def _tls_context(ca_pem: bytes, serving: pki.KeyPair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Python reads keys from files only; these live for the blink of an eye, in a folder of our own.
    with tempfile.TemporaryDirectory(prefix="holokube-") as folder:
        cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
        cert.write_bytes(serving.cert_pem)
        key.touch(mode=0o600)
        key.write_bytes(serving.key_pem)
        context.load_cert_chain(cert, key)
    context.load_verify_locations(cadata=ca_pem.decode())
    # A certificate is one way to log in; a token is the other.
    context.verify_mode = ssl.CERT_OPTIONAL
    return context
