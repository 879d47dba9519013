"""The life of ``holokube cloud-provider``: reach the cluster, make the groups, serve them, end in good order."""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import yaml

from holokube.apiserver.server import is_loopback
from holokube.base.clock import WallClock
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli.cloud_provider_certificates import ClientFiles, make_certificates
from holokube.cli.event_loop import loop_factory
from holokube.cli.metrics_endpoint import parse_address
from holokube.cli.provider_choice import KWOK, ProviderChoice, ProviderFactory
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.grpc.library import grpc_library
from holokube.cluster_autoscaler.cloud.grpc.server import CloudProviderServer
from holokube.cluster_autoscaler.cloud.grpc.service import CleanupMode, CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.tls import ServerFiles
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.kube.errors import ApiError
from holokube.kube.timeformat import format_duration, parse_duration
from holokube.runtime.app import App
from holokube.runtime.health import HealthServer
from holokube.runtime.informers import InformerSet
from holokube.runtime.stop import StopSignal


@dataclass(frozen=True, slots=True)
class CloudProviderPlan:
    """What the command line asks for."""

    provider: str
    address: str
    advertise: str
    key: Path | None
    cert: Path | None
    cacert: Path | None
    certificates: Path | None
    kwok_templates: str
    nodes: tuple[str, ...]
    external_kubeconfig: str
    external_context: str
    kubemark_template: str
    kubemark_template_config_map: str
    kubemark_namespace: str
    cleanup: str
    grpc_timeout: str
    seed: str
    metrics_address: str
    kubeconfig: str
    context: str

    def choice(self) -> ProviderChoice:
        """The provider; UsageError for what makes no sense."""
        choice = ProviderChoice(
            provider=self.provider, kwok_templates=self.kwok_templates, nodes=self.nodes,
            external_kubeconfig=self.external_kubeconfig, external_context=self.external_context,
            kubemark_template=self.kubemark_template, kubemark_namespace=self.kubemark_namespace,
            kubemark_template_config_map=self.kubemark_template_config_map,
        )  # fmt: skip
        choice.check()
        return choice

    def listen(self) -> tuple[str, int]:
        """Host, empty for all interfaces, and port."""
        found = parse_address(self.address, option="--address")
        if found is None:
            raise UsageError("--address is missing", hint='Write "127.0.0.1:8086", or ":8086" for all interfaces.')
        return found

    def advertised(self, port: int) -> tuple[str, int]:
        """Host and port by which the autoscaler connects."""
        if self.advertise:
            found = parse_address(self.advertise, option="--advertise")
            if found is None or not found[0]:
                raise UsageError(
                    f"--advertise {self.advertise!r} names no host", hint="Write it like cloud-provider.holokube:8086."
                )
            return found[0], found[1] or port
        host = self.listen()[0]
        return (socket.gethostname() if host in ("", "0.0.0.0", "::") else host), port  # noqa: S104 - compared only

    def files(self) -> ServerFiles | None:
        """The server's certificates, if they are given."""
        if self.certificates is not None and (self.key or self.cert or self.cacert):
            raise UsageError("--certificates makes what --key, --cert and --cacert name", hint="Give one or the other.")
        if (self.key is None) != (self.cert is None):
            raise UsageError("--key and --cert belong together", hint="Give both, or none to speak without TLS.")
        if self.key is None or self.cert is None:
            if self.cacert is not None:
                raise UsageError("--cacert goes with --key and --cert", hint="Give all three, or none.")
            return None
        files = ServerFiles(self.key, self.cert, self.cacert)
        files.check()
        return files

    def timeout_s(self) -> float:
        """What the autoscaler is told."""
        try:
            seconds = parse_duration(self.grpc_timeout)
        except ValueError as error:
            raise UsageError(f"--grpc-timeout: {error}", hint="Write it like 30s or 1m.") from error
        if seconds <= 0:
            raise UsageError(f"--grpc-timeout {self.grpc_timeout} is no time", hint="Write it like 30s or 1m.")
        return seconds


def cloud_config(host: str, port: int, timeout_s: float, client: ClientFiles | None) -> str:
    """The file for the autoscaler's ``--cloud-config``."""
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    config: dict[str, str] = {"address": shown}
    if client is not None:
        config |= {"key": client.key, "cert": client.cert, "cacert": client.cacert}
    config["grpc_timeout"] = format_duration(timeout_s)
    return yaml.safe_dump(config, sort_keys=False)


