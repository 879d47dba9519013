"""The life of ``holokube fleet``: reach the cluster, run the fleet, say how it is doing, give everything back."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from holokube.base.clock import Clock, WallClock
from holokube.base.errors import HolokubeError, UsageError
from holokube.base.rng import Rng, system_seed
from holokube.cli.event_loop import loop_factory
from holokube.cli.fleet_metrics import FleetCollector
from holokube.cli.metrics_endpoint import parse_address
from holokube.cli.profile_option import choose_profile
from holokube.cli.progress import ProgressLine
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES
from holokube.hollow.draws import stable_int
from holokube.hollow.fleet import DEFAULT_ANNOTATION_SELECTOR, Fleet, FleetOptions
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.server import EndpointOptions, KubeletEndpoint
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.one_node import node_profile
from holokube.hollow.profile import Profile
from holokube.hollow.stages.loading import load_stages
from holokube.hollow.wire import Dialer, Echoes, Slimmer, WireCarrier, WireTransport, can_dial
from holokube.kube.errors import ApiError
from holokube.kube.names import is_dns1123_subdomain
from holokube.kube.node_flags import NodeFlags
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.runtime import collector
from holokube.runtime.app import App
from holokube.runtime.health import HealthServer
from holokube.runtime.stop import StopSignal

PROGRESS_EVERY_S = 1.0
TIDY_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What the command line asks for."""

    manage_all_nodes: bool
    annotation_selector: str
    label_selector: str
    lease_duration_s: int
    profile: str
    shard: str
    register: int
    name_prefix: str
    identity: str
    seed: str
    metrics_address: str
    kubeconfig: str
    context: str
    stage_files: tuple[Path, ...] = ()
    cluster_stages: bool = False
    kubelet_address: str = "0"
    node_ip: str = ""
    kubelet_client_ca_file: Path | None = None
    kubelet_cert_file: Path | None = None
    kubelet_key_file: Path | None = None
    one_node: NodeFlags = field(default_factory=NodeFlags)
    """The node that this is the kubelet of, if it has a name."""

    def endpoint(self) -> EndpointOptions | None:
        """Where kubelets answer, if they do."""
        address = parse_address(self.kubelet_address, option="--kubelet-address")
        if address is None:
            return None
        host, port = address
        if not port:
            raise UsageError(
                f"--kubelet-address {self.kubelet_address!r} leaves the port open, which nodes have to name",
                hint="Write 127.0.0.1:10250, say.",
            )
        return EndpointOptions(
            host=host or "0.0.0.0",  # noqa: S104 - the user asks for it, and must name an authority then
            port=port,
            client_ca_file=self.kubelet_client_ca_file,
            cert_file=self.kubelet_cert_file,
            key_file=self.kubelet_key_file,
            addresses=(self.node_ip,) if self.node_ip else (),
        )

    def _profile(self) -> Profile:
        """The profile, with nodes that say where their kubelet is to be found."""
        profile, endpoint = choose_profile(self.profile), self.endpoint()
        nodes = node_profile(profile.nodes, self.one_node)
        if self.node_ip:
            nodes = msgspec.structs.replace(nodes, node_ip=self.node_ip)
        if endpoint is not None:
            # API servers prefer a node's host name, which nobody can resolve.
            nodes = msgspec.structs.replace(nodes, kubelet_port=endpoint.port, hostname_address=False)
        return msgspec.structs.replace(profile, nodes=nodes)

    def options(self) -> FleetOptions:
        """The fleet's own options; UsageError for what makes no sense."""
        annotations = self.annotation_selector
        name = self.one_node.name
        if name:
            self._check_one_node()
        elif not (self.manage_all_nodes or annotations or self.label_selector):
            annotations = DEFAULT_ANNOTATION_SELECTOR
        for flag, text in (("annotation", annotations), ("label", self.label_selector)):
            try:
                LabelSelector.parse(text)
            except SelectorError as error:
                raise UsageError(
                    f"--manage-nodes-with-{flag}-selector: {error}",
                    hint="Write it like a label selector of kubectl: key=value,other!=value,!third.",
                ) from error
        if 0 < self.lease_duration_s < 4:
            raise UsageError(
                f"--node-lease-duration-seconds {self.lease_duration_s} is too short to be renewed in time",
                hint="Give at least 4, or 0 for no leases.",
            )
        shard, shards = parse_shard(self.shard, os.environ.get("HOSTNAME", ""))
        return FleetOptions(
            manage_all_nodes=self.manage_all_nodes,
            annotation_selector=annotations,
            label_selector=self.label_selector,
            node_name=name,
            provider_id=self.one_node.provider_id,
            lease_duration_s=self.lease_duration_s,
            shard=shard,
            shards=shards,
            profile=self._profile(),
            stages=load_stages(self.stage_files) if self.stage_files else None,
            cluster_stages=self.cluster_stages,
        )

    def _check_one_node(self) -> None:
        given = {
            "--manage-all-nodes": self.manage_all_nodes,
            "--manage-nodes-with-annotation-selector": self.annotation_selector,
            "--manage-nodes-with-label-selector": self.label_selector,
            "--register": self.register,
            "--shard": self.shard,
        }
        for option in (option for option, value in given.items() if value):
            raise UsageError(
                f"--node-name and {option} do not go together: it names the only node there is",
                hint="Leave one of them out.",
            )
        if problems := is_dns1123_subdomain(self.one_node.name):
            raise UsageError(
                f"--node-name {self.one_node.name!r} is no name of a node: {problems[0]}",
                hint="In a pod, write --node-name=$(NODE_NAME), with the pod's name in that variable.",
            )

    def names(self, options: FleetOptions) -> list[str]:
        """The nodes to register: each shard registers its own share."""
        if options.node_name:
            return [options.node_name]
        digits = len(str(max(0, self.register - 1)))
        names = [f"{self.name_prefix}{number:0{digits}d}" for number in range(self.register)]
        problems = is_dns1123_subdomain(names[0]) if names else []
        if problems:
            raise UsageError(f"--name-prefix {self.name_prefix!r} makes no name of a node: {problems[0]}")
        return [name for name in names if stable_int(name, options.shards) == options.shard]


