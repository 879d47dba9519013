"""Nodes that are there, or on their way: the first of the three places where a pod may go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holokube.karpenter.api.labels import INITIALIZED
from holokube.karpenter.api.node_pool import NodePool
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
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
_EMPTY: Mapping[str, Any] = {}


def in_solver_order(nodes: Sequence[StateNode]) -> list[StateNode]:
    """Initialized nodes first, then by name."""
    return sorted(nodes, key=lambda node: (not node.is_initialized, node.name))


def is_settling(node: StateNode, pool: NodePool | None, now_s: float) -> bool:
    """Whether a node changed too recently, by its pool's ``consolidateAfter``, for pods to be moved to it."""
    claim = node.node_claim
    if pool is None or claim is None or not pool.consolidate_after_s:
        return False
    initialized = find_condition(conditions_of(claim), INITIALIZED)
    if initialized is None or initialized.get("status") != "True":
        return False
    since = (claim.get("status") or {}).get("lastPodEventTime") or initialized.get("lastTransitionTime")
    return since is not None and now_s - parse_time(since).timestamp() < pool.consolidate_after_s


class NodeTable:
    """All nodes that stay, as arrays over rows in the solver's order."""

    def __init__(self, nodes: Sequence[StateNode], daemons: Sequence[Daemon], pools: Mapping[str, NodePool]) -> None:
        self.nodes = in_solver_order(nodes)
        self.rows = {node.name: row for row, node in enumerate(self.nodes)}
        self._pools = pools
        self.remaining: list[ResourceVector] = [_remaining(node, daemons) for node in self.nodes]
        space = StateSpace()
        self.states: list[RequirementState] = [space.state(node.label_requirements) for node in self.nodes]
        # A space that only these nodes' labels were put into numbers its states without gaps.
        self._state_numbers = np.array([state.number for state in self.states], dtype=np.intp)
        self._distinct_states = sorted(set(self.states), key=lambda state: state.number)
        self.taints: list[tuple[Taint, ...]] = [node.taints for node in self.nodes]
        taint_sets = list(dict.fromkeys(self.taints))
        self._taint_sets = taint_sets
        numbers = {taints: number for number, taints in enumerate(taint_sets)}
        self._taint_numbers = np.array([numbers[taints] for taints in self.taints], dtype=np.intp)
        self.hosts: dict[str, int] = {}
        for node in self.nodes:
            self.hosts.setdefault(node.hostname, len(self.hosts))
        self.host_of_row = np.array([self.hosts[node.hostname] for node in self.nodes], dtype=np.intp)
        self._suitable: dict[PodForm, BoolArray] = {}
        self._tolerated_rows: dict[tuple[Toleration, ...], BoolArray] = {}
        self._served_rows: dict[Requirements, BoolArray] = {}
        self._settling: BoolArray | None = None
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._volumes: dict[int, tuple[Volumes, Mapping[str, int]]] = {}
        self.room: IntArray

    def __len__(self) -> int:
        return len(self.nodes)

    def build(
        self, columns: Mapping[str, int], volumes: VolumeReader, volume_limits: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Make the arrays, once all resources have their columns."""
        self._reader, self._volume_limits = volumes, volume_limits
        room = np.zeros((len(self.nodes), len(columns)), dtype=np.int64)
        for row, remaining in enumerate(self.remaining):
            if min(remaining.values(), default=0) < 0 or self._is_over_limit(row):
                # Where less than nothing is left of one resource, nothing fits.
                room[row] = -1
                continue
            for name, column in columns.items():
                room[row, column] = remaining.get(name, 0)
        self.room = room.T.copy()

    def _is_over_limit(self, row: int) -> bool:
        node = self.nodes[row]
        if not any((pod.get("spec") or _EMPTY).get("volumes") for pod in node.running_pods):
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
            tolerated = np.array([tolerates(taints, tolerations) for taints in self._taint_sets], dtype=np.bool_)
            found = self._tolerated_rows[tolerations] = tolerated[self._taint_numbers]
        return found

    def _served(self, requirements: Requirements) -> BoolArray:
        found = self._served_rows.get(requirements)
        if found is None:
            served = np.array([s.taking(requirements) is not None for s in self._distinct_states], dtype=np.bool_)
            found = self._served_rows[requirements] = served[self._state_numbers]
        return found

    def settled(self, now_s: float) -> BoolArray:
        """Rows that pods may be moved to by consolidation."""
        if self._settling is None:
            self._settling = np.array(
                [not is_settling(node, self._pools.get(node.pool_name), now_s) for node in self.nodes], dtype=np.bool_
            )
        return self._settling


def _remaining(node: StateNode, daemons: Sequence[Daemon]) -> ResourceVector:
    expected = still_expected(daemons, node)
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
        mask: BoolArray = np.logical_and.reduce(self._room >= form.vector[:, None], axis=0)
        mask &= self._candidates_of(form)
        if is_moving:
            mask &= table.settled(self._now_s)
        is_static = not topology.domain_groups and not topology.host_groups
        if topology.host_groups:
            open_nodes = topology.open_nodes(table.host_of_row)
            if open_nodes is not None:
                mask &= open_nodes
        first = int(mask.argmax())
        if not mask[first]:
            if is_static and not self._states:
                self._hopeless.add((form, is_moving))
            return None
        for row in (first, *(np.flatnonzero(mask[first + 1 :]) + first + 1).tolist()) if self._is_picky(
            form, topology
        ) else (first,):
            state = self._try(row, form, topology)
            if state is not None:
                return row, state
        return None

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
