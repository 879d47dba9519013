"""Nodes that are there, or on their way: the first of the three places where a pod may go."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import ge
from typing import Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from holokube.karpenter.api.labels import INITIALIZED
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.copying import shallow
from holokube.karpenter.scheduling.daemon_overhead import Daemon, still_expected
from holokube.karpenter.scheduling.host_ports import HostPort, any_conflict, host_ports_of
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.requirement_states import RequirementState, StateSpace
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.topology import FormTopology
from holokube.karpenter.scheduling.topology_specs import tolerates
from holokube.karpenter.scheduling.volume_demands import VolumeReader, Volumes
from holokube.kube.conditions import conditions_of, find_condition
from holokube.kube.requirements import HOSTNAME_LABEL, Requirements
from holokube.kube.resources import ResourceVector
from holokube.kube.taints import Taint, Toleration
from holokube.kube.types import JsonObject

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.intp]
_NEVER: Final = (-math.inf, 0.0)
"""Of a node that does not settle: any time since then is long enough."""


def in_solver_order(nodes: Sequence[StateNode]) -> list[StateNode]:
    """Initialized nodes first, then by name."""
    return sorted(nodes, key=_solver_order)


def _solver_order(node: StateNode) -> tuple[bool, str]:
    return not node.is_initialized, node.name


def is_settling(node: StateNode, pool: NodePool | None, now_s: float) -> bool:
    """Whether a node changed too recently, by its pool's ``consolidateAfter``, for pods to be moved to it."""
    changed_s, for_s = settling(node, pool)
    return now_s - changed_s < for_s


def settling(node: StateNode, pool: NodePool | None) -> tuple[float, float]:
    """When a node last changed, and for how long it counts as settling after that."""
    claim = node.node_claim
    if pool is None or claim is None or not pool.consolidate_after_s or INITIALIZED not in node.claim_states:
        return _NEVER
    since = (claim.get("status") or {}).get("lastPodEventTime")
    if not since:
        since = (find_condition(conditions_of(claim), INITIALIZED) or {}).get("lastTransitionTime")
    changed_s = seconds_of(since)
    return _NEVER if changed_s is None else (changed_s, pool.consolidate_after_s)


T = TypeVar("T", bound=Hashable)


class _Numbers(Generic[T]):
    """Things by number, so that of many like ones one is looked at."""

    def __init__(self) -> None:
        self._number_of: dict[T, int] = {}
        self.known: list[T] = []

    def of(self, thing: T) -> int:
        found = self._number_of.get(thing)
        if found is None:
            found = self._number_of[thing] = len(self.known)
            self.known.append(thing)
        return found


