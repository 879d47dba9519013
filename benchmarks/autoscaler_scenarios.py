"""The Cluster Autoscaler's published scalability scenarios, of any size, on a living cluster and on virtual time.

Everything is there that a real cluster has: API server, scheduler, controllers and hollow kubelets, all in this
process, and the autoscaler with one kwok group. What upstream published is what must come of it, else ``Unlike`` is
raised. Nodes are taken to have room for 30 pods where upstream says ``30 pods per node``. The node that scenarios
begin with belongs to the group, is full and counts, so that the last node of 1,000 is full with 29,970 new pods.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holokube.base.clock import DEFAULT_START, Clock, WallClock
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS, REPLICA_SETS
from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy, group_template
from holokube.cluster.living import LivingOptions
from holokube.cluster.policy import Site
from holokube.cluster_autoscaler.loop.autoscaler import Autoscaler
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.hollow.profile import named_profile
from holokube.kube.timeformat import format_time
from holokube.runtime.app import Component
from holokube.testing.cluster import Cluster

JsonObject = dict[str, Any]

GROUP = "workers"
PODS_PER_NODE = 30
CPU_MILLI, MEMORY_MIB = 9_000, 36_000
"""Of a node; they divide well by 30 and by 90."""
LONG_AGO = format_time(DEFAULT_START.timestamp() - 7_200)
BOOT_DELAY = "2m"
"""Of new machines, so that the autoscaler has to reckon with nodes on their way. They come all at the same time: each
time that nodes come the scheduler looks at all pods again, and that is not what is measured here."""
LOOK_EVERY_S = 5.0
REPLICAS_MAX = 1_500
"""Of one ReplicaSet. That makes twenty of them of 30,000 pods."""
STAYS_FOR_S = 60.0
"""For so long an outcome is watched: it must not pass."""


class Unlike(AssertionError):
    """It did not come out as upstream has published."""


@dataclass(slots=True)
class Outcome:
    """What came of a scenario."""

    name: str
    nodes: int
    pods: int
    took_virtual_s: float
    turns_s: list[float] = field(repr=False)
    """Seconds of the processor from the begin to the end of each turn, all that other components did in between
    included."""
    parts_s: dict[str, list[float]] = field(repr=False)
    """The same for the parts of turns, by the names that the metric ``function_duration_seconds`` gives them."""


class ProcessorClock(WallClock):
    """Goes while this process works. On virtual time nobody waits, so it tells what a machine of one's own would."""

    __slots__ = ()

    def monotonic(self) -> float:
        return time.process_time()


class TurnTimes(AutoscalerMetrics):
    """Metrics of an autoscaler on virtual time that tell how much work things are in truth."""

    def __init__(self, options: AutoscalerOptions) -> None:
        super().__init__(ProcessorClock(), options)
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def took(self, function: str, seconds: float) -> None:
        super().took(function, seconds)
        self.seconds[function].append(seconds)


@dataclass(slots=True)
class TimedPolicy:
    """The policy of a living cluster, with a stopwatch."""

    inner: ClusterAutoscalerPolicy
    times: TurnTimes

    @property
    def name(self) -> str:
        return self.inner.name

    async def prepare(self, clock: Clock, client: Client) -> None:
        await self.inner.prepare(clock, client)

    def build(self, site: Site) -> list[Component]:
        components = self.inner.build(site)
        for component in components:
            if isinstance(component, Autoscaler):
                component.metrics = self.times
        return components


@dataclass(slots=True)
class Turns:
    """What is kept of reports. A report holds the pods of its turn, and hundreds of them would fill the memory."""

    errors: list[str] = field(default_factory=list)
    unremovable: Counter[str] = field(default_factory=Counter)

    def add(self, report: TurnReport) -> None:
        if report.error is not None:
            self.errors.append(str(report.error))
        self.unremovable.update(str(stays.reason) for stays in report.scale_down.unremovable)


