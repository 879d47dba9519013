"""Which nodes the cluster could do without, for how long already, and which may go now."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace

from holokube.cluster_autoscaler.hinting import HintingSimulator
from holokube.cluster_autoscaler.node_facts import changed_places
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.atomic_groups import keep_partial_groups
from holokube.cluster_autoscaler.scale_down.candidates import CandidateFinder, Candidates
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, rules_for
from holokube.cluster_autoscaler.scale_down.eligibility import EligibilityFilter
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput, controllers_of
from holokube.cluster_autoscaler.scale_down.minimum_resources import (
    KUBELET_LABEL,
    MinimumResources,
    UnknownAccelerators,
)
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.recreation import not_recreated
from holokube.cluster_autoscaler.scale_down.removal import RemovalSimulator
from holokube.cluster_autoscaler.scale_down.report import (
    NodeToRemove,
    PlannerReport,
    Removals,
    UnneededNode,
    Unremovable,
    Utilization,
)
from holokube.cluster_autoscaler.scale_down.skip_times import SkipTimes
from holokube.cluster_autoscaler.scale_down.unneeded import UnneededNodes
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject

_LIMIT = "enough unneeded nodes were found"
_TIMEOUT = "the time for simulations was up"


@dataclass(slots=True)
class _Simulated:
    removals: list[NodeToRemove] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    skipped_because: str = ""


class ScaleDownPlanner:
    """Remembers from turn to turn since when nodes are unneeded; decides, and touches nothing."""

    def __init__(self, options: AutoscalerOptions, monotonic: Callable[[], float]) -> None:
        """``monotonic`` measures how long simulations take, in seconds."""
        self._options = options
        self._monotonic = monotonic
        self._rules = rules_for(options)
        self.local_delays = LocalDelays()
        """Told by whoever scales groups, if delays are per group."""
        self._unneeded = UnneededNodes()
        self._unremovable = UnremovableNodes()
        self._removal = RemovalSimulator(self._rules)
        self._injection = HintingSimulator()
        self._skip_times = SkipTimes()
        self._utilization: dict[str, Utilization] = {}
        self._previous: frozenset[str] = frozenset()
        self._given: ScaleDownInput | None = None
        self._begin_anew(None)
        self._is_restored = not options.node_deletion_candidate_ttl_s
        self._shortest_interval_us = max(1, round(options.scale_down_unneeded_time_s * 1e6))

    # What was found

    def unneeded(self) -> list[UnneededNode]:
        """The nodes that are unneeded now."""
        return self._unneeded.as_list()

    def unremovable(self) -> list[Unremovable]:
        """The nodes of this turn that stay; after ``nodes_to_delete`` the unneeded ones that have to wait as well."""
        return self._unremovable.as_list()

    def next_recheck_s(self) -> float:
        """When the next node that could not be removed is worth another simulation; infinity if there is none."""
        return self._unremovable.next_recheck_s()

    def settled_on(self) -> Set[ControllerKey] | None:
        """The controllers on which it depends that the next look finds the same nodes unneeded, as long as none of
        these nodes changes and others get only emptier; None if more than that may make a difference."""
        return self._removal.settled_on() if self._unneeded else None

    def room_left(self) -> dict[str, list[int]]:
        """What the nodes that pods would go to have left then; for those who were told what it is settled on."""
        return self._removal.room_left()

    def clear(self) -> None:
        """Forget since when nodes are unneeded."""
        self._unneeded.clear()
        self._is_restored = True

    # One turn

    def update(self, given: ScaleDownInput) -> PlannerReport:
        """Look at the cluster anew. The snapshot is as before afterwards."""
        now_s = given.observation.now_s
        self._note_interval(now_s)
        self._given = given
        if not self._is_restored:
            ttl_s = self._options.node_deletion_candidate_ttl_s
            self._unneeded.restore(given.observation.nodes, given.group_of, now_s, ttl_s)
            self._is_restored = True
        if given.snapshot is not self._snapshot:
            self._begin_anew(given.snapshot)
        candidates = self._candidates.find(given, self._previous)
        with given.snapshot.trial():
            self._inject_evicted(given)
            simulated = self._categorize(given, candidates)
        self._removal.drop_old_hints()
        self._injection.drop_old_hints()
        names = [name_of(entry.node) for entry in self._unneeded.as_list()]
        self._previous = frozenset(names)
        return PlannerReport(
            unneeded=names,
            unremovable=self.unremovable(),
            utilization=self._utilization,
            candidates=candidates.names,
            not_candidates=candidates.others,
            skipped=simulated.skipped,
            skipped_because=simulated.skipped_because,
            longest_skip_s=self._skip_times.update(simulated.skipped, now_s),
        )

    def nodes_to_delete(self, now_s: float) -> Removals:
        """The nodes that have been unneeded for long enough and may go, as of the last ``update``."""
        given = self._given
        if given is None or not self._unneeded:
            return Removals()
        snapshot, label = given.snapshot, given.gpu_label
        try:
            minimum = MinimumResources(
                given.limiter, snapshot.nodes, given.group_of, label,
                are_plain=not (label and snapshot.has_label(label)) and not snapshot.has_label(KUBELET_LABEL))
        except UnknownAccelerators as unknown:
            return self._all_stay(f"nobody knows how many accelerators node {unknown} will have")
        ripe = self._unneeded.removable(given, minimum, now_s)
        safe = [removal for removal in ripe.drain if not removal.is_risky]
        risky = [removal for removal in ripe.drain if removal.is_risky]
        kept, partial = keep_partial_groups([*ripe.empty, *safe, *risky], given, snapshot.nodes)
        found = Removals(unremovable=[*ripe.unremovable, *partial])
        for removal in kept:
            if removal.on_completion_pods:
                found.unremovable.append(Unremovable(removal.node, UnremovableReason.BLOCKED_BY_ON_COMPLETION_POD))
            else:
                (found.empty if removal.is_empty else found.drain).append(removal)
        for stays in found.unremovable:
            self._unremovable.add(stays, self._utilization.get(stays.name))
        return found

    # Parts of it

    def _begin_anew(self, snapshot: ClusterSnapshot | None) -> None:
        """What is remembered of nodes goes by the marks of one snapshot."""
        self._snapshot = snapshot
        self._candidates = CandidateFinder(self._options, self._rules, self.local_delays)
        self._eligibility = EligibilityFilter(self._options)
        self._named: tuple[Sequence[JsonObject], frozenset[str]] | None = None
        self._staying: tuple[list[str], frozenset[str], list[str]] | None = None

    def _note_interval(self, now_s: float) -> None:
        """The shortest time between two turns tells how often nodes can be removed."""
        if self._given is not None:
            # Two turns may share a moment of virtual time.
            interval_us = max(1, round((now_s - self._given.observation.now_s) * 1e6))
            self._shortest_interval_us = min(self._shortest_interval_us, interval_us)

    def _inject_evicted(self, given: ScaleDownInput) -> None:
        """Pods that were evicted a moment ago take their room before others are moved there."""
        pods = not_recreated(given.recent_evictions, given.observation.controllers)
        if pods:
            self._injection.schedule(given.snapshot, pods, break_on_failure=True)

    def _categorize(self, given: ScaleDownInput, candidates: Candidates) -> _Simulated:
        now_s = given.observation.now_s
        in_deletion = given.deletions.names
        self._unremovable.start_turn(given.snapshot.has_node, now_s)
        eligibility = self._eligibility.split(*self._without(candidates, in_deletion), given, self._unremovable)
        self._unremovable.begin(eligibility.reasons)
        self._utilization = eligibility.utilization
        simulated = _Simulated()
        if eligibility.eligible:
            destinations = set(self._names_of(given.observation.nodes) - in_deletion)
            simulated = self._simulate(given, eligibility.eligible, destinations)
        self._unneeded.update(simulated.removals, given.group_of, now_s)
        return simulated

    def _names_of(self, nodes: Sequence[JsonObject]) -> frozenset[str]:
        known = self._named
        if known is None or changed_places(known[0], nodes) is None:
            known = nodes, frozenset([node["metadata"]["name"] for node in nodes])
        self._named = nodes, known[1]
        return known[1]

    def _without(
        self, candidates: Candidates, in_deletion: frozenset[str]
    ) -> tuple[Sequence[JsonObject], Sequence[str]]:
        """The candidates that are not on their way out, and their names: the same object for the same candidates."""
        if not in_deletion:
            return candidates.nodes, candidates.names
        known = self._staying
        if known is None or known[0] is not candidates.names or known[1] != in_deletion:
            names = [name for name in candidates.names if name not in in_deletion]
            known = self._staying = candidates.names, in_deletion, names
        pairs = zip(candidates.nodes, candidates.names, strict=True)
        return [node for node, name in pairs if name not in in_deletion], known[2]

    def _simulate(self, given: ScaleDownInput, names: list[str], destinations: set[str]) -> _Simulated:
        now_s = given.observation.now_s
        pdbs = PdbTracker(given.observation.pdbs)
        context = DrainContext(now_s, self._options, pdbs, controllers_of(given.observation))
        recheck_at_s = now_s + self._options.unremovable_node_recheck_timeout_s
        deadline_s = self._monotonic() + self._options.scale_down_simulation_timeout_s
        limit = self._unneeded_limit()
        atomic = 0
        found = _Simulated()
        self._removal.begin(given.snapshot, destinations, names)
        for index, name in enumerate(names):
            if self._monotonic() >= deadline_s:
                found.skipped, found.skipped_because = names[index:], _TIMEOUT
                break
            if len(found.removals) - atomic >= limit:
                found.skipped, found.skipped_because = names[index:], _LIMIT
                break
            result = self._removal.simulate(name, given.snapshot, destinations, context)
            if isinstance(result, Unremovable):
                self._unremovable.add_until(result, recheck_at_s, self._utilization.get(name))
                continue
            pods = result.pods_to_reschedule
            is_risky = not pdbs.can_remove(pods).in_parallel
            found.removals.append(replace(result, is_risky=True) if is_risky else result)
            destinations.discard(name)
            pdbs.remove(pods)
            group = given.group_of(name)
            atomic += group is not None and group.options.zero_or_max_node_scaling
        return found

    def _unneeded_limit(self) -> int:
        """How many unneeded nodes are worth finding.

        N nodes go at a time, so N more than there are and N in reserve will do; and since turns are some time apart,
        no more than can go within the time that a node has to be unneeded, and a reserve.
        """
        at_once = self._options.max_scale_down_parallelism
        interval_us = self._shortest_interval_us
        unneeded_us = max(round(self._options.scale_down_unneeded_time_s * 1e6), interval_us)
        return min(len(self._unneeded) + 2 * at_once, at_once * (unneeded_us // interval_us) + at_once)

    def _all_stay(self, detail: str) -> Removals:
        stays = [
            Unremovable(entry.node, UnremovableReason.UNEXPECTED_ERROR, detail=detail)
            for entry in self._unneeded.as_list()
        ]
        for found in stays:
            self._unremovable.add(found, self._utilization.get(found.name))
        return Removals(unremovable=stays)