class NodeTable:
    """All nodes that stay, as arrays over rows in the solver's order.

    A table never changes. One for a later moment is carried on from it, and only rows of nodes that are others now are
    worked out anew.
    """

    def __init__(self, nodes: Sequence[StateNode], daemons: Sequence[Daemon], pools: Mapping[str, NodePool]) -> None:
        self.nodes = in_solver_order(nodes)
        self._names = [node.name for node in self.nodes]
        self.rows = _numbered(self._names)
        self._daemons = daemons
        self._pools = pools
        self._space = StateSpace()
        self.states: list[RequirementState] = [self._space.state(node.label_requirements) for node in self.nodes]
        self.taints: list[tuple[Taint, ...]] = [node.taints for node in self.nodes]
        self._known: tuple[_Numbers[RequirementState], _Numbers[tuple[Taint, ...]]] = _Numbers(), _Numbers()
        self._kinds = np.zeros((len(self.nodes), 2), dtype=np.intp)
        """By row: the numbers of its labels and of its taints."""
        self._shares_kinds = False
        """Whether states, taints and their numbers are those of the moment before."""
        for row in range(len(self.nodes)):
            self._kinds[row] = self._kind_of(row)
        self._changed_s = np.zeros(len(self.nodes), dtype=np.float64)
        """By row: when it changed."""
        self._settling_s = np.zeros(len(self.nodes), dtype=np.float64)
        """By row: for how long it settles after that."""
        for row, node in enumerate(self.nodes):
            self._settle(row, node)
        self.up = _count_up(self.nodes)
        """How many rows, from the first on, are of nodes that have come up."""
        self._forget_kinds()
        self._forget_pods()
        self._columns: Mapping[str, int] = {}
        self.room: IntArray

    def _forget_kinds(self) -> None:
        """What is worked out of labels and taints when it is asked for."""
        self._suitable: dict[PodForm, BoolArray] = {}
        self._tolerated_rows: dict[tuple[Toleration, ...], BoolArray] = {}
        self._served_rows: dict[Requirements, BoolArray] = {}
        self._hosts: tuple[dict[str, int], RowArray] | None = None

    def _forget_pods(self) -> None:
        """What is worked out of claims and pods when it is asked for."""
        self._settled: tuple[float, BoolArray] | None = None
        self._capacities: dict[PodForm, IntArray] = {}
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._volumes: dict[int, tuple[Volumes, Mapping[str, int]]] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def build(
        self, columns: Mapping[str, int], volumes: VolumeReader, volume_limits: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Make the arrays, once all resources have their columns."""
        self._columns, self._reader, self._volume_limits = columns, volumes, volume_limits
        room = np.zeros((len(self.nodes), len(columns)), dtype=np.int64)
        for row in range(len(self.nodes)):
            room[row] = self._room_of(row)
        self.room = room.T.copy()

    def _room_of(self, row: int) -> list[int]:
        if self._is_over_limit(row):
            return [-1] * len(self._columns)
        return self.room_on(self.nodes[row])

    def room_on(self, node: StateNode) -> list[int]:
        """What is left of each resource on a node that is in the table or not, volumes aside."""
        remaining = _remaining(node, self._daemons)
        if min(remaining.values(), default=0) < 0:
            # Where less than nothing is left of one resource, nothing fits.
            return [-1] * len(self._columns)
        return [remaining.get(name, 0) for name in self._columns]

    def carried_on(
        self, changed: Iterable[StateNode], gone: Iterable[str], pools: Mapping[str, NodePool]
    ) -> NodeTable:
        """The table of a later moment: with nodes that are new or others now, without those named ``gone``.

        Pools settle their nodes as long as before, and DaemonSets, storage and resources are the same.
        """
        later = shallow(self)
        later.move_on(changed, gone, pools)
        return later

    def move_on(self, changed: Iterable[StateNode], gone: Iterable[str], pools: Mapping[str, NodePool]) -> None:
        """Makes a copy of a table the one of a later moment; nothing that it shares is changed."""
        self._pools = pools
        replaced: list[tuple[int, StateNode]] = []
        leaving = {self.rows[name] for name in gone}
        added: list[StateNode] = []
        for node in changed:
            row = self.rows.get(node.name)
            if row is None:
                added.append(node)
            elif self.nodes[row].is_initialized != node.is_initialized:
                leaving.add(row)
                added.append(node)
            else:
                replaced.append((row, node))
        # Most changes are about pods and claims: labels and taints are not copied before one of them changes.
        self._shares_kinds = True
        self.nodes, self.room = [*self.nodes], self.room.copy()
        self._changed_s, self._settling_s = self._changed_s.copy(), self._settling_s.copy()
        self._forget_pods()
        have_same_kinds = not leaving and not added
        for row, node in replaced:
            have_same_kinds = self._replace(row, node) and have_same_kinds
        if leaving or added:
            self._reorder(leaving, added)
        if not have_same_kinds:
            self._forget_kinds()

    def _replace(self, row: int, node: StateNode) -> bool:
        """The same node at a later moment: what it has in common with the one before need not be worked out.

        Whether its labels and taints are the same.
        """
        before = self.nodes[row]
        if node.label_requirements is not before.label_requirements or node.taints != before.taints:
            self._put(row, node)
            return False
        self.nodes[row] = node
        if node.node_claim is not before.node_claim:
            self._settle(row, node)
        if node.pods is not before.pods or node.allocatable is not before.allocatable:
            self._measure(row)
        return True

    def _settle(self, row: int, node: StateNode) -> None:
        self._changed_s[row], self._settling_s[row] = settling(node, self._pools.get(node.pool_name))

    def _measure(self, row: int) -> None:
        # Numbers are put into an array one by one in less time than a list of a few is made an array of.
        room = self.room
        for column, milli in enumerate(self._room_of(row)):
            room[column, row] = milli

    def _own_kinds(self) -> None:
        if self._shares_kinds:
            self._shares_kinds = False
            self.states, self.taints, self._kinds = [*self.states], [*self.taints], self._kinds.copy()

    def _put(self, row: int, node: StateNode) -> None:
        self._own_kinds()
        self.nodes[row] = node
        self.states[row] = self._space.state(node.label_requirements)
        self.taints[row] = node.taints
        self._kinds[row] = self._kind_of(row)
        self._settle(row, node)
        self._measure(row)

    def _kind_of(self, row: int) -> tuple[int, int]:
        states, taints = self._known
        return states.of(self.states[row]), taints.of(self.taints[row])

    def _reorder(self, leaving: set[int], added: Sequence[StateNode]) -> None:
        """Rows go, and others come in between."""
        self._own_kinds()
        self._names = [*self._names]
        for row in sorted(leaving, reverse=True):
            del self.nodes[row], self._names[row], self.states[row], self.taints[row]
        if leaving:
            rows = sorted(leaving)
            self.room, self._kinds = np.delete(self.room, rows, axis=1), np.delete(self._kinds, rows, axis=0)
            self._changed_s, self._settling_s = np.delete(self._changed_s, rows), np.delete(self._settling_s, rows)
        ordered = in_solver_order(added)
        places = [bisect_left(self.nodes, _solver_order(node), key=_solver_order) for node in ordered]
        if places:
            self.room, self._kinds = np.insert(self.room, places, 0, axis=1), np.insert(self._kinds, places, 0, axis=0)
            self._changed_s = np.insert(self._changed_s, places, 0.0)
            self._settling_s = np.insert(self._settling_s, places, 0.0)
        for before, (place, node) in enumerate(zip(places, ordered, strict=True)):
            row = place + before
            self.nodes.insert(row, node)
            self._names.insert(row, node.name)
            self.states.insert(row, self._space.state(node.label_requirements))
            self.taints.insert(row, node.taints)
            self._put(row, node)
        self.rows = _numbered(self._names)
        self.up = _count_up(self.nodes)

    @property
    def hosts(self) -> dict[str, int]:
        """Hostnames by number."""
        return self._hosts_and_rows()[0]

    @property
    def host_of_row(self) -> RowArray:
        """By row: the number of its hostname."""
        return self._hosts_and_rows()[1]

    def _hosts_and_rows(self) -> tuple[dict[str, int], RowArray]:
        if self._hosts is None:
            hosts: dict[str, int] = {}
            numbers = [hosts.setdefault(node.hostname, len(hosts)) for node in self.nodes]
            self._hosts = hosts, np.array(numbers, dtype=np.intp)
        return self._hosts

    def _is_over_limit(self, row: int) -> bool:
        node = self.nodes[row]
        # Pods of a plain node have no claims to volumes, and nothing else is attached.
        if node.is_plain or not node.has_volumes:
            return False
        held, limits = self.volumes(row)
        return any(len(keys) > limits.get(driver, len(keys)) for driver, keys in held.items())

    def ports(self, row: int) -> tuple[HostPort, ...]:
        """Ports that pods on a node have taken."""
        found = self._ports.get(row)
        if found is None:
            pods = self.nodes[row].running_pods
            found = self._ports[row] = tuple(port for pod in pods for port in host_ports_of(pod.get("spec") or {}))
        return found

    def volumes(self, row: int) -> tuple[Volumes, Mapping[str, int]]:
        """Volumes attached to a node, and how many it can attach, both by driver."""
        found = self._volumes.get(row)
        if found is None:
            node = self.nodes[row]
            held: dict[str, frozenset[str]] = {}
            for pod in node.running_pods:
                held = union(held, self._reader.attached(pod))
            of_type = self._volume_limits.get(node.labels.get("node.kubernetes.io/instance-type", "")) or {}
            found = self._volumes[row] = held, self._reader.limits_of_node(node.node_name, of_type)
        return found

    def suitable(self, form: PodForm) -> BoolArray:
        """Rows whose taints and labels suit a form."""
        found = self._suitable.get(form)
        if found is None:
            found = self._tolerated(form.demands.tolerations)
            if form.requirements:
                found = found & self._served(form.requirements)
            if form.hostname is not None:
                on_host = form.hostname
                found = found & np.array([on_host.has(node.hostname) for node in self.nodes], dtype=np.bool_)
            self._suitable[form] = found
        return found

    def _tolerated(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        found = self._tolerated_rows.get(tolerations)
        if found is None:
            known = self._known[1].known
            numbers, of_row = np.unique(self._kinds[:, 1], return_inverse=True)
            tolerated = np.array([tolerates(known[one], tolerations) for one in numbers.tolist()], dtype=np.bool_)
            found = self._tolerated_rows[tolerations] = tolerated[of_row]
        return found

    def _served(self, requirements: Requirements) -> BoolArray:
        found = self._served_rows.get(requirements)
        if found is None:
            known = self._known[0].known
            numbers, of_row = np.unique(self._kinds[:, 0], return_inverse=True)
            served = [known[one].taking(requirements) is not None for one in numbers.tolist()]
            found = self._served_rows[requirements] = np.array(served, dtype=np.bool_)[of_row]
        return found

    def settled(self, now_s: float) -> BoolArray:
        """Rows that pods may be moved to by consolidation."""
        if self._settled is None or self._settled[0] != now_s:
            self._settled = now_s, now_s - self._changed_s >= self._settling_s
        return self._settled[1]

    @property
    def settled_s(self) -> FloatArray:
        """By row: from when on pods may be moved to it, as far as sums of times are exact."""
        return self._changed_s + self._settling_s

    def settled_from_s(self, node: StateNode) -> float:
        """The same of a node that is in the table or not; never if it has not come up or does not stay."""
        if not node.is_initialized or node.is_marked_for_deletion:
            return math.inf
        changed_s, for_s = settling(node, self._pools.get(node.pool_name))
        return changed_s + for_s

    def row(self, node: StateNode) -> int | None:
        """The row of a node that is in the table."""
        row = self.rows.get(node.name)
        return row if row is not None and self.nodes[row] is node else None

    def capacity(self, form: PodForm) -> IntArray:
        """By row: how many pods of a form would fit, pods beside them aside."""
        found = self._capacities.get(form)
        if found is None:
            found = self._capacities[form] = np.where(self.suitable(form), fitting(self.room, form), 0)
        return found


def fitting(room: IntArray, form: PodForm) -> IntArray:
    """By row: how many pods of a form fit into what is left; none where less than nothing is left of anything."""
    # Arrays are divided by one number in a fraction of the time that they take by as many as they have rows.
    (column, milli), *others = form.amounts
    found: IntArray = room[column] // milli
    for column, milli in others:
        np.minimum(found, room[column] // milli, out=found)
    return np.maximum(found, 0, out=found)


def _count_up(nodes: Sequence[StateNode]) -> int:
    """How many of the nodes, which are in the solver's order, have come up."""
    return bisect_left(nodes, True, key=_is_coming)


def _is_coming(node: StateNode) -> bool:
    return not node.is_initialized


def _numbered(names: Sequence[str]) -> dict[str, int]:
    return dict(zip(names, range(len(names)), strict=True))


def _remaining(node: StateNode, daemons: Sequence[Daemon]) -> ResourceVector:
    expected = still_expected(daemons, node)
    if not expected:
        return node.available
    return {name: milli - expected.get(name, 0) for name, milli in node.available.items()}


def union(held: Volumes, more: Volumes) -> dict[str, frozenset[str]]:
    """Volumes of both."""
    return {**held, **{driver: held.get(driver, frozenset()) | keys for driver, keys in more.items()}}


class NodesInRun:
    """What one run has placed on nodes so far."""

    def __init__(self, table: NodeTable, leaving: Collection[int], now_s: float) -> None:
        self._table = table
        self._room = table.room.copy()
        self._stays: BoolArray | None = None
        if leaving:
            self._stays = np.ones(len(table), dtype=np.bool_)
            self._stays[list(leaving)] = False
        self._now_s = now_s
        self._states: dict[int, RequirementState] = {}
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._volumes: dict[int, Volumes] = {}
        self._hopeless: set[tuple[PodForm, bool]] = set()
        self._steady_rows: dict[tuple[PodForm, bool], list[int]] = {}
        """By form, and whether it moves: rows that had room when it was first looked for, the last one first."""
        self._candidates: dict[PodForm, BoolArray] = {}
        self.pods: dict[int, list[JsonObject]] = {}

    def _candidates_of(self, form: PodForm) -> BoolArray:
        found = self._candidates.get(form)
        if found is None:
            found = self._table.suitable(form)
            if self._stays is not None:
                found = found & self._stays
            self._candidates[form] = found
        if not self._states:
            return found
        found = found.copy()
        for row, state in self._states.items():
            # A key that the node does not have may be known of now, because a pod there must not find it.
            if state is not self._table.states[row] and tolerates(self._table.taints[row], form.demands.tolerations):
                on_host = form.hostname is None or form.hostname.has(self._table.nodes[row].hostname)
                found[row] = on_host and state.taking(form.requirements) is not None
        return found

    def find(self, form: PodForm, topology: FormTopology, *, is_moving: bool) -> tuple[int, RequirementState] | None:
        """The first node that has a place, and its state then. A pod ``is_moving`` if consolidation moves it."""
        table = self._table
        if not len(table) or (form, is_moving) in self._hopeless:
            return None
        is_static = not topology.domain_groups and not topology.host_groups
        if self._is_steady(form, topology):
            row = self._next_steady(form, is_moving=is_moving)
            state = self._try(row, form, topology) if row is not None else None
            return (row, state) if row is not None and state is not None else None
        mask = self._open_rows(form, is_moving=is_moving)
        if topology.host_groups:
            open_nodes = topology.open_nodes(table.host_of_row)
            if open_nodes is not None:
                mask &= open_nodes
        first = int(mask.argmax())
        if not mask[first]:
            if is_static and not self._states:
                self._hopeless.add((form, is_moving))
            return None
        is_picky = self._is_picky(form, topology)
        for row in (first, *(np.flatnonzero(mask[first + 1 :]) + first + 1).tolist()) if is_picky else (first,):
            state = self._try(row, form, topology)
            if state is not None:
                return row, state
        return None

    def _open_rows(self, form: PodForm, *, is_moving: bool) -> BoolArray:
        """Rows that suit a form and have room for it now, pods beside it aside."""
        mask: BoolArray = np.logical_and.reduce(self._room >= form.vector[:, None], axis=0)
        mask &= self._candidates_of(form)
        if is_moving:
            mask &= self._table.settled(self._now_s)
        return mask

    def _next_steady(self, form: PodForm, *, is_moving: bool) -> int | None:
        """The first row that has room for a form, where room alone decides.

        Room only becomes less, so that rows are looked at from first to last, and never again once they are full.
        """
        rows = self._steady_rows.get((form, is_moving))
        if rows is None:
            rows = np.flatnonzero(self._open_rows(form, is_moving=is_moving)).tolist()
            rows.reverse()
            self._steady_rows[form, is_moving] = rows
        wanted = form.vector.tolist()
        while rows:
            if all(map(ge, self._room[:, rows[-1]].tolist(), wanted)):
                return rows[-1]
            rows.pop()
        self._hopeless.add((form, is_moving))
        return None

    def _is_steady(self, form: PodForm, topology: FormTopology) -> bool:
        """Whether the room of nodes alone decides which of them is the first that has a place."""
        return not (topology.domain_groups or topology.host_groups or self._states or self._is_picky(form, topology))

    def room_for_alike(self, form: PodForm, topology: FormTopology, *, is_moving: bool) -> tuple[int, int]:
        """The row that was found for a form last, and how many more pods would be placed there one by one."""
        rows = self._steady_rows.get((form, is_moving))
        if not rows or not self._is_steady(form, topology):
            return -1, 0
        row = rows[-1]
        room = self._room[:, row].tolist()
        if min(room) < 0:
            return row, 0
        return row, min([room[column] // milli for column, milli in form.amounts], default=0)

    def place_alike(self, row: int, form: PodForm, pods: Sequence[JsonObject]) -> None:
        """Put pods on the node for which :meth:`room_for_alike` was told; their state is what it was."""
        self._room[:, row] -= form.vector * len(pods)
        self.pods.setdefault(row, []).extend(pods)

    @staticmethod
    def _is_picky(form: PodForm, topology: FormTopology) -> bool:
        return bool(topology.domain_groups or form.ports or form.volumes or form.volume_alternatives)

    def state(self, row: int) -> RequirementState:
        """What is known of a node by now."""
        return self._states.get(row) or self._table.states[row]

    def _try(self, row: int, form: PodForm, topology: FormTopology) -> RequirementState | None:
        if form.volumes and self._exceeds(row, form.volumes):
            return None
        if form.ports and any_conflict(form.ports, (*self._table.ports(row), *self._ports.get(row, ()))):
            return None
        state = self.state(row).taking(form.requirements)
        if state is None:
            return None
        if not form.volume_alternatives:
            return topology.step(state)
        hostname = self._table.nodes[row].hostname
        for wanted in form.volume_alternatives:
            on_host = wanted.get(HOSTNAME_LABEL)
            if on_host is not None and not on_host.has(hostname):
                continue
            there = state.taking(wanted.without(HOSTNAME_LABEL) if on_host is not None else wanted)
            after = topology.step(there) if there is not None else None
            if after is not None:
                return after
        return None

    def _exceeds(self, row: int, volumes: Volumes) -> bool:
        held, limits = self._table.volumes(row)
        total = union(self._volumes.get(row, held), volumes)
        return any(len(keys) > limits.get(driver, len(keys)) for driver, keys in total.items())

    def place(self, row: int, state: RequirementState, form: PodForm, pod: JsonObject) -> None:
        """Put a pod on a node."""
        self._room[:, row] -= form.vector
        if state is not self._table.states[row]:
            self._states[row] = state
        if form.ports:
            self._ports[row] = (*self._ports.get(row, ()), *form.ports)
        if form.volumes:
            self._volumes[row] = union(self._volumes.get(row, self._table.volumes(row)[0]), form.volumes)
        self.pods.setdefault(row, []).append(pod)
