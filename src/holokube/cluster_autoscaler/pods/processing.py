"""From the pods for which a scheduler found no place to those for which a node might be added, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from holokube.cluster_autoscaler.hinting import HintingSimulator, Status
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.filters import (
    recreatable_pods,
    without_daemon_set_pods,
    without_tpu_requests,
    without_young,
)
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind, PodKinds
from holokube.cluster_autoscaler.pods.priority_order import sort_as_go
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True)
class ProcessedPods:
    """What came of the pods."""

    to_help: list[JsonObject]
    """Those for which there is no room, highest priority first."""
    schedulable: list[Status]
    """Those that the nodes there are, or those on their way, have room for; in the snapshot they are there now."""
    young: list[JsonObject]
    """Those that are not looked at yet because of their age."""
    overflowing_controllers: int


class PodProcessor:
    """The steps, and the memory of where pods went last time."""

    def __init__(self) -> None:
        self._simulator = HintingSimulator()

    def process(
        self,
        snapshot: ClusterSnapshot,
        pending: Sequence[JsonObject],
        options: AutoscalerOptions,
        now_s: float,
        *,
        drained_nodes: Iterable[str] = (),
        allowed: Callable[[str], bool] | None = None,
    ) -> ProcessedPods:
        """Sort out pods that need no new node, or could not use one.

        ``drained_nodes`` are those whose pods are being evicted: what will become of these must find room as well.
        """
        pods = [*pending, *recreatable_pods(snapshot, drained_nodes)]
        known, kinds = _worth_a_node(snapshot.kinds, pods, options.expendable_pods_priority_cutoff, len(pending))
        left, schedulable, overflowing = self._without_schedulable(snapshot, known, kinds, allowed)
        left = without_daemon_set_pods(left)
        old = without_young(left, now_s, options.new_pod_scale_up_delay_s)
        to_help = [facts.pod for facts in old]
        young: list[JsonObject] = []
        if len(old) < len(left):
            are_old = set(old)
            young = [facts.pod for facts in left if facts not in are_old]
        return ProcessedPods(to_help, schedulable, young, overflowing)

    def _without_schedulable(
        self, snapshot: ClusterSnapshot, pods: list[PodFacts], kinds: Set[PodKind],
        allowed: Callable[[str], bool] | None,
    ) -> tuple[list[PodFacts], list[Status], int]:  # fmt: skip
        """The pods for which there is no room, those for which there is, and how many controllers overflow.

        What is placed stays in the snapshot for the rest of the turn: the room is taken.
        """
        if len({kind.priority or 0 for kind in kinds}) > 1:
            pods = sort_as_go(pods, lambda facts: -(facts.kind.priority or 0))
        placed, overflowing = self._simulator.schedule_known(snapshot, pods, allowed=allowed)
        self._simulator.drop_old_hints()
        if not placed:
            return pods, placed, overflowing
        schedulable = {id(status.pod) for status in placed}
        return [facts for facts in pods if id(facts.pod) not in schedulable], placed, overflowing


def _worth_a_node(
    kinds: PodKinds, pods: Sequence[JsonObject], cutoff: int, waiting: int
) -> tuple[list[PodFacts], set[PodKind]]:
    """What there is to know about the pods that count, and their kinds; TPUs are not asked of nodes.

    Pods that wait for a node may be expendable. Those of drained nodes, which come behind them, are there already.
    """
    known = kinds.facts_of_all(pods)
    seen = {facts.kind for facts in known}
    if any(kind.has_tpus for kind in seen):
        known = kinds.facts_of_all((*without_tpu_requests(pods[:waiting]), *pods[waiting:]))
        seen = {facts.kind for facts in known}
    expendable = {kind for kind in seen if kind.priority is not None and kind.priority < cutoff}
    if expendable:
        known = [facts for i, facts in enumerate(known) if i >= waiting or facts.kind not in expendable]
        seen = {facts.kind for facts in known}
    return known, seen
