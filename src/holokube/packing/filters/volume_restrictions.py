"""VolumeRestrictions: disks that cannot be mounted twice, and claims that one pod alone may use."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.filters.protocol import Finding, OneReason, Scope
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class VolumeRestrictions(OneReason):
    """See the module."""

    name = "VolumeRestrictions"
    reason_disk = "node(s) had no available disk"
    reason_exclusive = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    )
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with claims or disks."""
        del state
        return bool(cls.claims or cls.disks)

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """Mounts and storage objects."""
        del cls
        return state.volume_usage.version, state.volumes.version

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """A claim that does not exist."""
        plan = state.volume_plan(cls)
        return plan.refusal if plan.refused_by == self.name else ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where no disk conflicts; nowhere if an exclusive claim is in use."""
        if self._exclusive_taken(state, cls):
            return ~true_for(rows, state.nodes.capacity)
        return ~self._disk_taken(state, cls, rows)

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """Disks first, then exclusive claims."""
        disk_taken = self._disk_taken(state, cls, rows)
        nothing = np.zeros_like(disk_taken)
        exclusive_taken = ~disk_taken if self._exclusive_taken(state, cls) else nothing
        return [
            Finding(self.reason_disk, disk_taken, nothing),
            Finding(self.reason_exclusive, exclusive_taken, nothing),
        ]

    @staticmethod
    def _exclusive_taken(state: ClusterState, cls: PodClass) -> bool:
        return any(key in state.volume_usage.claims for key in state.volume_plan(cls).exclusive)

    @staticmethod
    def _disk_taken(state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        taken = np.zeros(state.nodes.capacity, dtype=np.bool_)
        if cls.disks:
            for row, mounted in state.volume_usage.disks_on.items():
                taken[row] = any(disk.conflicts_with(other) for disk in cls.disks for other in mounted)
        return taken[rows]
