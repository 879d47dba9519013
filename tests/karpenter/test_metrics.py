"""Metrics that tell how it is at the moment of the scrape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from holokube.karpenter.metrics import KarpenterMetrics


def read(metrics: KarpenterMetrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(f"karpenter_{name}", {"controller": "provisioner"})


def test_a_solve_that_goes_on_tells_for_how_long() -> None:
    metrics, now_s = KarpenterMetrics(), [100.0]
    metrics.solve_begun("provisioner", 7, lambda: now_s[0] - 100.0)
    now_s[0] = 102.5
    assert read(metrics, "scheduler_queue_depth") == 7
    assert read(metrics, "scheduler_unfinished_work_seconds") == 2.5
    metrics.solve_finished("provisioner", 3.0, 1)
    now_s[0] = 200.0
    assert read(metrics, "scheduler_queue_depth") == 0
    assert read(metrics, "scheduler_unfinished_work_seconds") == 0
    assert read(metrics, "scheduler_unschedulable_pods_count") == 1


def test_methods_are_told_apart_by_reason_and_type() -> None:
    metrics = KarpenterMetrics()
    told = [("empty", "empty", 1.0), ("a", "multi", 2.0), ("a", "single", 4.0), ("a", "multi", 8.0)]
    for reason, kind, took_s in told:
        metrics.method_evaluated(reason, kind, took_s)
    name = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_sum"
    for reason, kind, sum_s in (("empty", "empty", 1.0), ("a", "multi", 10.0), ("a", "single", 4.0)):
        assert metrics.registry.get_sample_value(name, {"reason": reason, "consolidation_type": kind}) == sum_s


def test_of_pods_the_latest_are_in_every_scrape() -> None:
    metrics = KarpenterMetrics()

    def sums() -> list[float | None]:
        names = ("pods_bound_duration_seconds_sum", "pods_bound_duration_seconds_count",
                 "pods_provisioning_bound_duration_seconds_count", "pods_startup_duration_seconds_count")  # fmt: skip
        return [metrics.registry.get_sample_value(f"karpenter_{name}") for name in names]

    metrics.pod_bound(2.0, None)
    metrics.pod_bound(3.0, 1.0)
    assert sums() == [5.0, 2.0, 1.0, 0.0]
    for _ in range(2500):
        metrics.pod_bound(2.0, 1.0)
        metrics.pod_started(4.0)
    assert sums() == sums() == [5005.0, 2502.0, 2501.0, 2500.0]


@given(st.lists(st.one_of(st.floats(-1, 700), st.sampled_from([0.0, 0.005, 1.0, 600.0, float("inf")])), max_size=30))
def test_waits_of_pods_come_into_the_buckets_that_they_would_one_by_one(waits_s: list[float]) -> None:
    metrics, plain = KarpenterMetrics(), CollectorRegistry()
    name = "karpenter_pods_scheduling_decision_duration_seconds"
    (family,) = [one for one in metrics.registry.collect() if one.name == name]
    bounds = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
    one_by_one = Histogram(name, "", buckets=[float(bound) for bound in bounds], registry=plain)
    for wait_s in waits_s:
        metrics.pod_decided(wait_s)
        one_by_one.observe(wait_s)

    def told(registry: CollectorRegistry, what: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"{name}_{what}", labels)

    for bound in bounds:
        assert told(metrics.registry, "bucket", le=bound) == told(plain, "bucket", le=bound)
    assert told(metrics.registry, "count") == told(plain, "count") == len(waits_s)
    assert told(metrics.registry, "sum") == pytest.approx(told(plain, "sum"))
