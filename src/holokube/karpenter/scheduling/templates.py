"""Node pools as the solver uses them: what a new node of a pool would be like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from holokube.karpenter.api.labels import INITIALIZED_LABEL, REGISTERED_LABEL
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.daemon_overhead import Daemon, DaemonGroup, groups_of
from holokube.karpenter.scheduling.host_ports import HostPort, any_conflict
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.karpenter.scheduling.requirement_states import RequirementState, StateSpace
from holokube.karpenter.scheduling.topology_specs import tolerates
from holokube.karpenter.scheduling.type_table import BoolArray, IntArray, RowArray, TypeTable
from holokube.karpenter.scheduling.volume_demands import Volumes
from holokube.kube.requirements import Requirements
from holokube.kube.resources import ResourceVector
from holokube.kube.taints import Toleration
from holokube.pricing.instance_types import InstanceType

_UP: Requirements = Requirements.from_labels({REGISTERED_LABEL: "true", INITIALIZED_LABEL: "true"})
"""Daemons may select nodes by these, so a planned node counts as having come up."""


def template_requirements(pool: NodePool) -> Requirements:
    """What every node of a pool is like once it has come up."""
    return pool.template_requirements.merged(_UP)


def usable_types(
    types: Sequence[InstanceType], requirements: Requirements, well_known: frozenset[str], *, relax_min_values: bool
) -> list[InstanceType]:
    """Types that a pool's requirements leave, with an available offering; none if ``minValues`` cannot be met."""
    left = [
        one
        for one in types
        if one.requirements.intersects(requirements)
        and any(
            min(group.allocatable.values(), default=0) >= 0
            and any(requirements.is_compatible(o.requirements, allow_undefined=well_known) for o in group.offerings)
            for group in one.allocatable_groups
        )
    ]
    if not relax_min_values and unmet_min_values(left, requirements):
        return []
    return left


class Template:
    """A pool with its usable instance types and the daemons they will have."""

    def __init__(
        self,
        pool: NodePool,
        types: Sequence[InstanceType],
        daemons: Sequence[Daemon],
        space: StateSpace,
        well_known: frozenset[str],
    ) -> None:
        self.pool = pool
        self.taints = pool.taints
        requirements = template_requirements(pool)
        self.state: RequirementState = space.state(requirements)
        self.has_min_values = requirements.has_min_values
        self.groups: list[DaemonGroup] = groups_of(daemons, types, pool.taints, requirements, well_known)
        self._well_known = well_known
        self._tolerated: dict[tuple[Toleration, ...], bool] = {}
        self.table: TypeTable

    def build(self, columns: Mapping[str, int], volume_limits: Mapping[str, Mapping[str, int]]) -> None:
        """Make the arrays, once all resources have their columns."""
        types = [one for group in self.groups for one in group.types]
        overheads = [group.overhead for group in self.groups for _ in group.types]
        self.table = TypeTable(types, overheads, columns, self._well_known)
        sizes = [len(group.types) for group in self.groups]
        group_of_type = np.repeat(np.arange(len(sizes)), sizes)
        self._group_of_row = group_of_type[self.table.row_types]
        self._has_ports = any(group.ports for group in self.groups)
        self._capacities: dict[str, IntArray] = {}
        self._limits = [volume_limits.get(one.name) or {} for one in types]
        self._has_volume_limits = any(self._limits)

    def is_tolerated(self, tolerations: tuple[Toleration, ...]) -> bool:
        """Whether a pod may be on nodes of the pool. Startup taints will be gone by then."""
        found = self._tolerated.get(tolerations)
        if found is None:
            found = self._tolerated[tolerations] = tolerates(self.taints, tolerations)
        return found

    def without_port_conflicts(self, ports: Sequence[HostPort]) -> BoolArray | None:
        """Rows whose daemons leave these ports free; None if all do."""
        if not ports or not self._has_ports:
            return None
        free = np.array([not any_conflict(ports, group.ports) for group in self.groups], dtype=np.bool_)
        return free[self._group_of_row]

    def attaching(self, volumes: Volumes) -> BoolArray | None:
        """Rows whose nodes can attach these volumes; None if all can."""
        if not volumes or not self._has_volume_limits:
            return None
        able = np.array(
            [all(len(keys) <= limits.get(d, len(keys)) for d, keys in volumes.items()) for limits in self._limits],
            dtype=np.bool_,
        )
        return able[self.table.row_types]

    def within(self, remaining: Mapping[str, int]) -> RowArray:
        """Rows whose types a limit still has room for."""
        able = np.ones(len(self.table.row_types), dtype=np.bool_)
        for name, milli in remaining.items():
            able &= self._capacity(name) <= milli
        return np.flatnonzero(able)

    def largest(self, name: str, rows: RowArray) -> int:
        """The most that the type of any of these rows has of a resource."""
        return int(self._capacity(name)[rows].max())

    def _capacity(self, name: str) -> IntArray:
        """By row: what a node of the type has in all."""
        found = self._capacities.get(name)
        if found is None:
            of_types = np.array([one.capacity.get(name, 0) for one in self.table.types], dtype=np.int64)
            found = self._capacities[name] = of_types[self.table.row_types]
        return found

    def least_overhead(self, types: Sequence[InstanceType]) -> ResourceVector:
        """What daemons take at least of a node of one of these types."""
        left = set(types)
        least: ResourceVector = {}
        for group in self.groups:
            if left.isdisjoint(group.types):
                continue
            if not least:
                least = dict(group.overhead)
            else:
                least = {n: min(milli, group.overhead[n]) for n, milli in least.items() if n in group.overhead}
        return least
