"""Everything that one solve needs to know, plain and immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.api.node_pool import NodePool, in_order
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject, Labels
from holokube.pricing.instance_types import InstanceType

if TYPE_CHECKING:
    from holokube.karpenter.scheduling.groundwork import Groundwork

MAX_INSTANCE_TYPES: Final = 600
SOLVE_TIMEOUT_S: Final = 60.0
_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Settings of a solve; the defaults are those of provisioning."""

    preference_policy: Literal["Respect", "Ignore"] = "Respect"
    """Whether preferences count as requirements until they stand in the way, or never."""
    min_values_policy: Literal["Strict", "BestEffort"] = "Strict"
    reserved_mode: Literal["strict", "fallback"] = "strict"
    """Whether a pod waits for reserved capacity that another claim may give back, or takes something else."""
    reserved_capacity: bool = True
    """The gate ReservedCapacity."""
    reservation_credit: Mapping[str, int] = field(default_factory=dict)
    """Slots by reservation that a node about to go will free."""
    size_daemons: bool = True
    """Whether DaemonSet pods that are sized by their node count with the size they would get."""
    ignore_dra_requests: bool = True
    """Whether pods with ResourceClaims are refused."""
    enforce_consolidate_after: bool = False
    """Whether pods that run already may not move to a node that changed too recently (consolidation)."""
    timeout_s: float | None = SOLVE_TIMEOUT_S
    max_instance_types: int = MAX_INSTANCE_TYPES
    default_spread_constraints: tuple[JsonObject, ...] = ()
    """For pods without constraints of their own; they have no selector."""


FALLBACK_OPTIONS: Final = SolveOptions(reserved_mode="fallback", timeout_s=None)
"""Those of a disruption simulation that is no consolidation."""
CONSOLIDATION_OPTIONS: Final = SolveOptions(
    reserved_mode="fallback", timeout_s=None, enforce_consolidate_after=True
)


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage objects by name; claims by ``namespace/name``."""

    claims: Mapping[str, JsonObject] = field(default_factory=dict)
    volumes: Mapping[str, JsonObject] = field(default_factory=dict)
    classes: Mapping[str, JsonObject] = field(default_factory=dict)
    csi_nodes: Mapping[str, JsonObject] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[JsonObject]) -> Storage:
        """Sort objects by their kind; others are left out."""
        found: dict[str, dict[str, JsonObject]] = {
            "PersistentVolumeClaim": {}, "PersistentVolume": {}, "StorageClass": {}, "CSINode": {},
        }  # fmt: skip
        for obj in objects:
            kind, metadata = obj.get("kind", ""), obj.get("metadata") or _EMPTY
            if kind in found:
                name = str(metadata.get("name", ""))
                namespaced = kind == "PersistentVolumeClaim"
                found[kind][f"{metadata.get('namespace', '')}/{name}" if namespaced else name] = obj
        return cls(*found.values())


NO_STORAGE: Final = Storage()


class Standing(Protocol):
    """Keeps groundwork between solves."""

    def ground(self, problem: Problem) -> Groundwork | None:
        """The groundwork of a problem; None if it has to be made from nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Pools, instance types, nodes and pods at one moment.

    ``pods`` are those to be placed: pending ones, and those of nodes that are going. ``state_nodes`` are all nodes;
    on those marked for deletion nothing is placed, but their pods count for topology unless they are in ``pods``.
    """

    pools: Sequence[NodePool]
    """Dynamic, ready and not being deleted; in any order."""
    types_of_pool: Mapping[str, Sequence[InstanceType]]
    pods: Sequence[JsonObject] = ()
    daemon_pods: Sequence[JsonObject] = ()
    """One pod for each DaemonSet, as it would be made."""
    state_nodes: Sequence[StateNode] = ()
    pdbs: Sequence[JsonObject] = ()
    storage: Storage = NO_STORAGE
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    """Labels of namespaces, for affinity terms that select them."""
    services: Sequence[JsonObject] = ()
    owners: Mapping[str, JsonObject] = field(default_factory=dict)
    """Controllers of pods by uid, for the selector of default spread constraints."""
    volume_limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By instance type and CSI driver: how many volumes its nodes can attach."""
    options: SolveOptions = SolveOptions()
    now_s: float = 0.0
    well_known: frozenset[str] = ALL_WELL_KNOWN_LABELS
    """Keys that a pool may leave undefined: the common ones and the provider's."""
    known_leaving: tuple[Sequence[StateNode], Sequence[StateNode]] | None = None
    """Nodes, and those of them that are on their way out; used if it is about the very sequence of all nodes."""
    standing: Standing | None = None
    """Who keeps what solves of earlier problems of the same cluster have worked out."""

    @property
    def ordered_pools(self) -> list[NodePool]:
        """Pools with instance types, as they are tried."""
        return [pool for pool in in_order(list(self.pools)) if self.types_of_pool.get(pool.name)]

    @property
    def leaving_nodes(self) -> Sequence[StateNode]:
        """Nodes that are on their way out."""
        known = self.known_leaving
        if known is not None and known[0] is self.state_nodes:
            return known[1]
        return [node for node in self.state_nodes if node.is_marked_for_deletion]

    @property
    def active_nodes(self) -> list[StateNode]:
        """Nodes that stay."""
        return [node for node in self.state_nodes if not node.is_marked_for_deletion]


def pod_key(pod: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or ''}/{metadata['name']}"
