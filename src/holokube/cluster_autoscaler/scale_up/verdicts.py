"""What a scale-up means to each pod: it triggered it, it waits for the next turn, or nothing can be done for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.scale_up.balancing import Increase, describe
from holokube.cluster_autoscaler.scale_up.feasibility import PodGroupReport
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.reasons import EXECUTION_FAILED, Rejection
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True)
class Unhelped:
    """Pods that are alike and that no group can help."""

    pods: Sequence[JsonObject] = field(repr=False)
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    """Why the nodes of each group would not do."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why groups were not looked at."""

    def message(self, result: ScaleUpResult, existing: Collection[str]) -> str:
        """What the pods are told: each reason with the number of groups that it holds for."""
        return f"pod didn't trigger scale-up: {self._reasons(result, existing)}"

    def _reasons(self, result: ScaleUpResult, existing: Collection[str]) -> str:
        if result is ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL:
            return "max total nodes in cluster reached"
        counts: Counter[str] = Counter()
        for group_id, rejection in self.rejections.items():
            if group_id in existing:
                counts.update(rejection.reasons)
        counts.update(reason for group_id, reason in self.skipped.items() if group_id in existing)
        return ", ".join(f"{groups} {reason}" for reason, groups in counts.items())


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What becomes of the pods."""

    triggered: tuple[JsonObject, ...] = field(default=(), repr=False)
    await_evaluation: tuple[JsonObject, ...] = field(default=(), repr=False)
    """Some group can help them, and it was not its turn."""
    remain_unschedulable: tuple[Unhelped, ...] = ()

    def remaining_pods(self) -> list[JsonObject]:
        """The pods that nothing can be done for."""
        return [pod for unhelped in self.remain_unschedulable for pod in unhelped.pods]


def triggered_message(increases: Sequence[Increase]) -> str:
    """What pods that triggered a scale-up are told."""
    return f"pod triggered scale-up: {describe(increases)}"


def unhelped(pod_groups: Iterable[PodGroupReport], skipped: Mapping[str, str]) -> tuple[Unhelped, ...]:
    """The pods that no group can help."""
    return tuple(
        Unhelped(pod_group.pods, dict(pod_group.rejections), skipped)
        for pod_group in pod_groups if not pod_group.is_schedulable
    )  # fmt: skip


def verdicts_of_success(
    best: Option, pod_groups: Sequence[PodGroupReport], skipped: Mapping[str, str]
) -> Verdicts:
    """After the provider agreed to everything."""
    waiting = [
        pod for pod_group in pod_groups
        if pod_group.is_schedulable and best.group_id in pod_group.rejections
        for pod in pod_group.pods
    ]  # fmt: skip
    return Verdicts(best.pods, tuple(waiting), unhelped(pod_groups, skipped))


def verdicts_of_failure(
    best: Option, pod_groups: Sequence[PodGroupReport], skipped: Mapping[str, str],
    failed: frozenset[str] | None = None,
) -> Verdicts:
    """After something went wrong: with the groups named, or before any group was asked."""
    for pod_group in pod_groups:
        pod_group.give_up(EXECUTION_FAILED, failed)
    return Verdicts(best.pods, (), unhelped(pod_groups, skipped))


def verdicts_of_nodes_total(pods: Sequence[JsonObject]) -> Verdicts:
    """While the cluster has as many nodes as it may have."""
    return Verdicts(remain_unschedulable=tuple(Unhelped((pod,)) for pod in pods))


def failed_groups(failed: Collection[str], increases: Sequence[Increase], *, parallel: bool) -> frozenset[str]:
    """The groups that were not enlarged: one after the other, the first failure stops those behind it as well."""
    all_failed = set(failed)
    if not parallel and len(all_failed) == 1:
        ids = [increase.group_id for increase in increases]
        (only,) = all_failed
        if only in ids:
            all_failed.update(ids[ids.index(only) :])
    return frozenset(all_failed)
