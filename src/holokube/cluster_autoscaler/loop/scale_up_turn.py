"""The scale-up part of a turn: decide, ask, and say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, NodeGroup, NodeInfo, PricingModel
from holokube.cluster_autoscaler.cluster_state.registry import ClusterStateRegistry
from holokube.cluster_autoscaler.expanders.chain import ExpanderChain
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.loop.eventing import KeepingRecorder, tell_pods
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.report import ScaleUpReport
from holokube.cluster_autoscaler.loop.scale_up_executor import ScaleUpExecutor
from holokube.cluster_autoscaler.loop.sources import PRIORITY_EXPANDER_MAP
from holokube.cluster_autoscaler.loop.status_map import StatusMap
from holokube.cluster_autoscaler.objects import cores_and_memory, labels_of, pod_identity
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.minimum import plan_minimum_sizes
from holokube.cluster_autoscaler.scale_up.planning import ScaleUpPlan, plan_scale_up
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.templates import upcoming_copy
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What the turn knows by the time it decides."""

    observation: Observation
    snapshot: ClusterSnapshot
    groups: Sequence[GroupView]
    owners: Mapping[str, NodeGroup]
    """The provider's groups by id, to be asked."""
    templates: Mapping[str, NodeInfo]
    candidates: Sequence[JsonObject] = ()
    """Those of the nodes that carry the mark of an unneeded node."""

    @property
    def existing(self) -> list[str]:
        """The groups that the cloud knows."""
        return [group.id for group in self.groups if group.exists]


async def with_fresh_targets(facts: TurnFacts) -> TurnFacts:
    """The same with the sizes that groups are asked for now: the turn itself may have changed them."""
    fresh = []
    for view in facts.groups:
        try:
            target: int | None = await facts.owners[view.id].target_size()
        except HolokubeError:
            target = None
        fresh.append(view if target == view.target_size else replace(view, target_size=target))
    if all(map(is_, fresh, facts.groups)):
        return facts
    return replace(facts, groups=fresh)


