"""NodeVolumeLimits: a node attaches only so many volumes of a CSI driver.

Volumes of in-tree plugins are counted by the objects as they are, without upstream's translation to CSI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.filters.protocol import OneReason, Scope
from holokube.packing.podclass import PodClass
from holokube.packing.volumes import CLAIMS, CSI_NODES

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class NodeVolumeLimits(OneReason):
    """See the module."""

    name = "NodeVolumeLimits"
    reason = "node(s) exceed max volume count"
    resolvable = True
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with claims."""
        del state
        return bool(cls.claims)

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """Nodes, mounts and storage objects."""
        del cls
        return state.nodes.version, state.volume_usage.version, state.volumes.version

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where the volumes can be attached; nodes without a CSINode have no limit."""
        mask = true_for(slice(None), state.nodes.capacity)
        new = state.volume_plan(cls).attachables
        if new:
            recorded = state.volumes.attached_by_record()
            for node_name in state.volumes.all(CSI_NODES):
                row = state.nodes.row_of.get(node_name)
                if row is not None:
                    mask[row] = _fits(state, node_name, row, new, recorded.get(node_name, {}))
        return mask[rows]


def _fits(
    state: ClusterState, node_name: str, row: int, new: Mapping[str, str], recorded: Mapping[str, str]
) -> bool:
    limits = dict(state.volumes.limits_of(node_name))
    if not any(driver in limits for driver in new.values()):
        return True
    mounted: dict[str, str] = {}
    for key in state.volume_usage.claims_on.get(row, ()):
        claim = state.volumes.get(CLAIMS, key)
        attachable = state.volumes.attachable(claim) if claim is not None else None
        if attachable is not None:
            mounted[attachable[0]] = attachable[1]
    # What only a VolumeAttachment knows still takes a place, even if the new pod would use that very volume.
    taken = Counter({**recorded, **mounted}.values())
    wanted = Counter(driver for volume, driver in new.items() if volume not in mounted)
    return all(taken[driver] + count <= limits[driver] for driver, count in wanted.items() if driver in limits)
