"""Runs one scenario with one policy on virtual time, from its begin to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TextIO

from holokube.apiserver.registry import Registry
from holokube.base import log
from holokube.base.clock import Clock, VirtualClock, WallClock
from holokube.base.loop import VirtualTimeLoop
from holokube.base.rng import Rng
from holokube.client.audience import DELETION, SPEC, STATUS
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.cluster.living import LivingCluster
from holokube.lab.formats.replaying import Replay
from holokube.lab.results import RunResult
from holokube.lab.run.assembly import Assembly
from holokube.lab.run.decisions import DecisionBook
from holokube.lab.run.disturbance import Disturbance
from holokube.lab.run.driver import WorkloadDriver
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.node_meter import NodeMeter
from holokube.lab.run.owners import Owners
from holokube.lab.run.pod_meter import PodMeter
from holokube.lab.run.sampling import Sampler
from holokube.lab.run.summary import Findings
from holokube.lab.run.usage_meter import UsageMeter
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.runtime.collector import collecting_rarely
from holokube.runtime.journal import Journal
from holokube.runtime.large_pages import in_large_pages

PROGRESS_EVERY_S: Final = 0.25
"""Of real time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    scenario: str
    policy: str
    done_s: float
    """Virtual, as is the duration."""
    duration_s: float
    took_s: float
    """Real."""
    nodes: int
    pending: int

    @property
    def speed_up(self) -> float:
        """How many times faster than real it is."""
        return self.done_s / self.took_s if self.took_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RunningLab:
    """A run from the inside, for those who watch it while it goes on."""

    scenario: Scenario
    policy: PolicySpec
    clock: VirtualClock
    loop: VirtualTimeLoop
    registry: Registry
    client: Client
    living: LivingCluster
    journal: Journal
    nodes: NodeMeter
    pods: PodMeter


OnProgress = Callable[[Progress], None]
Observe = Callable[[RunningLab], None]


def run_scenario(
    scenario: Scenario,
    policy: PolicySpec,
    *,
    seed: int | None = None,
    event_log: TextIO | None = None,
    on_progress: OnProgress | None = None,
    observe: Observe | None = None,
    wall: Clock | None = None,
) -> RunResult:
    """One run; the same seed gives the same result and the same event log.

    ``observe`` is called once, inside the loop, when everything runs. ``wall`` measures real time for ``on_progress``.
    """
    clock = VirtualClock(datetime.fromtimestamp(scenario.start_s, UTC))
    with (
        collecting_rarely(),
        in_large_pages(),
        log.stamped_by(clock),
        asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner,
    ):
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        run = _Run(clock, loop, scenario, policy, scenario.seed if seed is None else seed, event_log)
        run.watch(on_progress, observe, wall or WallClock())
        # The task that the runner makes has no result of its own: asyncio would write it out, all of it, twice over,
        # on its way to hand the handling of signals back.
        runner.run(run.run())
        assert run.result is not None
        return run.result


