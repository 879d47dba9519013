"""The disruption loop: asks one method after the other what could go, and begins the first command it gets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from holokube.base.clock import Clock
from holokube.base.lazy import lazy
from holokube.base.log import get_logger
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.budgets import budget_notices
from holokube.karpenter.disruption.candidate_book import CandidateBook
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.orchestration import stale_marks
from holokube.karpenter.disruption.prospects import Glimpse, Outlook, Prospects
from holokube.karpenter.disruption.simulating import Simulator
from holokube.karpenter.disruption.types import (
    VALIDATION_DELAY_S,
    Command,
    DisruptionClass,
    Interruptible,
    Method,
    Notice,
    is_balanced,
)
from holokube.karpenter.disruption.validation import Rejection, validate
from holokube.karpenter.disruption.view import DisruptionOptions, DisruptionView
from holokube.karpenter.disruption_loop.marking import Marker
from holokube.karpenter.disruption_loop.notices import stay_told_until_s, tell
from holokube.karpenter.disruption_loop.picture import Picture, Sight
from holokube.karpenter.disruption_loop.queue import CommandFailed, DisruptionQueue
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.pausing import with_pauses
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.provisioning.world import Scene, TypesOfPool, World
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.state.collector import pool_costs
from holokube.kube.types import JsonObject
from holokube.runtime.result import Result
from holokube.runtime.singleton import REQUEUE_IMMEDIATELY, Singleton
from holokube.runtime.stop import StopSignal

POLL_S: Final = 10.0
UNSYNCED_S: Final = 1.0
_LATER: Final = Result(requeue_after_s=POLL_S)
_SOON: Final = Result(requeue_after_s=UNSYNCED_S)

Simulate = Callable[[Scene], Simulator]


class DisruptionLoop:
    """A component: one pass after the other."""

    name = "disruption"

    def __init__(
        self,
        clock: Clock,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
        state: ClusterState,
        world: World,
        queue: DisruptionQueue,
        marker: Marker,
        simulate: Simulate,
        options: DisruptionOptions,
        methods: Sequence[Method] = METHODS,
    ) -> None:
        self._clock = clock
        self._publisher = publisher
        self._metrics = metrics
        self._provider = provider
        self._state = state
        self._world = world
        self._queue = queue
        self._marker = marker
        self._simulate = simulate
        self._options = options
        self._methods = methods
        self._memory: dict[str, Memory] = {method.name: Memory() for method in methods}
        self._searches = {method.name: method for method in methods if isinstance(method, Interruptible)}
        self._words = {method.name: method.reason.lower() for method in methods}
        """What metrics call the reasons of methods."""
        self._book = CandidateBook()
        self._prospects = Prospects(clock.monotonic, partial(stay_told_until_s, publisher=publisher))
        self._eligible: dict[str, int] = {}
        """What was last said of how many nodes may be disrupted, by reason."""
        self._search_began_s = 0.0
        self._timed_out = False
        self._settled: Picture | None = None
        self._seen = state.version
        """What the last view shows."""
        self._has_told_blocked: DisruptionView | None = None
        """The last view of which was told why nodes are no candidates."""
        self._log = get_logger("holokube.karpenter.disruption")
        self._loop = Singleton(clock, self.name, self.reconcile)

    async def run(self, stop: StopSignal) -> None:
        await self._loop.run(stop)

    async def reconcile(self) -> Result:
        """One pass."""
        if not self._state.is_synced():
            return _SOON
        marked = self._state.marked_nodes()
        if marked:
            await self._marker.unmark(stale_marks(marked, self._queue.provider_ids))
        sight, settled = self._sight(), self._settled
        if settled is not None and settled.holds(sight, self._state):
            return _LATER
        self._settled = None
        view = self._view(sight)
        has_time, is_as_seen = True, True
        for method in self._methods:
            command = await self._decide(method, view)
            has_time = has_time and not self._timed_out
            if command is None:
                if self._state.version != self._seen:
                    # Others had a turn in a pause.
                    view, is_as_seen = self._view(self._sight()), False
                continue
            if await self._disrupt(command, method):
                return REQUEUE_IMMEDIATELY
            view, is_as_seen = self._view(self._sight()), False
        if has_time and is_as_seen and not self._state.has_timed_pods:
            self._settled = Picture(sight, self._state.version, self._state.count_nominated(sight.now_s))
        return _LATER

    async def _disrupt(self, command: Command, method: Method) -> bool:
        """Looks at a command once more, later, and begins it; whether it was begun."""
        if method.is_validated:
            await self._clock.sleep(VALIDATION_DELAY_S)
            checked = validate(command, method, self._view(self._sight()))
            if isinstance(checked, Rejection):
                self._log.debug("abandoning command", command=str(command), why=checked.message)
                tell(checked.notices(command), self._publisher)
                self._metrics.validation_failed(method.consolidation_type, checked.failed)
                return False
            command = checked
        try:
            await self._queue.start(command)
        except CommandFailed as error:
            self._log.error("disrupting nodes failed", error=error.message)
            return False
        return True

    async def _decide(self, method: Method, view: DisruptionView) -> Command | None:
        started_s = self._search_began_s = self._clock.monotonic()
        memory = self._memory[method.name]
        searches = self._searches.get(method.name)
        if searches is not None:
            outcome = await with_pauses(self._clock, searches.steps(view, memory))
        else:
            outcome = method.compute(view, memory)
        self._memory[method.name] = outcome.memory
        reason = self._words[method.name]
        count = view.count(method)
        if self._eligible.get(reason) != count:
            self._eligible[reason] = count
            self._metrics.eligible_nodes(reason, count)
        self._metrics.method_evaluated(reason, method.consolidation_type, self._clock.monotonic() - started_s)
        self._timed_out = outcome.timed_out
        if outcome.timed_out:
            self._metrics.consolidation_timed_out(method.consolidation_type)
        if self._has_told_blocked is not view:
            tell(self._blocked_notices(view, method), self._publisher)
        if outcome.notices:
            tell(outcome.notices, self._publisher)
        if count:
            tell(budget_notices(view.pools, view.budgets(method.reason), method.reason), self._publisher)
        if outcome.command is not None:
            for pool, score in outcome.command.scores.items():
                self._metrics.move_scored("approved", pool, "balanced", score.value)
        return outcome.command

    def _blocked_notices(self, view: DisruptionView, method: Method) -> Sequence[Notice]:
        """A word about nodes that are no candidates, once: what holds for all that pods can stop is told then."""
        if method.disruption_class is DisruptionClass.GRACEFUL:
            self._has_told_blocked = view
        return view.blocked_notices(method.disruption_class)

    def _sight(self) -> Sight:
        """What decides besides nodes and their pods, now."""
        pools = self._world.pools()
        return Sight(
            self._clock.time(),
            pools,
            self._world.types(pools),
            self._world.pdbs(),
            self._queue.provider_ids,
            self._state.consolidation_mark(),
        )

    def _view(self, sight: Sight) -> DisruptionView:
        """The cluster now. What a simulation needs besides is gathered when the first is asked for."""
        now_s, pools, types, pdbs, queued, mark = sight
        self._seen = self._state.version
        nodes = self._state.all_nodes
        late = _LateSimulator(self._scene, self._simulate, self._prospects)
        return DisruptionView(
            now_s=now_s,
            nodes=nodes,
            pools=pools,
            types_of_pool=types,
            simulator=late,
            pdbs=pdbs,
            limits=self._world.limits(pdbs),
            queued=queued,
            mark=mark,
            pool_costs=pool_costs(nodes, types) if any(map(is_balanced, pools.values())) else {},
            options=self._options,
            well_known=self._provider.well_known,
            problem=late.problem,
            book=self._book,
            find_glimpse=partial(self._glimpse, pools, types),
            find_outlook=late.outlook,
            elapsed_s=self._elapsed_s,
        )

    def _scene(self) -> Scene:
        return self._world.scene(self._state, self._world.provisioning_options())

    def _glimpse(self, pools: Mapping[str, NodePool], types: TypesOfPool) -> Glimpse | None:
        """What can be told at little cost; None where nothing can, and before there was an outlook."""
        found = self._world.glance(self._state, self._world.provisioning_options(), pools, types)
        if found is None or not self._prospects.knows(found.book):
            return None
        return Glimpse(self._prospects, found, lambda: bool(self._state.unbound_pods or self._state.leaving_nodes))

    def _elapsed_s(self) -> float:
        return self._clock.monotonic() - self._search_began_s


class _LateSimulator:
    """Many passes find nothing to simulate: the scene and the solver are set up for the first that does."""

    def __init__(self, find_scene: Callable[[], Scene], simulate: Simulate, prospects: Prospects) -> None:
        self._find_scene = find_scene
        self._simulate = simulate
        self._prospects = prospects

    @lazy
    def _scene(self) -> Scene:
        return self._find_scene()

    @lazy
    def _simulator(self) -> Simulator:
        return self._simulate(self._scene)

    def problem(self) -> Problem:
        """What a plan for the whole cluster starts from."""
        return self._scene.problem

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        return self._simulator.simulate(gone, pods, is_consolidation=is_consolidation)

    def outlook(self) -> Outlook | None:
        """What can be told by counting; None where only this simulator can tell."""
        simulator = self._simulator
        if not isinstance(simulator, Simulation) or simulator.headroom is None:
            return None
        return Outlook(self._prospects, simulator.headroom, simulator.ground.forms)
