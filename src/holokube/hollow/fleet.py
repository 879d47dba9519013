"""The fleet: hollow kubelets for all nodes that a selector picks, on one list-and-watch each of nodes and pods.

A node is adopted when it matches. With leases on, the fleet speaks for it while it holds its lease, so that several
fleets share a cluster: first come, first served, and what one leaves behind the others take when its leases expire.
Without leases every node that matches is the fleet's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from operator import call

from holokube.base.clock import Clock
from holokube.base.errors import TransportError, UsageError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.audience import SPEC
from holokube.client.backoff import BackoffPolicy
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer, Transform
from holokube.client.resources import NODES, PODS
from holokube.hollow import pod_life
from holokube.hollow.draws import KeyedDraws, stable_int
from holokube.hollow.event_sink import EventSink
from holokube.hollow.leases import LeaseKeeper
from holokube.hollow.node_keeper import NodeKeeper
from holokube.hollow.node_life import Fault, registration
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_keeper import PodKeeper
from holokube.hollow.profile import Profile
from holokube.hollow.stages.lives import STAGES, StageBook, StagedNodeLife, StagedPodLife
from holokube.hollow.stages.loading import StageSet
from holokube.hollow.stages.stage import Kind
from holokube.hollow.usage import UsageProfile
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import Carrier, ClientCarrier, WritePool
from holokube.kube.errors import AlreadyExists, ApiError
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.stop import StopSignal

DEFAULT_ANNOTATION_SELECTOR = "kwok.x-k8s.io/node=fake"
RELEASE_DEADLINE_S = 5.0
START_RETRY_S = 1.0
REGISTRARS = 8
WATCH_BACKOFF = BackoffPolicy(max_s=4.0)
"""Shorter than others wait: after a restart of the server, pods wait for this."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Which nodes, and how; one of the ways to choose nodes is obligatory."""

    manage_all_nodes: bool = False
    annotation_selector: str = ""
    label_selector: str = ""
    node_name: str = ""
    """One node alone: then nothing else is listed or watched, as a real kubelet does."""
    provider_id: str = ""
    """``spec.providerID`` of that node, if the fleet registers it."""
    lease_duration_s: int = 40
    """0 switches leases off: then every node that matches is ours, and only its status beats."""
    continuous_leases: bool = False
    """Leases are written when a node is taken and when its heartbeat ends, instead of every ten seconds. For virtual
    time, where those who watch them understand ``kube.heartbeats``; the leases are nobody else's then."""
    shard: int = 0
    shards: int = 1
    """Of several fleets, each begins with its own share of the nodes, and takes others only when left alone."""
    workers: int = 16
    lease_workers: int = 4
    profile: Profile = field(default_factory=Profile)
    stages: StageSet | None = None
    """Nodes or pods live by these instead of by the profile; a kind without any keeps the built-in life."""
    cluster_stages: bool = False
    """Both live by Stages, also by those that are objects of the cluster, which must have kwok's CRD."""

    def __post_init__(self) -> None:
        chosen = bool(self.annotation_selector or self.label_selector)
        if self.node_name:
            if chosen or self.manage_all_nodes or self.shards != 1:
                raise UsageError(
                    f"a fleet for the node {self.node_name} alone takes no selector and has no shards",
                    hint="Leave out either the node's name or all other ways to choose nodes.",
                )
            return
        if self.manage_all_nodes == chosen:
            raise UsageError(
                "a fleet needs either all nodes or a selector, not "
                + ("both" if chosen else "neither of them"),
                hint=f"Set manage_all_nodes, label_selector, or annotation_selector={DEFAULT_ANNOTATION_SELECTOR!r}.",
            )
        if not 0 <= self.shard < self.shards:
            raise UsageError(
                f"shard {self.shard} of {self.shards} does not exist", hint="Shards count from 0 to shards - 1."
            )


