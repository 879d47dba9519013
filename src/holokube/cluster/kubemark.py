"""Kubemark on one machine: an external cluster, and a kubemark cluster whose nodes are its pods, both in one process.

In a real set-up the container of a hollow-node pod is a program, ``holokube fleet --node-name=...`` or kubemark's own.
Here the external cluster's pods are hollow themselves, so somebody else has to do what their containers would do: bring
up a node in the kubemark cluster while the pod runs, and fall silent when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NAMESPACES, NODES, PODS
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL, NAMESPACE, instance_id
from holokube.hollow.fleet import Fleet
from holokube.hollow.node_life import Fault, registration
from holokube.hollow.one_node import node_profile
from holokube.hollow.profile import NodeProfile
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.node_flags import NodeFlags, flags_of_pod
from holokube.kube.types import JsonObject
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, enqueue_self
from holokube.runtime.stop import StopSignal
from holokube.store.store import Store

WORKERS: Final = 4
ADOPTION_LOOK_S: Final = 0.5


class HollowPodRunner:
    """Does what the containers of hollow-node pods would do."""

    name = "hollow-pod-runner"

    def __init__(self, clock: Clock, pods: Informer, client: Client, fleet: Fleet, profile: NodeProfile) -> None:
        """``pods`` are those of the external cluster; ``client`` and ``fleet`` belong to the kubemark cluster."""
        self._pods = pods
        self._client = client
        self._fleet = fleet
        self._profile = profile
        self._up: dict[str, str] = {}
        """The nodes that were brought up, by the key of their pod."""
        source = InformerSource(pods, enqueue_self, predicates=[_is_hollow_node])
        self._controller = Controller(clock, self.name, self._look, sources=[source], workers=WORKERS)

    async def run(self, stop: StopSignal) -> None:
        await self._controller.run(stop)

    async def _look(self, key: str) -> Result | None:
        pod = self._pods.lister.by_key(key)
        if pod is None or not _runs(pod):
            return await self._take_down(key)
        if key not in self._up:
            flags = flags_of_pod(pod["metadata"], pod["spec"])
            if flags is not None and flags.name:
                await self._bring_up(key, flags)
        return None

    async def _bring_up(self, key: str, flags: NodeFlags) -> None:
        provider_id = instance_id(flags.name) if flags.is_kubemark else flags.provider_id
        node = registration(flags.name, node_profile(self._profile, flags), provider_id=provider_id)
        try:
            await self._client.create(NODES, node)
        except AlreadyExists:
            if self._fleet.nodes.get(flags.name) is not None:
                self._fleet.heal(flags.name)
        self._up[key] = flags.name

    async def _take_down(self, key: str) -> Result | None:
        node = self._up.get(key)
        if node is None:
            return None
        if self._fleet.nodes.get(node) is None:
            try:
                await self._client.get(NODES, node)
            except NotFound:
                del self._up[key]
                return None
            # It was made a moment ago, and the fleet has not seen it yet.
            return Result(requeue_after_s=ADOPTION_LOOK_S)
        self._fleet.inject(node, Fault.SILENT)
        del self._up[key]
        return None


def _is_hollow_node(change: Change) -> bool:
    return GROUP_LABEL in (change.object["metadata"].get("labels") or {})


def _runs(pod: JsonObject) -> bool:
    """Whether the containers run; they are told to stop when the pod begins to leave."""
    return (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


@dataclass(frozen=True, slots=True)
class TwoClusterOptions:
    """What both clusters are like."""

    external_nodes: int = 2
    """Machines of the external cluster, on which the hollow-node pods run."""
    namespace: str = NAMESPACE
    external: LivingOptions = field(default_factory=LivingOptions)
    kubemark: LivingOptions = field(default_factory=LivingOptions)


class TwoClusters:
    """An external and a kubemark cluster that live; ``start`` and ``stop`` them together."""

    def __init__(
        self, clock: Clock, external: Registry, kubemark: Registry, rng: Rng, options: TwoClusterOptions | None = None
    ) -> None:
        self.options = options or TwoClusterOptions()
        self._registries = (external, kubemark)
        self.external_client = Client(InProcessTransport(external))
        self.kubemark_client = Client(InProcessTransport(kubemark))
        self.external = LivingCluster.in_process(clock, external, rng.fork("external"), self.options.external)
        self.kubemark = LivingCluster.in_process(clock, kubemark, rng.fork("kubemark"), self.options.kubemark)
        if self.kubemark.fleet is None:
            raise HolokubeError(
                "the kubemark cluster has no fleet to speak for its nodes", hint="Leave Part.FLEET in its options."
            )
        self.kubemark.app.add(HollowPodRunner(
            clock, self.external.informers.get(PODS), self.kubemark_client, self.kubemark.fleet,
            self.options.kubemark.profile.nodes,
        ))  # fmt: skip

    @classmethod
    def in_process(
        cls,
        clock: Clock,
        rng: Rng,
        options: TwoClusterOptions | None = None,
        *,
        catalog: TypeCatalog | None = None,
    ) -> TwoClusters:
        """Two fresh, empty clusters."""
        types = catalog or TypeCatalog()
        external, kubemark = (
            Registry(clock, rng.fork(f"{name}/apiserver"), Store(), catalog=types) for name in ("external", "kubemark")
        )
        return cls(clock, external, kubemark, rng, options)

    async def start(self) -> None:
        """Returns when both run, and the external cluster has its machines and the namespace of hollow nodes."""
        for registry in self._registries:
            await bootstrap(registry)
        await self.external.start()
        await self.kubemark.start()
        await self.external.scale_nodes(self.options.external_nodes)
        try:
            await self.external_client.create(NAMESPACES, {"metadata": {"name": self.options.namespace}})
        except AlreadyExists:
            return

    async def stop(self) -> None:
        """Stops both, and forgets everything."""
        await self.kubemark.stop()
        await self.external.stop()
        for registry in self._registries:
            await registry.close()
            registry.store.close()
