"""All ways to enlarge the cluster: one option per group that can help any pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.pods.equivalence import build_equivalence_groups
from holokube.cluster_autoscaler.scale_up.estimator import Estimate, estimate
from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport, reports_of, try_group
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.node_budget import NodeBudget, node_limit
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.similar_groups import find_similar
from holokube.cluster_autoscaler.scale_up.skipping import skip_reason


@dataclass(slots=True)
class OptionsReport:
    """What could be done, and why not more."""

    options: list[Option] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why groups were not looked at, by group."""
    pod_groups: list[PodGroupReport] = field(default_factory=list)
    """The pods, those that are alike together, with what each group had to say to them."""
    considered: tuple[str, ...] = ()
    """The groups that were looked at."""
    dissimilar: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Why other groups would not share an increase with a group, if increases are shared at all."""
    limits: dict[str, str] = field(default_factory=dict)
    """Why the estimate of a group stopped before all its pods had a place."""
    fruitless: dict[str, str] = field(default_factory=dict)
    """Why a group that was looked at has no option."""


def find_options(given: ScaleUpInput, quotas: QuotaTracker | None = None) -> OptionsReport:
    """All options. Groups that were not reached before the time was up have none."""
    quotas = quotas or given.quotas()
    report = OptionsReport(pod_groups=reports_of(build_equivalence_groups(given.pods, given.snapshot.kinds)))
    begin_s = given.clock_s() if given.clock_s is not None else 0.0
    valid: list[GroupView] = []
    for group in given.groups:
        reason = skip_reason(
            group, given.templates, quotas, safety_of=given.safety_of,
            max_nodes_total=given.options.max_nodes_total, current_nodes=len(given.nodes),
        )  # fmt: skip
        if reason:
            report.skipped[group.id] = reason
        else:
            valid.append(group)
    report.considered = tuple(group.id for group in valid)
    _classify(given, valid, report.pod_groups)
    fitting = {
        group.id: try_group(group.id, given.templates[group.id], report.pod_groups, given.snapshot)
        for group in valid
    }
    for group in valid:
        _add_option(group, given, report, fitting[group.id])
        if given.clock_s is not None and given.clock_s() > begin_s + given.options.max_binpacking_time_s:
            for late in valid[valid.index(group) + 1 :]:
                report.fruitless[late.id] = "the time for binpacking was up"
            break
    return report


def _classify(given: ScaleUpInput, valid: Sequence[GroupView], pod_groups: Sequence[PodGroupReport]) -> None:
    """Show the engine all selectors that will occur, so that no pod changes its class in the middle."""
    of_templates = [pod for group in valid for pod in given.templates[group.id].pods]
    given.snapshot.state.classify([*of_templates, *(pod_group.pods[0] for pod_group in pod_groups)])


def _add_option(
    group: GroupView, given: ScaleUpInput, report: OptionsReport, fitting: Sequence[PodGroupReport]
) -> None:
    if not fitting:
        report.fruitless[group.id] = "no pod can run on its nodes"
        return
    similar = find_similar(group, given, report.pod_groups, frozenset(report.considered))
    if similar.others:
        report.dissimilar[group.id] = similar.others
    found = _estimate(group, given, fitting, similar.ids)
    if found.refusal:
        report.limits[group.id] = found.refusal
    if not found.pods or not found.node_count:
        report.fruitless[group.id] = found.refusal or "no pod finds room on new nodes"
        return
    node_count = group.max_size if group.options.zero_or_max_node_scaling else found.node_count
    report.options.append(Option(
        group_id=group.id, node_count=node_count, pods=tuple(found.pods), node=given.templates[group.id],
        similar=similar.ids, debug=group.debug, kinds=tuple(found.kinds), exists=group.exists,
    ))  # fmt: skip


def _estimate(
    group: GroupView, given: ScaleUpInput, fitting: Sequence[PodGroupReport], similar: Sequence[str]
) -> Estimate:
    options = given.options
    limit = node_limit(
        group, [other for other in given.groups if other.id in similar],
        per_scale_up=options.max_nodes_per_scaleup, nodes_total=options.max_nodes_total,
        current_nodes=len(given.nodes),
    )  # fmt: skip
    budget = NodeBudget(limit, duration_s=options.max_nodegroup_binpacking_duration_s, clock_s=given.clock_s)
    return estimate(
        fitting, given.templates[group.id], given.snapshot, budget, fastpath=options.fastpath_binpacking_enabled
    )
