"""Puts a cluster together for a run: the server with the scenario's objects, all components, and the policy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.apiserver.restore import restore
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import VirtualClock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES
from holokube.client.transport import Transport
from holokube.cluster.cloud import CloudState
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.cluster.policies import PolicyOrder, create_all, define, make_policy
from holokube.hollow.node_sets import DEFAULT_PREFIX, NodeSet
from holokube.hollow.node_template import NODE_SET
from holokube.lab.run.transport import ApiTrouble, DiscoveryMemory, LabTransport
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.runtime.journal import Journal
from holokube.sizing.in_process import install as install_sizing
from holokube.store.store import WATCH_BUFFER_EVENTS, Store

_DEFINITIONS: Final = frozenset(("customresourcedefinitions.apiextensions.k8s.io",))
"""Where the store keeps what tells which kinds there are beside the built-in ones."""
HISTORY_EVENTS: Final = WATCH_BUFFER_EVENTS
"""Nobody in a run comes back for what is older than a watch may fall behind. Every event keeps the object as it was
before, so that a longer history takes more memory, and a little more time."""


@cache
def _types() -> TypeCatalog:
    """The built-in types never change: all runs of a process read them once."""
    return TypeCatalog()


class Assembly:
    """A cluster that is not running yet."""

    def __init__(
        self, clock: VirtualClock, scenario: Scenario, policy: PolicySpec, rng: Rng, journal: Journal, *,
        quiet: bool = True,
    ) -> None:
        """``quiet``: what nobody observes is left out."""
        self.clock = clock
        self.scenario = scenario
        self.cloud = CloudState()
        # A Counter takes twice as long to count one more, and each call is.
        self._calls: defaultdict[str, int] = defaultdict(int)
        self._settle_calls: list[Callable[[], None]] = []
        self.trouble = ApiTrouble(rng.fork("api-errors"))
        self.store = Store(history=HISTORY_EVENTS)
        # Who set which field is nowhere told of a run, and nothing in one applies: it is a good part of every write.
        self.registry = Registry(
            clock, rng.fork("apiserver"), self.store, catalog=_types(), tracks_managed_fields=not quiet
        )
        defined = self.store.tally(_DEFINITIONS)
        self._memory = DiscoveryMemory(clock, lambda: defined.count)
        self.client = Client(InProcessTransport(self.registry))
        """The scenario's own: its calls are not counted, and never refused."""
        if scenario.cluster.node_sizing:
            install_sizing(self.registry)
        order = PolicyOrder(
            policy.kind, policy.flags, policy.node_groups, policy.manifests, scenario.catalog, self.cloud,
            is_virtual=quiet,
        )  # fmt: skip
        self.options = LivingOptions(
            profile=scenario.cluster.profile, zones=scenario.cluster.zones, policy=make_policy(order),
            quiet_heartbeats=quiet,
        )  # fmt: skip
        self._rng = rng
        self._journal = journal
        self.living: LivingCluster | None = None

    @property
    def calls(self) -> Mapping[str, int]:
        """The calls of all components up to now, by verb."""
        for settle in self._settle_calls:
            settle()
        return self._calls

    async def start(self) -> LivingCluster:
        """Have everything run, and the nodes that there are from the start be usable."""
        await bootstrap(self.registry)
        await self._restore()
        self.living = LivingCluster.in_process(
            self.clock, self.registry, self._rng.fork("cluster"), self.options, wrap=self._wrap, journal=self._journal
        )
        await self.living.start()
        if self.scenario.cluster.nodes:
            await self._make_nodes(self.living, self.scenario.cluster.nodes)
        return self.living

    def _wrap(self, _name: str, transport: Transport) -> Transport:
        return LabTransport(transport, self._calls, self.trouble, self._memory, self._settle_calls)

    async def _restore(self) -> None:
        """Objects of a snapshot as they were, others as if they were applied now."""
        cluster = self.scenario.cluster
        await define(self.clock, self.client, cluster.objects)
        # Heartbeats and events are about the time at which the snapshot was made.
        objects = [obj for obj in cluster.snapshot_objects if obj.get("kind") not in ("Lease", "Event")]
        report = await restore(self.registry, objects)
        if report.left_out:
            raise UsageError(
                f"{len(report.left_out)} objects of the cluster cannot be used: "
                f"{'; '.join(map(str, report.left_out[:3]))}",
                hint="Take them out of the files, or complete them.",
            )
        await create_all(self.client, cluster.manifests)

    async def _make_nodes(self, living: LivingCluster, count: int) -> None:
        await NodeSet(DEFAULT_PREFIX, self.scenario.cluster.node_maker).scale(self.client, count, _nobody)
        made = (await self.client.list(NODES, label_selector=f"{NODE_SET}={DEFAULT_PREFIX}")).items
        await living.until_usable({node["metadata"]["name"] for node in made})

    async def stop(self) -> None:
        """Take everything down."""
        if self.living is not None:
            await self.living.stop()
        await self.client.close()
        await self.registry.close()
        self.store.close()


def _nobody(_done: int, _total: int) -> None:
    """Nodes of a run come at once; nobody needs to see how far it is."""
