"""A fleet on virtual time, its kubelets attached to the embedded API server."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import msgspec

from holokube.base.rng import Rng
from holokube.client.client import PatchType
from holokube.client.resources import NODES, PODS
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.embedded import attach
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.profile import Profile
from holokube.hollow.usage import DEFAULT_USAGE, UsageProfile
from holokube.runtime.app import App, Component
from holokube.runtime.informers import InformerSet
from holokube.testing import Cluster
from tests.builders import pod
from tests.hollow.worlds import fake_node

CAPACITY = {"cpu": "10", "memory": "10Gi", "pods": "110"}


class KubeletWorld:
    """Nodes n0, n1, ... and whatever pods a test makes on them."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        usage: UsageProfile = DEFAULT_USAGE,
        profile: Profile | None = None,
        metrics: bool = True,
    ) -> None:
        self.cluster = Cluster()
        self.clock, self.client = self.cluster.clock, self.cluster.client
        self.registry = self.cluster.registry
        self.informers = InformerSet(self.clock, self.client, Rng(1))
        listed, pods = self.informers.get(NODES), self.informers.get(PODS)
        chosen = msgspec.structs.replace(profile or Profile(), usage=usage)
        options = FleetOptions(annotation_selector="kwok.x-k8s.io/node=fake", profile=chosen)
        self.fleet = Fleet(self.clock, self.client, options, rng=Rng(2), identity="one", nodes=listed, pods=pods)
        self.view = KubeletView.of_fleet(self.clock, self.fleet)
        self.api = KubeletApi(self.view)
        attach(self.registry, self.api, metrics=metrics)
        self.app = App(self.clock)
        self._components: list[Component] = []
        self._running: asyncio.Task[bool] | None = None
        self._nodes = nodes

    def add(self, *components: Component) -> Self:
        """More to run beside the fleet, before ``with`` starts it all."""
        self._components += components
        return self

    def __enter__(self) -> Self:
        for component in (self.informers.runner(), self.fleet, *self._components):
            self.app.add(component)

        async def start() -> None:
            self._running = asyncio.create_task(self.app.run())

        self.cluster.run(start)
        for number in range(self._nodes):
            node = fake_node(f"n{number}")
            node["status"] = {"capacity": CAPACITY, "allocatable": CAPACITY}
            self.cluster.run(self.client.create(NODES, node))
        self.pass_time(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.view.close()
        self.app.stop()
        assert self._running is not None
        self.cluster.run(self._running)
        self.cluster.close()

    def pass_time(self, seconds: float) -> None:
        self.cluster.pass_time(seconds)

    def make_pod(
        self, name: str = "p", *, node: str = "n0", labels: dict[str, str] | None = None,
        requests: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any,
    ) -> None:  # fmt: skip
        made = pod(name, node=node, **spec)
        made["metadata"].update(annotations=annotations or {}, labels=labels or {})
        if requests:
            made["spec"]["containers"][0]["resources"] = {"requests": requests}
        self.cluster.run(self.client.create(PODS, made))

    def patch_pod(self, name: str, patch: dict[str, Any]) -> None:
        self.cluster.run(
            self.client.patch(PODS, name, patch, namespace="default", type=PatchType.MERGE)
        )

    def get(self, path: str, **query: str) -> Any:
        """Over the API, as ``kubectl get --raw`` does."""
        return self.cluster.run(self.client.request("GET", path, query=query))


