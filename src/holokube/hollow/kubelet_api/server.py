"""The kubelet endpoint: one HTTPS server for all nodes of a process.

Which node is asked is told by the path (``/nodes/NAME/...``), by the pod (``/containerLogs/...``), or by the address
that the connection came in on, where nodes have addresses of their own on this machine. 127.0.0.0/8 is full of them:
with that as its host, the endpoint answers at each of them, and nowhere else.

Who may ask: on loopback addresses, everybody on this machine. Elsewhere only who has a certificate that the authority
in ``client_ca_file`` signed, as the API server has (``--kubelet-client-certificate``); all of them may do everything,
for everything here is for reading. No token is ever looked at, and the API server is not asked about anybody.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from holokube.apiserver.http.connections import DEFAULT_LIMITS, GuardedServer
from holokube.apiserver.http.text_response import send_text
from holokube.apiserver.subresources.logs import TextStream
from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError, UsageError
from holokube.base.log import get_logger
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.kube import pki
from holokube.kube.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from holokube.runtime.stop import StopSignal

log = get_logger(__name__)

KUBELET_PORT = 10250
LOOPBACK_NETWORK = "127.0.0.0/8"
_PLAIN_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Where to listen, and whom to let in."""

    host: str = "127.0.0.1"
    """An address or name, or ``127.0.0.0/8``."""
    port: int = KUBELET_PORT
    """0 for a free one."""
    client_ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    """Without them the server makes a certificate that nobody can verify, which API servers do not do by default."""
    addresses: Sequence[str] = ()
    """More names and addresses for that certificate."""

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise UsageError(
                "a certificate and its key go together", hint="Give both files, or neither to have them made."
            )
        if self.client_ca_file is None and not _is_loopback(self.host):
            raise UsageError(
                f"a kubelet endpoint on {self.host} would be open to everybody",
                hint="Listen on 127.0.0.1, or name the authority of the API server's client certificate.",
            )


class KubeletEndpoint:
    """A component: run it in an app, or ``start`` and ``stop`` it."""

    def __init__(self, api: KubeletApi, options: EndpointOptions | None = None) -> None:
        self.name = "kubelet-endpoint"
        self._api = api
        self._options = options or EndpointOptions()
        self._runner: web.ServerRunner | None = None
        self.port = 0
        """Where it listens, once started."""

    async def start(self) -> int:
        """Listens; the port."""
        options = self._options
        server = GuardedServer(self._handle, DEFAULT_LIMITS)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, _bind_host(options), options.port, ssl_context=_tls_context(options), reuse_address=True
        )
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise _cannot_listen(options, error) from error
        self.port = int(self._runner.addresses[0][1])
        log.info("Kubelet endpoint listens", host=options.host, port=self.port)
        return self.port

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def run(self, stop: StopSignal) -> None:
        """Serves until the stop."""
        await self.start()
        try:
            await stop.wait()
        finally:
            await self.stop()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(raw)
        except ApiError as problem:
            # Kubelets answer with text, and API servers hand it on as it is.
            return web.Response(status=problem.http_code, text=f"{problem.message}\n", content_type="text/plain")

    async def _answer(self, raw: web.BaseRequest) -> web.StreamResponse:
        address = _local_address(raw)
        if self._options.client_ca_file is None and not _is_loopback(address):
            raise Forbidden(f"the kubelet endpoint is open to this machine only, not at {address}")
        node, path = self._api.node_in(raw.path)
        if path == "healthz" and not node:
            return web.Response(body=b"ok", headers={"Content-Type": _PLAIN_TEXT})
        node = node or self._api.view.node_at(address) or ""
        query = _single_values(raw)
        needs_process = path.partition("/")[0] in ("exec", "attach", "run", "portForward")
        if not node and not needs_process:
            raise NotFound(
                f"/{path}: which node? There are many here; ask for /nodes/NAME/{path}, or at a node's own address"
            )
        if raw.method != "GET" and not needs_process:
            raise MethodNotAllowed(f"{raw.method} is not possible here: a hollow kubelet only answers questions")
        outcome = self._api.answer(node, path, query)
        if isinstance(outcome, TextStream):
            return await send_text(raw, outcome)
        body, content_type = outcome
        return web.Response(body=body, headers={"Content-Type": content_type})


def _local_address(raw: web.BaseRequest) -> str:
    """Where a connection came in."""
    name = raw.transport.get_extra_info("sockname") if raw.transport is not None else None
    return str(name[0]) if name else ""


def _bind_host(options: EndpointOptions) -> str:
    # Linux has the whole network on its loopback interface, but a socket takes one address or all of them.
    return "0.0.0.0" if options.host == LOOPBACK_NETWORK else options.host  # noqa: S104 - others are refused


def _single_values(raw: web.BaseRequest) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for key, value in raw.query.items():
        found.setdefault(key, value)
    return found


def _is_loopback(host: str) -> bool:
    if host in ("localhost", LOOPBACK_NETWORK):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tls_context(options: EndpointOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        if options.cert_file is not None and options.key_file is not None:
            context.load_cert_chain(options.cert_file, options.key_file)
        else:
            _load_own_certificate(context, options)
        if options.client_ca_file is not None:
            context.load_verify_locations(options.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates of the kubelet endpoint cannot be read: {error}",
            hint="All files must be PEM, and the key must belong to the certificate.",
        ) from error
    return context


def _load_own_certificate(context: ssl.SSLContext, options: EndpointOptions) -> None:
    # Certificates are judged by the clock on the peer's wall, whatever time the cluster lives in.
    authority = pki.Authority.create("holokube-kubelets", WallClock().now())
    names, addresses = ["localhost"], ["127.0.0.1"]
    for given in (*({options.host} - {LOOPBACK_NETWORK}), *options.addresses):
        try:
            address = str(ipaddress.ip_address(given))
        except ValueError:
            if given not in names:
                names.append(given)
        else:
            if address not in addresses:
                addresses.append(address)
    pair = authority.issue_server(names, addresses)
    # Python reads keys from files only; these live for the blink of an eye, in a folder of our own.
    with tempfile.TemporaryDirectory(prefix="holokube-") as folder:
        cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
        cert.write_bytes(pair.cert_pem + authority.cert_pem)
        key.touch(mode=0o600)
        key.write_bytes(pair.key_pem)
        context.load_cert_chain(cert, key)


def _cannot_listen(options: EndpointOptions, error: OSError) -> ConfigError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = "Choose another port, or stop the program that uses it." if error.errno == errno.EADDRINUSE else (
        "Listen on an address of this machine, and on a port above 1023."
    )
    return ConfigError(
        f"the kubelet endpoint cannot listen on port {options.port} of {options.host}: {reason}", hint=hint
    )
