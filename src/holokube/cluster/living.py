"""A cluster that lives: every component on one client, one clock and one set of informers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.cluster.components import CONTROLLERS, PARTS, Part
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.profile import Profile
from holokube.kube.conditions import is_true
from holokube.kube.taints import NODE_NOT_READY
from holokube.kube.types import JsonObject
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.metrics import Metrics
from holokube.scheduler import scheduler
from holokube.workloads import service_account_controller

Connect = Callable[[str], Client]
"""Gives a client that goes by a name, which managedFields and audit logs show."""


@dataclass(frozen=True, slots=True)
class LivingOptions:
    """What runs, and how."""

    parts: frozenset[Part] = PARTS
    profile: Profile = field(default_factory=Profile)
    annotation_selector: str = ""
    """Which nodes the fleet speaks for; all of them unless told, for an embedded cluster has no others."""
    lease_duration_s: int = 40
    root_ca: str = ""
    """The certificate that pods find in ``kube-root-ca.crt``, as PEM text."""


class LivingCluster:
    """Builds the components; ``start`` and ``stop`` them, or add ``app`` to something larger."""

    def __init__(
        self,
        clock: Clock,
        connect: Connect,
        rng: Rng,
        options: LivingOptions | None = None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self.options = options or LivingOptions()
        self.app = App(clock, metrics=metrics)
        self._clock = clock
        self._rng = rng
        self._connect = connect
        self._recorders: list[EventRecorder] = []
        # One cache per resource for everybody: in process it shares its objects with the store.
        self.informers = InformerSet(clock, connect("holokube-informers"), rng.fork("informers"))
        self.fleet: Fleet | None = None
        components = self._components()
        for component in (*self._recorders, self.informers.runner(), *components):
            self.app.add(component)
        self._running: asyncio.Task[bool] | None = None

    def _components(self) -> list[Component]:
        parts = self.options.parts
        components: list[Component] = []
        if Part.CONTROLLERS in parts:
            components.extend(self._controllers())
        if Part.SCHEDULER in parts:
            client = self._connect("kube-scheduler")
            recorder = self._recorder("default-scheduler", client)
            components.append(
                scheduler.build(self._clock, client, self.informers, recorder, self._rng.fork("scheduler"))
            )
        if Part.FLEET in parts:
            self.fleet = self._fleet()
            components.append(self.fleet)
        return components

    def _controllers(self) -> list[Component]:
        client = self._connect("kube-controller-manager")
        builds = list(CONTROLLERS)
        if self.options.root_ca:
            build = partial(service_account_controller.build_root_ca, root_ca=self.options.root_ca)
            builds.append(("root-ca-certificate-publisher-controller", build))
        return [
            build(self._clock, client, self.informers, self._recorder(name, client), self._rng.fork(name))
            for name, build in builds
        ]

    def _recorder(self, component: str, client: Client) -> EventRecorder:
        recorder = EventRecorder(self._clock, client, component, rng=self._rng.fork(f"events/{component}"))
        self._recorders.append(recorder)
        return recorder

    def _fleet(self) -> Fleet:
        options = self.options
        return Fleet(
            self._clock,
            self._connect("kubelet"),
            FleetOptions(
                manage_all_nodes=not options.annotation_selector,
                annotation_selector=options.annotation_selector,
                lease_duration_s=options.lease_duration_s,
                profile=options.profile,
            ),
            rng=self._rng.fork("fleet"),
            identity="holokube",
            nodes=self.informers.get(NODES),
            pods=self.informers.get(PODS),
        )

    async def start(self) -> None:
        """Begin to run, in tasks of the present loop; returns when all caches are filled."""
        if self._running is not None:
            raise HolokubeError("the cluster runs already", hint="Stop it, and build a new one.")
        self._running = asyncio.create_task(self.app.run(), name="cluster")
        synced = asyncio.create_task(self.informers.synced())
        await asyncio.wait({synced, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if not synced.done():
            synced.cancel()
            self._running.result()
            raise HolokubeError("the cluster stopped before it was up", hint="See the log for why.")
        synced.result()

    async def add_nodes(self, count: int) -> None:
        """Register hollow nodes, and wait until pods may go to all of them; those that exist are taken as they are."""
        if self.fleet is None:
            raise HolokubeError("a cluster without a fleet has nobody to register nodes", hint="Add Part.FLEET.")
        names = [f"hollow-{number:05d}" for number in range(count)]
        await self.fleet.register(names)
        await self._until_usable(set(names))

    async def _until_usable(self, missing: set[str]) -> None:
        done = asyncio.get_running_loop().create_future()

        def on_node(_type: str, _old: JsonObject | None, new: JsonObject | None) -> None:
            if new is not None and self._is_usable(new):
                missing.discard(new["metadata"]["name"])
            if not missing and not done.done():
                done.set_result(None)

        remove = self.informers.get(NODES).add_handler(on_node)
        try:
            if missing:
                await done
        finally:
            remove()

    def _is_usable(self, node: JsonObject) -> bool:
        taints = (node.get("spec") or {}).get("taints") or ()
        # The taint that every node begins with is taken away by a controller.
        tainted = any(taint["key"] == NODE_NOT_READY for taint in taints)
        return is_true(node, "Ready") and not (tainted and Part.CONTROLLERS in self.options.parts)

    async def stop(self) -> None:
        """Stop all components in good order; the API server may go afterwards."""
        running, self._running = self._running, None
        if running is not None:
            self.app.stop("the cluster stops")
            await running