def parse_shard(text: str, hostname: str) -> tuple[int, int]:
    """``1/3``, or ``ordinal/3`` with the number at the end of the host name."""
    if not text:
        return 0, 1
    hint = "Write --shard 0/3 for the first of three, or --shard ordinal/3 in a StatefulSet."
    matched = re.fullmatch(r"(\d+|ordinal)/(\d+)", text)
    if matched is None:
        raise UsageError(f"--shard {text!r} is not of the form I/N", hint=hint)
    if matched[1] == "ordinal":
        ordinal = re.search(r"-(\d+)$", hostname)
        if ordinal is None:
            raise UsageError(f"--shard {text}: the host name {hostname!r} does not end in a number", hint=hint)
        shard, shards = int(ordinal[1]), int(matched[2])
    else:
        shard, shards = int(matched[1]), int(matched[2])
    if shard >= shards:
        raise UsageError(f"--shard {text}: there is no shard {shard} of {shards}, they count from 0", hint=hint)
    return shard, shards



class FleetRun:
    """One run of the command."""

    def __init__(self, plan: FleetPlan) -> None:
        self._plan = plan

    def run(self) -> int:
        """Runs until a signal comes; returns the exit code."""
        plan = self._plan
        options = plan.options()
        names = plan.names(options)
        address = parse_address(plan.metrics_address)
        endpoint = plan.endpoint()
        access = load_access(plan.kubeconfig, plan.context)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._main(access, options, names, address, endpoint))

    async def _main(
        self,
        access: ClusterAccess,
        options: FleetOptions,
        names: list[str],
        address: tuple[str, int] | None,
        endpoint: EndpointOptions | None,
    ) -> int:
        clock = WallClock()
        rng = Rng(self._plan.seed or system_seed())
        http = HttpTransport(clock, access)
        async with Client(http) as client:
            await self._greet(client, access)
            # The lease of a kubelet is held by its node.
            identity = self._plan.identity or options.node_name
            fleet = make_fleet(clock, access, http, options, rng=rng, identity=identity)
            app = App(clock)
            app.metrics.registry.register(FleetCollector(fleet))
            server = None
            if address is not None:
                health = HealthServer(app.checks, app.metrics, host=address[0], port=address[1])
                server = app.add(health, essential=True)
            app.add(fleet, essential=True)
            if endpoint is not None:
                app.add(KubeletEndpoint(KubeletApi(KubeletView.of_fleet(clock, fleet)), endpoint), essential=True)
            app.checks.add("node-informer", lambda: None if fleet.has_synced else "nodes and pods are not listed yet")
            if names:
                app.add(_Registrar(fleet, names), essential=True)
            app.add(_Progress(clock, fleet, access.server, server))
            app.add(_Tidy())
            collector.relax()
            clean = await app.run(handle_signals=True)
        return 0 if clean else 1

    @staticmethod
    async def _greet(client: Client, access: ClusterAccess) -> None:
        """Fails at once, and clearly, where the fleet itself would try for ever."""
        try:
            await client.list(NODES, limit=1)
        except ApiError as error:
            raise HolokubeError(
                f"{access.server} does not let us list nodes: {error.message}",
                hint="Check the user of the kubeconfig; the fleet needs to read nodes, pods and leases, and to write "
                "leases, events and the status of nodes and pods.",
            ) from error


