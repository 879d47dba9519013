"""All of Karpenter, put together: components that run on any API server, on any clock."""

from __future__ import annotations

from dataclasses import dataclass

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import PODS
from holokube.karpenter.api.install import install
from holokube.karpenter.disruption.view import DisruptionOptions
from holokube.karpenter.disruption_loop.loop import DisruptionLoop
from holokube.karpenter.disruption_loop.marking import Marker
from holokube.karpenter.disruption_loop.queue import DisruptionQueue
from holokube.karpenter.events import Publisher
from holokube.karpenter.lifecycle.claim_controller import ClaimController
from holokube.karpenter.lifecycle.consistency import Consistency
from holokube.karpenter.lifecycle.disruption_conditions import DisruptionConditions
from holokube.karpenter.lifecycle.expiration import Expiration
from holokube.karpenter.lifecycle.garbage_collection import GarbageCollection
from holokube.karpenter.lifecycle.hydration import Hydration
from holokube.karpenter.lifecycle.pod_events import PodEvents
from holokube.karpenter.lifecycle.pool_counter import PoolCounter
from holokube.karpenter.lifecycle.pool_hash_keeper import PoolHashKeeper
from holokube.karpenter.lifecycle.pool_health import PoolHealthBook
from holokube.karpenter.lifecycle.pool_readiness import PoolReadiness
from holokube.karpenter.lifecycle.pool_registration_health import PoolRegistrationHealth
from holokube.karpenter.lifecycle.pool_validation import PoolValidation
from holokube.karpenter.lifecycle.registration_health import RegistrationHealth
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.faults import Faults
from holokube.karpenter.provider.hollow import HollowProvider
from holokube.karpenter.provider.machines import Machines
from holokube.karpenter.provider.measured import MeasuredProvider
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.provisioning.batcher import Batcher
from holokube.karpenter.provisioning.claims import ClaimMaker
from holokube.karpenter.provisioning.provisioner import Provisioner
from holokube.karpenter.provisioning.triggers import NodeTrigger, PodTrigger
from holokube.karpenter.provisioning.world import World
from holokube.karpenter.settings import Settings
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.state.collector import ClusterCollector
from holokube.karpenter.state.pod_watch import PodWatch
from holokube.karpenter.state.purge import StatePurge
from holokube.karpenter.strategy import KARPENTER, Strategy
from holokube.karpenter.termination.claim_finalizer import ClaimFinalizer
from holokube.karpenter.termination.eviction_queue import EvictionQueue
from holokube.karpenter.termination.node_controller import NodeTermination
from holokube.pricing.instance_types import Catalog
from holokube.runtime.app import Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.runtime.stop import StopSignal

COMPONENT = "karpenter"
"""The name under which it speaks in events."""


class Definitions:
    """A component that brings the definitions of Karpenter's objects onto the server, and is done."""

    name = "karpenter-definitions"

    def __init__(self, clock: Clock, client: Client) -> None:
        self._clock = clock
        self._client = client

    async def run(self, stop: StopSignal) -> None:
        await stop.finishes_first(install(self._clock, self._client))


@dataclass(frozen=True, slots=True)
class _Tools:
    """What nearly every part is built with."""

    clock: Clock
    client: Client
    informers: InformerSet
    publisher: Publisher
    metrics: KarpenterMetrics
    provider: CloudProvider
    state: ClusterState

    def provider_for(self, controller: str) -> CloudProvider:
        """The provider; what it is asked for counts under this name."""
        return MeasuredProvider(self.clock, self.provider, self.metrics, controller)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,
    settings: Settings,
    catalog: Catalog,
    *,
    faults: Faults | None = None,
    metrics: KarpenterMetrics | None = None,
    installs_definitions: bool = True,
    journal: Journal | None = None,
    strategy: Strategy = KARPENTER,
) -> list[Component]:
    """All components on the hollow cloud; caches that they need are asked for here.

    ``faults`` are the cloud's. Without ``installs_definitions`` somebody else has put them on the server. Decisions are
    told to the ``journal``; the ``strategy`` makes them.
    """
    cloud = rng.fork("provider")
    provider = HollowProvider(clock, client, informers, cloud, catalog, faults)
    world = World(clock, informers, provider, settings)
    state = ClusterState(
        clock, informers, provider.supports, nomination_s=settings.nomination_s, needs=world.informers
    )
    tools = _Tools(
        clock, client, informers, Publisher(clock, recorder, journal), metrics or KarpenterMetrics(), provider, state
    )
    if not settings.disable_cluster_state_observability:
        _observe(tools, world)
    components: list[Component] = [Definitions(clock, client)] if installs_definitions else []
    return [
        *components,
        Machines(clock, client, informers, cloud, provider),
        *_lifecycle(tools),
        *_pools(tools),
        *_deciding(tools, world, rng, settings, strategy),
    ]


