"""A cluster that lives: every component on one client, one clock and one set of informers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from msgspec.structs import replace

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.registry import Registry
from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES, STORAGE_CLASSES
from holokube.client.transport import Transport
from holokube.cluster.components import CONTROLLERS, PARTS, Part
from holokube.cluster.policy import Policy, Site
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.embedded import attach
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.node_sets import DEFAULT_PREFIX, NodeSet
from holokube.hollow.node_template import NODE_SET, ProfileTemplate
from holokube.hollow.profile import Profile
from holokube.kube.conditions import is_true
from holokube.kube.taints import NODE_NOT_READY
from holokube.kube.types import JsonObject
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.runtime.metrics import Metrics
from holokube.scheduler import scheduler
from holokube.workloads import service_account_controller
from holokube.workloads.pod_indexes import NODE_INDEX, pods_by_node

NEVER_S: Final = 100 * 365 * 86_400.0
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

Connect = Callable[[str], Client]
"""Gives a client that goes by a name, which managedFields and audit logs show."""


@dataclass(frozen=True, slots=True)
class LivingOptions:
    """What runs, and how."""

    parts: frozenset[Part] = PARTS
    profile: Profile = field(default_factory=Profile)
    annotation_selector: str = ""
    """Which nodes the fleet speaks for; all of them unless told, for an embedded cluster has no others."""
    zones: tuple[str, ...] = ()
    """In which ``scale_nodes`` puts nodes, in turn."""
    lease_duration_s: int = 40
    quiet_heartbeats: bool = False
    """Heartbeats that nobody observes are not written: a lease stands for all its renewals, and an unchanged status is
    not told again. A node that falls silent is found out all the same, at the time at which it would have been."""
    policy: Policy | None = None
    """Who decides how many nodes there are; nobody unless told."""
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
        journal: Journal | None = None,
    ) -> None:
        self.options = options or LivingOptions()
        self.journal = journal if journal is not None else Journal()
        self.app = App(clock, metrics=metrics)
        self._clock = clock
        self._rng = rng
        self._connect = connect
        self._recorders: list[EventRecorder] = []
        # One cache per resource for everybody: in process it shares its objects with the store.
        self.informers = InformerSet(clock, connect("holokube-informers"), rng.fork("informers"))
        self.fleet: Fleet | None = None
        components = self._components()
        everything: list[Component] = [*self._recorders, self.informers.runner(), *components]
        for component in everything:
            self.app.add(component)
        self._running: asyncio.Task[bool] | None = None

    @classmethod
    def in_process(
        cls,
        clock: Clock,
        registry: Registry,
        rng: Rng,
        options: LivingOptions | None = None,
        *,
        wrap: Callable[[str, Transport], Transport] = lambda _name, transport: transport,
        journal: Journal | None = None,
    ) -> LivingCluster:
        """A cluster around an embedded API server, without a wire in between.

        ``wrap`` may put something around the way to the server of the client that goes by a name.
        """
        chosen = options or LivingOptions()

        def connect(name: str) -> Client:
            return Client(wrap(name, InProcessTransport(registry, Caller(user_agent=name))))

        if Part.CONTROLLERS in chosen.parts:
            # A controller makes the accounts; nobody has to take them for granted any more.
            registry.admission.assumes_default_service_account = False
        living = cls(clock, connect, rng, chosen, journal=journal)
        if living.fleet is not None:
            view = KubeletView.of_fleet(clock, living.fleet, counts_when_asked=chosen.quiet_heartbeats)
            attach(registry, KubeletApi(view))
        return living

    def _components(self) -> list[Component]:
        parts = self.options.parts
        components: list[Component] = []
        if Part.CONTROLLERS in parts:
            components.extend(self._controllers())
        if Part.SCHEDULER in parts:
            client = self._connect("kube-scheduler")
            # The one component of upstream's that records in the new way, as series.
            recorder = self._recorder("default-scheduler", client, api="events.k8s.io/v1")
            components.append(
                scheduler.build(self._clock, client, self.informers, recorder, self._rng.fork("scheduler"))
            )
        if Part.FLEET in parts:
            self.fleet = self._fleet()
            components.append(self.fleet)
        if self.options.policy is not None:
            rng = self._rng.fork("policy")
            site = Site(self._clock, self._connect, self.informers, rng, self.app.metrics, self.journal)
            components.extend(self.options.policy.build(site))
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

    def _recorder(
        self, component: str, client: Client, *, api: Literal["v1", "events.k8s.io/v1"] = "v1"
    ) -> EventRecorder:
        rng = self._rng.fork(f"events/{component}")
        recorder = EventRecorder(self._clock, client, component, rng=rng, api=api)
        self._recorders.append(recorder)
        return recorder

    def _fleet(self) -> Fleet:
        options = self.options
        profile = options.profile
        if options.quiet_heartbeats:
            profile = replace(profile, nodes=replace(profile.nodes, report_every_s=NEVER_S))
        return Fleet(
            self._clock,
            self._connect("kubelet"),
            FleetOptions(
                manage_all_nodes=not options.annotation_selector,
                annotation_selector=options.annotation_selector,
                lease_duration_s=options.lease_duration_s,
                continuous_leases=options.quiet_heartbeats,
                profile=profile,
            ),
            rng=self._rng.fork("fleet"),
            identity="holokube",
            nodes=self.informers.get(NODES),
            # The controllers have use for the same index.
            pods=pods_by_node(self.informers),
            by_node=NODE_INDEX,
        )

    async def start(self) -> None:
        """Begin to run, in tasks of the present loop; returns when all caches are filled."""
        if self._running is not None:
            raise HolokubeError("the cluster runs already", hint="Stop it, and build a new one.")
        if self.options.policy is not None:
            await self.options.policy.prepare(self._clock, self._connect("holokube"))
        self._running = asyncio.create_task(self.app.run(), name="cluster")
        synced = asyncio.create_task(self.informers.synced())
        await asyncio.wait({synced, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if not synced.done():
            synced.cancel()
            self._running.result()
            raise HolokubeError("the cluster stopped before it was up", hint="See the log for why.")
        synced.result()
        if Part.CONTROLLERS in self.options.parts:
            await self._ensure_storage_class()

    async def _ensure_storage_class(self) -> None:
        """Claims that name no class get volumes, as in every cluster of kind or minikube."""
        client = self._connect("holokube")
        if not (await client.list(STORAGE_CLASSES)).items:
            await client.create(STORAGE_CLASSES, {
                "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
                "provisioner": "hollow.holokube.dev", "volumeBindingMode": "WaitForFirstConsumer",
            })  # fmt: skip

    async def scale_nodes(self, count: int, on_progress: Callable[[int], None] = lambda _usable: None) -> None:
        """Make or remove hollow nodes until there are ``count``, and wait until pods may go to all of them.

        They are the set that ``holokube scale nodes`` works on, so that it can go on from here.
        """
        maker = ProfileTemplate(self.options.profile.nodes, self.options.zones)
        client = self._connect("holokube")
        await NodeSet(DEFAULT_PREFIX, maker).scale(client, count, lambda _done, _total: None)
        listed = (await client.list(NODES, label_selector=f"{NODE_SET}={DEFAULT_PREFIX}")).items
        if Part.FLEET in self.options.parts:
            await self.until_usable({node["metadata"]["name"] for node in listed}, on_progress)

    async def until_usable(
        self, missing: set[str], on_progress: Callable[[int], None] = lambda _usable: None
    ) -> None:
        """Wait until pods may go to all of these nodes."""
        wanted = len(missing)
        done = asyncio.get_running_loop().create_future()

        def on_node(_type: str, _old: JsonObject | None, new: JsonObject | None) -> None:
            if new is not None and new["metadata"]["name"] in missing and self._is_usable(new):
                missing.remove(new["metadata"]["name"])
                on_progress(wanted - len(missing))
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
