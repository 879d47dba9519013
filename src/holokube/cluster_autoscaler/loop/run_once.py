"""One turn of the autoscaler, in upstream's order of steps.

The time that a turn began is what ages and unneeded times are counted by; what is asked of the provider, and backoffs,
go by the time at which it happens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.cluster_autoscaler.actuation.actuator import Actuator
from holokube.cluster_autoscaler.actuation.node_taints import clean_stale_candidates, clean_stale_to_be_deleted
from holokube.cluster_autoscaler.actuation.results import ScaleDownResult
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.cluster_state.readiness import Readiness
from holokube.cluster_autoscaler.cluster_state.registry import ClusterFacts, ClusterStateRegistry
from holokube.cluster_autoscaler.cluster_state.status import build_status, initial_status
from holokube.cluster_autoscaler.expanders.chain import ExpanderChain, build_chain
from holokube.cluster_autoscaler.loop.books import Books
from holokube.cluster_autoscaler.loop.eventing import CrowdRecorder, KeepingRecorder, tell_pods
from holokube.cluster_autoscaler.loop.group_reading import (
    Groups,
    NodeOwners,
    groups_of_nodes,
    read_groups,
    targets_of,
)
from holokube.cluster_autoscaler.loop.instances import InstanceCache
from holokube.cluster_autoscaler.loop.journaling import JournalKeeper
from holokube.cluster_autoscaler.loop.machine_care import MachineCare
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.node_book import NodeBook, NodeList
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.loop.scale_down_turn import ScaleDownTurn
from holokube.cluster_autoscaler.loop.scale_up_executor import ScaleUpExecutor
from holokube.cluster_autoscaler.loop.scale_up_turn import ScaleUpTurn, TurnFacts, with_fresh_targets
from holokube.cluster_autoscaler.loop.sources import Sources
from holokube.cluster_autoscaler.loop.status_map import StatusMap
from holokube.cluster_autoscaler.node_facts import NodeReadings
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.book import PodBook, TurnPods
from holokube.cluster_autoscaler.pods.gate import Gate, scale_up_gate
from holokube.cluster_autoscaler.pods.processing import PodProcessor, ProcessedPods
from holokube.cluster_autoscaler.scale_down.cooldown import LastActivity
from holokube.cluster_autoscaler.scale_down.input import Deletions
from holokube.cluster_autoscaler.scale_down.planner import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import verdicts_of_nodes_total
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.taints import TaintConfig
from holokube.cluster_autoscaler.templates import TemplateNodes, upcoming_copy
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING
from holokube.runtime.journal import Journal

DELETION_TIME_S = 300.0
"""For so long a node with the taint of one that is removed counts as gone."""
NOT_READY_AFTER_START_S = 600.0
"""For so long after the start nobody is told that no node is ready."""

_log = get_logger("holokube.cluster_autoscaler.loop")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the first half of a turn has found out."""

    facts: TurnFacts
    ready: int
    """How many nodes are ready, and not cordoned."""
    pods: TurnPods
    deletions: Deletions
    """As they were before the provider was refreshed."""


