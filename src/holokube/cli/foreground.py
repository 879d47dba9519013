"""The life of ``holokube up``: load, listen, start components, announce, wait for a signal, clean up."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.manifests import Manifests, read_manifests
from holokube.apiserver.restore import RestoreReport, restore
from holokube.apiserver.server import EmbeddedServer, Endpoint, is_loopback, write_kubeconfig
from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli import kubeconfig_file
from holokube.cli.event_loop import loop_factory
from holokube.cli.metrics_endpoint import MetricsEndpoint, parse_address
from holokube.cli.progress import ProgressLine
from holokube.cli.settings import Settings
from holokube.runtime import collector

if TYPE_CHECKING:
    from holokube.cli.dashboard_page import Page
    from holokube.cluster.living import LivingCluster, LivingOptions

_PROBLEMS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command line asks for."""

    host: str
    port: int | None
    kubeconfig_out: Path | None
    data_dir: Path | None
    snapshot: str
    seed: str
    metrics_address: str
    nodes: int = 0
    profile: str = "kubelet"
    zones: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    policy: str = "none"
    policy_flags: str = ""
    node_groups: str = ""
    dashboard_port: int | None = None
    """None for no dashboard."""


class Foreground:
    """One run of the server."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self._plan = plan
        self._settings = settings
        self._made_kubeconfig: Path | None = None

    def run(self) -> int:
        """Run until a signal comes; returns the exit code."""
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._main())

    async def _main(self) -> int:
        stop = asyncio.Event()
        _on_signals(stop)
        plan = self._plan
        metrics_address = parse_address(plan.metrics_address)
        if plan.kubeconfig_out is not None:
            kubeconfig_file.refuse_foreign(plan.kubeconfig_out)
        # Before the server, so that a bad file leaves no data directory behind.
        manifests = read_manifests(plan.snapshot) if plan.snapshot else None
        options = _living_options(plan) if plan.components else None
        seed = plan.seed or str(system_seed())
        server = EmbeddedServer(
            WallClock(), Rng(seed), data_dir=plan.data_dir, host=plan.host, port=plan.port
        )
        metrics = MetricsEndpoint(server.metrics)
        living: LivingCluster | None = None
        page: Page | None = None
        try:
            if manifests is not None:
                await self._load(server, manifests)
            endpoint = await server.start()
            await metrics.start(metrics_address)
            if options is not None:
                living = _living_cluster(server, endpoint, seed, options)
                if not await _unless_stopped(stop, self._bring_to_life(living)):
                    return 0
            if plan.dashboard_port is not None:
                page = await _page(server, living, plan.policy, plan.dashboard_port)
            self._announce(endpoint, page.url if page is not None else "", metrics.url, seed)
            await stop.wait()
            self._say("stopping")
        finally:
            self._remove_kubeconfig()
            if page is not None:
                await page.stop()
            if living is not None:
                await living.stop()
            await metrics.stop()
            await server.stop()
        return 0

    # -- starting ------------------------------------------------------------------------------------------

    async def _load(self, server: EmbeddedServer, manifests: Manifests) -> None:
        if not server.is_fresh:
            raise UsageError(
                f"the data directory {self._plan.data_dir} holds a cluster already, "
                f"so {manifests.name} is not loaded",
                hint="Leave out --from to go on with that cluster, or name an empty directory.",
            )
        await bootstrap(server.registry)
        report = await restore(server.registry, manifests.objects)
        self._tell_problems(report, manifests)
        if not report.restored:
            raise UsageError(
                f"none of the {len(manifests.objects)} objects in {manifests.name} can be loaded",
                hint="The lines above say why; give a snapshot or Kubernetes manifests.",
            )
        made = f", made namespaces {', '.join(report.added_namespaces)}" if report.added_namespaces else ""
        left_out = f", left out {len(report.left_out)}" if report.left_out else ""
        self._say(f"loaded {report.restored.total()} objects from {manifests.name}{left_out}{made}")

    async def _bring_to_life(self, living: LivingCluster) -> None:
        await living.start()
        collector.relax()
        if self._plan.nodes:
            progress, wanted = ProgressLine(), self._plan.nodes
            await living.scale_nodes(wanted, lambda ready: progress.show(f"{ready}/{wanted} nodes are Ready"))
            progress.done(f"{wanted} nodes are Ready")

    def _tell_problems(self, report: RestoreReport, manifests: Manifests) -> None:
        shown = len(report.problems) if self._settings.verbosity else _PROBLEMS_SHOWN
        # What is missing matters more than what is flawed.
        for problem in sorted(report.problems, key=lambda problem: not problem.left_out)[:shown]:
            word = "left out" if problem.left_out else "note"
            self._say(f"{word}: {manifests.where(problem.index)}: {problem}")
        if len(report.problems) > shown:
            self._say(f"... and {len(report.problems) - shown} more; -v shows all")

    def _announce(self, endpoint: Endpoint, dashboard_url: str, metrics_url: str, seed: str) -> None:
        plan = self._plan
        path, keep = kubeconfig_file.choose(plan.kubeconfig_out, plan.data_dir, endpoint.port)
        try:
            write_kubeconfig(path, endpoint.kubeconfig())
        except OSError as error:
            raise ConfigError(
                f"cannot write the kubeconfig {path}: {error.strerror}",
                hint="Name another file with --kubeconfig-out.",
            ) from error
        self._made_kubeconfig = None if keep else path
        quoted = shlex.quote(str(path))
        click.echo(f"KUBECONFIG={quoted}")
        if dashboard_url:
            click.echo(f"HOLOKUBE_DASHBOARD={dashboard_url}")
        click.echo(f"HOLOKUBE_SERVER={endpoint.url}")
        if metrics_url:
            click.echo(f"HOLOKUBE_METRICS={metrics_url}")
        if not is_loopback(plan.host):
            self._say(
                f"warning: listening on {plan.host}; whoever reaches it with the kubeconfig or the token "
                "is its administrator"
            )
        if self._settings.verbosity:
            self._say(f"seed {seed}")
        self._say(f"ready; in another terminal: export KUBECONFIG={quoted}; kubectl get all -A")
        if dashboard_url:
            self._say(f"watch it on {dashboard_url}")
        self._say("Ctrl-C stops it")

    # -- stopping ------------------------------------------------------------------------------------------

    def _remove_kubeconfig(self) -> None:
        if self._made_kubeconfig is not None:
            kubeconfig_file.remove(self._made_kubeconfig)
            self._made_kubeconfig = None

    @staticmethod
    def _say(text: str) -> None:
        click.echo(text, err=True)


def _living_options(plan: Plan) -> LivingOptions:
    """What runs beside the server; imported here, for a server alone does without."""
    from holokube.cli.policy_option import choose_policy
    from holokube.cli.profile_option import choose_profile
    from holokube.cluster.components import Part
    from holokube.cluster.living import LivingOptions

    return LivingOptions(
        parts=frozenset(map(Part, plan.components)), profile=choose_profile(plan.profile), zones=plan.zones,
        policy=choose_policy(plan.policy, plan.policy_flags, plan.node_groups),
    )  # fmt: skip


def _living_cluster(
    server: EmbeddedServer, endpoint: Endpoint, seed: str, options: LivingOptions
) -> LivingCluster:
    from holokube.cluster.living import LivingCluster

    options = replace(options, root_ca=endpoint.ca_pem.decode())
    return LivingCluster.in_process(WallClock(), server.registry, Rng(seed).fork("cluster"), options)


async def _page(server: EmbeddedServer, living: LivingCluster | None, policy: str, port: int) -> Page:
    from holokube.cli.dashboard_page import Page

    page = Page(WallClock(), server.registry, living, title=policy)
    await page.start(port)
    return page


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[None, None, None]) -> bool:
    """Do the work, unless a signal comes first; False then."""
    doing = asyncio.create_task(work)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
        return doing.done()
    finally:
        doing.cancel()
        stopped.cancel()
        await asyncio.wait({doing, stopped})


def _on_signals(stop: asyncio.Event) -> None:
    """The first signal asks for a clean end, the second does not ask."""
    loop = asyncio.get_running_loop()

    def on_signal(number: int) -> None:
        if stop.is_set():
            # What was acknowledged is on disk already.
            os._exit(128 + number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
