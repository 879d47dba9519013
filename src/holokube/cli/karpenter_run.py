"""The life of ``holokube karpenter``: reach the cluster, bring the definitions, be elected, work, and a clean end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import click

from holokube import __version__
from holokube.base.clock import Clock, WallClock
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli.catalog_option import catalog_from
from holokube.cli.event_loop import loop_factory
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.karpenter.api.install import install
from holokube.karpenter.app import COMPONENT, build
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.settings import Settings, settings_from
from holokube.kube.errors import ApiError
from holokube.pricing.instance_types import Catalog
from holokube.runtime import collector
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.health import HealthChecks, HealthServer
from holokube.runtime.informers import InformerSet
from holokube.runtime.leader import LeaderElector
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from holokube.runtime.throttled import ThrottledTransport

DEFAULT_NAMESPACE = "kube-system"
_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class KarpenterPlan:
    """What the command line and the environment ask for."""

    flags: Mapping[str, str]
    catalog: str = ""
    overlays: str = ""
    no_crds: bool = False
    identity: str = ""
    seed: str = ""
    kubeconfig: str = ""
    context: str = ""

    def settings(self, environ: Mapping[str, str]) -> Settings:
        """The settings; UsageError for what makes no sense."""
        found = settings_from(self.flags, environ)
        for name, port in (("metrics-port", found.metrics_port), ("health-probe-port", found.health_probe_port)):
            if not 0 <= port <= _PORT_MAX:
                raise UsageError(f"--{name}={port} is no port", hint="Write 0 to have none, or 1 to 65535.")
        if found.metrics_port and found.metrics_port == found.health_probe_port:
            raise UsageError(
                f"--metrics-port and --health-probe-port are both {found.metrics_port}", hint="Choose another for one.")
        rates = (("kube-client-qps", found.kube_client_qps), ("kube-client-burst", found.kube_client_burst))
        for name, number in rates:
            if number < 1:
                raise UsageError(f"--{name}={number} would let no request through", hint="Write 1 or more.")
        if self.catalog and found.instance_types_file_path:
            raise UsageError("--catalog and --instance-types-file-path are the same", hint="Give one of them.")
        return found

    def read_catalog(self, settings: Settings) -> Catalog:
        """The instance types; the generator's unless a file is named."""
        return catalog_from(self.catalog or settings.instance_types_file_path, self.overlays)


class KarpenterRun:
    """One run of the command."""

    def __init__(self, plan: KarpenterPlan) -> None:
        self._plan = plan

    def run(self) -> int:
        """Runs until a signal comes; returns the exit code."""
        settings = self._plan.settings(os.environ)
        catalog = self._plan.read_catalog(settings)
        access = load_access(self._plan.kubeconfig, self._plan.context)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._main(access, settings, catalog))

    async def _main(self, access: ClusterAccess, settings: Settings, catalog: Catalog) -> int:
        clock = WallClock()
        async with AsyncExitStack() as stack:
            transport = HttpTransport(clock, access, user_agent=f"{COMPONENT}/holokube-{__version__}")
            # The lease is renewed past the line: whoever waits in it must not lose the lead by that.
            renewing = await stack.enter_async_context(Client(transport))
            client = Client(ThrottledTransport(
                clock, transport, per_s=settings.kube_client_qps, burst=settings.kube_client_burst))
            await _greet(client, access)
            if not self._plan.no_crds:
                await _bring_definitions(clock, client, access)
            rng = Rng(self._plan.seed or system_seed())
            informers = InformerSet(clock, client, rng.fork("informers"))
            app = App(clock)
            servers = self._add_servers(app, settings)
            recorder = app.add(
                EventRecorder(clock, client, COMPONENT, rng=rng.fork("events"), metrics=app.metrics))
            components = build(
                clock, client, informers, recorder, rng.fork("karpenter"), settings, catalog,
                metrics=KarpenterMetrics(app.metrics.registry), installs_definitions=False)
            app.add(informers.runner())
            self._add_work(app, components, clock, renewing, recorder, rng, settings)
            told = f"{COMPONENT} works on {access.server} with {len(catalog)} instance types"
            app.add(_Announcer(told, servers))
            collector.relax()
            clean = await app.run(handle_signals=True)
        return 0 if clean else 1

    @staticmethod
    def _add_servers(app: App, settings: Settings) -> dict[str, HealthServer]:
        servers: dict[str, HealthServer] = {}
        if settings.metrics_port:
            server = HealthServer(HealthChecks(), app.metrics, host="", port=settings.metrics_port)
            server.name = "metrics-server"
            servers["metrics on http://{}/metrics"] = app.add(server, essential=True)
        if settings.health_probe_port:
            server = HealthServer(app.checks, host="", port=settings.health_probe_port)
            servers["health on http://{}/healthz"] = app.add(server, essential=True)
        return servers

    def _add_work(
        self, app: App, components: Sequence[Component], clock: Clock, client: Client, recorder: EventRecorder,
        rng: Rng, settings: Settings,
    ) -> None:
        if settings.disable_leader_election:
            for component in components:
                app.add(component)
            return
        elector = LeaderElector(
            clock, client, lease_name=settings.leader_election_name,
            namespace=settings.leader_election_namespace or DEFAULT_NAMESPACE,
            identity=self._plan.identity or socket.gethostname(),
            lead=_Work(clock, components, app.metrics).run, rng=rng.fork("election"), recorder=recorder,
            metrics=app.metrics,
            on_new_leader=lambda who: click.echo(f"the leader is {who or 'nobody'}", err=True),
        )  # fmt: skip
        app.checks.add("leader-election", elector.check, live=True)
        app.add(elector, essential=True)


class _Work:
    """What only the leader does: all components, for as long as it leads."""

    def __init__(self, clock: Clock, components: Sequence[Component], metrics: Metrics) -> None:
        self._clock = clock
        self._components = components
        self._metrics = metrics

    async def run(self, stop: StopSignal) -> None:
        app = App(self._clock, metrics=self._metrics)
        for component in self._components:
            app.add(component)

        async def pass_on() -> None:
            await stop.wait()
            app.stop()

        passing = asyncio.create_task(pass_on())
        try:
            await app.run()
        finally:
            passing.cancel()
            with suppress(asyncio.CancelledError):
                await passing


class _Announcer:
    """Says that it runs, once a signal would end it properly and the servers listen."""

    name = "announcer"

    def __init__(self, text: str, servers: Mapping[str, HealthServer]) -> None:
        self._text = text
        self._servers = servers

    async def run(self, stop: StopSignal) -> None:
        for form, server in self._servers.items():
            if not await stop.finishes_first(server.started.wait()):
                return
            click.echo(form.format(server.address), err=True)
        click.echo(f"{self._text}; Ctrl-C stops it", err=True)
        await stop.wait()


async def _greet(client: Client, access: ClusterAccess) -> None:
    """Fails at once, and clearly, where the loops themselves would try for ever."""
    try:
        await client.list(NODES, limit=1)
    except ApiError as error:
        raise HolokubeError(
            f"{access.server} does not let us list nodes: {error.message}",
            hint="Check the user of the kubeconfig; deploy/karpenter/rbac.yaml lists what it needs.",
        ) from error


async def _bring_definitions(clock: Clock, client: Client, access: ClusterAccess) -> None:
    try:
        written = await install(clock, client)
    except ApiError as error:
        raise HolokubeError(
            f"{access.server} does not let us install the definitions of NodePools: {error.message}",
            hint="Install them with another user and add --no-crds, or see deploy/karpenter/rbac.yaml.",
        ) from error
    if written:
        click.echo(f"installed {', '.join(written)}", err=True)
