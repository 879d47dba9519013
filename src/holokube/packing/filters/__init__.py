"""The filters, one file each, in the order in which the scheduler asks them: the first refusal gives the reason."""

from __future__ import annotations

from typing import Final

from holokube.packing.filters.inter_pod_affinity import InterPodAffinity
from holokube.packing.filters.node_affinity import NodeAffinity
from holokube.packing.filters.node_name import NodeName
from holokube.packing.filters.node_ports import NodePorts
from holokube.packing.filters.node_resources_fit import NodeResourcesFit
from holokube.packing.filters.node_unschedulable import NodeUnschedulable
from holokube.packing.filters.node_volume_limits import NodeVolumeLimits
from holokube.packing.filters.pod_topology_spread import PodTopologySpread
from holokube.packing.filters.protocol import Filter, Finding, Scope
from holokube.packing.filters.taint_toleration import TaintToleration
from holokube.packing.filters.volume_binding import VolumeBinding
from holokube.packing.filters.volume_restrictions import VolumeRestrictions
from holokube.packing.filters.volume_zone import VolumeZone

__all__ = ["DEFAULT_FILTERS", "Filter", "Finding", "Scope"]

DEFAULT_FILTERS: Final[tuple[Filter, ...]] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
)
