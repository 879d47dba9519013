"""The life of ``holokube node-sizing``: reach the cluster, serve, register, and end in good order."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import click

from holokube.base.clock import WallClock
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli.metrics_endpoint import parse_address
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.kube.errors import ApiError
from holokube.kube.names import is_dns1123_label, is_dns1123_subdomain
from holokube.kube.timeformat import parse_duration
from holokube.runtime.app import App
from holokube.runtime.health import HealthServer
from holokube.runtime.stop import StopSignal
from holokube.sizing.app import CertificateFiles, SizingOptions, add_components
from holokube.sizing.certificates import CertificatePolicy
from holokube.sizing.registration import TIMEOUT_S, Registration
from holokube.sizing.review import OnError
from holokube.sizing.webhook import PATH, WebhookServer

GC_THRESHOLDS = (50_000, 20, 100)
"""Reviews leave no cycles behind; at Python's defaults the collector would look for some every few requests."""


@dataclass(frozen=True, slots=True)
class SizingPlan:
    """What the command line asks for."""

    listen: str
    url: str
    service: str
    namespace: str
    secret: str
    configuration: str
    on_error: OnError
    failure_policy: Literal["Ignore", "Fail"]
    resize_running: bool
    node_wait: str
    tls_cert_file: str
    tls_private_key_file: str
    tls_ca_file: str
    certificate_lifetime: str
    ca_lifetime: str
    ca_settle: str
    drain: str
    identity: str
    seed: str
    metrics_address: str
    kubeconfig: str
    context: str

    def options(self, default_namespace: str) -> SizingOptions:
        """The webhook's own options; UsageError for what makes no sense."""
        host, port = self._listen()
        namespace = self.namespace or default_namespace
        self._check_names(namespace)
        registration = Registration(
            self.configuration, url=self._url(port), service_name=self.service, service_namespace=namespace,
            failure_policy=self.failure_policy,
        )  # fmt: skip
        node_wait_s = _seconds("--node-wait", self.node_wait)
        if not 0 <= node_wait_s < TIMEOUT_S:
            raise UsageError(
                f"--node-wait {self.node_wait} is as long as API servers wait for an answer",
                hint=f"Give less than {TIMEOUT_S}s.",
            )
        called = urlsplit(self.url).hostname if self.url else registration.server_name
        assert called is not None, "checked with the URL"
        return SizingOptions(
            registration=registration,
            policy=CertificatePolicy(
                (called,),
                timedelta(seconds=_seconds("--certificate-lifetime", self.certificate_lifetime, least=1.0)),
                timedelta(seconds=_seconds("--ca-lifetime", self.ca_lifetime, least=1.0)),
                _seconds("--ca-settle", self.ca_settle),
            ),
            namespace=namespace,
            secret_name=self.secret,
            identity=self.identity or socket.gethostname(),
            host=host,
            port=port,
            on_error=self.on_error,
            node_wait_s=node_wait_s,
            drain_s=_seconds("--drain", self.drain),
            resize_running=self.resize_running,
            files=self._files(),
        )

    def _listen(self) -> tuple[str, int]:
        host, colon, port = self.listen.rpartition(":")
        is_v6 = host.startswith("[") and host.endswith("]")
        if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not is_v6):
            raise UsageError(
                f"--listen {self.listen!r} is not an address to listen on",
                hint='Write "127.0.0.1:9443", or ":9443" for all interfaces.',
            )
        return host.strip("[]"), int(port) or _free_port(host.strip("[]"))

    def _url(self, port: int) -> str:
        """The URL with the port that is listened on, and the path that is served."""
        if not self.url:
            return ""
        hint = "Write it like https://10.0.0.7:9443/mutate, as seen from the API servers."
        parts = urlsplit(self.url)
        try:
            given_port = parts.port
        except ValueError:
            raise UsageError(f"--url {self.url!r} has no proper port", hint=hint) from None
        if parts.scheme != "https" or not parts.hostname or parts.username or parts.query or parts.fragment:
            raise UsageError(f"--url {self.url!r} is no URL of a webhook", hint=hint)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        shown = f":{port if given_port == 0 else given_port}" if given_port is not None else ""
        return f"https://{host}{shown}{parts.path if parts.path not in ('', '/') else PATH}"

    def _check_names(self, namespace: str) -> None:
        for option, name, check in (
            ("--service", self.service, is_dns1123_label), ("--namespace", namespace, is_dns1123_label),
            ("--secret", self.secret, is_dns1123_subdomain),
            ("--configuration", self.configuration, is_dns1123_subdomain),
        ):  # fmt: skip
            problems = check(name)
            if problems:
                raise UsageError(f"{option} {name!r} is no name: {problems[0]}")

    def _files(self) -> CertificateFiles | None:
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            raise UsageError(
                "--tls-cert-file and --tls-private-key-file belong together",
                hint="Give both, or none to have a certificate made.",
            )
        if self.tls_ca_file and not self.tls_cert_file:
            raise UsageError("--tls-ca-file goes with --tls-cert-file", hint="Give both, or none.")
        named = [Path(text) for text in (self.tls_cert_file, self.tls_private_key_file, self.tls_ca_file) if text]
        for path in named:
            if not path.is_file() or not os.access(path, os.R_OK):
                raise UsageError(f"{path} cannot be read", hint="Check the path and its permissions.")
        if not named:
            return None
        return CertificateFiles(named[0], named[1], named[2] if self.tls_ca_file else None)