class RunOnce:
    """The autoscaler: call ``run`` for each turn."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        sources: Sources,
        provider: CloudProvider,
        options: AutoscalerOptions,
        *,
        recorder: CrowdRecorder,
        rng: Rng,
        metrics: AutoscalerMetrics | None = None,
        journal: Journal | None = None,
        expanders: ExpanderChain | None = None,
    ) -> None:
        self._clock = clock
        self._sources = sources
        self._provider = provider
        self._options = options
        self.metrics = metrics if metrics is not None else AutoscalerMetrics(clock, options)
        self._recorder = KeepingRecorder(recorder)
        self.status = StatusMap(client, self._recorder, options)
        self._taints = TaintConfig.of(options)
        self.snapshot = ClusterSnapshot(size_daemons=options.size_daemons)
        self._template_nodes = TemplateNodes(options)
        self._processor = PodProcessor()
        readings = self._readings = NodeReadings()
        self._nodes = NodeBook(readings, self._taints, provider.gpu_label)
        self._owners = NodeOwners(provider, readings)
        self._pods = PodBook(options, sources.place, self.snapshot.kinds)
        self._unwatch = sources.pods.add_handler(self._pods.on_pod)
        self.registry = ClusterStateRegistry(options, readings)
        self._instances = InstanceCache(clock)
        self.planner = ScaleDownPlanner(options, clock.monotonic)
        self._books = Books(self.registry, self.metrics, provider, self.planner.local_delays)
        self._last = LastActivity()
        self.actuator = Actuator(
            clock, client, provider, options, self._recorder, self.status.event, NodeDeletionTracker(clock),
            lambda: replace(sources.look(clock.time()), pods_on=self._pods.pods_on), self._books)
        self._care = MachineCare(self.registry, self._instances, options, self.status.event, self.metrics)
        self._up = ScaleUpTurn(
            clock, provider, options, rng=rng, registry=self.registry,
            expanders=expanders if expanders is not None else build_chain(options.expander),
            executor=ScaleUpExecutor(clock, self.status.event, self._books, parallel=options.parallel_scale_up),
            recorder=self._recorder, status=self.status, metrics=self.metrics)
        self._down = ScaleDownTurn(
            clock, provider, options, planner=self.planner, actuator=self.actuator, registry=self.registry,
            metrics=self.metrics, last=self._last)
        self._journal = JournalKeeper(journal) if journal is not None else None
        self._started_s = clock.time()
        self._is_first = True
        self._last_status = initial_status()

    @property
    def last_scale_up_s(self) -> float:
        """When the last turn that asked for nodes began."""
        return self._last.scale_up_s

    @property
    def last_scale_down_s(self) -> float:
        """When the last turn that removed nodes began."""
        return self._last.deletion_s

    @property
    def last_activity(self) -> LastActivity:
        """When things last happened."""
        return self._last

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way that goes on by itself: removals, and nodes that may be given up in time."""
        total, tracker = self.registry.total, self.actuator.tracker
        return not (
            any(tracker.in_flight()) or tracker.recent_evictions() or total.unready or total.deleted
            or total.not_started or total.suspended or total.long_unregistered
        )  # fmt: skip

    async def run(self, now_s: float | None = None) -> TurnReport:
        """One turn; ``now_s`` is when it begins, now unless told. What goes wrong is in the report."""
        now_s = self._clock.time() if now_s is None else now_s
        began_s = self._clock.monotonic()
        report = TurnReport(now_s)
        self._recorder.kept = report.events
        try:
            await self._turn(report)
        except AutoscalerError as error:
            report.error = error
        except HolokubeError as error:
            kind = ErrorKind.API_CALL if isinstance(error, ApiError | TransportError) else ErrorKind.INTERNAL
            report.error = AutoscalerError(str(error), kind=kind, hint=error.hint)
        if report.error is not None:
            _log.error("The turn failed", kind=report.error.kind.value, error=report.error.message)
        report.took_s = self._clock.monotonic() - began_s
        if self._journal is not None:
            self._journal.keep(report)
        return report

    async def stop(self) -> None:
        """Give back the nodes that are being removed, as far as that is still possible."""
        try:
            await self.actuator.stop()
        finally:
            self._unwatch()

    async def _turn(self, report: TurnReport) -> None:
        if self._is_first:
            await self._clean_up_after_the_last_run(report.now_s)
            self._is_first = False
        with self.metrics.timed("updateClusterState"):
            seen = await self._look(report)
        if seen is None:
            return
        try:
            await self._put_right_and_decide(seen, report)
        finally:
            await self._tell(seen, report)

    # Looking

    async def _clean_up_after_the_last_run(self, now_s: float) -> None:
        """An autoscaler can die at any time: nodes that it had begun to remove are given back."""
        nodes = self._sources.nodes.lister.list()
        groups = await groups_of_nodes(self._provider, nodes)
        ours = [node for node in nodes if name_of(node) in groups]
        await clean_stale_to_be_deleted(self.actuator.taints, ours, self._recorder)
        if not self._options.max_bulk_soft_taint_count:
            await clean_stale_candidates(
                self.actuator.taints, ours, self._recorder, ttl_s=self._options.node_deletion_candidate_ttl_s,
                now_s=now_s)

    async def _look(self, report: TurnReport) -> _Seen | None:
        """See what there is; None if there is nothing to work on."""
        now_s = report.now_s
        observation = self._sources.look(now_s)
        listed = self._nodes.look(observation.nodes)
        self.metrics.taints(listed.taints)
        if not self._options.scale_up_from_zero and not listed.ready:
            await self._stop_on_empty_cluster(report, has_nodes=bool(listed.nodes))
            return None
        pods = self._pods.take()
        self._measure_resources(listed, now_s)
        deletions = self._down.deletions()
        with self.metrics.timed("cloudProviderRefresh"):
            await self._refresh()
        groups = await self._read_groups()
        observation = replace(
            observation, nodes=listed.nodes, group_of_node=await self._owners.of(listed.nodes),
            config_maps=await self._sources.config_maps())
        facts = self._fill_snapshot(observation, pods, groups, [one.node for one in listed.candidates])
        await self._update_registry(facts)
        return _Seen(facts, listed.ready, pods, deletions)

    async def _stop_on_empty_cluster(self, report: TurnReport, *, has_nodes: bool) -> None:
        report.stopped = "Cluster has no ready nodes." if has_nodes else "Cluster has no nodes."
        self.planner.clear()
        self.metrics.nodes(Readiness(), is_healthy=False)
        now_s = self._clock.time()
        await self.status.write({**initial_status(), "message": report.stopped}, now_s)
        # Nodes may just not be ready yet when the autoscaler starts together with them.
        if not has_nodes or report.now_s > self._started_s + NOT_READY_AFTER_START_S:
            self.status.event(WARNING, "ClusterUnhealthy", report.stopped)

    def _measure_resources(self, listed: NodeList, now_s: float) -> None:
        cores, memory_bytes = listed.cores_and_memory
        for facts in listed.marked:
            if facts.marked_s is not None and now_s - facts.marked_s < DELETION_TIME_S:
                its_cores, its_memory_bytes = facts.cores_and_memory
                cores, memory_bytes = cores - its_cores, memory_bytes - its_memory_bytes
        self.metrics.resources(cores, memory_bytes)

    async def _refresh(self) -> None:
        try:
            await self._provider.refresh()
        except AutoscalerError:
            raise
        except HolokubeError as error:
            raise AutoscalerError(
                f"the provider could not refresh: {error}", kind=ErrorKind.CLOUD_PROVIDER, hint=error.hint) from error

    async def _read_groups(self) -> Groups:
        for group in self._provider.node_groups():
            if self.registry.is_scaling_up(group.id):
                self._instances.forget(group.id)
        try:
            groups = await read_groups(self._provider, self._instances, self._options)
        except AutoscalerError:
            self.planner.clear()
            raise
        most = 0
        for view in groups.views:
            if view.exists:
                self.metrics.group(view.id, view.min_size, view.max_size, view.target_size)
                most += view.max_size
        limit = self._options.max_nodes_total
        self.metrics.groups(len(groups.views), min(limit, most) if limit > 0 else most)
        self._books.gpus = {view.id: view.gpu for view in groups.views}
        return groups

    def _fill_snapshot(
        self, observation: Observation, pods: TurnPods, groups: Groups, candidates: list[JsonObject]
    ) -> TurnFacts:
        snapshot = self.snapshot
        snapshot.update(observation.nodes, pods.changed)
        self._pods.settled()
        snapshot.set_surroundings(observation.namespaces, observation.storage)
        templates = self._template_nodes.compute(
            groups.views, observation.nodes, observation.daemon_sets, self._taints, observation.now_s,
            snapshot=snapshot, group_of_node=observation.group_of_node, readings=self._readings)
        return TurnFacts(observation, snapshot, groups.views, groups.owners, templates, candidates)

    async def _update_registry(self, facts: TurnFacts) -> None:
        observation, now_s = facts.observation, facts.observation.now_s
        try:
            targets_of(facts.groups)
        except AutoscalerError:
            self.planner.clear()
            raise
        unregistered = self.registry.not_registered(observation.nodes, facts.groups, now_s)
        found = self.registry.update(ClusterFacts(
            nodes=observation.nodes, groups=facts.groups, group_of_node=observation.group_of_node,
            group_of_instance=await groups_of_nodes(self._provider, [machine.node for machine in unregistered]),
            deleted=await self._owners.without_machine(observation.nodes),
            templates=frozenset(facts.templates),
        ), now_s)
        for event in found.events:
            self.status.event(*event)
        for failure in found.failures:
            self._books.machines_failed(failure)
        await self._care.revert(found.reverts, facts.owners)
        self.metrics.nodes(self.registry.total, is_healthy=self.registry.is_cluster_healthy())

    # Putting right, deciding

    async def _put_right_and_decide(self, seen: _Seen, report: TurnReport) -> None:
        facts, now_s = seen.facts, report.now_s
        report.removed_unregistered = await self._care.remove_long_unregistered(facts.owners, now_s)
        if not self.registry.is_cluster_healthy():
            report.stopped = "Cluster is unhealthy"
            self.planner.clear()
            self.status.event(WARNING, "ClusterUnhealthy", "Cluster is unhealthy")
            return
        report.deleted_failed = await self._care.delete_failed(facts.owners)
        if report.deleted_failed:
            await self._up.recalculate(facts)
        try:
            report.fixed_sizes = await self._care.fix_sizes(facts.owners, now_s)
        except HolokubeError as error:
            raise AutoscalerError(f"failed to fix node group sizes: {error}", kind=ErrorKind.CLOUD_PROVIDER) from error
        if report.fixed_sizes:
            report.stopped = "Some node group target size was fixed"
            return
        self.metrics.activity("autoscaling", self._clock.time())
        facts = await with_fresh_targets(self._add_upcoming(facts, report))
        processed = self._process_pods(seen, report)
        is_forbidden = await self._scale_up(facts, seen, processed, report)
        if self._options.scale_down_enabled:
            facts = await with_fresh_targets(facts)
            await self._scale_down(facts, seen, report, is_forbidden=is_forbidden)
        if self._options.enforce_node_group_min_size:
            facts = await with_fresh_targets(facts)
            if await self._up.raise_to_minimum(facts, report.scale_up):
                self._last.scale_up_s = now_s

    def _add_upcoming(self, facts: TurnFacts, report: TurnReport) -> TurnFacts:
        """Stand-ins for nodes that were asked for take the place of those that are nodes already and not ready yet."""
        upcoming = self.registry.upcoming(self._clock.time())
        for group_id, count in upcoming.counts.items():
            template = facts.templates.get(group_id)
            if template is None:
                _log.warning("There is no template for nodes on their way", group=group_id)
                continue
            report.upcoming[group_id] = count
            for i in range(count):
                facts.snapshot.add_node(upcoming_copy(template, f"upcoming-{i}"))
        starting = {name for names in upcoming.registered.values() for name in names}
        for name in starting:
            if facts.snapshot.has_node(name):
                facts.snapshot.remove_node(name)
        if not starting:
            return facts
        nodes = tuple([node for node in facts.observation.nodes if name_of(node) not in starting])
        candidates = [node for node in facts.candidates if name_of(node) not in starting]
        return replace(facts, observation=replace(facts.observation, nodes=nodes), candidates=candidates)

    def _process_pods(self, seen: _Seen, report: TurnReport) -> ProcessedPods:
        pods = seen.pods
        self.metrics.pods(len(pods.unschedulable), len(pods.unprocessed))
        with self.metrics.timed("filterOutSchedulable"):
            processed = self._processor.process(
                self.snapshot, pods.waiting, self._options, report.now_s,
                drained_nodes=self.actuator.tracker.in_flight()[1])
        self.metrics.overflowing(processed.overflowing_controllers)
        report.pending, report.schedulable, report.young = len(pods.waiting), processed.schedulable, processed.young
        return processed

    async def _scale_up(self, facts: TurnFacts, seen: _Seen, processed: ProcessedPods, report: TurnReport) -> bool:
        """Scale up if there is need; whether nothing may be removed because pods are too young to be helped."""
        up, pods = report.scale_up, processed.to_help
        gate = scale_up_gate(pods, seen.ready, self._options, report.now_s, self.snapshot.kinds)
        if gate is Gate.OPEN:
            report.scale_up = await self._up.run(facts, pods)
            if report.scale_up.increases:
                self._last.scale_up_s = report.now_s
                report.scale_down.result = ScaleDownResult.IN_COOLDOWN
            return False
        if gate is Gate.TOO_MANY_NODES:
            up.result = ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL
            up.verdicts = verdicts_of_nodes_total(pods)
            self._up.tell_nodes_total()
        else:
            up.result = ScaleUpResult.NOT_NEEDED if gate is Gate.NOT_NEEDED else ScaleUpResult.IN_COOLDOWN
        tell_pods(self._recorder, up, facts.existing)
        return gate is Gate.TOO_YOUNG

    async def _scale_down(self, facts: TurnFacts, seen: _Seen, report: TurnReport, *, is_forbidden: bool) -> None:
        started = await self._down.run(facts, seen.deletions, report.scale_down, is_forbidden=is_forbidden)
        if started:
            await self._up.recalculate(facts)
        if report.scale_down.error is not None:
            raise report.scale_down.error

    # Telling

    async def _tell(self, seen: _Seen, report: TurnReport) -> None:
        """Whatever has happened, say how things stand."""
        self._last_status = build_status(self.registry, self._last_status, report.now_s)
        await self.status.write(self._last_status, report.now_s)
        tracker = self.actuator.tracker
        report.scale_down.results, as_of_s = tracker.results()
        tracker.clear_results_not_newer_than(as_of_s)
        report.scale_down.unremovable = self.planner.unremovable()
        report.scale_down.unneeded = self.planner.unneeded()
        for view in (await with_fresh_targets(seen.facts)).groups:
            if view.target_size is not None:
                report.targets[view.id] = view.target_size
            if view.exists:
                backoff = self.registry.backoff(view.id, report.now_s)
                self.metrics.group_health(
                    view.id, is_healthy=self.registry.is_group_healthy(view.id),
                    backoff=backoff.error.code if backoff is not None else None)
