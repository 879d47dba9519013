"""Made-up results that look like a day of a cluster: seeded, the same bytes every time.

A much simplified scheduler and autoscaler walk through the day in steps of a sample, so that nodes, pods, decisions and
series agree with each other as those of a real run do.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Literal

from holokube.base.rng import Rng
from holokube.lab.results import Decision, NodeSpan, Outcome, PodSpan, RunResult, Series

GIB = 2**30
STEP_S = 300.0
WORKLOADS = (
    # namespace/kind/name, cpu, memory, share of the load, swing over the day
    ("shop/Deployment/storefront", 500, GIB, 0.30, 0.7),
    ("shop/Deployment/checkout", 1000, 2 * GIB, 0.16, 0.6),
    ("search/Deployment/query", 2000, 4 * GIB, 0.18, 0.5),
    ("search/StatefulSet/index", 1500, 8 * GIB, 0.08, 0.0),
    ("data/Deployment/ingest", 750, GIB, 0.10, 0.4),
    ("data/Job/nightly-rollup", 1000, 3 * GIB, 0.06, -0.9),
    ("ml/Deployment/recommend", 3500, 6 * GIB, 0.07, 0.5),
    ("platform/Deployment/gateway", 250, GIB // 2, 0.03, 0.3),
    ("platform/DaemonSet/log-shipper", 100, GIB // 4, 0.02, 0.0),
)
TYPES = {
    "m5.xlarge": (4, 16, 0.192), "m5.2xlarge": (8, 32, 0.384), "c5.2xlarge": (8, 16, 0.34),
    "r5.2xlarge": (8, 64, 0.504), "m5.4xlarge": (16, 64, 0.768), "c5.4xlarge": (16, 32, 0.68),
    "m5.8xlarge": (32, 128, 1.536),
}
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
SCENARIO_TEXT = """\
apiVersion: holokube.dev/v1alpha1
kind: Scenario
metadata:
  name: shop-day
spec:
  seed: 7
  start: "2026-01-05T00:00:00Z"
  duration: 24h
  workloads:
    - name: storefront
      curve: {diurnal: {low: 40, high: 180, peakHour: 19, noise: 0.05}}
  policies:
    - {name: cluster-autoscaler, kind: cluster-autoscaler}
    - {name: karpenter, kind: karpenter}
  assertions:
    - pending_p99_s < 60
    - evictions < 500
"""


@dataclass
class _Span:
    """A node's life, as far as it is known."""

    name: str
    group: str
    instance_type: str
    zone: str
    capacity_type: str
    price_usd_per_hour: float
    cpu_milli: int
    memory_bytes: int
    created_s: float
    ready_s: float
    why_added: str
    removed_s: float | None = None
    why_removed: str = ""


@dataclass
class _Pod:
    """A pod's life, as far as it is known."""

    name: str
    workload: str
    cpu_milli: int
    memory_bytes: int
    created_s: float
    node: int | None = None
    bound_s: float | None = None
    ready_s: float | None = None
    ended_s: float | None = None
    end: Literal["", "done", "failed", "deleted", "evicted"] = ""


@dataclass
class _Node:
    """A node that is here now."""

    place: int
    cpu_free: int
    memory_free: int
    ready_s: float
    pods: list[int] = field(default_factory=list)
    idle_since_s: float | None = None


