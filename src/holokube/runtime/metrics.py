"""Prometheus metrics of the runtime, under the names that client-go and controller-runtime use.

One ``Metrics`` holds one registry of its own; nothing is global, so that several clusters fit in one process.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from holokube.runtime.workqueue import QueueObserver, T, WorkQueue

# 10 ns times powers of ten, ten of them: client-go's buckets.
_QUEUE_BUCKETS_S = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
# controller-runtime's buckets.
_RECONCILE_BUCKETS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
)  # fmt: skip


class Metrics:
    """The registry, the runtime's own metrics in it, and its text form."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._queues = _QueueFamilies(self.registry)
        self._controllers = _ControllerFamilies(self.registry)
        self._leader_status = Gauge(
            "leader_election_master_status",
            "1 while this process leads on the lease called name, else 0.",
            ["name"],
            registry=self.registry,
        )
        self._leader_slowpath = Counter(
            "leader_election_slowpath_total",
            "Renewals of the lease called name that had to read it first.",
            ["name"],
            registry=self.registry,
        )
        self._dropped_events = _DroppedEvents()
        self.registry.register(self._dropped_events)
        self._component_up = Gauge(
            "holokube_component_up",
            "1 while the component runs, 0 while it waits for its restart.",
            ["component"],
            registry=self.registry,
        )
        self._component_restarts = Counter(
            "holokube_component_restarts_total",
            "How often the component crashed and was started again.",
            ["component"],
            registry=self.registry,
        )

    def observe_queue(self, name: str, queue: WorkQueue[T]) -> QueueObserver:
        """The observer for one work queue; gauges ask the queue when they are read."""
        return self._queues.observer(name, queue)

    def observe_controller(self, name: str, workers: int) -> ControllerMetrics:
        return ControllerMetrics(self._controllers, name, workers)

    def leader(self, name: str, *, leading: bool) -> None:
        self._leader_status.labels(name).set(1.0 if leading else 0.0)

    def leader_slowpath(self, name: str) -> None:
        self._leader_slowpath.labels(name).inc()

    def dropped_events(self, component: str, settle: Callable[[], None]) -> Tally[str]:
        """The events that a component dropped, by cause, for it to count on; ``settle`` is called before a reading."""
        return self._dropped_events.of(component, settle)

    def component_up(self, component: str, *, up: bool) -> None:
        self._component_up.labels(component).set(1.0 if up else 0.0)

    def component_restarted(self, component: str) -> None:
        self._component_restarts.labels(component).inc()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics in the form the ``Accept`` header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(_Presentable(self.registry)), content_type


class _DroppedEvents(Collector):
    """A chatty component drops thousands of events at a time, so they are counted in a plain dict."""

    def __init__(self) -> None:
        self._by_component: dict[str, Tally[str]] = {}
        self._settle: list[Callable[[], None]] = []

    def of(self, component: str, settle: Callable[[], None]) -> Tally[str]:
        self._settle.append(settle)
        return self._by_component.setdefault(component, Tally())

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "holokube_events_dropped",
            "Events that were not written, by cause: queue_full, spam, rejected, gave_up.",
            labels=["component", "cause"],
        )
        for settle in self._settle:
            settle()
        for component, causes in self._by_component.items():
            for cause, count in causes.items():
                family.add_metric([component, cause], count)
        yield family


class ControllerMetrics:
    """What one controller counts."""

    def __init__(self, families: _ControllerFamilies, name: str, workers: int) -> None:
        self._name = name
        self._families = families
        self._errors = families.errors.labels(name)
        self._terminal_errors = families.terminal_errors.labels(name)
        self._time_s = families.time_s.labels(name)
        self._active = families.active.labels(name)
        self._active.set(0)
        families.workers.labels(name).set(workers)
        for result in ("error", "requeue", "requeue_after", "success"):
            families.total.labels(name, result)

    def started(self) -> None:
        self._active.inc()

    def finished(self, result: str, took_s: float) -> None:
        """``result`` is error, requeue, requeue_after or success."""
        self._active.dec()
        self._families.total.labels(self._name, result).inc()
        self._time_s.observe(took_s)

    def failed(self, *, terminal: bool = False) -> None:
        self._errors.inc()
        if terminal:
            self._terminal_errors.inc()


class _QueueFamilies:
    def __init__(self, registry: CollectorRegistry) -> None:
        label = ["name"]
        self.depth = Gauge("workqueue_depth", "Current depth of workqueue.", label, registry=registry)
        self.adds = Counter("workqueue_adds_total", "Adds handled by workqueue.", label, registry=registry)
        self.latency = Histogram(
            "workqueue_queue_duration_seconds",
            "How long an item stays in workqueue before it is asked for.",
            label, buckets=_QUEUE_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self.work = Histogram(
            "workqueue_work_duration_seconds",
            "How long the work on an item from workqueue takes.",
            label, buckets=_QUEUE_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress, not yet in work_duration; it grows when workers are stuck.",
            label, registry=registry,
        )  # fmt: skip
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "For how long the slowest worker of workqueue has been at its item.",
            label, registry=registry,
        )  # fmt: skip
        self.retries = Counter(
            "workqueue_retries_total", "Retries handled by workqueue.", label, registry=registry
        )

    def observer(self, name: str, queue: WorkQueue[T]) -> _PrometheusQueueObserver:
        self.depth.labels(name).set_function(lambda: queue.depth)
        self.unfinished.labels(name).set_function(lambda: sum(queue.processing_ages_s()))
        self.longest.labels(name).set_function(lambda: max(queue.processing_ages_s(), default=0.0))
        return _PrometheusQueueObserver(
            added=self.adds.labels(name).inc,
            retried=self.retries.labels(name).inc,
            taken=self.latency.labels(name).observe,
            finished=self.work.labels(name).observe,
        )


class _PrometheusQueueObserver:
    """Bound methods of the children, looked up once."""

    __slots__ = ("added", "finished", "retried", "taken")

    def __init__(
        self,
        *,
        added: Callable[[], None],
        retried: Callable[[], None],
        taken: Callable[[float], None],
        finished: Callable[[float], None],
    ) -> None:
        self.added = added
        self.retried = retried
        self.taken = taken
        self.finished = finished


class _ControllerFamilies:
    def __init__(self, registry: CollectorRegistry) -> None:
        label = ["controller"]
        self.total = Counter(
            "controller_runtime_reconcile_total", "Reconciles per controller and result.",
            ["controller", "result"], registry=registry,
        )  # fmt: skip
        self.errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed.", label, registry=registry
        )
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed and are not tried again.", label, registry=registry,
        )  # fmt: skip
        self.time_s = Histogram(
            "controller_runtime_reconcile_time_seconds", "Length of time per reconcile.",
            label, buckets=_RECONCILE_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self.workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of the controller.",
            label, registry=registry,
        )  # fmt: skip
        self.active = Gauge(
            "controller_runtime_active_workers", "Workers at work now.", label, registry=registry
        )


class _Presentable(Collector):
    """The registry without empty families and without ``_created`` series.

    The library stamps ``_created`` with the machine's own time: on virtual time it would be wrong, and no
    two runs would give the same bytes.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for family in self._registry.collect():
            samples = family.samples
            if family.type in ("counter", "histogram", "summary"):
                samples = [sample for sample in samples if not sample.name.endswith("_created")]
            if samples:
                shown = Metric(family.name, family.documentation, family.type, family.unit)
                shown.samples = samples
                yield shown