def _observe(tools: _Tools, world: World) -> None:
    """Metrics of what is there."""
    pods = tools.informers.get(PODS)
    PodWatch(tools.clock, pods, tools.metrics, tools.state.pod_times)
    tools.metrics.registry.register(
        ClusterCollector(tools.clock, tools.state, pods, world.pools, lambda: world.types(world.pools()))
    )


def _lifecycle(tools: _Tools) -> list[Component]:
    """Claims and nodes from their beginning to their end."""
    clock, client, informers, metrics = tools.clock, tools.client, tools.informers, tools.metrics
    publisher, provider, state = tools.publisher, tools.provider, tools.state
    health = RegistrationHealth()
    evictions = EvictionQueue(clock, client, informers, publisher, metrics)
    in_lifecycle = tools.provider_for(ClaimController.name)
    finalizer = ClaimFinalizer(clock, client, informers, publisher, metrics, in_lifecycle)
    book = PoolHealthBook(clock, client, informers, health)
    return [
        StatePurge(clock, client, informers, state),
        ClaimController(
            clock, client, informers, publisher, metrics, in_lifecycle, finalizer, book, state.pod_times
        ),
        DisruptionConditions(clock, client, informers, provider),
        PodEvents(clock, client, informers, provider),
        Expiration(clock, client, informers, metrics, provider, state),
        GarbageCollection(
            clock, client, informers, metrics, tools.provider_for(GarbageCollection.name), state
        ),
        Consistency(clock, client, informers, publisher, provider),
        Hydration(clock, client, informers, provider),
        PoolRegistrationHealth(clock, client, informers, provider, health),
        evictions,
        NodeTermination(
            clock, client, informers, publisher, metrics, tools.provider_for(NodeTermination.name), state, evictions
        ),
    ]  # fmt: skip


def _pools(tools: _Tools) -> list[Component]:
    """What pools say about themselves."""
    clock, client, informers, provider = tools.clock, tools.client, tools.informers, tools.provider
    return [
        PoolCounter(clock, client, informers, provider, tools.state),
        PoolReadiness(clock, client, informers, provider),
        PoolValidation(clock, client, informers, provider),
        PoolHashKeeper(clock, client, informers, provider),
    ]


def _deciding(
    tools: _Tools, world: World, rng: Rng, settings: Settings, strategy: Strategy
) -> list[Component]:
    """The two loops, with what feeds them and carries out what they decide."""
    clock, client, informers, metrics = tools.clock, tools.client, tools.informers, tools.metrics
    publisher, state = tools.publisher, tools.state
    batcher = Batcher(clock, idle_s=settings.batch_idle_duration_s, max_s=settings.batch_max_duration_s)
    maker = ClaimMaker(client, state, publisher, metrics, rng.fork("claims"))
    marker = Marker(clock, client)
    queue = DisruptionQueue(clock, client, informers, publisher, metrics, state, maker, marker)
    options = DisruptionOptions(spot_to_spot=settings.feature_gates.spot_to_spot_consolidation)
    return [
        PodTrigger(clock, informers, batcher, state.pod_times),
        NodeTrigger(clock, informers, batcher),
        Provisioner(clock, publisher, metrics, state, world, batcher, maker, strategy.solve_on(clock)),
        queue,
        DisruptionLoop(
            clock, publisher, metrics, tools.provider, state, world, queue, marker,
            strategy.simulate, options, strategy.methods,
        ),
    ]  # fmt: skip
