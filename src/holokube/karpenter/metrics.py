"""Karpenter's metrics, under upstream's names; those that tell the present state are read at the scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, Summary
from prometheus_client.samples import Sample

from holokube.karpenter.api.labels import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL
from holokube.kube.requirements import ZONE_LABEL

PREFIX: Final = "karpenter_"

PROVISIONED: Final = "provisioned"
EXPIRED: Final = "expired"
GARBAGE_COLLECTED: Final = "garbage_collected"
INSUFFICIENT_CAPACITY: Final = "insufficient_capacity"
NODE_CLASS_NOT_READY: Final = "nodeclass_not_ready"
REGISTRATION_TIMEOUT: Final = "registration_timeout"
LAUNCH_TIMEOUT: Final = "launch_timeout"

_DURATION_BUCKETS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    120.0, 150.0, 300.0, 450.0, 600.0,
)  # fmt: skip
_DISRUPTED: Final = ("reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode")
_DECISION: Final = ("decision", "reason", "consolidation_type")


_PENDING_MAX: Final = 1000


class _PodSummary(Summary):
    """Of each pod: what is observed is taken down, and summed up when somebody asks or when it becomes much."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._pending: list[float] = []
        super().__init__(*args, **kwargs)

    def observe(self, amount: float) -> None:
        self._pending.append(amount)
        if len(self._pending) >= _PENDING_MAX:
            self._sum_up()

    def collect(self) -> Iterable[Metric]:
        self._sum_up()
        return super().collect()

    def _sum_up(self) -> None:
        pending, self._pending = self._pending, []
        self._count.inc(len(pending))
        self._sum.inc(sum(pending))


