"""The scale-down part of a turn: find what is not needed, and remove what has not been needed for long enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holokube.base.clock import Clock
from holokube.cluster_autoscaler.actuation.actuator import Actuator
from holokube.cluster_autoscaler.actuation.results import ScaleDownResult
from holokube.cluster_autoscaler.actuation.soft_taints import update_soft_taints
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.cluster_state.registry import ClusterStateRegistry
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.removal_latency import RemovalLatency
from holokube.cluster_autoscaler.loop.report import ScaleDownReport
from holokube.cluster_autoscaler.loop.scale_up_turn import TurnFacts
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.budgets import GroupBatch, crop_to_budgets
from holokube.cluster_autoscaler.scale_down.cooldown import LastActivity, cooldown_reason
from holokube.cluster_autoscaler.scale_down.input import Deletions, ScaleDownInput
from holokube.cluster_autoscaler.scale_down.planner import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Removals, Utilization
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, has_taint
from holokube.kube.resources import CPU, MEMORY
from holokube.kube.types import JsonObject


class ScaleDownTurn:
    """Scales down."""

    def __init__(
        self, clock: Clock, provider: CloudProvider, options: AutoscalerOptions, *, planner: ScaleDownPlanner,
        actuator: Actuator, registry: ClusterStateRegistry, metrics: AutoscalerMetrics, last: LastActivity,
    ) -> None:
        self._clock = clock
        self._provider = provider
        self._options = options
        self._planner = planner
        self._actuator = actuator
        self._registry = registry
        self._metrics = metrics
        self._last = last
        self._latency = RemovalLatency(metrics) if options.node_removal_latency_tracking_enabled else None

    def deletions(self) -> Deletions:
        """What is being removed at this moment."""
        empty, drained = self._actuator.tracker.in_flight()
        return Deletions(tuple(empty), tuple(drained), self._actuator.tracker.deletions_per_group())

    async def run(self, facts: TurnFacts, deletions: Deletions, report: ScaleDownReport, *, is_forbidden: bool) -> bool:
        """Look for unneeded nodes and remove some; whether a removal was started.

        ``deletions`` are those in flight when the turn began. ``is_forbidden`` if pods are too young to be helped.
        """
        now_s = facts.observation.now_s
        with self._metrics.timed("findUnneeded"):
            self._find_unneeded(facts, deletions, report)
        assert report.planner is not None, "it was just made"
        report.cooldown = cooldown_reason(self._options, now_s, self._last, is_forbidden=is_forbidden) or ""
        self._metrics.cooldown(is_on=bool(report.cooldown))
        started = False
        if report.cooldown:
            report.result = ScaleDownResult.IN_COOLDOWN
        elif not report.planner.candidates:
            report.result = ScaleDownResult.NO_CANDIDATES
            self._metrics.activity("scaleDown", self._clock.time())
        else:
            self._metrics.activity("scaleDown", self._clock.time())
            with self._metrics.timed("scaleDown"):
                started = await self._remove(facts, report)
        await self._mark_unneeded(facts)
        return started

    def _find_unneeded(self, facts: TurnFacts, deletions: Deletions, report: ScaleDownReport) -> None:
        now_s = facts.observation.now_s
        report.planner = self._planner.update(ScaleDownInput(
            observation=facts.observation, snapshot=facts.snapshot,
            groups={view.id: view for view in facts.groups}, deletions=deletions,
            recent_evictions=tuple(self._actuator.tracker.recent_evictions()),
            limiter=self._provider.resource_limiter(), gpu_label=self._provider.gpu_label,
            gpu_config=self._provider.node_gpu_config,
        ))
        report.unneeded = self._planner.unneeded()
        self._registry.update_candidates(report.planner.unneeded, now_s)
        self._metrics.unneeded(len(report.unneeded))
        self._metrics.longest_skip(report.planner.longest_skip_s)

    async def _remove(self, facts: TurnFacts, report: ScaleDownReport) -> bool:
        now_s = facts.observation.now_s
        removals = self._planner.nodes_to_delete(now_s)
        empty: list[GroupBatch] = []
        drain: list[GroupBatch] = []
        if removals.empty or removals.drain:
            empty, drain = crop_to_budgets(
                removals.empty, removals.drain, options=self._options, deletions=self.deletions(),
                groups={view.id: view for view in facts.groups}, group_of_node=facts.observation.group_of_node,
                nodes=facts.snapshot.nodes(),
            )
        start = await self._actuator.start_deletion(
            empty, drain, facts.snapshot.pods_on, _describer(report.utilization.get))
        report.result, report.deleting = start.result, start.nodes
        unremovable = self._planner.unremovable()
        self._metrics.unremovable(Counter([stays.reason for stays in unremovable]))
        self._count_limits(removals)
        if self._latency is not None:
            self._latency.update(report.unneeded, [name_of(gone.node) for gone in start.nodes], now_s)
        if start.error is not None:
            report.error = (
                start.error if isinstance(start.error, AutoscalerError) else AutoscalerError(str(start.error)))
            self._last.failure_s = now_s
        if start.result is ScaleDownResult.NODE_DELETE_STARTED:
            self._last.deletion_s = now_s
            return True
        return False

    def _count_limits(self, removals: Removals) -> None:
        for stays in removals.unremovable:
            if stays.reason is UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED:
                for resource in (CPU, MEMORY):
                    if resource in stays.detail:
                        self._metrics.skipped_for_limit("down", resource)

    async def _mark_unneeded(self, facts: TurnFacts) -> None:
        """Ask schedulers to keep pods away from unneeded nodes; only nodes of our groups are touched."""
        if not self._options.max_bulk_soft_taint_count:
            return
        unneeded = {name_of(entry.node): entry.node for entry in self._planner.unneeded()}
        ours = facts.observation.group_of_node
        unmarked: list[JsonObject] = []
        if not all(has_taint(node, DELETION_CANDIDATE) for node in unneeded.values()):
            unmarked = [
                node for node in facts.observation.nodes if (name := name_of(node)) in unneeded and name in ours]
        # Only nodes that carry a mark can lose it.
        marked = [node for node in facts.candidates if (name := name_of(node)) not in unneeded and name in ours]
        if unmarked or marked:
            await update_soft_taints(
                self._clock, self._actuator.taints, unmarked, marked,
                calls_max=self._options.max_bulk_soft_taint_count, time_max_s=self._options.max_bulk_soft_taint_time_s,
            )


def _describer(utilization: Callable[[str], Utilization | None]) -> Callable[[str], str]:
    """How events show the use of a node: as Go prints the structure."""

    def describe(name: str) -> str:
        found = utilization(name)
        if found is None:
            return "{0 0 0 0  0}"
        numbers = [_go_float(value) for value in (found.cpu, found.memory, found.gpu)]
        return f"{{{' '.join(numbers)} 0 {found.resource} {_go_float(found.value)}}}"

    return describe


def _go_float(value: float) -> str:
    text = repr(value)
    return text.removesuffix(".0")
