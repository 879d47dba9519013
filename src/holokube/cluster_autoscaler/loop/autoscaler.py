"""The autoscaler as a component: turn after turn while it is wanted, and a clean end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, runtime_checkable

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.expanders.chain import build_chain
from holokube.cluster_autoscaler.expanders.context import Expander
from holokube.cluster_autoscaler.loop.debugging_snapshot import DebuggingSnapshot
from holokube.cluster_autoscaler.loop.eventing import CrowdRecorder
from holokube.cluster_autoscaler.loop.health import HealthCheck
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.loop.resting import Rest
from holokube.cluster_autoscaler.loop.run_once import RunOnce
from holokube.cluster_autoscaler.loop.sources import Sources
from holokube.cluster_autoscaler.loop.trigger import Trigger
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.runtime.stop import StopSignal

MakeProvider = Callable[[], Awaitable[CloudProvider]]
"""Makes a provider that is ready to be used. It may create nodes, so it is called only by who is in charge."""

TURN_S_PER_POD: Final = 0.0001
"""How long a turn of upstream's takes for each pod that waits: 0.12 s with 1,000 of them, 0.79 s with 5,000 and 2.0 s
with 30,000 were measured. It matters because pods that come meanwhile start one turn together, not one each."""

_log = get_logger("holokube.cluster_autoscaler.loop")


@runtime_checkable
class _Closable(Protocol):
    async def close(self) -> None: ...


class Autoscaler:
    """Runs turns until it is told to stop.

    ``run`` may be called again after it has ended, as a leader election does: everything that is remembered between
    turns begins anew then, as in a new process.
    """

    name = "cluster-autoscaler"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        recorder: CrowdRecorder,
        rng: Rng,
        provider: CloudProvider | MakeProvider,
        options: AutoscalerOptions,
        *,
        metrics: AutoscalerMetrics | None = None,
        journal: Journal | None = None,
        clean_up: bool = False,
        on_turn: Callable[[TurnReport], None] | None = None,
        rests: bool = False,
        turn_s_per_pod: float = 0.0,
    ) -> None:
        """``clean_up``: at a graceful end the status is deleted and the provider removes what it made, as upstream
        does. ``on_turn`` is shown the report of every turn. ``rests``: turns that would decide nothing new are left
        out (``resting``), and ``turn_s_per_pod``: how long a turn lasts for each pod that waits, besides what it takes
        by itself; both are for virtual time. Make it before the informers are started."""
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._rng = rng
        self._provider = provider
        self._options = options
        self._sources = Sources(client, informers, options)
        self.metrics = metrics if metrics is not None else AutoscalerMetrics(clock, options)
        self.journal = journal if journal is not None else Journal()
        self.health = HealthCheck(clock, options)
        self.debugging = DebuggingSnapshot(clock)
        self._clean_up = clean_up
        self._on_turn = on_turn
        self._rests = rests
        self._turn_s_per_pod = turn_s_per_pod
        self._runs = 0

    async def run(self, stop: StopSignal) -> None:
        """Turn after turn; at the end nodes that were not handed to the provider yet are given back."""
        if not await stop.finishes_first(self._sources.synced()):
            return
        provider = await self._make_provider()
        try:
            await self._run_with(provider, stop)
        finally:
            if callable(self._provider) and isinstance(provider, _Closable):
                await provider.close()

    async def _make_provider(self) -> CloudProvider:
        if callable(self._provider):
            return await self._provider()
        return self._provider

    async def _run_with(self, provider: CloudProvider, stop: StopSignal) -> None:
        self._runs += 1
        options = self._options
        run_once = RunOnce(
            self._clock, self._client, self._sources, provider, options, recorder=self._recorder,
            rng=self._rng.fork(f"run-{self._runs}"), metrics=self.metrics, journal=self.journal,
            expanders=build_chain(options.expander, self._other_expanders()))
        trigger = Trigger(self._clock, options.scan_interval_s, run_once, frequent=options.frequent_loops_enabled)
        await run_once.status.begin(self._clock.time())
        unwatch = trigger.watch(self._sources.pods)
        self.health.start_monitoring()
        sources = self._sources
        rest = Rest(sources.nodes, sources.pods, sources.others, provider, options) if self._rests else None
        try:
            await self._turns(run_once, trigger, stop, rest)
        finally:
            if rest is not None:
                rest.close()
            unwatch()
            self.health.stop_monitoring()
            await run_once.stop()
        if self._clean_up and options.write_status_configmap:
            await run_once.status.delete()
            await provider.cleanup()

    def _other_expanders(self) -> dict[str, Expander]:
        if "grpc" not in self._options.expander:
            return {}
        # Not everybody has the library that it needs.
        from holokube.cluster_autoscaler.expanders.grpc import GrpcExpander

        return {"grpc": GrpcExpander(self._options.grpc_expander_url, self._options.grpc_expander_cert)}

    async def _turns(self, run_once: RunOnce, trigger: Trigger, stop: StopSignal, rest: Rest | None) -> None:
        previous_s = last_s = self._clock.time()
        pending = 0
        while not stop.is_set():
            if pending and self._turn_s_per_pod:
                await stop.sleep(pending * self._turn_s_per_pod)
            with self.metrics.timed("loopWait"):
                why = await trigger.wait(previous_s, stop)
            if stop.is_set():
                return
            previous_s, last_s = last_s, self._clock.time()
            if rest is not None and rest.goes_on(last_s):
                continue
            _log.debug("A turn begins", why=why)
            report = await self._turn(run_once, last_s)
            # One that is left out would have found as many.
            pending = report.pending
            if rest is not None:
                planner = run_once.planner
                rest.after(report, run_once.last_activity, planner.next_recheck_s(), is_quiet=run_once.is_quiet,
                           settled_on=planner.settled_on, room_left=planner.room_left)

    async def _turn(self, run_once: RunOnce, now_s: float) -> TurnReport:
        self.metrics.activity("main", now_s)
        self.health.active()
        with self.metrics.timed("main"):
            report = await run_once.run(now_s)
        if report.error is not None and report.error.kind is not ErrorKind.TRANSIENT:
            self.metrics.error(report.error.kind)
        else:
            self.health.succeeded()
            self.metrics.activity("mainSuccessful", self._clock.time())
        self.debugging.serve(run_once.snapshot, report)
        if self._on_turn is not None:
            self._on_turn(report)
        return report


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: CrowdRecorder,
    rng: Rng,
    provider: CloudProvider | MakeProvider,
    options: AutoscalerOptions,
    *,
    metrics: AutoscalerMetrics | None = None,
    journal: Journal | None = None,
    clean_up: bool = False,
) -> Autoscaler:
    """The autoscaler on a cluster."""
    return Autoscaler(clock, client, informers, recorder, rng, provider, options, metrics=metrics, journal=journal,
                      clean_up=clean_up)