class _Run:
    """What belongs to one run."""

    def __init__(
        self, clock: VirtualClock, loop: VirtualTimeLoop, scenario: Scenario, policy: PolicySpec, seed: int,
        event_log: TextIO | None,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._loop = loop
        self._scenario = scenario
        self._policy = policy
        self._seed = seed
        self._rng = Rng(seed)
        self._log = EventLog(event_log)
        self._book = DecisionBook(clock, policy.kind, scenario.start_s, self._log)
        self._assembly = Assembly(clock, scenario, policy, self._rng, self._book.journal)
        self._nodes = NodeMeter(clock, scenario.catalog, self._log)
        self._nodes.on_added = self._book.node_added
        self._usage = UsageMeter(clock, scenario.cluster.profile.usage)
        self._on_progress: OnProgress | None = None
        self._observe: Observe | None = None
        self._wall: Clock = WallClock()
        self.result: RunResult | None = None

    def watch(self, on_progress: OnProgress | None, observe: Observe | None, wall: Clock) -> None:
        """Who wants to know how it goes."""
        self._on_progress, self._observe, self._wall = on_progress, observe, wall

    async def run(self) -> None:
        """Runs to the end, and leaves the result."""
        try:
            living = await self._assembly.start()
            self.result = await self._measured(living)
        finally:
            await self._assembly.stop()

    async def _measured(self, living: LivingCluster) -> RunResult:
        scenario = self._scenario
        pods = PodMeter(
            self._clock, self._nodes, Owners(living.informers), self._usage, self._log, self._book.unschedulable,
            self._book.evicted,
        )
        # Nodes first: a pod is counted on a node that is known.
        remove = [
            living.informers.get(NODES).add_handler(self._nodes.on_event),
            living.informers.get(PODS).add_handler(pods.on_event, heeds=SPEC | STATUS | DELETION),
        ]
        self._nodes.has_begun = pods.has_begun = True
        sampler = Sampler(self._nodes, pods, self._usage)
        if self._observe is not None:
            assembly = self._assembly
            self._observe(RunningLab(
                scenario, self._policy, self._clock, self._loop, assembly.registry, assembly.client, living,
                self._book.journal, self._nodes, pods,
            ))  # fmt: skip
        await self._live(sampler)
        # What happens while everything is taken down is no part of the run.
        for end in remove:
            end()
        self._book.close()
        findings = Findings(
            scenario, self._policy, self._seed, self._nodes, pods, sampler, self._book, dict(self._assembly.calls),
            living.informers,
        )  # fmt: skip
        return findings.result(scenario.duration_s)

    async def _live(self, sampler: Sampler) -> None:
        """Until the end of the scenario; whoever drives it may be done earlier, and may fail."""
        scenario, assembly = self._scenario, self._assembly
        driver = WorkloadDriver(
            self._clock, assembly.client, self._rng.fork("workloads"), self._log,
            start_s=scenario.start_s, duration_s=scenario.duration_s,
        )  # fmt: skip
        disturbance = Disturbance(
            self._clock, assembly.client, self._rng.fork("faults"), assembly.cloud, assembly.trouble,
            self._book.journal,
        )  # fmt: skip
        tasks = [
            asyncio.create_task(driver.run(scenario.workloads), name="workloads"),
            asyncio.create_task(disturbance.run(scenario.faults), name="faults"),
        ]
        if scenario.timeline is not None:
            replay = Replay(self._clock, assembly.client, scenario.timeline, self._book.refused)
            tasks.append(asyncio.create_task(replay.run(begin_s=0.0), name="trace"))
        end = asyncio.create_task(self._sample(sampler), name="sampling")
        try:
            waiting: set[asyncio.Task[None]] = {end, *tasks}
            while end in waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in (*tasks, end):
                    if task in done:
                        _raise_first(task)
        finally:
            for task in (*tasks, end):
                task.cancel()
            await asyncio.gather(*tasks, end, return_exceptions=True)

    async def _sample(self, sampler: Sampler) -> None:
        scenario = self._scenario
        began_s = told_s = self._wall.monotonic()
        number = 0
        while (at_s := number * scenario.sampling_s) < scenario.duration_s:
            await self._until(at_s)
            sampler.take(at_s)
            number += 1
            now_s = self._wall.monotonic()
            if self._on_progress is not None and now_s - told_s >= PROGRESS_EVERY_S:
                told_s = now_s
                self._tell(at_s, now_s - began_s, sampler)
        await self._until(scenario.duration_s)
        if self._on_progress is not None:
            self._tell(scenario.duration_s, self._wall.monotonic() - began_s, sampler)

    def _tell(self, done_s: float, took_s: float, sampler: Sampler) -> None:
        assert self._on_progress is not None
        scenario = self._scenario
        self._on_progress(Progress(
            scenario.name, self._policy.name, done_s, scenario.duration_s, took_s, sampler.nodes.nodes.amount,
            sampler.pods.pending.amount,
        ))  # fmt: skip

    async def _until(self, at_s: float) -> None:
        left_s = at_s - self._clock.monotonic()
        if left_s > 0:
            await self._clock.sleep(left_s)


def _raise_first(task: asyncio.Task[None]) -> None:
    """Of several errors of a group of tasks the first: one line says more than a tree."""
    error = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error