def make_fleet(
    clock: Clock, access: ClusterAccess, http: HttpTransport, options: FleetOptions, *, rng: Rng, identity: str
) -> Fleet:
    """A fleet on the wire, or through the ordinary client where a proxy is in the way."""
    if not can_dial(access):
        return Fleet(clock, Client(http), options, rng=rng, identity=identity, keep=Slimmer())
    dialer = Dialer(clock, access)
    echoes = Echoes(Slimmer())
    client = Client(WireTransport(clock, dialer, http, echoes=echoes))
    carrier = WireCarrier(clock, dialer, echoes=echoes)
    return Fleet(clock, client, options, rng=rng, identity=identity, carrier=carrier, keep=echoes.keep)


class _Registrar:
    """Creates the nodes of ``--register`` once."""

    name = "register"

    def __init__(self, fleet: Fleet, names: list[str]) -> None:
        self._fleet = fleet
        self._names = names

    async def run(self, stop: StopSignal) -> None:
        await stop.finishes_first(self._fleet.register(self._names))


class _Tidy:
    """Gives memory back that a burst of nodes or pods needed: the C library would keep it for the next one."""

    name = "tidy"

    async def run(self, stop: StopSignal) -> None:
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        while trim is not None and not await stop.sleep(TIDY_EVERY_S):
            trim(0)


class _Progress:
    """One line that says how the fleet is doing."""

    name = "progress"

    def __init__(self, clock: Clock, fleet: Fleet, server: str, health: HealthServer | None) -> None:
        self._clock = clock
        self._fleet = fleet
        self._server = server
        self._health = health

    async def run(self, stop: StopSignal) -> None:
        line = ProgressLine()
        fleet = self._fleet
        if not await stop.finishes_first(fleet.synced()):
            return
        if self._health is not None and await stop.finishes_first(self._health.started.wait()):
            line.done(f"metrics and health on http://{self._health.address}")
        # Everything that is there by now stays: the collector need not look at it again.
        collector.relax()
        line.done(f"{fleet.identity} speaks to {self._server}; Ctrl-C stops it")
        while not await stop.sleep(PROGRESS_EVERY_S if line.moves else 3600.0):
            line.show(describe(fleet))
        line.done(describe(fleet))


def describe(fleet: Fleet) -> str:
    """``1000 of 1000 nodes, 5000 pods, leases at most 10.4 s old``."""
    text = f"{fleet.owned_count} of {len(fleet.nodes)} nodes, {len(fleet.pods)} pods"
    if fleet.leases is not None:
        text += f", {fleet.leases.stats.renewals} renewals, at most {fleet.leases.stats.worst_age_s:.1f} s apart"
    return text