class CloudProviderRun:
    """One run of the command."""

    def __init__(self, plan: CloudProviderPlan) -> None:
        self._plan = plan

    def run(self) -> int:
        """Runs until a signal comes; returns the exit code."""
        plan = self._plan
        # What is wrong with the command line is said before the cluster is asked anything.
        choice, health_address = plan.choice(), parse_address(plan.metrics_address)
        plan.listen()
        plan.advertised(0)
        plan.timeout_s()
        files = plan.files()
        grpc_library()
        access = load_access(plan.kubeconfig, plan.context)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._main(access, choice, files, health_address))

    async def _main(
        self, access: ClusterAccess, choice: ProviderChoice, files: ServerFiles | None, address: tuple[str, int] | None
    ) -> int:
        plan, clock = self._plan, WallClock()
        rng = Rng(plan.seed or system_seed())
        client_files: ClientFiles | None = None
        if plan.certificates is not None:
            files, client_files = make_certificates(plan.certificates, plan.advertised(0)[0], clock.now())
        async with Client(HttpTransport(clock, access)) as client:
            await _greet(client, access)
            informers = InformerSet(clock, client, rng.fork("informers"))
            factory = ProviderFactory(clock, client, informers, rng, choice)
            try:
                provider = await factory.build()
                app = App(clock)
                health = None
                if address is not None:
                    health = HealthServer(app.checks, app.metrics, host=address[0], port=address[1])
                    app.add(health, essential=True)
                if choice.provider == KWOK:
                    watching = app.add(informers.runner(), essential=True)
                    app.checks.add("informer-sync", watching.check)
                service = CloudProviderService(provider, cleanup=CleanupMode(plan.cleanup), renew=factory.build)
                host, port = plan.listen()
                server = CloudProviderServer(
                    clock, service, host=host, port=port, files=files, registry=app.metrics.registry
                )
                app.add(server, essential=True)
                app.add(_Announcer(plan, server, health, informers, provider, files, client_files))
                clean = await app.run(handle_signals=True)
            finally:
                await factory.close()
        return 0 if clean else 1


async def _greet(client: Client, access: ClusterAccess) -> None:
    """Fails at once, and clearly, where the provider itself would try for ever."""
    try:
        await client.list(NODES, limit=1)
    except ApiError as error:
        raise HolokubeError(
            f"{access.server} does not let us list nodes: {error.message}",
            hint="Check the user of the kubeconfig; deploy/cloud-provider/rbac.yaml lists what it needs.",
        ) from error


class _Announcer:
    """Says where things are, once they are there."""

    name = "announcer"

    def __init__(
        self,
        plan: CloudProviderPlan,
        server: CloudProviderServer,
        health: HealthServer | None,
        informers: InformerSet,
        provider: CloudProvider,
        files: ServerFiles | None,
        client_files: ClientFiles | None,
    ) -> None:
        self._plan = plan
        self._server = server
        self._health = health
        self._informers = informers
        self._provider = provider
        self._files = files
        self._client_files = client_files

    async def run(self, stop: StopSignal) -> None:
        if self._health is not None and await stop.finishes_first(self._health.started.wait()):
            click.echo(f"metrics and health on http://{self._health.address}", err=True)
        if not await stop.finishes_first(self._ready()):
            return
        plan, client = self._plan, self._client_files
        host, port = plan.advertised(self._server.port)
        if self._files is None and not is_loopback(plan.listen()[0]):
            click.echo(f"warning: whoever reaches {plan.address} may create and delete nodes; --key, --cert and "
                       "--cacert, or --certificates, keep others out", err=True)  # fmt: skip
        if self._files is not None and client is None:
            click.echo("key, cert and cacert are to be the client's own, where the autoscaler runs", err=True)
            client = ClientFiles("CLIENT.key", "CLIENT.crt", "CA.crt")
        groups = ", ".join(group.debug() for group in self._provider.node_groups()) or "none"
        click.echo(f"node groups of {self._provider.name}: {groups}", err=True)
        click.echo(cloud_config(host, port, plan.timeout_s(), client), nl=False)
        sys.stdout.flush()
        click.echo("ready; save the above as FILE and start cluster-autoscaler with --cloud-provider=externalgrpc "
                   "--cloud-config=FILE; Ctrl-C stops it", err=True)  # fmt: skip
        await stop.wait()

    async def _ready(self) -> None:
        await self._server.started.wait()
        await self._informers.synced()
