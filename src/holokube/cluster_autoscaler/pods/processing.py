"""From the pods for which a scheduler found no place to those for which a node might be added, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holokube.cluster_autoscaler.hinting import HintingSimulator, Status
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.filters import (
    recreatable_pods,
    without_daemon_set_pods,
    without_tpu_requests,
    without_young,
)
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKinds
from holokube.cluster_autoscaler.pods.priority_order import sort_as_go
from holokube.cluster_autoscaler.pods.waiting import WaitingPods, count_waiting
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
        pending: Sequence[JsonObject] | WaitingPods,
        options: AutoscalerOptions,
        now_s: float,
        *,
        drained_nodes: Iterable[str] = (),
        allowed: Callable[[str], bool] | None = None,
    ) -> ProcessedPods:
        """Sort out pods that need no new node, or could not use one.

        ``drained_nodes`` are those whose pods are being evicted: what will become of these must find room as well.
        """
        waiting = pending if isinstance(pending, WaitingPods) else count_waiting(snapshot.kinds.facts_of_all(pending))
        pods = _worth_a_node(
            snapshot.kinds, waiting, recreatable_pods(snapshot, drained_nodes), options.expendable_pods_priority_cutoff)
        left, schedulable, overflowing = self._without_schedulable(snapshot, pods, allowed)
        if left is pods.facts and pods.oldest_s >= now_s - options.new_pod_scale_up_delay_s and not _has_daemons(pods):
            # A moment that has just begun: nobody has waited yet.
            return ProcessedPods([], schedulable, pods.pods, overflowing)
        left = without_daemon_set_pods(left)
        old = without_young(left, now_s, options.new_pod_scale_up_delay_s)
        to_help = [facts.pod for facts in old]
        young: list[JsonObject] = []
        if len(old) < len(left):
            are_old = set(old)
            young = [facts.pod for facts in left if facts not in are_old]
        return ProcessedPods(to_help, schedulable, young, overflowing)

    def _without_schedulable(
        self, snapshot: ClusterSnapshot, waiting: WaitingPods, allowed: Callable[[str], bool] | None
    ) -> tuple[list[PodFacts], list[Status], int]:
        """The pods for which there is no room, those for which there is, and how many controllers overflow.

        What is placed stays in the snapshot for the rest of the turn: the room is taken.
        """
        pods = waiting.facts
        if len({kind.priority or 0 for _, kind, _ in waiting.groups}) > 1:
            pods = sort_as_go(pods, lambda facts: -(facts.kind.priority or 0))
        overflowing = self._simulator.hopeless(snapshot, waiting.groups)
        placed: list[Status] = []
        if overflowing is None:
            placed, overflowing = self._simulator.schedule_known(snapshot, pods, allowed=allowed)
        self._simulator.drop_old_hints()
        if not placed:
            return pods, placed, overflowing
        schedulable = {id(status.pod) for status in placed}
        return [facts for facts in pods if id(facts.pod) not in schedulable], placed, overflowing


def _worth_a_node(
    kinds: PodKinds, waiting: WaitingPods, drained: Sequence[JsonObject], cutoff: int
) -> WaitingPods:
    """The pods that count, with what there is to know about them; TPUs are not asked of nodes.

    Pods that wait for a node may be expendable. Those of drained nodes, which come behind them, are there already.
    """
    if any(group.kind.has_tpus for group in waiting.groups):
        waiting = count_waiting(kinds.facts_of_all(without_tpu_requests(waiting.pods)))
    expendable = {kind for _, kind, _ in waiting.groups if kind.priority is not None and kind.priority < cutoff}
    if expendable:
        waiting = count_waiting([facts for facts in waiting.facts if facts.kind not in expendable])
    return waiting + count_waiting(kinds.facts_of_all(drained)) if drained else waiting


def _has_daemons(pods: WaitingPods) -> bool:
    return any(group.is_daemon for group in pods.groups)
