"""What the webhook counts."""

from __future__ import annotations

from typing import Final, get_args

from prometheus_client import Counter, Gauge, Histogram

from holokube.runtime.metrics import Metrics
from holokube.sizing.review import Outcome, Verdict

_BUCKETS_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)


class SizingMetrics:
    """Counters of one process."""

    def __init__(self, metrics: Metrics) -> None:
        registry = metrics.registry
        admissions = Counter(
            "holokube_node_sizing_admissions_total",
            "Admission reviews by outcome: sized, unchanged, ignored (not asked for), failed (admitted as is), denied.",
            ["outcome"], registry=registry,
        )  # fmt: skip
        self._admissions = {outcome: admissions.labels(outcome) for outcome in get_args(Outcome)}
        self._problems = Counter(
            "holokube_node_sizing_problems_total", "Pods that could not be sized, by reason.",
            ["reason"], registry=registry,
        )  # fmt: skip
        self._malformed = Counter(
            "holokube_node_sizing_malformed_reviews_total", "Requests that were no AdmissionReview.", registry=registry
        )
        self._duration = Histogram(
            "holokube_node_sizing_admission_duration_seconds", "Time to answer an admission review.",
            buckets=_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self._expiry = Gauge(
            "holokube_node_sizing_certificate_expiry_timestamp_seconds", "When the serving certificate ends.",
            registry=registry,
        )  # fmt: skip
        self._rotations = Counter(
            "holokube_node_sizing_certificate_loads_total", "How often a new certificate was taken up.",
            registry=registry,
        )  # fmt: skip
        self._resizes = Counter(
            "holokube_node_sizing_resizes_total",
            "Running pods that were resized in place, by outcome: resized, refused.",
            ["outcome"], registry=registry,
        )  # fmt: skip

    def answered(self, verdict: Verdict, took_s: float) -> None:
        self._admissions[verdict.outcome].inc()
        self._duration.observe(took_s)
        if verdict.problem is not None:
            self._problems.labels(verdict.problem.reason).inc()

    def malformed(self) -> None:
        self._malformed.inc()

    def certificate_loaded(self, ends_at_s: float) -> None:
        self._expiry.set(ends_at_s)
        self._rotations.inc()

    def resized(self, outcome: str) -> None:
        self._resizes.labels(outcome).inc()
