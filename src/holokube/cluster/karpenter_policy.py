"""The policy ``karpenter``: NodePools of hollow nodes, made and consolidated as Karpenter does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.cluster.policy import Site
from holokube.karpenter.api.install import install
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_POOLS
from holokube.karpenter.app import COMPONENT, build
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.faults import Faults
from holokube.karpenter.settings import Settings
from holokube.karpenter.strategy import KARPENTER, Strategy
from holokube.kube.errors import AlreadyExists
from holokube.kube.types import JsonObject
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import Catalog
from holokube.runtime.app import Component
from holokube.runtime.events import EventRecorder

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class KarpenterPolicy:
    """Settings, and what the cloud has on offer."""

    settings: Settings = field(default_factory=Settings)
    catalog: Catalog | None = None
    """Without one, the generated catalogue of upstream's kwok provider."""
    faults: Faults | None = None

    @property
    def name(self) -> str:
        return COMPONENT

    async def prepare(self, clock: Clock, client: Client) -> None:
        """The definitions, and in a cluster without NodePools one that takes everything, so that something happens."""
        await install(clock, client)
        if (await client.list(NODE_POOLS, limit=1)).items:
            return
        for resource, obj in ((KWOK_NODE_CLASSES, default_node_class()), (NODE_POOLS, default_node_pool())):
            try:
                await client.create(resource, obj)
            except AlreadyExists:
                continue

    def strategy(self) -> Strategy:
        """Who decides, for one run."""
        return KARPENTER

    def build(self, site: Site) -> list[Component]:
        client = site.connect(COMPONENT)
        recorder = EventRecorder(site.clock, client, COMPONENT, rng=site.rng.fork("events"), metrics=site.metrics)
        return [
            recorder,
            *build(
                site.clock, client, site.informers, recorder, site.rng.fork("karpenter"), self.settings,
                self.catalog if self.catalog is not None else generate(), faults=self.faults,
                metrics=KarpenterMetrics(site.metrics.registry), installs_definitions=False,
                journal=site.journal, strategy=self.strategy(),
            ),
        ]  # fmt: skip


def default_node_class() -> JsonObject:
    """A class without a wish."""
    return {
        "apiVersion": KWOK_NODE_CLASSES.api_version, "kind": KWOK_NODE_CLASSES.kind, "metadata": {"name": DEFAULT},
        "spec": {},
    }  # fmt: skip


def default_node_pool() -> JsonObject:
    """A pool of Linux machines that are bought, not bid for."""
    reference = {"group": KWOK_NODE_CLASSES.group, "kind": KWOK_NODE_CLASSES.kind, "name": DEFAULT}
    requirements = [
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    return {
        "apiVersion": NODE_POOLS.api_version, "kind": NODE_POOLS.kind, "metadata": {"name": DEFAULT},
        "spec": {"template": {"spec": {"requirements": requirements, "nodeClassRef": reference}}},
    }  # fmt: skip
