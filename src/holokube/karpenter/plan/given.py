"""What a dry run starts from, wherever it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.scheduling.problem import NO_STORAGE, Problem, SolveOptions, Storage
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject, Labels
from holokube.pricing.instance_types import Catalog, InstanceType

UNSCHEDULABLE: JsonObject = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@dataclass(frozen=True, eq=False)
class Given:
    """A cluster at one moment."""

    pools: tuple[NodePool, ...]
    catalog: Catalog
    pods: tuple[JsonObject, ...]
    """Those that look for a place."""
    daemon_pods: tuple[JsonObject, ...] = ()
    nodes: tuple[StateNode, ...] = ()
    pdbs: tuple[JsonObject, ...] = ()
    storage: Storage = NO_STORAGE
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    services: tuple[JsonObject, ...] = ()
    owners: Mapping[str, JsonObject] = field(default_factory=dict)
    now_s: float = 0.0
    spot_to_spot: bool | None = None
    """Whether the file itself decides the gate."""
    listed_types: int | None = None
    """How many instance types of a claim are shown; all unless told."""
    wants_disruption: bool = True
    """Whether to answer with disruption commands as well."""
    is_case: bool = False
    """Whether it is a problem by itself, and not a cluster."""
    notes: tuple[str, ...] = ()

    def problem(self, options: SolveOptions) -> Problem:
        """The question for the solver: pending pods, and those that nodes being deleted will let go."""
        return self._problem(options, self.pods)

    def disruption_problem(self, options: SolveOptions) -> Problem:
        """What simulations start from: of the pending pods, only those that the scheduler has tried in vain."""
        return self._problem(options, [pod for pod in self.pods if is_provisionable(pod)])

    def _problem(self, options: SolveOptions, pods: Sequence[JsonObject]) -> Problem:
        return Problem(
            pools=[pool for pool in self.pools if not pool.is_static and not pool.is_deleting],
            types_of_pool=self.types_of_pool,
            pods=[*pods, *self.leaving_pods],
            daemon_pods=self.daemon_pods,
            state_nodes=self.nodes,
            pdbs=self.pdbs,
            storage=self.storage,
            namespaces=self.namespaces,
            services=self.services,
            owners=self.owners,
            options=options,
            now_s=self.now_s,
            well_known=self.catalog.well_known,
        )

    @cached_property
    def leaving_pods(self) -> tuple[JsonObject, ...]:
        """Pods that need another place because their node is being deleted."""
        limits = EvictionLimits(self.pdbs)
        return tuple(
            pod for node in self.nodes if node.is_marked_for_deletion for pod in node.pods
            if limits.is_movable(pod, self.now_s)
        )  # fmt: skip

    @property
    def types_of_pool(self) -> dict[str, tuple[InstanceType, ...]]:
        """Every pool is offered the whole catalogue, and takes what its requirements allow."""
        return {pool.name: self.catalog.types for pool in self.pools}


def as_pending(pod: JsonObject) -> JsonObject:
    """A pod that no node was found for; files often leave that out."""
    status = pod.get("status") or {}
    conditions = status.get("conditions") or ()
    if any(one.get("type") == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions):
        return pod
    others = [one for one in conditions if one.get("type") != "PodScheduled"]
    return {**pod, "status": {"phase": "Pending", **status, "conditions": [*others, UNSCHEDULABLE]}}
