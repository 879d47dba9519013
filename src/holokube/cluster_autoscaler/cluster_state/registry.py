"""The cluster-state registry: how many machines each group should have, has, and may still expect.

It is told what the cluster and the provider look like (``update``) and what was asked for (``register_*``), and says
which groups are healthy, what is on its way, and what went wrong. It speaks to nobody: what has to be done or said
because of an update is returned as ``Consequences``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, GroupOptions, Instance, InstanceError
from holokube.cluster_autoscaler.cluster_state.backoff import BackoffStatus, ExponentialBackoff
from holokube.cluster_autoscaler.cluster_state.creation_errors import failed_ids
from holokube.cluster_autoscaler.cluster_state.machine_reading import MachineReading
from holokube.cluster_autoscaler.cluster_state.readiness import (
    FAKE_CREATE_ERROR,
    FAKE_UNREGISTERED,
    LookedAt,
    Measured,
    Readiness,
    Unregistered,
    fake_node,
    measure_nodes,
)
from holokube.cluster_autoscaler.cluster_state.requests import ScaleDownRequest, ScaleUpRequests
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.node_facts import NodeReadings
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.timeformat import format_duration
from holokube.kube.types import JsonObject

TIMEOUT_CODE = "timeout"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What an update looks at."""

    nodes: Sequence[JsonObject]
    groups: Sequence[GroupView]
    group_of_node: Mapping[str, str] = field(default_factory=dict)
    group_of_instance: Mapping[str, str] = field(default_factory=dict)
    """The group of each unregistered instance that the provider still calls its own."""
    deleted: frozenset[str] = frozenset()
    """Names of nodes whose machine is gone, or is being deleted."""
    templates: Collection[str] = ()
    """The groups of which a template node is known."""


class AcceptableRange(NamedTuple):
    """How many nodes a group may have without anything being wrong."""

    min_nodes: int
    max_nodes: int
    target: int


class IncorrectSize(NamedTuple):
    """A group whose nodes do not add up to what the provider says it was asked for."""

    expected: int
    current: int
    since_s: float


class Safety(NamedTuple):
    """Whether a group may be scaled up now, and why not."""

    is_safe: bool
    is_healthy: bool
    backoff: BackoffStatus | None