class ScaleUpTurn:
    """Scales up."""

    def __init__(
        self, clock: Clock, provider: CloudProvider, options: AutoscalerOptions, *, rng: Rng,
        registry: ClusterStateRegistry, expanders: ExpanderChain, executor: ScaleUpExecutor,
        recorder: KeepingRecorder, status: StatusMap, metrics: AutoscalerMetrics,
        ignored_labels: frozenset[str] = frozenset(),
    ) -> None:
        self._clock = clock
        self._provider = provider
        self._options = options
        self._rng = rng
        self._registry = registry
        self._expanders = expanders
        self._executor = executor
        self._recorder = recorder
        self._status = status
        self._metrics = metrics
        self._ignored_labels = ignored_labels

    async def run(self, facts: TurnFacts, pods: Sequence[JsonObject]) -> ScaleUpReport:
        """Scale up for these pods: once, or again and again while there is time if a salvo is wanted."""
        report = ScaleUpReport()
        if not self._options.salvo_scale_up:
            await self._once(facts, pods, report)
            return report
        deadline_s = self._clock.monotonic() + self._options.salvo_scale_up_time_budget_s
        waiting = {pod_identity(pod): pod for pod in pods}
        for i in range(len(pods) + 1):
            single = ScaleUpReport(plans=report.plans, increases=report.increases)
            handled = await self._once(facts, list(waiting.values()), single)
            report = single
            if single.result is not ScaleUpResult.SUCCESSFUL or not handled:
                break
            for pod in handled:
                waiting.pop(pod_identity(pod), None)
            if not waiting or self._clock.monotonic() >= deadline_s:
                break
            if not self._add_to_snapshot(facts, i, single.plans[-1], handled):
                break
            facts = await with_fresh_targets(facts)
        return report

    async def _once(self, facts: TurnFacts, pods: Sequence[JsonObject], report: ScaleUpReport) -> Sequence[JsonObject]:
        """One scale-up; the pods that triggered it."""
        self._metrics.activity("scaleUp", self._clock.time())
        with self._metrics.timed("scaleUp"):
            plan = await self._plan(facts, pods)
            report.plans = [*report.plans, plan]
            report.result, report.error, report.verdicts = plan.result, plan.error, plan.verdicts
            report.considered = tuple(group.id for group in facts.groups)
            if plan.is_nodes_total_reached:
                self.tell_nodes_total()
            asked: tuple[Increase, ...] = ()
            if plan.result is ScaleUpResult.SUCCESSFUL:
                asked = await self._execute(facts, plan, report)
        # In a salvo, pods are told of the scale-up that was made for them.
        tell_pods(self._recorder, replace(report, increases=list(asked)), facts.existing)
        report.increases = [*report.increases, *asked]
        return plan.verdicts.triggered

    async def _plan(self, facts: TurnFacts, pods: Sequence[JsonObject]) -> ScaleUpPlan:
        now_s = self._clock.time()
        given = self.given(facts, pods, now_s)
        ctx = ExpanderContext(
            now_s, self._rng, cluster_size=len(facts.observation.nodes), gpu_label=self._provider.gpu_label,
            pricing=self._pricing(), config_maps=facts.observation.config_maps,
        )
        plan = await plan_scale_up(given, self._expanders, ctx)
        self._observe_estimates(facts, plan)
        for why in plan.report.skipped.values():
            for resource in why.partition("resources: ")[2].split(", "):
                self._metrics.skipped_for_limit("up", resource)
        priorities = facts.observation.config_maps.get(PRIORITY_EXPANDER_MAP)
        for notice in ctx.warnings:
            if priorities is not None:
                self._recorder.event(priorities, WARNING, notice.reason, notice.message)
            else:
                self._status.event(WARNING, notice.reason, notice.message)
        return plan

    def given(self, facts: TurnFacts, pods: Sequence[JsonObject], now_s: float) -> ScaleUpInput:
        """What the decision looks at."""
        return ScaleUpInput(
            snapshot=facts.snapshot, groups=facts.groups, templates=facts.templates, pods=pods,
            nodes=facts.snapshot.nodes(), options=self._options,
            safety_of=lambda group_id: self._registry.scale_up_safety(group_id, now_s),
            limiter=self._provider.resource_limiter(), group_of_node=facts.observation.group_of_node,
            gpu_label=self._provider.gpu_label, provider_ignored_labels=self._ignored_labels,
            clock_s=self._clock.monotonic,
        )

    def _pricing(self) -> PricingModel | None:
        try:
            return self._provider.pricing()
        except NotImplementedByProvider:
            return None

    def _observe_estimates(self, facts: TurnFacts, plan: ScaleUpPlan) -> None:
        for option in plan.report.options:
            fitting = [one for one in plan.report.pod_groups if option.group_id in one.feasible_on]
            spaces = len({one.pods[0]["metadata"].get("namespace") for one in fitting})
            # So many values of a label, and no more, however many namespaces there are.
            bucket = str(spaces) if spaces <= 5 else "6-10" if spaces <= 10 else "11+"
            node = facts.templates[option.group_id].node
            self._metrics.estimated(
                labels_of(node).get("node.kubernetes.io/instance-type", ""), str(cores_and_memory(node)[0]), bucket,
                len(fitting))

    async def _execute(self, facts: TurnFacts, plan: ScaleUpPlan, report: ScaleUpReport) -> tuple[Increase, ...]:
        """Ask the groups; what was asked for if all agreed."""
        done = await self._executor.execute(plan.increases, facts.owners, self._clock.time())
        if done.error is not None:
            report.result, report.error, report.failed_groups = ScaleUpResult.ERROR, done.error, done.failed
            report.verdicts = plan.verdicts_if_failed(done.failed, parallel=self._options.parallel_scale_up)
            return ()
        await self.recalculate(facts)
        return plan.increases

    async def recalculate(self, facts: TurnFacts) -> None:
        """Let the registry know the new targets."""
        fresh = await with_fresh_targets(facts)
        self._registry.recalculate({view.id: view.target_size or 0 for view in fresh.groups})

    def tell_nodes_total(self) -> None:
        """The cluster has as many nodes as it may have."""
        self._status.event(
            WARNING, "MaxNodesTotalReached", f"Max total nodes in cluster reached: {self._options.max_nodes_total}")

    async def raise_to_minimum(self, facts: TurnFacts, report: ScaleUpReport) -> bool:
        """Raise groups that are below their minimum; whether any was."""
        self._metrics.activity("scaleUp", self._clock.time())
        with self._metrics.timed("scaleUp"):
            try:
                plan = plan_minimum_sizes(self.given(facts, (), self._clock.time()))
            except AutoscalerError as error:
                report.error = error
                return False
            report.minimum = plan
            if not plan.increases:
                return False
            done = await self._executor.execute(plan.increases, facts.owners, self._clock.time())
            if done.error is not None:
                report.error, report.failed_groups = done.error, done.failed
                return False
            await self.recalculate(facts)
            return True

    def _add_to_snapshot(self, facts: TurnFacts, i: int, plan: ScaleUpPlan, handled: Sequence[JsonObject]) -> bool:
        """Put the nodes just asked for into the snapshot, and their pods on them; False if that cannot be done."""
        suffix = f"salvo-{i}"
        for increase in plan.increases:
            template = facts.templates.get(increase.group_id)
            if template is None or increase.delta <= 0:
                return False
            for k in range(increase.delta):
                facts.snapshot.add_node(upcoming_copy(template, f"{k}-{suffix}"))
        return all(
            facts.snapshot.schedule_pod_on_any_node(pod, allowed=lambda name: name.endswith(suffix)) is not None
            for pod in handled
        )