def _seconds(option: str, text: str, *, least: float = 0.0) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}", hint="Write it like 90s, 5m or 2160h.") from error
    if seconds < least:
        raise UsageError(f"{option} {text} is too short", hint=f"Give at least {least:g}s.")
    return seconds


def _free_port(host: str) -> int:
    """A port for ``--listen host:0``: it has to be known before the webhook is registered."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class SizingRun:
    """One run of the command."""

    def __init__(self, plan: SizingPlan) -> None:
        self._plan = plan

    def run(self) -> int:
        """Runs until a signal comes; returns the exit code."""
        plan = self._plan
        address = parse_address(plan.metrics_address)
        # What is wrong with the command line is said before the cluster is asked anything.
        plan.options("default")
        access = load_access(plan.kubeconfig, plan.context)
        options = plan.options(access.namespace)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self._main(access, options, address))

    async def _main(self, access: ClusterAccess, options: SizingOptions, address: tuple[str, int] | None) -> int:
        clock = WallClock()
        async with Client(HttpTransport(clock, access)) as client:
            await _greet(client, access)
            app = App(clock)
            health = None
            if address is not None:
                health = app.add(
                    HealthServer(app.checks, app.metrics, host=address[0], port=address[1]), essential=True
                )
            rng = Rng(self._plan.seed or system_seed())
            server = add_components(app, clock, client, options, rng)
            app.add(_Announcer(server, health, options))
            gc.set_threshold(*GC_THRESHOLDS)
            clean = await app.run(handle_signals=True)
        return 0 if clean else 1


async def _greet(client: Client, access: ClusterAccess) -> None:
    """Fails at once, and clearly, where the webhook itself would try for ever."""
    try:
        await client.list(NODES, limit=1)
    except ApiError as error:
        raise HolokubeError(
            f"{access.server} does not let us list nodes: {error.message}",
            hint="Check the user of the kubeconfig; deploy/node-sizing/rbac.yaml lists what it needs.",
        ) from error


class _Announcer:
    """Says where things are, once they are there."""

    name = "announcer"

    def __init__(self, server: WebhookServer, health: HealthServer | None, options: SizingOptions) -> None:
        self._server = server
        self._health = health
        self._options = options

    async def run(self, stop: StopSignal) -> None:
        if self._health is not None and await stop.finishes_first(self._health.started.wait()):
            click.echo(f"metrics and health on http://{self._health.address}", err=True)
        if await stop.finishes_first(self._server.registered.wait()):
            registration = self._options.registration
            where = registration.url or f"Service {registration.service_namespace}/{registration.service_name}"
            # Everything that is there by now stays: the collector need not look at it again.
            gc.collect()
            gc.freeze()
            click.echo(f"webhook listens on port {self._server.port}, registered at {where}; Ctrl-C stops it", err=True)
            await stop.wait()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.new_event_loop
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