class StateEvent(NamedTuple):
    """Something users should be told."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class FailedScaleUp(NamedTuple):
    """Machines that did not come."""

    group_id: str
    delta: int
    error: InstanceError
    time_s: float


class Revert(NamedTuple):
    """A target size to be lowered, because what was asked for did not come in time."""

    group_id: str
    delta: int


@dataclass(slots=True)
class Consequences:
    """What an update led to, in order."""

    events: list[StateEvent] = field(default_factory=list)
    failures: list[FailedScaleUp] = field(default_factory=list)
    reverts: list[Revert] = field(default_factory=list)


class Upcoming(NamedTuple):
    """Nodes that were asked for and are not ready yet."""

    counts: dict[str, int]
    registered: dict[str, list[str]]
    """Names of those that are nodes already."""


class ClusterStateRegistry:
    """The memory of the loop about groups and machines."""

    def __init__(self, options: AutoscalerOptions, readings: NodeReadings | None = None) -> None:
        """``readings`` are for those who share what is read of nodes with others."""
        self._options = options
        self._readings = readings if readings is not None else NodeReadings()
        self._machines = MachineReading(self._readings)
        self._measured: Measured | None = None
        self._backoff = ExponentialBackoff(
            initial_s=options.initial_node_group_backoff_duration_s,
            max_s=options.max_node_group_backoff_duration_s,
            reset_after_s=options.node_group_backoff_reset_timeout_s,
        )
        self._facts = ClusterFacts((), ())
        self._scale_ups = ScaleUpRequests()
        self._scale_downs: list[ScaleDownRequest] = []
        self._unregistered: dict[str, Unregistered] = {}
        self._instances: dict[str, tuple[Instance, ...]] = {}
        self._by_group: dict[str, Readiness] = {}
        self._total = Readiness()
        self._ranges: dict[str, AcceptableRange] = {}
        self._incorrect: dict[str, IncorrectSize] = {}
        self._candidates: dict[str, list[str]] = {}
        self._candidates_at_s: float | None = None

    # What is asked for

    def register_scale_up(self, group_id: str, delta: int, now_s: float) -> None:
        """A group was asked for more machines."""
        self._scale_ups.add(group_id, delta, now_s, self.group_options(group_id).max_node_provision_time_s)

    def register_scale_down(self, group_id: str, node_name: str, now_s: float, expected_by_s: float) -> None:
        """A node is being removed."""
        self._scale_downs.append(ScaleDownRequest(group_id, node_name, now_s, expected_by_s))

    def register_failed_scale_up(self, group_id: str, error: InstanceError, now_s: float) -> None:
        """Leave a group alone for a while. A group without a template is not known well enough for that."""
        if group_id in self._facts.templates:
            self._backoff.back_off(group_id, error, now_s)

    def update_candidates(self, unneeded: Sequence[str], now_s: float) -> None:
        """The nodes that are not needed, for the status."""
        self._candidates = {}
        for name in unneeded:
            group_id = self._facts.group_of_node.get(name)
            if group_id is not None:
                self._candidates.setdefault(group_id, []).append(name)
        self._candidates_at_s = now_s

    # What is seen

    def not_registered(self, nodes: Sequence[JsonObject], groups: Sequence[GroupView],
                       now_s: float) -> list[Unregistered]:
        """The machines without a node, whose groups the provider has to be asked for before an update."""
        missing = self._machines.not_registered(nodes, {group.id: group.instances for group in groups})
        known = self._unregistered
        return [
            Unregistered(known[id_].node if id_ in known else fake_node(id_, FAKE_UNREGISTERED), now_s)
            for id_ in missing
        ]

    def update(self, facts: ClusterFacts, now_s: float) -> Consequences:
        """Take over what the cluster and the provider look like now."""
        before, self._facts = self._instances, facts
        self._instances = {group.id: group.instances for group in facts.groups}
        missing, known = self._machines.not_registered(facts.nodes, self._instances), self._unregistered
        # A machine that was missing before has been missing since then.
        self._unregistered = {
            id_: known[id_] if id_ in known else Unregistered(fake_node(id_, FAKE_UNREGISTERED), now_s)
            for id_ in missing
        }
        self._measure(now_s)
        found = Consequences()
        targets = {group.id: group.target_size or 0 for group in facts.groups}
        # Requests are judged by the ranges, which in turn depend on the requests that are left.
        self.recalculate(targets)
        self._settle_requests(found, now_s)
        self._judge_creation_errors(found, before, now_s)
        self.recalculate(targets)
        self._find_incorrect_sizes(now_s)
        return found

    def _measure(self, now_s: float) -> None:
        facts = self._facts
        looked_at = LookedAt(
            facts.nodes, facts.group_of_node, {group.id: group.options for group in facts.groups}, facts.deleted)
        known = self._measured.renewed(looked_at, now_s, self._readings) if self._measured is not None else None
        self._measured = known if known is not None else measure_nodes(looked_at, now_s, self._readings)
        self._by_group, self._total = self._measured.with_machines(
            self._unregistered.values(), facts.group_of_instance, now_s)

    def recalculate(self, targets: Mapping[str, int]) -> None:
        """Work out the acceptable ranges anew, after targets or requests have changed."""
        ranges: dict[str, AcceptableRange] = {}
        for group in self._facts.groups:
            size = targets.get(group.id, 0)
            missing = len(self._by_group[group.id].long_unregistered) if group.id in self._by_group else 0
            ranges[group.id] = AcceptableRange(size - missing, size, size)
        nothing = AcceptableRange(0, 0, 0)
        for up in self._scale_ups.all():
            known = ranges.get(up.group_id, nothing)
            ranges[up.group_id] = known._replace(min_nodes=known.min_nodes - up.increase)
        for group_id, count in Counter([down.group_id for down in self._scale_downs]).items():
            known = ranges.get(group_id, nothing)
            ranges[group_id] = known._replace(max_nodes=known.max_nodes + count)
        self._ranges = ranges

    def _settle_requests(self, found: Consequences, now_s: float) -> None:
        self._backoff.remove_stale(now_s)
        for request in self._scale_ups.all():
            group_id = request.group_id
            if not self._has_upcoming(group_id):
                self._scale_ups.remove(group_id)
            elif request.expected_by_s < now_s:
                waited = format_duration(now_s - request.time_s)
                found.events.append(StateEvent(
                    "Warning", "ScaleUpTimedOut", f"Nodes added to group {group_id} failed to register within {waited}"
                ))
                self._fail(found, FailedScaleUp(group_id, request.increase, InstanceError(
                    ErrorClass.OTHER, TIMEOUT_CODE, f"Scale-up timed out for node group {group_id} after {waited}"
                ), now_s))
                # A cloud that may go on trying for ever is told to stop.
                found.reverts.append(Revert(group_id, -request.increase))
                self._scale_ups.remove(group_id)
        self._scale_downs = [down for down in self._scale_downs if down.expected_by_s > now_s]

    def _judge_creation_errors(self, found: Consequences, before: Mapping[str, tuple[Instance, ...]],
                               now_s: float) -> None:
        for group in self._facts.groups:
            failed = self._machines.failures(group.id, group.instances)
            seen = failed_ids(before.get(group.id, ())) if failed else frozenset()
            for code, failures in failed.items():
                unseen = sum(instance.id not in seen for instance in failures.instances)
                if not unseen or not self.is_scaling_up(group.id):
                    continue
                text = failures.text()
                found.events.append(StateEvent(
                    "Warning", "ScaleUpFailed",
                    f"Failed adding {unseen} nodes to group {group.id} due to {code}; source errors: {text}",
                ))
                self._scale_ups.add(group.id, -unseen, now_s, group.options.max_node_provision_time_s)
                self._fail(found, FailedScaleUp(
                    group.id, unseen, InstanceError(code.error_class, code.code, text), now_s
                ))

    def _fail(self, found: Consequences, failure: FailedScaleUp) -> None:
        found.failures.append(failure)
        self.register_failed_scale_up(failure.group_id, failure.error, failure.time_s)

    def _find_incorrect_sizes(self, now_s: float) -> None:
        incorrect: dict[str, IncorrectSize] = {}
        for group in self._facts.groups:
            readiness = self._by_group.get(group.id)
            if readiness is None:
                continue
            target = self._ranges[group.id].target
            current = len(readiness.registered)
            missing = len(readiness.unregistered) + len(readiness.long_unregistered)
            if target - missing <= current <= target:
                continue
            known = self._incorrect.get(group.id)
            is_the_same = known is not None and (known.expected, known.current) == (target, current)
            incorrect[group.id] = known if known and is_the_same else IncorrectSize(target, current, now_s)
        self._incorrect = incorrect

    # What is known

    @property
    def groups(self) -> Sequence[GroupView]:
        """The groups as the last update saw them."""
        return self._facts.groups

    @property
    def total(self) -> Readiness:
        """The readiness of all nodes, those of no group included."""
        return self._total

    @property
    def unregistered(self) -> list[Unregistered]:
        """The machines without a node."""
        return list(self._unregistered.values())

    @property
    def candidates(self) -> Mapping[str, Sequence[str]]:
        """Unneeded nodes by group."""
        return self._candidates

    @property
    def candidates_at_s(self) -> float | None:
        """When the unneeded nodes were last worked out."""
        return self._candidates_at_s

    def group_of_unregistered(self, instance_id: str) -> str | None:
        """The group that still owns a machine without a node."""
        return self._facts.group_of_instance.get(instance_id)

    def group_options(self, group_id: str) -> GroupOptions:
        """The settings a group goes by."""
        for group in self._facts.groups:
            if group.id == group_id:
                return group.options
        return self._options.group_defaults()

    def readiness(self, group_id: str) -> Readiness | None:
        """The readiness of a group; None if it has no machine at all."""
        return self._by_group.get(group_id)

    def acceptable_range(self, group_id: str) -> AcceptableRange | None:
        """How many nodes a group may have."""
        return self._ranges.get(group_id)

    def incorrect_size(self, group_id: str) -> IncorrectSize | None:
        """What is wrong with the size of a group."""
        return self._incorrect.get(group_id)

    def created_with_errors(self) -> dict[str, list[JsonObject]]:
        """Fake nodes for the machines that could not be made, by group."""
        return {
            group_id: nodes for group_id, instances in self._instances.items()
            if (nodes := [
                fake_node(instance.id, FAKE_CREATE_ERROR)
                for failures in self._machines.failures(group_id, instances).values()
                for instance in failures.instances
            ])
        }

    def is_cluster_healthy(self) -> bool:
        """False if more nodes are broken than can be an accident."""
        return not self._is_too_many(len(self._total.unready), len(self._facts.nodes))

    def is_group_healthy(self, group_id: str) -> bool:
        """False if more nodes of a group are missing than can be an accident."""
        acceptable = self._ranges.get(group_id)
        if acceptable is None:
            return False
        readiness = self._by_group.get(group_id)
        if readiness is None:
            # Nothing is there, and nothing is expected, or all that is expected has just been asked for.
            return acceptable.target == 0 or (acceptable.min_nodes == 0 and acceptable.target > 0)
        there = len(readiness.ready) + len(readiness.suspended)
        missing = max(0, acceptable.min_nodes - there)
        return not self._is_too_many(missing, there + len(readiness.unready) + len(readiness.not_started))

    def _is_too_many(self, bad: int, of: int) -> bool:
        options = self._options
        return bad > options.ok_total_unready_count and bad > options.max_total_unready_percentage / 100.0 * of

    def backoff(self, group_id: str, now_s: float) -> BackoffStatus | None:
        """Why a group is left alone; None if it is not."""
        return self._backoff.status(group_id, now_s) if group_id in self._facts.templates else None

    def scale_up_safety(self, group: str, now_s: float) -> Safety:
        """Whether a group may be scaled up."""
        is_healthy, backoff = self.is_group_healthy(group), self.backoff(group, now_s)
        return Safety(is_healthy and backoff is None, is_healthy, backoff)

    def is_scaling_up(self, group_id: str) -> bool:
        """Whether something was asked for that is still to come."""
        return self._has_upcoming(group_id) and group_id in self._scale_ups

    def has_started_scale_up(self, group_id: str) -> bool:
        """Whether something was asked for, even if it has come or was taken back since."""
        return group_id in self._scale_ups

    def is_at_target_size(self, group_id: str) -> bool:
        """Whether everything that was asked for is there."""
        return group_id in self._ranges and self._upcoming_of(group_id) == 0

    def _has_upcoming(self, group_id: str) -> bool:
        return group_id in self._ranges and self._upcoming_of(group_id) > 0

    def _upcoming_of(self, group_id: str) -> int:
        readiness = self._by_group.get(group_id)
        target = self._ranges[group_id].target if group_id in self._ranges else 0
        if readiness is None:
            return target
        return target - (len(readiness.ready) + len(readiness.unready) + len(readiness.suspended)
                         + len(readiness.long_unregistered))

    def upcoming(self, now_s: float) -> Upcoming:
        """The nodes that will be ready soon.

        A group that has none on request, or is in backoff, is left out: what it still owes may never come, and
        would keep other groups from being tried.
        """
        found = Upcoming({}, {})
        for group in self._facts.groups:
            count = self._upcoming_of(group.id)
            if count <= 0 or group.id not in self._scale_ups or self.backoff(group.id, now_s) is not None:
                continue
            found.counts[group.id] = count
            readiness = self._by_group.get(group.id)
            found.registered[group.id] = list(readiness.not_started) if readiness else []
        return found

    def autoscaled_nodes(self) -> tuple[int, int]:
        """How many nodes the groups have, and how many they were asked for."""
        there = sum(len(one.registered) - len(one.not_started) for one in self._by_group.values())
        return there, sum(one.target for one in self._ranges.values())
