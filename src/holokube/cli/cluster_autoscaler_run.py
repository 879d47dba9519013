"""The life of ``holokube cluster-autoscaler``: reach the cluster, be elected, turn after turn, and a clean end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from holokube.base.clock import Clock, WallClock
from holokube.base.errors import ConfigError, HolokubeError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli.event_loop import loop_factory
from holokube.cli.metrics_endpoint import parse_address
from holokube.cli.provider_choice import KUBEMARK, KWOK, ProviderChoice, ProviderFactory
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.flags import ParsedFlags, from_values
from holokube.cluster_autoscaler.loop.autoscaler import Autoscaler
from holokube.cluster_autoscaler.loop.endpoint import Endpoint
from holokube.cluster_autoscaler.loop.event_correlation import event_recorder
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.scale_up.quotas import limiter_of
from holokube.kube.errors import ApiError
from holokube.runtime import collector
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.runtime.leader import ElectionTimes, LeaderElector
from holokube.runtime.stop import StopSignal

PROVIDERS = (KWOK, KUBEMARK)
STOP_DEADLINE_S = 300.0
"""Thousands of nodes take a while to be removed."""


@dataclass(frozen=True, slots=True)
class AutoscalerPlan:
    """What the command line asks for."""

    flags: Mapping[str, Sequence[str]]
    kwok_templates: str = ""
    external_kubeconfig: str = ""
    external_context: str = ""
    kubemark_template: str = ""
    kubemark_template_config_map: str = ""
    kubemark_namespace: str = "kubemark"
    keep_nodes: bool = False
    journal: str = ""
    identity: str = ""
    seed: str = ""
    kubeconfig: str = ""
    context: str = ""

    def parse(self) -> ParsedFlags:
        """The flags; UsageError for what makes no sense."""
        parsed = from_values(self.flags)
        process = parsed.process
        if process.cloud_provider not in PROVIDERS:
            what = f"--cloud-provider={process.cloud_provider} is not offered" if process.cloud_provider else (
                "--cloud-provider is missing")
            raise UsageError(what, hint=f"Choose one of {', '.join(PROVIDERS)}.")
        self.choice(parsed).check()
        if process.leader_elect_resource_lock != "leases":
            raise UsageError(f"--leader-elect-resource-lock={process.leader_elect_resource_lock} is not possible",
                             hint="Leases are the only kind of lock.")
        self.times(parsed)
        parse_address(process.address, option="--address")
        return parsed

    def choice(self, parsed: ParsedFlags) -> ProviderChoice:
        """What the provider is made from."""
        return ProviderChoice(
            provider=parsed.process.cloud_provider, kwok_templates=self.kwok_templates, nodes=parsed.process.nodes,
            external_kubeconfig=self.external_kubeconfig, external_context=self.external_context,
            kubemark_template=self.kubemark_template, kubemark_namespace=self.kubemark_namespace,
            kubemark_template_config_map=self.kubemark_template_config_map, namespace=parsed.options.namespace,
        )  # fmt: skip

    @staticmethod
    def times(parsed: ParsedFlags) -> ElectionTimes:
        """The times of the election."""
        process = parsed.process
        try:
            return ElectionTimes(process.leader_elect_lease_duration_s, process.leader_elect_renew_deadline_s,
                                 process.leader_elect_retry_period_s)
        except ValueError as error:
            raise UsageError(f"--leader-elect-*: {error}", hint="15s, 10s and 2s are upstream's.") from error


class AutoscalerRun:
    """One run of the command."""

    def __init__(self, plan: AutoscalerPlan) -> None:
        self._plan = plan

    def run(self) -> int:
        """Runs until a signal comes; returns the exit code."""
        parsed = self._plan.parse()
        for warning in parsed.warnings:
            click.echo(f"warning: {warning}", err=True)
        access = load_access(self._plan.kubeconfig, self._plan.context)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._main(access, parsed))

    async def _main(self, access: ClusterAccess, parsed: ParsedFlags) -> int:
        clock = WallClock()
        async with AsyncExitStack() as stack:
            transport = HttpTransport(clock, access, user_agent=parsed.process.user_agent)
            client = await stack.enter_async_context(Client(transport))
            await _greet(client, access)
            rng = Rng(self._plan.seed or system_seed())
            informers = InformerSet(clock, client, rng.fork("informers"))
            app = App(clock, stop_deadline_s=STOP_DEADLINE_S)
            recorder = app.add(event_recorder(clock, client, parsed.options, rng.fork("events"), app.metrics))
            # Made once there is somebody to use it: it may create nodes.
            factory = ProviderFactory(
                clock, client, informers, rng, self._plan.choice(parsed),
                resource_limiter=limiter_of(parsed.options),
            )  # fmt: skip
            stack.push_async_callback(factory.close)
            autoscaler = Autoscaler(
                clock, client, informers, recorder, rng.fork("autoscaler"),
                factory.build, parsed.options,
                metrics=AutoscalerMetrics(clock, parsed.options, app.metrics.registry),
                journal=self._journal(stack), clean_up=not self._plan.keep_nodes,
            )
            self._add_endpoint(app, autoscaler, parsed)
            app.add(informers.runner())
            self._add_loop(app, autoscaler, clock, client, recorder, rng, parsed)
            app.add(_Announcer(f"autoscaling {access.server} with {parsed.process.cloud_provider} groups"))
            collector.relax()
            clean = await app.run(handle_signals=True)
        return 0 if clean else 1

    def _journal(self, stack: AsyncExitStack) -> Journal:
        if not self._plan.journal:
            return Journal()
        try:
            file: IO[str] = Path(self._plan.journal).open("a", buffering=1)  # noqa: SIM115 - the stack closes it
        except OSError as error:
            raise ConfigError(f"--journal: cannot write {self._plan.journal}: {error.strerror}",
                              hint="Choose another file.") from error
        stack.enter_context(file)
        return Journal(write=lambda line: print(line, file=file))

    @staticmethod
    def _add_endpoint(app: App, autoscaler: Autoscaler, parsed: ParsedFlags) -> None:
        address = parse_address(parsed.process.address, option="--address")
        if address is not None:
            app.add(Endpoint(
                *address, render=app.metrics.render, health=autoscaler.health,
                debugging=autoscaler.debugging if parsed.process.debugging_snapshot_enabled else None,
                on_started=lambda where: click.echo(f"metrics on http://{where}/metrics", err=True),
            ), essential=True)

    def _add_loop(self, app: App, autoscaler: Autoscaler, clock: Clock, client: Client, recorder: EventRecorder,
                  rng: Rng, parsed: ParsedFlags) -> None:
        process = parsed.process
        if not process.leader_elect:
            app.add(autoscaler, essential=True)
            return
        app.add(LeaderElector(
            clock, client, lease_name=process.leader_elect_resource_name,
            namespace=process.leader_elect_resource_namespace or parsed.options.namespace,
            identity=self._plan.identity or socket.gethostname(), lead=autoscaler.run, rng=rng.fork("election"),
            times=self._plan.times(parsed), recorder=recorder, metrics=app.metrics,
            on_new_leader=lambda who: click.echo(f"the leader is {who or 'nobody'}", err=True),
        ), essential=True)


class _Announcer:
    """Says that it runs, once a signal would end it properly."""

    name = "announcer"

    def __init__(self, text: str) -> None:
        self._text = text

    async def run(self, stop: StopSignal) -> None:
        click.echo(f"{self._text}; Ctrl-C stops it", err=True)
        await stop.wait()


async def _greet(client: Client, access: ClusterAccess) -> None:
    """Fails at once, and clearly, where the loop itself would try for ever."""
    try:
        await client.list(NODES, limit=1)
    except ApiError as error:
        raise HolokubeError(
            f"{access.server} does not let us list nodes: {error.message}",
            hint="Check the user of the kubeconfig; deploy/cluster-autoscaler/rbac.yaml lists what it needs.",
        ) from error
