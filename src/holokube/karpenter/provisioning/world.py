"""Gathers what a solve has to know from the caches, at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holokube.base.clock import Clock
from holokube.base.identity import are_same
from holokube.client.audience import OWNERS
from holokube.client.cache import object_key
from holokube.client.informer import Informer
from holokube.client.resources import (
    CSI_NODES,
    DAEMON_SETS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.node_pool import NodePool, in_order
from holokube.karpenter.api.resources import NODE_POOLS
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.lifecycle.sources import class_ref_of_pool
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.provisioning.daemons import BY_DAEMON_SET, daemon_pod, daemon_sets_of
from holokube.karpenter.provisioning.selection import Selection, Selector, moving_pods
from holokube.karpenter.scheduling.glance import Glance
from holokube.karpenter.scheduling.problem import Problem, SolveOptions, Storage
from holokube.karpenter.scheduling.standing_ground import Given, StandingGround
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from holokube.karpenter.settings import Settings
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.types import JsonObject, Labels
from holokube.pricing.instance_types import InstanceType
from holokube.runtime.informers import InformerSet

_NEEDED = (
    CSI_NODES, DAEMON_SETS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    STORAGE_CLASSES,
)  # fmt: skip
_OWNERS = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
"""Their selectors are needed for spread constraints by default only."""


TypesOfPool = Mapping[str, Sequence[InstanceType]]


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster at one moment: nodes, what waits, and what will have to move."""

    now_s: float
    nodes: Sequence[StateNode]
    selection: Selection
    moving: tuple[JsonObject, ...]
    """Pods of nodes on their way out."""
    pdbs: Sequence[JsonObject]
    pools: Mapping[str, NodePool]
    """All pools that are ours, by name; those that can be used are in ``problem``."""
    types_of_pool: TypesOfPool
    problem: Problem

    @property
    def pods(self) -> list[JsonObject]:
        """All that need a place."""
        return [*self.selection.pending, *self.moving]


