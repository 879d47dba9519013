from __future__ import annotations

from prometheus_client import Counter, Gauge
from prometheus_client.parser import text_string_to_metric_families

from holokube.base.clock import VirtualClock
from holokube.runtime.metrics import Metrics
from holokube.runtime.workqueue import WorkQueue


def busy_metrics() -> Metrics:
    metrics = Metrics()
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock, "pods", metrics=metrics)
    queue.add("a")
    clock.advance(0.5)
    queue.try_get()
    controller = metrics.observe_controller("pods", workers=4)
    controller.started()
    controller.finished("success", 0.2)
    controller.started()
    controller.failed(terminal=True)
    controller.finished("error", 0.1)
    return metrics


def test_two_registries_know_nothing_of_each_other_and_render_the_same_bytes() -> None:
    first, second = busy_metrics(), busy_metrics()
    first.component_up("a", up=True)
    second.component_up("a", up=True)
    assert first.render() == second.render()
    assert Metrics().render()[0] == b""


def test_the_text_is_in_the_old_format_unless_openmetrics_is_asked_for() -> None:
    body, content_type = busy_metrics().render()
    assert content_type.startswith("text/plain; version=0.0.4")
    text = body.decode()
    assert "_created" not in text
    assert 'workqueue_adds_total{name="pods"} 1.0\n' in text
    assert 'workqueue_queue_duration_seconds_bucket{le="1.0",name="pods"} 1.0\n' in text
    families = {family.name for family in text_string_to_metric_families(text)}
    assert "controller_runtime_reconcile_time_seconds" in families
    body, content_type = busy_metrics().render("application/openmetrics-text;version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_controllers_count_under_the_names_of_controller_runtime() -> None:
    value = busy_metrics().registry.get_sample_value
    labels = {"controller": "pods"}
    assert value("controller_runtime_reconcile_total", {**labels, "result": "success"}) == 1
    assert value("controller_runtime_reconcile_total", {**labels, "result": "error"}) == 1
    assert value("controller_runtime_reconcile_total", {**labels, "result": "requeue"}) == 0
    assert value("controller_runtime_reconcile_errors_total", labels) == 1
    assert value("controller_runtime_terminal_reconcile_errors_total", labels) == 1
    assert value("controller_runtime_max_concurrent_reconciles", labels) == 4
    assert value("controller_runtime_active_workers", labels) == 0
    assert value("controller_runtime_reconcile_time_seconds_count", labels) == 2


def test_a_gauge_whose_own_name_ends_in_created_is_shown() -> None:
    metrics = Metrics()
    Gauge("kube_pod_created", "Start.", registry=metrics.registry).set(7)
    Counter("things_total", "Things.", registry=metrics.registry).inc()
    text = metrics.render()[0].decode()
    assert "kube_pod_created 7.0" in text
    assert "things_created" not in text
