"""A scale-up from the pods to what the provider is asked for, without asking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.expanders.chain import ExpanderChain
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.cluster_autoscaler.scale_up.increase import NodesTotalReached, plan_increases
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.options import OptionsReport, find_options
from holokube.cluster_autoscaler.scale_up.reasons import FILTERED_OUT
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import (
    Unhelped,
    Verdicts,
    failed_groups,
    unhelped,
    verdicts_of_failure,
    verdicts_of_success,
)


@dataclass(frozen=True, slots=True)
class ScaleUpPlan:
    """What was decided, and everything that led to it."""

    result: ScaleUpResult
    """``SUCCESSFUL`` if there is something to ask the provider for; it may still refuse."""
    report: OptionsReport = field(default_factory=OptionsReport)
    choice: ExpanderContext | None = None
    """What each expander thought of each option; None if there was nothing to choose from."""
    best: Option | None = None
    increases: tuple[Increase, ...] = ()
    caps: tuple[str, ...] = ()
    """Why less is asked for than the best option wanted."""
    is_nodes_total_reached: bool = False
    verdicts: Verdicts = field(default_factory=Verdicts)
    """As they are if the provider agrees."""
    error: AutoscalerError | None = None

    def verdicts_if_failed(self, failed: Sequence[str], *, parallel: bool) -> Verdicts:
        """What becomes of the pods if the provider would not enlarge these groups."""
        assert self.best is not None, "without an option nobody is asked"
        not_enlarged = failed_groups(failed, self.increases, parallel=parallel)
        return verdicts_of_failure(self.best, self.report.pod_groups, self.report.skipped, not_enlarged)


async def plan_scale_up(given: ScaleUpInput, expanders: ExpanderChain, ctx: ExpanderContext) -> ScaleUpPlan:
    """Find the options, choose one, and cap and share it."""
    try:
        quotas = given.quotas()
    except AutoscalerError as error:
        everyone = tuple(Unhelped((pod,)) for pod in given.pods)
        return ScaleUpPlan(ScaleUpResult.ERROR, verdicts=Verdicts(remain_unschedulable=everyone), error=error)
    report = find_options(given, quotas)
    if not report.options:
        return _no_options(report)
    best = await expanders.choose(report.options, ctx)
    if best is None or best.node_count <= 0:
        for pod_group in report.pod_groups:
            pod_group.give_up(FILTERED_OUT)
        return _no_options(report, ctx)
    try:
        plan = plan_increases(best, given, report, quotas)
    except AutoscalerError as error:
        return ScaleUpPlan(
            ScaleUpResult.ERROR, report, ctx, best, error=error,
            is_nodes_total_reached=isinstance(error, NodesTotalReached),
            verdicts=verdicts_of_failure(best, report.pod_groups, report.skipped),
        )  # fmt: skip
    return ScaleUpPlan(
        ScaleUpResult.SUCCESSFUL, report, ctx, best, plan.increases, plan.caps, plan.is_nodes_total_reached,
        verdicts_of_success(best, report.pod_groups, report.skipped),
    )  # fmt: skip


def _no_options(report: OptionsReport, ctx: ExpanderContext | None = None) -> ScaleUpPlan:
    verdicts = Verdicts(remain_unschedulable=unhelped(report.pod_groups, report.skipped))
    return ScaleUpPlan(ScaleUpResult.NO_OPTIONS_AVAILABLE, report, ctx, verdicts=verdicts)