class World:
    """Reads scenes from caches."""

    def __init__(
        self, clock: Clock, informers: InformerSet, provider: CloudProvider, settings: Settings
    ) -> None:
        self._clock = clock
        self._provider = provider
        self._pods = informers.indexed(PODS, BY_DAEMON_SET, daemon_sets_of, heeds=OWNERS, when_asked=True)
        self._pools = informers.get(NODE_POOLS)
        resources: list[Resource] = [*_NEEDED]
        if settings.default_spread_constraints:
            resources += [SERVICES, *_OWNERS]
        self._informers: dict[Resource, Informer] = {one: informers.get(one) for one in resources}
        self._pool_views: dict[str, tuple[JsonObject, NodePool]] = {}
        self._standing = StandingGround()
        self._selector = Selector()
        self._limits = EvictionLimits()
        self._options = _provisioning_options(settings)
        self._stored: tuple[list[list[JsonObject]], Storage] = [], Storage()
        """Lists of storage objects as they were read last, and what they amount to."""
        self._offered: tuple[list[object], list[NodePool], list[Sequence[InstanceType]]] = [], [], []
        """Pools and their types as they were given last, and those that new nodes may be of, as they are tried."""
        self._named: tuple[list[JsonObject], dict[str, Labels]] = [], {}
        """The same of namespaces and their labels."""

    @property
    def informers(self) -> list[Informer]:
        """The caches that must be filled."""
        return [self._pods, self._pools, *self._informers.values()]

    def scene(self, state: ClusterState, options: SolveOptions) -> Scene:
        """The cluster now. Nodes are read before pods, so that room is rather seen too late than pods are."""
        now_s = self._clock.time()
        nodes = state.all_nodes
        storage = self._storage()
        selection = self._selector.select(state.unbound_pods, VolumeReader(storage), self._provider.well_known)
        pdbs = self.pdbs()
        leaving = state.leaving_nodes
        moving = tuple(moving_pods(leaving, self.limits(pdbs), now_s))
        pools = self.pools()
        types = self.types(pools)
        problem = Problem(
            pools=_usable(pools),
            types_of_pool=types,
            pods=[*selection.pending, *moving],
            daemon_pods=self._daemon_pods(),
            state_nodes=nodes,
            pdbs=pdbs,
            storage=storage,
            namespaces=self._namespaces(),
            services=self._list(SERVICES),
            owners={
                one["metadata"]["uid"]: one
                for resource in _OWNERS
                for one in self._list(resource)
            },
            options=options,
            now_s=now_s,
            well_known=self._provider.well_known,
            known_leaving=(nodes, leaving),
            standing=self._standing,
        )
        return Scene(now_s, nodes, selection, moving, pdbs, pools, types, problem)

    def glance(
        self, state: ClusterState, options: SolveOptions, pools: Mapping[str, NodePool], types_of_pool: TypesOfPool
    ) -> Glance | None:
        """What the last scene that was solved or simulated tells of the cluster now; None if one has to be made."""
        offered = [*pools.values(), *types_of_pool.values()]
        if not are_same(offered, self._offered[0]):
            ordered = [pool for pool in in_order(_usable(pools)) if types_of_pool[pool.name]]
            self._offered = offered, ordered, [types_of_pool[pool.name] for pool in ordered]
        given = Given(options, self._provider.well_known, *self._offered[1:], self._daemon_pods())
        return self._standing.glance(given, state.all_nodes, self._clock.time())

    def pools(self) -> dict[str, NodePool]:
        """The pools of our provider that can be read, by name."""
        found: dict[str, NodePool] = {}
        for obj in self._pools.lister.list():
            name = obj["metadata"]["name"]
            known = self._pool_views.get(name)
            if known is not None and known[0] is obj:
                found[name] = known[1]
            elif self._provider.supports(NodeClassRef.from_json(class_ref_of_pool(obj))):
                try:
                    found[name] = NodePool.of(obj)
                except ValueError:
                    # Validation tells it in the pool's condition.
                    continue
                self._pool_views[name] = obj, found[name]
        return found

    def types(self, pools: Mapping[str, NodePool]) -> dict[str, Sequence[InstanceType]]:
        """What each pool can choose from."""
        return {name: self._provider.instance_types(pool) for name, pool in pools.items()}

    def pdbs(self) -> list[JsonObject]:
        """All PodDisruptionBudgets."""
        return self._list(POD_DISRUPTION_BUDGETS)

    def limits(self, pdbs: Sequence[JsonObject]) -> EvictionLimits:
        """What they allow; the very same answer until one of them changes."""
        self._limits = self._limits.at(pdbs)
        return self._limits

    def provisioning_options(self) -> SolveOptions:
        """Those of a provisioning pass."""
        return self._options

    def _list(self, resource: Resource) -> list[JsonObject]:
        informer = self._informers.get(resource)
        return informer.lister.list() if informer is not None else []

    def _storage(self) -> Storage:
        kinds = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES)
        lists = [self._list(kind) for kind in kinds]
        # Objects that are the same are not compared any further, and there are few changes among them.
        if lists != self._stored[0]:
            self._stored = lists, Storage(*[{object_key(one): one for one in found} for found in lists])
        return self._stored[1]

    def _namespaces(self) -> dict[str, Labels]:
        found = self._list(NAMESPACES)
        if found != self._named[0]:
            self._named = found, {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in found}
        return self._named[1]

    def _daemon_pods(self) -> list[JsonObject]:
        return [
            daemon_pod(one, self._pods.lister.by_index(BY_DAEMON_SET, one["metadata"]["uid"]))
            for one in self._list(DAEMON_SETS)
        ]


def _usable(pools: Mapping[str, NodePool]) -> list[NodePool]:
    """Pools that new nodes may be of."""
    return [pool for pool in pools.values() if pool.is_ready and not pool.is_static and not pool.is_deleting]


def _provisioning_options(settings: Settings) -> SolveOptions:
    return SolveOptions(
        preference_policy="Respect" if settings.respects_preferences else "Ignore",
        min_values_policy="BestEffort" if settings.min_values_policy == "BestEffort" else "Strict",
        reserved_capacity=settings.feature_gates.reserved_capacity,
        ignore_dra_requests=settings.ignore_dra_requests,
        default_spread_constraints=settings.default_spread_constraints,
    )