class Fleet:
    """A component: run it in an app, or by itself."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        options: FleetOptions,
        *,
        rng: Rng,
        identity: str = "",
        nodes: Informer | None = None,
        pods: Informer | None = None,
        carrier: Carrier | None = None,
        keep: Transform | None = None,
        by_node: str = "",
    ) -> None:
        """``nodes`` and ``pods`` are informers that others share, already or soon running; without, it has its own.
        ``by_node`` names an index of these pods by their nodes, if there is one.

        ``carrier`` takes the writes to the server, the client unless told. ``keep`` makes what informers of the
        fleet's own keep of each object smaller.

        An ``identity`` that survives a restart, the name of a StatefulSet's pod say, lets the restarted process go
        on at once with the leases that it held.
        """
        self.name = "hollow-fleet"
        self._clock = clock
        self._client = client
        self._options = options
        self._rng = rng
        self.identity = identity or f"holokube-{rng.fork('identity').uid()}"
        self._annotations = LabelSelector.parse(options.annotation_selector)
        self._labels = LabelSelector.parse(options.label_selector)
        self._own: list[Informer] = []
        self._nodes = nodes or self._own_informer(
            Informer(clock, client, NODES, label_selector=options.label_selector,
                     field_selector=f"metadata.name={options.node_name}" if options.node_name else "",
                     rng=rng.fork("nodes"), transform=keep, backoff=WATCH_BACKOFF)
        )
        self._pods = pods or self._own_informer(
            Informer(clock, client, PODS,
                     field_selector=f"spec.nodeName={options.node_name}" if options.node_name else "spec.nodeName!=",
                     rng=rng.fork("pods"), transform=keep, backoff=WATCH_BACKOFF)
        )
        self.by_node = by_node or f"node/{self.identity}"
        """The index of pods by their nodes."""
        if not by_node:
            self._pods.add_index(self.by_node, _node_of, heeds=SPEC)
        draw = KeyedDraws(f"{rng.seed}")
        self.wheel: WheelDriver[Callable[[], None]] = WheelDriver(clock, call)
        self.pool = WritePool(workers=options.workers, lease_workers=options.lease_workers)
        self._carrier: Carrier = carrier or ClientCarrier(clock, client.transport, self.pool)
        self.events = EventSink(clock, self._carrier, identity=self.identity)
        self._book = StageBook(options.stages)
        self._stages: Informer | None = None
        if options.cluster_stages:
            self._stages = self._own_informer(
                Informer(clock, client, STAGES, rng=rng.fork("stages"), backoff=WATCH_BACKOFF)
            )
        self.pods = PodKeeper(
            clock, self._carrier, self.wheel, self.events, options.profile.pods, draw, self._may_write,
            life=StagedPodLife(self._book, start_s=clock.time()) if self._is_staged("Pod") else pod_life,
        )  # fmt: skip
        self.nodes = NodeKeeper(
            clock, self._carrier, self.wheel, self.events, options.profile.nodes, draw, self._may_write,
            on_back=self._back_from_reboot, on_answer=self._node_changed,
            stages=StagedNodeLife(self._book, start_s=clock.time()) if self._is_staged("Node") else None,
        )  # fmt: skip
        self.leases: LeaseKeeper | None = None
        if options.lease_duration_s:
            self.leases = LeaseKeeper(
                clock, client, self.pool, self.wheel,
                identity=self.identity, rng=rng.fork("leases"), duration_s=options.lease_duration_s,
                on_gained=self._gained, on_lost=self._lost, carrier=self._carrier,
                continuous=options.continuous_leases,
            )  # fmt: skip
        self._log = get_logger("holokube.hollow.fleet").bind(identity=self.identity)

    def _is_staged(self, kind: Kind) -> bool:
        return self._options.cluster_stages or bool(self._book.of_kind(kind))

    def _on_stage(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._book.gone(old["metadata"]["name"])
        elif problem := self._book.see(new):
            self._log.warning("A Stage cannot be used", problem=problem)
        for record in self.nodes.records():
            self.nodes.look(record)
            self.pods.look_again(record)

    def _own_informer(self, informer: Informer) -> Informer:
        self._own.append(informer)
        return informer

    async def run(self, stop: StopSignal) -> None:
        """Runs until the stop; then leases are given back, so that others may go on at once."""
        self.pool.start()
        handlers: list[Callable[[], None]] = []
        try:
            if self.leases is not None and not await self._read_leases(stop):
                return
            for informer in self._own:
                informer.start()
            if self._stages is not None:
                # Stages before both, so that no node or pod is planned with half of them.
                handlers.append(self._stages.add_handler(self._on_stage))
                await stop.finishes_first(self._stages.synced())
            # Nodes first: a pod whose node is unknown is found again by the index when the node turns up.
            handlers.append(self._nodes.add_handler(self._on_node))
            handlers.append(self._pods.add_handler(self._on_pod))
            if await stop.finishes_first(self._nodes.synced()) and self.leases is not None:
                self.leases.forget_listed()
            await stop.wait()
            if self.leases is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RELEASE_DEADLINE_S):
                        await self.leases.release_all()
        finally:
            for remove in handlers:
                remove()
            self.wheel.stop()
            await self.pool.stop()
            await self._carrier.close()
            for informer in self._own:
                await informer.stop()
            self._forget_everything()

    async def _read_leases(self, stop: StopSignal) -> bool:
        """Learns who holds which lease; False when stopped before."""
        assert self.leases is not None
        while not stop.is_set():
            try:
                await self.leases.read_all(only=self._options.node_name)
                return True
            except (ApiError, TransportError) as error:
                self._log.warning("Leases cannot be listed, trying again", error=str(error))
                await stop.sleep(START_RETRY_S)
        return False

    def _forget_everything(self) -> None:
        for record in self.nodes.records():
            self._remove_node(record)

    # Commands

    async def register(self, names: Iterable[str]) -> None:
        """Creates Node objects of the fleet's own; those that exist are adopted as they are."""
        waiting = [*names]
        waiting.reverse()

        async def work() -> None:
            while waiting:
                options = self._options
                node = registration(waiting.pop(), options.profile.nodes, provider_id=options.provider_id)
                self._mark_as_ours(node)
                with suppress(AlreadyExists):
                    await self._client.create(NODES, node)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(REGISTRARS, len(waiting))):
                group.create_task(work())

    @property
    def node_informer(self) -> Informer:
        """What the fleet knows of nodes; for those who answer for its kubelets."""
        return self._nodes

    @property
    def pod_informer(self) -> Informer:
        """What the fleet knows of pods."""
        return self._pods

    @property
    def usage(self) -> UsageProfile:
        """What containers use where no annotation says it."""
        return self._options.profile.usage

    @property
    def has_synced(self) -> bool:
        """Whether nodes and pods have been listed."""
        return self._nodes.has_synced and self._pods.has_synced

    async def synced(self) -> None:
        """Waits until nodes and pods have been listed."""
        await self._nodes.synced()
        await self._pods.synced()

    def inject(self, node: str, fault: Fault) -> None:
        """Breaks a node of this fleet until ``heal``."""
        record = self._record(node)
        record.commanded |= {fault}
        self._faults_changed(record)

    def heal(self, node: str) -> None:
        """Ends the faults that ``inject`` began."""
        record = self._record(node)
        record.commanded = frozenset()
        self._faults_changed(record)

    def reboot(self, node: str) -> None:
        """Takes a node down; it comes back with another boot id, and its containers start again."""
        self.nodes.begin_reboot(self._record(node))
        self._faults_changed(self._record(node))

    def owned(self) -> list[str]:
        """The nodes this process speaks for."""
        return [record.name for record in self.nodes.records() if record.speaks]

    @property
    def owned_count(self) -> int:
        return sum(record.speaks for record in self.nodes.records())

    def _record(self, node: str) -> NodeRecord:
        record = self.nodes.get(node)
        if record is None:
            raise UsageError(f"the fleet has no node {node!r}", hint="See Fleet.owned() for the nodes it has.")
        return record

    def _mark_as_ours(self, node: JsonObject) -> None:
        """Gives a node what the selectors look for, as far as they ask for fixed values."""
        for selector, field_name in ((self._annotations, "annotations"), (self._labels, "labels")):
            for requirement in selector.requirements:
                value = selector.required_value(requirement.key)
                if value is not None:
                    node["metadata"][field_name][requirement.key] = value

    # What the watches say

    def _matches(self, node: JsonObject) -> bool:
        meta = node["metadata"]
        if self._options.node_name:
            return bool(meta["name"] == self._options.node_name)
        if self._options.manage_all_nodes:
            return True
        if not self._labels.matches(meta.get("labels")):
            return False
        return not self._options.annotation_selector or self._annotations.matches(meta.get("annotations"))

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new or old
        assert obj is not None
        record = self.nodes.get(obj["metadata"]["name"])
        if new is None or not self._matches(new):
            if record is not None:
                self._remove_node(record)
            return
        if record is not None and record.uid != new["metadata"]["uid"]:
            self._remove_node(record)
            record = None
        if record is None:
            self._adopt(self.nodes.add(new))
            return
        self._node_changed(record, new)

    def _node_changed(self, record: NodeRecord, node: JsonObject) -> None:
        was_silent = record.is_silent
        self.nodes.changed(record, node)
        if record.is_silent != was_silent:
            self._faults_changed(record)

    def _adopt(self, record: NodeRecord) -> None:
        if self.leases is None:
            self._gained(record.name)
        elif not record.is_silent:
            self.leases.add(record.name, record.uid, after_s=self._patience_s(record.name))

    def _patience_s(self, name: str) -> float:
        """How long another fleet of the same cluster is given the chance to take a node first."""
        shards = self._options.shards
        if shards == 1 or stable_int(name, shards) == self._options.shard:
            return 0.0
        return float(self._options.lease_duration_s)

    def _on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self.pods.gone(old)
            return
        spec = new.get("spec")
        name = spec.get("nodeName") if spec else None
        if name:
            record = self.nodes.get(name)
            if record is not None and record.speaks:
                self.pods.see(new, record)

    # Who speaks for a node

    def _may_write(self, record: NodeRecord) -> bool:
        # Asked before each write, and nearly all nodes are without any fault.
        if not record.speaks or record.rebooting or ((record.faults or record.commanded) and record.is_silent):
            return False
        return self.leases is None or self.leases.owns(record.name)

    def _gained(self, name: str) -> None:
        record = self.nodes.get(name)
        if record is None:
            return
        if record.speaks:
            self.nodes.look(record)
            self.pods.look_again(record)
            return
        record.speaks = True
        self.nodes.look(record)
        for pod in self._pods.lister.by_index(self.by_node, name):
            self.pods.see(pod, record)

    def _lost(self, name: str) -> None:
        record = self.nodes.get(name)
        if record is not None:
            record.speaks = False
            self.nodes.rest(record)
            self.pods.drop_node(record)
            self._log.info("Another process speaks for a node now", node=name)

    def _remove_node(self, record: NodeRecord) -> None:
        if self.leases is not None:
            self.leases.remove(record.name)
        record.speaks = False
        self.pods.bury_node(record)
        self.nodes.remove(record)

    def _faults_changed(self, record: NodeRecord) -> None:
        """A silent node also lets its lease go; one that is back takes it up again and reports."""
        if record.is_silent:
            if self.leases is not None:
                self.leases.lapse(record.name)
            self.nodes.rest(record)
        elif self.leases is None:
            self._gained(record.name)
        elif record.speaks:
            self.leases.add(record.name, record.uid)
            self.nodes.look(record)
        else:
            self._adopt(record)

    def _back_from_reboot(self, record: NodeRecord) -> None:
        self.pods.reboot(record)
        self._faults_changed(record)


def _node_of(pod: JsonObject) -> list[str]:
    node = (pod.get("spec") or {}).get("nodeName")
    return [node] if node else []
