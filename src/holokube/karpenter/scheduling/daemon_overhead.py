"""What DaemonSets will take of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holokube.karpenter.scheduling.host_ports import HostPort, host_ports_of
from holokube.karpenter.scheduling.pod_forms import has_resource_claims
from holokube.karpenter.scheduling.pod_requests import requests_of
from holokube.karpenter.scheduling.relaxation import TOLERATE_PREFERENCE, Demands
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.topology_specs import tolerates
from holokube.kube.requirements import Requirements
from holokube.kube.resources import CPU, MEMORY, PODS, ResourceVector, total_of
from holokube.kube.sizing import is_enabled
from holokube.kube.taints import Taint
from holokube.kube.types import JsonObject
from holokube.packing.daemon_sizes import DaemonSizes
from holokube.pricing.instance_types import InstanceType


class Daemon:
    """The pods of one DaemonSet.

    Alternatives of required node affinity are tried one after the other, and one that did not fit some instance type
    is not tried again for the next: upstream takes it off the very pod it goes on with.
    """

    __slots__ = ("_demands", "_requests", "_sizes", "_strict", "key", "ports")

    def __init__(self, pod: JsonObject, *, size: bool) -> None:
        metadata = pod["metadata"]
        self.key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
        self.ports: tuple[HostPort, ...] = host_ports_of(pod.get("spec") or {})
        self._demands = Demands.of(pod, with_wishes=False)
        self._strict = self._demands.requirements()
        self._requests = requests_of(pod)
        self._sizes = DaemonSizes(pod) if size and is_enabled(pod) else None

    @property
    def is_sized(self) -> bool:
        """Whether its requests go by the node."""
        return self._sizes is not None

    def requests(self, allocatable: Mapping[str, int]) -> ResourceVector:
        """What a pod takes of a node with that much allocatable."""
        if self._sizes is None:
            return self._requests
        return self._sizes.on(allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)).requests

    def runs_on_new(
        self, taints: Sequence[Taint], requirements: Requirements, one: InstanceType, well_known: frozenset[str]
    ) -> bool:
        """Whether a new node of this type will get a pod. Preferring no pods does not keep daemons away."""
        self._demands = self._demands.tolerating(TOLERATE_PREFERENCE)
        if not tolerates(taints, self._demands.tolerations):
            return False
        while True:
            if requirements.is_compatible(self._strict, allow_undefined=well_known) and one.requirements.intersects(
                self._strict
            ):
                return True
            if self._demands.node_terms is None or len(self._demands.node_terms) < 2:
                return False
            relaxed = self._demands.relaxed(tolerate_preferences=False)
            assert relaxed is not None
            self._demands = relaxed
            self._strict = relaxed.requirements()

    def runs_on(self, node: StateNode, labels: Requirements) -> bool:
        """Whether a node that is there should have a pod."""
        return tolerates(node.taints, self._demands.tolerations) and labels.is_compatible(self._strict)


@dataclass(frozen=True, slots=True, eq=False)
class DaemonGroup:
    """Instance types that get the same daemons."""

    types: tuple[InstanceType, ...]
    overhead: ResourceVector
    ports: tuple[HostPort, ...]


def daemons_of(pods: Sequence[JsonObject], *, size: bool, ignore_resource_claims: bool) -> list[Daemon]:
    """The daemons that count; those with ResourceClaims do not while these are ignored."""
    return [
        Daemon(pod, size=size)
        for pod in pods
        if not (ignore_resource_claims and has_resource_claims(pod.get("spec") or {}))
    ]


def groups_of(
    daemons: Sequence[Daemon],
    types: Sequence[InstanceType],
    taints: Sequence[Taint],
    requirements: Requirements,
    well_known: frozenset[str],
) -> list[DaemonGroup]:
    """Types by the daemons they will have, in the order in which the sets first appear."""
    members: dict[tuple[object, ...], list[InstanceType]] = {}
    running_on: dict[tuple[object, ...], list[Daemon]] = {}
    for one in types:
        running = [daemon for daemon in daemons if daemon.runs_on_new(taints, requirements, one, well_known)]
        key: tuple[object, ...] = tuple(sorted(daemon.key for daemon in running))
        if any(daemon.is_sized for daemon in running):
            key = (*key, one.allocatable.get(CPU, 0), one.allocatable.get(MEMORY, 0))
        members.setdefault(key, []).append(one)
        running_on[key] = running
    return [
        DaemonGroup(
            tuple(alike),
            total_of(daemon.requests(alike[0].allocatable) for daemon in running_on[key]),
            tuple(port for daemon in running_on[key] for port in daemon.ports),
        )
        for key, alike in members.items()
    ]


def still_expected(daemons: Sequence[Daemon], node: StateNode) -> ResourceVector:
    """What daemons will yet take of a node that is there: of what they should have, what they do not hold yet."""
    if not daemons:
        return {}
    labels = node.label_requirements
    wanted = total_of(daemon.requests(node.allocatable) for daemon in daemons if daemon.runs_on(node, labels))
    wanted.setdefault(PODS, 0)
    held = node.daemon_requests
    return {name: max(milli - held.get(name, 0), 0) for name, milli in wanted.items()}