class World:
    """A cluster with the autoscaler on it."""

    def __init__(self, cluster: Cluster, times: TurnTimes, turns: Turns) -> None:
        assert cluster.living is not None
        self.cluster = cluster
        self.times = times
        self.turns = turns
        self._nodes = cluster.living.informers.get(NODES).lister
        self._pods = cluster.living.informers.get(PODS).lister
        self._began_s = cluster.clock.monotonic()

    def nodes(self) -> list[JsonObject]:
        return self._nodes.list()

    def node_names(self) -> set[str]:
        return {found["metadata"]["name"] for found in self.nodes()}

    def pods(self) -> list[JsonObject]:
        return self._pods.list()

    def pod_uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods()}

    def running(self, app: str = "") -> int:
        """How many pods run, of all or of those that belong together."""
        return sum(
            pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
            for pod in self.pods()
            if not app or pod["metadata"]["labels"]["app"].startswith(app)
        )

    def per_node(self) -> Counter[str]:
        """How many pods are bound to each node."""
        return Counter(pod["spec"].get("nodeName", "") for pod in self.pods())

    def create(self, app: str, replicas: int, share: float) -> None:
        """Have controllers make pods that each ask for a share of a node."""
        for first in range(0, replicas, REPLICAS_MAX):
            made = replica_set(f"{app}-{first}", min(REPLICAS_MAX, replicas - first), share)
            self.cluster.run(self.cluster.client.create(REPLICA_SETS, made, "default"))

    def until(self, is_so: Callable[[], bool], what: str, within_s: float) -> None:
        """Let time pass until something is so, and see that it stays so."""
        deadline_s = self.cluster.clock.monotonic() + within_s
        while not is_so():
            if self.cluster.clock.monotonic() >= deadline_s:
                raise Unlike(f"after {within_s:.0f} s: {what}, but there are {self.describe()}")
            self.cluster.pass_time(LOOK_EVERY_S)

    def outcome(self, name: str) -> Outcome:
        """What came of it until now; it has to be the same some time later."""
        took_s = self.cluster.clock.monotonic() - self._began_s
        before = len(self.nodes()), self.running()
        self.cluster.pass_time(STAYS_FOR_S)
        after = len(self.nodes()), self.running()
        if after != before:
            raise Unlike(f"{name}: {before[0]} nodes with {before[1]} pods did not stay; there are {self.describe()}")
        if self.turns.errors:
            raise Unlike(f"{name}: {len(self.turns.errors)} turns failed, the first with: {self.turns.errors[0]}")
        seconds = {part: taken for part, taken in self.times.seconds.items() if part not in ("main", "loopWait")}
        return Outcome(name, *before, took_s, self.times.seconds["main"], seconds)

    def describe(self) -> str:
        return f"{len(self.nodes())} nodes, {len(self.pods())} pods, {self.running()} of them running"


@contextmanager
def world(objects: list[JsonObject], *, min_nodes: int, max_nodes: int) -> Iterator[World]:
    """A living cluster that begins with these objects."""
    template = node(0)
    # Only a template tells sizes; a node of the group has no need of them.
    group = group_template(GROUP, cpu=f"{CPU_MILLI}m", memory=f"{MEMORY_MIB}Mi", max_count=max_nodes)
    template["metadata"]["annotations"] |= group["metadata"]["annotations"]
    template["metadata"]["annotations"] |= {
        "cluster-autoscaler.kwok.nodegroup/min-count": str(min_nodes),
        "cluster-autoscaler.kwok.nodegroup/desired-count": str(min_nodes),
        "cluster-autoscaler.kwok.nodegroup/boot-delay": BOOT_DELAY,
    }
    options = AutoscalerOptions()
    turns = Turns()
    times = TurnTimes(options)
    policy = TimedPolicy(ClusterAutoscalerPolicy(options, [template], on_turn=turns.add), times)
    with Cluster(objects=objects, options=LivingOptions(policy=policy, profile=named_profile("fast"))) as cluster:
        yield World(cluster, times, turns)


# Objects


def node(number: int) -> JsonObject:
    """A node of the group that has been Ready for long."""
    name = f"{GROUP}-{number:05}"
    size = {"cpu": f"{CPU_MILLI}m", "memory": f"{MEMORY_MIB}Mi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
             "lastHeartbeatTime": LONG_AGO, "lastTransitionTime": LONG_AGO}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": f"node-{number}", "creationTimestamp": LONG_AGO,
            "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"kwok.x-k8s.io/node": "fake", "cluster-autoscaler.kwok.nodegroup/name": GROUP},
        },
        "spec": {"providerID": f"kwok:{name}"},
        "status": {"capacity": size, "allocatable": dict(size), "conditions": [ready]},
    }  # fmt: skip