class _BusyHistogram(Histogram):
    """The same by buckets, with labels or without."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._pending: list[float] = []
        super().__init__(*args, **kwargs)

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        assert exemplar is None, "what comes so often is not told one by one"
        self._pending.append(amount)
        if len(self._pending) >= _PENDING_MAX:
            self._sum_up()

    def _child_samples(self) -> Iterable[Sample]:
        self._sum_up()
        return super()._child_samples()

    def _sum_up(self) -> None:
        pending, self._pending = self._pending, []
        self._sum.inc(sum(pending))
        for amount in pending:
            self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)


class _Solves(NamedTuple):
    """Metrics of the solves that one controller asks for."""

    depth: Gauge
    unfinished: Gauge
    duration: Histogram
    unschedulable: Gauge


class KarpenterMetrics:
    """All families, in a registry of their own or in the program's."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._make_claims()
        self._make_pods()
        self._make_disruption()
        self._make_provider()

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def _summary(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Summary:
        return Summary(PREFIX + name, text, labels, registry=self.registry)

    def _pod_summary(self, name: str, text: str) -> _PodSummary:
        return _PodSummary(PREFIX + name, text, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(PREFIX + name, text, labels, buckets=_DURATION_BUCKETS_S, registry=self.registry)

    def _busy_histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> _BusyHistogram:
        return _BusyHistogram(PREFIX + name, text, labels, buckets=_DURATION_BUCKETS_S, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(PREFIX + name, text, labels, registry=self.registry)

    def _make_claims(self) -> None:
        self._claims_created = self._counter(
            "nodeclaims_created_total", "NodeClaims made, by why.", ("reason", "nodepool", "min_values_relaxed"))
        self._claims_terminated = self._counter(
            "nodeclaims_terminated_total", "NodeClaims gone.", ("nodepool", "capacity_type", "zone"))
        self._claims_disrupted = self._counter(
            "nodeclaims_disrupted_total", "NodeClaims whose end was asked for, by why.", _DISRUPTED)
        self._claim_termination = self._histogram(
            "nodeclaims_termination_duration_seconds", "From the deletion of a claim to its end.", ("nodepool",))
        self._instance_termination = self._histogram(
            "nodeclaims_instance_termination_duration_seconds",
            "From the order to the provider to the end of the instance.", ("nodepool",))
        self._nodes_created = self._counter("nodes_created_total", "Nodes that registered.", ("nodepool", "zone"))
        self._nodes_terminated = self._counter("nodes_terminated_total", "Nodes gone.", ("nodepool", "zone"))
        self._nodes_drained = self._counter("nodes_drained_total", "Nodes that were emptied.", ("nodepool",))
        self._node_termination = self._summary(
            "nodes_termination_duration_seconds", "From the deletion of a node to its end.", ("nodepool",))
        self._node_lifetime = self._histogram(
            "nodes_lifetime_duration_seconds", "How old nodes became.", ("nodepool",))

    def _make_pods(self) -> None:
        self._pods_drained = self._counter("pods_drained_total", "Pods that had to leave a node, by why.", ("reason",))
        self._evictions = self._counter(
            "pods_eviction_requests_total", "Requests to the eviction API, by answer.", ("code",))
        self._drained: dict[str, Counter] = {}
        self._answers: dict[int, Counter] = {}
        """The same two by labels, of which there are few; every eviction tells them."""
        self._pods_disrupted = self._counter(
            "pods_disruption_initiated_total", "Pods on claims whose end was asked for.", _DISRUPTED)
        self._decision_duration = self._busy_histogram(
            "pods_scheduling_decision_duration_seconds", "From when a pod was seen pending to the first decision.")
        self._bound = self._pod_summary("pods_bound_duration_seconds", "From the creation of a pod to its binding.")
        self._startup = self._pod_summary("pods_startup_duration_seconds", "From the creation of a pod until it runs.")
        self._provisioning_bound = self._pod_summary(
            "pods_provisioning_bound_duration_seconds", "From when a pod was seen pending to its binding.")
        self._scheduling = self._busy_histogram(
            "scheduler_scheduling_duration_seconds", "How long one solve takes.", ("controller",))
        self._queue_depth = self._gauge("scheduler_queue_depth", "Pods in the present solve.", ("controller",))
        self._unfinished = self._gauge(
            "scheduler_unfinished_work_seconds", "How long the present solve has been going on.", ("controller",))
        self._unschedulable = self._gauge(
            "scheduler_unschedulable_pods_count", "Pods for which no place was found.", ("controller",))
        self._ignored = self._gauge("scheduler_ignored_pods_count", "Pods that ask for what cannot be read.")
        self._solves: dict[str, _Solves] = {}
        """What is told of solves, by who asks for them; every batch tells it."""

    def _make_disruption(self) -> None:
        prefix = "voluntary_disruption_"
        self._decisions = self._counter(prefix + "decisions_total", "Commands that were begun.", _DECISION)
        self._evaluation = self._busy_histogram(
            prefix + "decision_evaluation_duration_seconds", "How long one method takes.",
            ("reason", "consolidation_type"))
        self._evaluations: dict[tuple[str, str], Histogram] = {}
        """The same by labels; every pass tells it of every method."""
        self._eligible = self._gauge(prefix + "eligible_nodes", "Nodes that a method may disrupt.", ("reason",))
        self._timeouts = self._counter(
            prefix + "consolidation_timeouts_total", "Searches that ended for want of time.", ("consolidation_type",))
        self._failed_validations = self._counter(
            prefix + "failed_validations_total", "Candidates that no longer qualified after the wait.",
            ("consolidation_type",))
        self._queue_failures = self._counter(
            prefix + "queue_failures_total", "Replacements that did not come.", _DECISION)
        self._score = self._histogram(
            "consolidation_score", "Scores of moves of the Balanced policy.", ("decision", "nodepool", "policy"))
        self._moves = self._counter(
            "consolidation_moves_total", "Moves that the Balanced policy judged.", ("decision", "nodepool", "policy"))
        for kind in ("multi", "single"):
            self._timeouts.labels(kind)

    def _make_provider(self) -> None:
        labels = ("controller", "method", "provider")
        self._provider_duration = self._histogram(
            "cloudprovider_duration_seconds", "How long calls to the provider take.", labels)
        self._provider_errors = self._counter(
            "cloudprovider_errors_total", "Calls to the provider that failed.", (*labels, "error"))

    # Claims and nodes

    def claim_created(self, claim: Mapping[str, Any], reason: str, *, min_values_relaxed: bool) -> None:
        relaxed = "true" if min_values_relaxed else "false"
        self._claims_created.labels(reason, _label(claim, NODEPOOL_LABEL), relaxed).inc()

    def claim_disrupted(
        self, claim: Mapping[str, Any], reason: str, *, policy: str = "", pods: int = 0
    ) -> None:
        """The end of a claim was asked for; ``pods`` of its node have to find another place."""
        eventual = (claim.get("spec") or {}).get("terminationGracePeriod") is not None
        labels = (
            reason, _label(claim, NODEPOOL_LABEL), _label(claim, CAPACITY_TYPE_LABEL), policy,
            "eventual" if eventual else "graceful",
        )  # fmt: skip
        self._claims_disrupted.labels(*labels).inc()
        self._pods_disrupted.labels(*labels).inc(pods)

    def claim_terminated(self, claim: Mapping[str, Any], took_s: float) -> None:
        pool = _label(claim, NODEPOOL_LABEL)
        self._claims_terminated.labels(pool, _label(claim, CAPACITY_TYPE_LABEL), _label(claim, ZONE_LABEL)).inc()
        self._claim_termination.labels(pool).observe(took_s)

    def instance_terminated(self, claim: Mapping[str, Any], took_s: float) -> None:
        self._instance_termination.labels(_label(claim, NODEPOOL_LABEL)).observe(took_s)

    def node_created(self, claim: Mapping[str, Any]) -> None:
        self._nodes_created.labels(_label(claim, NODEPOOL_LABEL), _label(claim, ZONE_LABEL)).inc()

    def node_drained(self, node: Mapping[str, Any]) -> None:
        self._nodes_drained.labels(_label(node, NODEPOOL_LABEL)).inc()

    def node_terminated(self, node: Mapping[str, Any], took_s: float, lived_s: float) -> None:
        pool = _label(node, NODEPOOL_LABEL)
        self._nodes_terminated.labels(pool, _label(node, ZONE_LABEL)).inc()
        self._node_termination.labels(pool).observe(took_s)
        self._node_lifetime.labels(pool).observe(lived_s)

    # Pods

    def pod_drained(self, reason: str) -> None:
        found = self._drained.get(reason)
        if found is None:
            found = self._drained[reason] = self._pods_drained.labels(reason)
        found.inc()

    def eviction_answered(self, code: int) -> None:
        found = self._answers.get(code)
        if found is None:
            found = self._answers[code] = self._evictions.labels(str(code))
        found.inc()

    def pod_decided(self, waited_s: float) -> None:
        self._decision_duration.observe(waited_s)

    def pod_bound(self, since_creation_s: float, since_seen_s: float | None) -> None:
        self._bound.observe(since_creation_s)
        if since_seen_s is not None:
            self._provisioning_bound.observe(since_seen_s)

    def pod_started(self, since_creation_s: float) -> None:
        self._startup.observe(since_creation_s)

    def solve_begun(self, controller: str, pods: int, since_begin_s: Callable[[], float]) -> None:
        """``since_begin_s`` is asked whenever somebody looks while the solve goes on."""
        solves = self._solves_of(controller)
        solves.depth.set(pods)
        solves.unfinished.set_function(since_begin_s)

    def solve_finished(self, controller: str, took_s: float, unschedulable: int) -> None:
        solves = self._solves_of(controller)
        solves.depth.set(0)
        solves.unfinished.set_function(float)
        solves.duration.observe(took_s)
        solves.unschedulable.set(unschedulable)

    def _solves_of(self, controller: str) -> _Solves:
        found = self._solves.get(controller)
        if found is None:
            found = self._solves[controller] = _Solves(
                self._queue_depth.labels(controller), self._unfinished.labels(controller),
                self._scheduling.labels(controller), self._unschedulable.labels(controller),
            )  # fmt: skip
        return found

    def pods_ignored(self, count: int) -> None:
        self._ignored.set(count)

    # Disruption

    def method_evaluated(self, reason: str, consolidation_type: str, took_s: float) -> None:
        key = reason, consolidation_type
        found = self._evaluations.get(key)
        if found is None:
            found = self._evaluations[key] = self._evaluation.labels(*key)
        found.observe(took_s)

    def eligible_nodes(self, reason: str, count: int) -> None:
        self._eligible.labels(reason).set(count)

    def decision_begun(self, decision: str, reason: str, consolidation_type: str) -> None:
        self._decisions.labels(decision, reason, consolidation_type).inc()

    def consolidation_timed_out(self, consolidation_type: str) -> None:
        self._timeouts.labels(consolidation_type).inc()

    def validation_failed(self, consolidation_type: str, candidates: int) -> None:
        self._failed_validations.labels(consolidation_type).inc(candidates)

    def command_failed(self, decision: str, reason: str, consolidation_type: str, launches: int) -> None:
        self._queue_failures.labels(decision, reason, consolidation_type).inc(launches)

    def move_scored(self, decision: str, pool: str, policy: str, score: float) -> None:
        self._moves.labels(decision, pool, policy).inc()
        self._score.labels(decision, pool, policy).observe(score)

    # Provider

    def provider_answered(self, controller: str, method: str, provider: str, took_s: float) -> None:
        self._provider_duration.labels(controller, method, provider).observe(took_s)

    def provider_failed(self, controller: str, method: str, provider: str, error: str) -> None:
        self._provider_errors.labels(controller, method, provider, error).inc()


def _label(obj: Mapping[str, Any], key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))