@dataclass
class _Day:
    """A day in the making."""

    policy: str
    rng: Rng
    duration_s: float
    nodes: list[_Span] = field(default_factory=list)
    pods: list[_Pod] = field(default_factory=list)
    here: list[_Node] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    booked: list[float] = field(default_factory=list)
    """When pods that have a place will be bound to it."""
    running: dict[str, list[int]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    series: dict[str, list[float]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    hours: dict[str, float] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)

    def note(self, at_s: float, kind: str, subject: str, decision: str, *reasons: str, **facts: object) -> None:
        component = "scenario" if kind == "fault" else self.policy
        self.decisions.append(Decision(at_s, component, kind, subject, decision, reasons, facts))

    def launch(self, at_s: float, type_name: str, why: str) -> None:
        cpu, memory, price = TYPES[type_name]
        spot = self.policy == "karpenter" and self.rng.random() < 0.4
        place = len(self.nodes)
        group = "general" if self.policy == "karpenter" else f"ng-{type_name}"
        name = f"{group}-{self.rng.name_suffix()}"
        boots_s = self.rng.uniform(35, 95)
        cpu_milli, memory_bytes = cpu * 1000 - 120, int(memory * GIB * 0.93)
        ready_s = at_s + boots_s if at_s else 0.0
        self.nodes.append(_Span(
            name, group, type_name, self.rng.choice(ZONES), "spot" if spot else "on-demand",
            round(price * (0.38 if spot else 1.0), 4), cpu_milli, memory_bytes, at_s, ready_s, why,
        ))
        self.here.append(_Node(place, cpu_milli, memory_bytes, ready_s))
        if at_s:
            self.note(at_s, "scale-up", group, "enlarged", why, group=group, nodes=1, price=price)

    def create(self, at_s: float, workload: str, cpu: int, memory: int) -> None:
        namespace, _, name = workload.split("/")
        created_s = at_s + self.rng.uniform(0, 60) if at_s else 0.0
        self.pods.append(_Pod(f"{namespace}/{name}-{self.rng.name_suffix()}", workload, cpu, memory, created_s))
        self.running.setdefault(workload, []).append(len(self.pods) - 1)
        self.waiting.append(len(self.pods) - 1)

    def bind(self, at_s: float) -> None:
        still: list[int] = []
        tried: dict[tuple[int, int], int] = {}
        for pod_place in self.waiting:
            pod = self.pods[pod_place]
            cpu, memory = pod.cpu_milli, pod.memory_bytes
            # Nodes before the one where the last pod of this shape went have no room for this one either.
            start = tried.get((cpu, memory), 0)
            for index in range(start, len(self.here)):
                node = self.here[index]
                if node.cpu_free >= cpu and node.memory_free >= memory:
                    node.cpu_free -= cpu
                    node.memory_free -= memory
                    node.pods.append(pod_place)
                    node.idle_since_s = None
                    tried[cpu, memory] = index
                    bound_s = max(pod.created_s, node.ready_s) + 0.2 * (at_s > 0)
                    self.booked.append(bound_s)
                    pod.node, pod.bound_s, pod.ready_s = node.place, bound_s, bound_s + self.rng.uniform(1, 8)
                    break
            else:
                tried[cpu, memory] = len(self.here)
                still.append(pod_place)
        self.waiting = still

    def end(self, at_s: float, pod_place: int, end: Literal["done", "deleted", "evicted"]) -> None:
        pod = self.pods[pod_place]
        pod.ended_s, pod.end = max(at_s, pod.bound_s or at_s), end
        if pod.node is None:
            self.waiting.remove(pod_place)
            return
        node = next(one for one in self.here if one.place == pod.node)
        node.pods.remove(pod_place)
        node.cpu_free += pod.cpu_milli
        node.memory_free += pod.memory_bytes


def run_result(
    policy: str, *, seed: int = 7, nodes: int = 60, hours: float = 24, scenario: str = "shop-day",
) -> RunResult:
    """A result of one policy: ``none``, ``cluster-autoscaler`` or ``karpenter``."""
    day = _Day(policy, Rng(seed).fork(policy), hours * 3600)
    load_cpu = nodes * 4000 * 0.72
    for _ in range(nodes if policy == "none" else max(2, nodes // 2)):
        day.launch(0.0, "m5.xlarge", "")
    steps = int(day.duration_s / STEP_S)
    for step in range(steps + 1):
        at_s = step * STEP_S
        _follow_the_load(day, at_s, load_cpu)
        day.bind(at_s)
        _autoscale(day, at_s)
        day.bind(at_s or 10.0)
        _sample(day, at_s, last=step == steps)
    return _result(day, seed, scenario)


def three_policies(*, seed: int = 7, nodes: int = 60, hours: float = 24) -> list[RunResult]:
    """The three policies on one load."""
    return [
        run_result(policy, seed=seed, nodes=nodes, hours=hours)
        for policy in ("cluster-autoscaler", "karpenter", "none")
    ]


def _follow_the_load(day: _Day, at_s: float, load_cpu: float) -> None:
    hour = at_s / 3600 % 24
    sun = 0.5 - 0.5 * math.cos((hour - 7) / 24 * 2 * math.pi)
    for workload, cpu, memory, share, swing in WORKLOADS:
        level = 1 - abs(swing) * (1 - sun if swing >= 0 else sun)
        wanted = round(load_cpu * share / cpu * level * day.rng.uniform(0.97, 1.03))
        pods = day.running.setdefault(workload, [])
        while len(pods) < wanted:
            day.create(at_s, workload, cpu, memory)
        while len(pods) > wanted:
            day.end(at_s, pods.pop(day.rng.randrange(len(pods))), "done" if "Job" in workload else "deleted")


def _autoscale(day: _Day, at_s: float) -> None:
    if day.policy == "none":
        if day.waiting and at_s % 3600 == 0:
            pod = day.pods[day.waiting[0]]
            day.note(at_s, "pod", pod.name, "stays pending", "0 nodes have room: insufficient cpu")
        return
    needed = sum(day.pods[pod].cpu_milli for pod in day.waiting)
    while needed > 0:
        if day.policy == "karpenter":
            name = "m5.8xlarge" if needed > 24000 else day.rng.choice(sorted(TYPES)[:-1])
        else:
            name = "m5.xlarge" if day.rng.random() < 0.8 else "m5.2xlarge"
        day.launch(at_s + 10, name, f"{len(day.waiting)} pods pending, {needed} milli-CPU asked for")
        needed -= TYPES[name][0] * 900
    patience_s = 600 if day.policy == "cluster-autoscaler" else 60
    for node in sorted(day.here, key=lambda one: -one.cpu_free)[:40]:
        span = day.nodes[node.place]
        share = 1 - node.cpu_free / span.cpu_milli
        name = span.name
        if share > (0.5 if day.policy == "cluster-autoscaler" else 0.35) or at_s < node.ready_s:
            if day.rng.random() < 0.02:
                day.note(at_s, "node", name, "stays: utilization too high",
                         f"cpu {share:.0%} of allocatable is asked for")
            continue
        if node.idle_since_s is None:
            node.idle_since_s = at_s
            day.note(at_s, "node", name, "unneeded", utilization=round(share, 3))
        elif at_s - node.idle_since_s >= patience_s and len(day.here) > 3:
            _remove(day, node, at_s, share)


def _remove(day: _Day, node: _Node, at_s: float, share: float) -> None:
    span = day.nodes[node.place]
    why = "empty" if not node.pods else f"its {len(node.pods)} pods fit elsewhere, {share:.0%} was asked for"
    moved = list(node.pods)
    for pod_place in moved:
        pod = day.pods[pod_place]
        workload = pod.workload
        day.end(at_s, pod_place, "evicted")
        day.running[workload].remove(pod_place)
        day.create(at_s, workload, pod.cpu_milli, pod.memory_bytes)
    day.here.remove(node)
    span.removed_s, span.why_removed = at_s, why
    day.note(at_s, "node", span.name, "removed", why, evicted=[day.pods[one].name for one in moved])


def _sample(day: _Day, at_s: float, *, last: bool) -> None:
    day.booked = [bound_s for bound_s in day.booked if bound_s > at_s]
    if at_s == 15 * 3600:
        day.note(at_s, "fault", "eu-west-1b", "stock-out begins", "m5.xlarge cannot be had")
    cpu = sum(day.nodes[node.place].cpu_milli for node in day.here)
    memory = sum(day.nodes[node.place].memory_bytes for node in day.here)
    cpu_used = cpu - sum(node.cpu_free for node in day.here)
    memory_used = memory - sum(node.memory_free for node in day.here)
    price = sum(day.nodes[node.place].price_usd_per_hour for node in day.here)
    day.times.append(at_s)
    for name, value in (
        ("nodes", len(day.here)), ("nodes_ready", sum(node.ready_s <= at_s for node in day.here)),
        ("cost_usd_per_hour", price), ("cpu_allocated_share", cpu_used / cpu),
        ("memory_allocated_share", memory_used / memory), ("cpu_used_share", 0.55 * cpu_used / cpu),
        ("memory_used_share", 0.7 * memory_used / memory),
        ("pods_running", sum(len(node.pods) for node in day.here)),
        ("pods_pending", len(day.waiting) + len(day.booked)),
    ):
        day.series.setdefault(name, []).append(float(value))
    if last:
        return
    for node in day.here:
        span = day.nodes[node.place]
        kind = span.instance_type
        day.hours[kind] = day.hours.get(kind, 0.0) + STEP_S / 3600
        paid = span.price_usd_per_hour * STEP_S / 3600
        for pod_place in node.pods:
            pod = day.pods[pod_place]
            part = pod.cpu_milli / span.cpu_milli
            workload = pod.workload
            day.cost[workload] = day.cost.get(workload, 0.0) + paid * part


def _nearest_rank(values: list[float], share: float) -> float | None:
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else None


def _result(day: _Day, seed: int, scenario: str) -> RunResult:
    nodes = tuple(NodeSpan(**asdict(node)) for node in day.nodes)
    pods = tuple(PodSpan(**asdict(pod)) for pod in day.pods)
    pending = [pod.bound_s - pod.created_s for pod in pods if pod.bound_s is not None]
    cost = sum(day.series["cost_usd_per_hour"][:-1]) * STEP_S / 3600
    means = {name: sum(values) / len(values) for name, values in day.series.items()}
    p99 = _nearest_rank(pending, 0.99)
    evictions = sum(pod.end == "evicted" for pod in pods)
    summary: dict[str, float | None] = {
        "cost_usd": cost, "cost_usd_per_hour": cost / (day.duration_s / 3600), "lower_bound_usd": None,
        "above_bound_share": None, "waste_usd": max(0.0, cost - sum(day.cost.values())),
        "node_hours": sum(day.hours.values()), "nodes_mean": means["nodes"], "nodes_max": max(day.series["nodes"]),
        "cpu_allocated_share": means["cpu_allocated_share"], "memory_allocated_share": means["memory_allocated_share"],
        "cpu_used_share": means["cpu_used_share"], "memory_used_share": means["memory_used_share"],
        "pending_p50_s": _nearest_rank(pending, 0.5), "pending_p90_s": _nearest_rank(pending, 0.9),
        "pending_p99_s": p99, "pending_max_s": max(pending, default=None), "pods_created": len(pods),
        "pods_pending_end": len(day.waiting), "evictions": evictions,
        "node_launches": sum(node.created_s > 0 for node in nodes),
        "node_removals": sum(node.removed_s is not None for node in nodes), "failed_scale_ups": 0,
        "api_calls_total": len(pods) * 6,
    }
    return RunResult(
        scenario=scenario, policy=day.policy, seed=seed, start="2026-01-05T00:00:00Z", duration_s=day.duration_s,
        summary=summary, cost_by_workload_usd=day.cost, node_hours_by_type=day.hours,
        api_calls={"create": len(pods), "patch": len(pods) * 3, "delete": len(pods) * 2},
        series=Series(tuple(day.times), {name: tuple(values) for name, values in day.series.items()}),
        nodes=nodes, pods=pods, decisions=tuple(day.decisions),
        outcomes=(
            Outcome("pending_p99_s < 60", p99 is not None and p99 < 60, p99),
            Outcome("evictions < 500", evictions < 500, float(evictions)),
        ),
        scenario_text=SCENARIO_TEXT.replace("shop-day", scenario),
    )