def replica_set(app: str, replicas: int, share: float, **container: Any) -> JsonObject:
    """Pods that each ask for a share of a node."""
    requests = {"cpu": f"{round(CPU_MILLI * share)}m", "memory": f"{round(MEMORY_MIB * share)}Mi"}
    body = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": requests}, **container}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": app, "namespace": "default", "uid": f"rs-{app}", "creationTimestamp": LONG_AGO},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [body]}},
        },
    }  # fmt: skip


def pods_of(owner: JsonObject, nodes: list[int]) -> list[JsonObject]:
    """The pods of a ReplicaSet, running on nodes for long."""
    app = owner["metadata"]["name"]
    template = owner["spec"]["template"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": owner["metadata"]["uid"],
                 "controller": True, "blockOwnerDeletion": True}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": LONG_AGO}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    state = {
        "name": "c", "image": "registry.example/app:1", "imageID": "", "ready": True, "restartCount": 0,
        "started": True, "state": {"running": {"startedAt": LONG_AGO}},
    }  # fmt: skip
    return [
        {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": f"{app}-{i:05}", "namespace": "default", "uid": f"{app}-{i}", "creationTimestamp": LONG_AGO,
                "labels": template["metadata"]["labels"], "ownerReferences": [reference],
            },
            "spec": {**template["spec"], "nodeName": f"{GROUP}-{number:05}"},
            "status": {
                "phase": "Running", "startTime": LONG_AGO, "conditions": conditions, "containerStatuses": [state],
            },
        }
        for i, number in enumerate(nodes)
    ]  # fmt: skip


def placed(app: str, nodes: list[int], share: float, **container: Any) -> list[JsonObject]:
    """ReplicaSets with their pods on these nodes."""
    objects = []
    for first in range(0, len(nodes), REPLICAS_MAX):
        some = nodes[first : first + REPLICAS_MAX]
        owner = replica_set(f"{app}-{first}", len(some), share, **container)
        objects += [owner, *pods_of(owner, some)]
    return objects


def full_node(pods: int) -> list[JsonObject]:
    """What scale-ups begin with: one node without room for anybody."""
    return [node(0), *placed("first", [0] * pods, 1 / pods)]


# Scenarios


def check_all_full(world: World, nodes: int) -> None:
    counts = world.per_node()
    counts.pop(f"{GROUP}-00000")
    counts.pop("", None)
    if set(counts.values()) != {PODS_PER_NODE} or len(counts) != nodes - 1:
        raise Unlike(f"not all new nodes have {PODS_PER_NODE} pods: {Counter(counts.values())}")


def scale_up_at_once(nodes: int) -> Outcome:
    """2 pods fill 1 node; some 30,000 more come at once: 1,000 nodes, all full, all pods run."""
    pods = PODS_PER_NODE * (nodes - 1)
    with world(full_node(2), min_nodes=1, max_nodes=nodes) as lab:
        lab.create("burst", pods, 1 / PODS_PER_NODE)
        lab.until(lambda: lab.running() == pods + 2, f"{pods + 2} pods run on {nodes} nodes", 900)
        check_all_full(lab, nodes)
        return lab.outcome(f"{pods:,} pods at once, 1 node")


