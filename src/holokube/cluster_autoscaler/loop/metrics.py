"""The autoscaler's metrics, under upstream's names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

from holokube.base.clock import Clock
from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.cluster_autoscaler.cluster_state.readiness import Readiness
from holokube.cluster_autoscaler.options import AutoscalerOptions

PREFIX = "cluster_autoscaler_"
GIB = 1 << 30

_DURATION_BUCKETS_S = tuple(0.1 * (1800.0 / 0.1) ** (i / 149) for i in range(150))
_LATENCY_BUCKETS_S = tuple(1.5**i for i in range(19))


class AutoscalerMetrics:
    """All families, in a registry of their own or in the program's."""

    def __init__(self, clock: Clock, options: AutoscalerOptions, registry: CollectorRegistry | None = None) -> None:
        self._clock = clock
        self._per_group = options.emit_per_nodegroup_metrics
        self.registry = registry if registry is not None else CollectorRegistry()
        # Every turn tells the same families the same labels, and finding the child takes longer than telling it.
        self._durations: dict[str, tuple[Histogram, Summary]] = {}
        self._activities: dict[str, Gauge] = {}
        self._shown: dict[tuple[Gauge, tuple[str, ...]], float] = {}
        """What gauges show; nobody else sets them."""
        self._make_state()
        self._make_work()
        self._make_per_group()
        self._begin(options)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(PREFIX + name, text, labels, registry=self.registry)

    def _show(self, gauge: Gauge, value: float, *labels: str) -> None:
        """Set a gauge that mostly has that value already."""
        if self._shown.get((gauge, labels)) != value:
            self._shown[gauge, labels] = value
            (gauge.labels(*labels) if labels else gauge).set(value)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def _make_state(self) -> None:
        gauge = self._gauge
        self._safe = gauge("cluster_safe_to_autoscale", "1 if the cluster is healthy enough to be scaled, else 0.")
        self._nodes = gauge("nodes_count", "Nodes by what they are up to.", ("state",))
        self._groups = gauge("node_groups_count", "Node groups by who made them.", ("node_group_type",))
        self._pods = gauge("unschedulable_pods_count", "Pods that wait for a node.", ("type",))
        self._max_nodes = gauge("max_nodes_count", "The most nodes that all groups may have together.")
        self._cores = gauge("cluster_cpu_current_cores", "Cores of all nodes that are not being deleted.")
        self._core_limits = gauge("cpu_limits_cores", "The fewest and most cores.", ("direction",))
        self._memory = gauge("cluster_memory_current_bytes", "Memory of all nodes that are not being deleted.")
        self._memory_limits = gauge("memory_limits_bytes", "The least and most memory.", ("direction",))
        self._taints = gauge("node_taints_count", "Taints on nodes, by type.", ("type",))
        self._last_activity = gauge("last_activity", "When a part of the loop ran last, Unix seconds.", ("activity",))
        self._pending_deletions = gauge("pending_node_deletions", "Nodes whose deletion is under way.")
        self._unneeded = gauge("unneeded_nodes_count", "Nodes that are not needed.")
        self._unremovable = gauge("unremovable_nodes_count", "Nodes that cannot be removed, by reason.", ("reason",))
        self._unremovable_reasons: set[str] = set()
        self._cooldown = gauge("scale_down_in_cooldown", "1 while nothing may be removed, else 0.")
        self._overflowing = gauge(
            "overflowing_controllers_count", "Controllers with too many kinds of pods to treat them as alike.")
        self._skip_s = gauge("max_node_skip_eval_duration_seconds", "How long the node skipped most often was skipped.")
        self._skipped_pods = gauge("skipped_pods_count", "Pods that were not simulated.", ("requestor",))

    def _make_work(self) -> None:
        counter = self._counter
        self._duration = Histogram(
            PREFIX + "function_duration_seconds", "How long parts of the loop take.", ("function",),
            buckets=_DURATION_BUCKETS_S, registry=self.registry)
        self._duration_summary = Summary(
            PREFIX + "function_duration_quantile_seconds", "How long parts of the loop take.", ("function",),
            registry=self.registry)
        devices = ("gpu_resource_name", "gpu_name", "dra_drivers")
        self._errors = counter("errors_total", "Turns that failed, by kind of error.", ("type",))
        self._scaled_up = counter("scaled_up_nodes_total", "Nodes that were asked for.", devices)
        self._failed_ups = counter("failed_scale_ups_total", "Scale-ups that failed.", ("reason", *devices))
        self._failed_nodes = counter("failed_node_creations_total", "Nodes that did not come.", ("reason",))
        self._scaled_down = counter("scaled_down_nodes_total", "Nodes that were removed.", ("reason", *devices))
        self._evicted = counter("evicted_pods_total", "Pods that were evicted.", ("eviction_result",))
        # Counters upstream. This library would put _total behind their names, and dashboards would not find them.
        self._old_unregistered = self._gauge(
            "old_unregistered_nodes_removed_count", "Machines without a node that were removed.")
        self._skipped_events = self._gauge(
            "skipped_scale_events_count", "Scale-ups and scale-downs left out because of a limit.",
            ("direction", "reason"))
        self._heterogeneity = Histogram(
            PREFIX + "binpacking_heterogeneity", "Kinds of pods in one estimate.",
            ("instance_type", "cpu_count", "namespace_count"), buckets=(1, 2, 4, 8, 16, 32), registry=self.registry)
        self._removal_latency = Histogram(
            PREFIX + "node_removal_latency_seconds",
            "From when a node could go until it went, or was needed again.", ("deleted", "delay_reason"),
            buckets=_LATENCY_BUCKETS_S, registry=self.registry)

    def _make_per_group(self) -> None:
        if not self._per_group:
            return
        label = ("node_group",)
        self._group_min = self._gauge("node_group_min_count", "The fewest nodes of the group.", label)
        self._group_max = self._gauge("node_group_max_count", "The most nodes of the group.", label)
        self._group_target = self._gauge("node_group_target_count", "The nodes asked of the group.", label)
        self._group_health = self._gauge("node_group_healthiness", "1 if the group may be scaled up, else 0.", label)
        self._group_backoff = self._gauge(
            "node_group_backoff_status", "1 while the group is left alone for this reason, else 0.", (*label, "reason"))
        self._backoff_reasons: dict[str, set[str]] = {}

    def _begin(self, options: AutoscalerOptions) -> None:
        for kind in ErrorKind:
            self._errors.labels(kind.value)
        for reason in ("cloudProviderError", "apiCallError", "timeout"):
            self._failed_ups.labels(reason, "", "", "")
            self._failed_nodes.labels(reason)
        for reason in ("underutilized", "empty", "unready"):
            self._scaled_down.labels(reason, "", "", "")
        for result in ("succeeded", "failed"):
            self._evicted.labels(result)
        for direction in ("up", "down"):
            for reason in ("CpuResourceLimit", "MemoryResourceLimit"):
                self._skipped_events.labels(direction, reason).set(0)
        for direction, i in (("minimum", 0), ("maximum", 1)):
            self._core_limits.labels(direction).set(options.cores_total[i])
            self._memory_limits.labels(direction).set(options.memory_total_gib[i] * GIB)

    # The loop

    def timed(self, function: str) -> AbstractContextManager[None]:
        """Measure a part of the loop."""
        return _Timed(self, self._clock, function)

    def took(self, function: str, seconds: float) -> None:
        """A part of the loop took so long."""
        children = self._durations.get(function)
        if children is None:
            children = self._durations[function] = (
                self._duration.labels(function), self._duration_summary.labels(function))
        for child in children:
            child.observe(seconds)

    def activity(self, part: str, now_s: float) -> None:
        """A part of the loop has run."""
        child = self._activities.get(part)
        if child is None:
            child = self._activities[part] = self._last_activity.labels(part)
        child.set(int(now_s))

    def error(self, kind: ErrorKind) -> None:
        """A turn has failed."""
        self._errors.labels(kind.value).inc()

    # What is seen

    def nodes(self, readiness: Readiness, *, is_healthy: bool) -> None:
        """What the nodes are up to."""
        self._show(self._safe, is_healthy)
        for state, names in (
            ("ready", readiness.ready), ("unready", readiness.unready), ("notStarted", readiness.not_started),
            ("suspended", readiness.suspended), ("unregistered", readiness.unregistered),
            ("longUnregistered", readiness.long_unregistered),
        ):
            self._show(self._nodes, len(names), state)

    def resources(self, cores: int, memory_bytes: int) -> None:
        """What the cluster has."""
        self._show(self._cores, cores)
        self._show(self._memory, memory_bytes)

    def taints(self, counts: Mapping[str, int]) -> None:
        """The taints on all nodes."""
        for kind, count in counts.items():
            self._show(self._taints, count, kind)

    def pods(self, unschedulable: int, unprocessed: int) -> None:
        """The pods that wait."""
        self._show(self._pods, unschedulable, "unschedulable")
        self._show(self._pods, unprocessed, "scheduler_unprocessed")

    def overflowing(self, controllers: int) -> None:
        """Controllers whose pods are too different from each other."""
        self._show(self._overflowing, controllers)

    def groups(self, count: int, max_nodes: int) -> None:
        """How many groups there are, and how far they may grow."""
        self._show(self._groups, count, "autoscaled")
        self._show(self._groups, 0, "autoprovisioned")
        self._show(self._max_nodes, max_nodes)

    def group(self, group_id: str, min_size: int, max_size: int, target: int | None) -> None:
        """The sizes of a group."""
        if self._per_group:
            self._show(self._group_min, min_size, group_id)
            self._show(self._group_max, max_size, group_id)
            if target is not None:
                self._show(self._group_target, target, group_id)

    def group_health(self, group_id: str, *, is_healthy: bool, backoff: str | None) -> None:
        """How a group is, and the code of the error it is left alone for."""
        if not self._per_group:
            return
        self._show(self._group_health, is_healthy, group_id)
        reasons = self._backoff_reasons.setdefault(group_id, set())
        if backoff is not None:
            reasons.add(backoff or "unknown")
        for reason in reasons:
            self._show(self._group_backoff, reason == (backoff or "unknown") and backoff is not None, group_id, reason)

    # What is done

    def scaled_up(self, delta: int, gpu: GpuConfig | None) -> None:
        """Nodes were asked for."""
        self._scaled_up.labels(*_devices(gpu)).inc(delta)

    def scale_up_failed(self, reason: str, delta: int, gpu: GpuConfig | None) -> None:
        """Nodes did not come."""
        self._failed_ups.labels(reason, *_devices(gpu)).inc()
        self._failed_nodes.labels(reason).inc(delta)

    def scaled_down(self, reason: str, gpu: GpuConfig | None) -> None:
        """A node is being removed."""
        self._scaled_down.labels(reason, *_devices(gpu)).inc()

    def evicted(self, *, succeeded: bool) -> None:
        """A pod was evicted, or could not be."""
        self._evicted.labels("succeeded" if succeeded else "failed").inc()

    def deletions_pending(self, count: int) -> None:
        """Deletions under way."""
        self._pending_deletions.set(count)

    def unregistered_removed(self, count: int) -> None:
        """Machines without a node were removed."""
        self._old_unregistered.inc(count)

    def skipped_for_limit(self, direction: str, resource: str) -> None:
        """Something was left out because of a limit of the whole cluster."""
        reason = {"cpu": "CpuResourceLimit", "memory": "MemoryResourceLimit"}.get(resource)
        if reason is not None:
            self._skipped_events.labels(direction, reason).inc()

    def estimated(self, instance_type: str, cpu_count: str, namespace_count: str, kinds: int) -> None:
        """An estimate with so many kinds of pods was made."""
        self._heterogeneity.labels(instance_type, cpu_count, namespace_count).observe(kinds)

    def unneeded(self, count: int) -> None:
        """Nodes that are not needed."""
        self._show(self._unneeded, count)

    def unremovable(self, counts: Mapping[str, int]) -> None:
        """Nodes that stay, by reason; what is not among the reasons any more is none."""
        self._unremovable_reasons |= counts.keys()
        for reason in self._unremovable_reasons:
            self._show(self._unremovable, counts.get(reason, 0), reason)

    def cooldown(self, *, is_on: bool) -> None:
        """Whether scale-down has to wait."""
        self._show(self._cooldown, is_on)

    def longest_skip(self, seconds: float) -> None:
        """How long a node has not been simulated."""
        self._show(self._skip_s, seconds)

    def removal_latency(self, seconds: float, *, deleted: bool, delay_reason: str = "none") -> None:
        """A node that could go has gone, or is needed again."""
        self._removal_latency.labels("true" if deleted else "false", delay_reason).observe(seconds)


class _Timed:
    """Measures how long its block takes; several times as quick as a generator."""

    __slots__ = ("_clock", "_function", "_metrics", "_started_s")

    def __init__(self, metrics: AutoscalerMetrics, clock: Clock, function: str) -> None:
        self._metrics, self._clock, self._function = metrics, clock, function
        self._started_s = 0.0

    def __enter__(self) -> None:
        self._started_s = self._clock.monotonic()

    def __exit__(self, *_error: object) -> None:
        self._metrics.took(self._function, self._clock.monotonic() - self._started_s)


def _devices(gpu: GpuConfig | None) -> tuple[str, str, str]:
    return ("", "", "") if gpu is None else (gpu.resource_name, gpu.type, "")
