"""The policy ``cluster-autoscaler``: kwok groups of hollow nodes, scaled as the Cluster Autoscaler does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.cluster.cloud import CloudState, follow
from holokube.cluster.policy import Site
from holokube.cluster_autoscaler.cloud.kwok.provider import build as build_kwok
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.loop.autoscaler import TURN_S_PER_POD, Autoscaler
from holokube.cluster_autoscaler.loop.event_correlation import event_recorder
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.quotas import limiter_of
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component

COMPONENT: Final = "cluster-autoscaler"
_GROUP: Final = "cluster-autoscaler.kwok.nodegroup"


@dataclass(frozen=True, slots=True)
class ClusterAutoscalerPolicy:
    """Groups and settings; ``templates`` are Nodes with the annotations of the kwok provider."""

    options: AutoscalerOptions = field(default_factory=AutoscalerOptions)
    templates: Sequence[JsonObject] = ()
    """Without any, ``default_groups``."""
    on_turn: Callable[[TurnReport], None] | None = None
    cloud: CloudState | None = None
    """What the groups' cloud is short of, besides what the templates say."""
    is_virtual: bool = False
    """Whether turns that would decide nothing new are left out, and the others take as long as upstream's."""

    @property
    def name(self) -> str:
        return COMPONENT

    async def prepare(self, clock: Clock, client: Client) -> None:
        """Nothing: groups are made of nodes."""

    def build(self, site: Site) -> list[Component]:
        client = site.connect(COMPONENT)
        options = self.options
        templates = list(self.templates) or default_groups()

        async def provider() -> CloudProvider:
            made = await build_kwok(
                site.clock, client, site.informers, site.rng.fork("provider"), environ={}, templates=templates,
                namespace=options.namespace,
                resource_limiter=limiter_of(options),
            )  # fmt: skip
            if self.cloud is not None:
                follow(made, self.cloud)
            return made

        recorder = event_recorder(site.clock, client, options, site.rng.fork("events"), site.metrics)
        return [
            recorder,
            Autoscaler(
                site.clock, client, site.informers, recorder, site.rng.fork("autoscaler"),
                provider, options, metrics=AutoscalerMetrics(site.clock, options, site.metrics.registry),
                journal=site.journal, on_turn=self.on_turn, rests=self.is_virtual,
                turn_s_per_pod=TURN_S_PER_POD if self.is_virtual else 0.0,
            ),
        ]  # fmt: skip


def default_groups() -> list[JsonObject]:
    """Three sizes of one shape, for those who want to see something grow before they describe their own."""
    return [
        group_template("small", cpu="2", memory="8Gi", price_usd_per_hour="0.10"),
        group_template("medium", cpu="4", memory="16Gi", price_usd_per_hour="0.20"),
        group_template("large", cpu="8", memory="32Gi", price_usd_per_hour="0.40"),
    ]


def group_template(
    name: str, *, cpu: str, memory: str, pods: str = "110", max_count: int = 200, price_usd_per_hour: str = ""
) -> JsonObject:
    """A template of the kwok provider that says the least."""
    annotations = {f"{_GROUP}/name": name, f"{_GROUP}/max-count": str(max_count)}
    if price_usd_per_hour:
        annotations[f"{_GROUP}/price-per-hour"] = price_usd_per_hour
    size = {"cpu": cpu, "memory": memory, "pods": pods}
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {"capacity": size, "allocatable": dict(size)},
    }