def scale_up_in_two_waves(nodes: int) -> Outcome:
    """The same with 21,000 pods and, a minute and a half later, 9,000 more."""
    second = PODS_PER_NODE * (nodes * 3 // 10)
    first = PODS_PER_NODE * (nodes - 1) - second
    with world(full_node(2), min_nodes=1, max_nodes=nodes) as lab:
        lab.create("first-wave", first, 1 / PODS_PER_NODE)
        lab.cluster.pass_time(90.0)
        lab.create("second-wave", second, 1 / PODS_PER_NODE)
        lab.until(lambda: lab.running() == first + second + 2, f"all pods run on {nodes} nodes", 900)
        check_all_full(lab, nodes)
        return lab.outcome(f"{first:,} pods, then {second:,}")


def scale_up_beside_hopeless_pods(nodes: int) -> Outcome:
    """1,000 pods that fit on no node wait already; some 30,000 others get their 1,000 nodes all the same."""
    pods, hopeless = PODS_PER_NODE * (nodes - 1), nodes
    with world([*full_node(1)], min_nodes=1, max_nodes=nodes) as lab:
        lab.create("hopeless", hopeless, 1.5)
        lab.cluster.pass_time(60.0)
        if len(lab.nodes()) != 1:
            raise Unlike(f"pods that fit on no node were given some: {lab.describe()}")
        lab.create("burst", pods, 1 / PODS_PER_NODE)
        lab.until(lambda: lab.running("burst") == pods, f"{pods} pods run on {nodes} nodes", 900)
        check_all_full(lab, nodes)
        if lab.running("hopeless"):
            raise Unlike("pods run that fit on no node")
        return lab.outcome(f"{pods:,} pods beside {hopeless:,} hopeless ones")


def scale_down_empty_nodes(nodes: int) -> Outcome:
    """700 of 1,000 nodes are 70 % full, 300 empty: these are removed."""
    busy = nodes * 7 // 10
    objects = [*(node(number) for number in range(nodes)), *placed("busy", list(range(busy)), 0.7)]
    with world(objects, min_nodes=0, max_nodes=nodes) as lab:
        lab.until(lambda: len(lab.nodes()) <= busy, f"{nodes - busy} empty nodes are removed", 3_600)
        names = {f"{GROUP}-{number:05}" for number in range(busy)}
        if lab.node_names() != names or lab.running() != busy:
            raise Unlike(f"nodes were removed that pods were on: {lab.describe()}")
        return lab.outcome(f"{nodes - busy} of {nodes:,} nodes empty")


def scale_down_underused_nodes(nodes: int) -> Outcome:
    """52,000 pods; 700 nodes are 70 % full and 300 are 30 % full, and 970 must stay: 30 are drained and removed."""
    busy, stay = nodes * 7 // 10, nodes - max(2, nodes * 3 // 100)
    per_busy, pods = 63, nodes * 52
    # Each pod is a ninetieth of a node. What 63 on each busy node leave over is shared by the others.
    rest = pods - busy * per_busy
    where = [number for number in range(busy) for _ in range(per_busy)]
    where += [busy + i % (nodes - busy) for i in range(rest)]
    objects = [*(node(number) for number in range(nodes)), *placed("web", where, 1 / 90)]
    with world(objects, min_nodes=stay, max_nodes=nodes) as lab:
        lab.until(
            lambda: len(lab.nodes()) <= stay and lab.running() == pods,
            f"{stay} nodes stay and all {pods} pods run", 7_200)
        gone = {f"{GROUP}-{number:05}" for number in range(nodes)} - lab.node_names()
        if len(gone) != nodes - stay or min(gone) < f"{GROUP}-{busy:05}":
            raise Unlike(f"other nodes than those with little on them were removed: {sorted(gone)}")
        return lab.outcome(f"{pods:,} pods, {nodes - busy} nodes at 30 %")


def scale_down_hindered_by_ports(nodes: int) -> Outcome:
    """700 nodes are 90 % full, 300 are 30 % full with a host port that all others of these have too: all stay."""
    busy = nodes * 7 // 10
    objects = [
        *(node(number) for number in range(nodes)),
        *placed("busy", list(range(busy)), 0.9),
        *placed("ports", list(range(busy, nodes)), 0.3, ports=[{"containerPort": 4321, "hostPort": 4321}]),
    ]
    with world(objects, min_nodes=0, max_nodes=nodes) as lab:
        before = lab.pod_uids()
        # Half as long again as a node has to be unneeded before it is removed.
        lab.cluster.pass_time(900.0)
        if len(lab.nodes()) != nodes or lab.running() != nodes or lab.pod_uids() != before:
            raise Unlike(f"{nodes} nodes and pods should be as they were; there are {lab.describe()}")
        if not lab.turns.unremovable["NoPlaceToMovePods"]:
            raise Unlike(f"nobody has tried to move the pods with ports; nodes stay for {lab.turns.unremovable}")
        return lab.outcome(f"{nodes - busy} nodes held by host ports")


SCENARIOS: tuple[Callable[[int], Outcome], ...] = (
    scale_up_at_once,
    scale_up_in_two_waves,
    scale_up_beside_hopeless_pods,
    scale_down_empty_nodes,
    scale_down_underused_nodes,
    scale_down_hindered_by_ports,
)
