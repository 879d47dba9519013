"""The autoscaler's metrics."""

from __future__ import annotations

import pytest

from holokube.base.clock import VirtualClock
from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.loop.removal_latency import RemovalLatency
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.report import UnneededNode
from holokube.runtime.metrics import Metrics
from tests.builders import node

EVERYWHERE = """
cluster_safe_to_autoscale nodes_count node_groups_count unschedulable_pods_count max_nodes_count
cluster_cpu_current_cores cpu_limits_cores cluster_memory_current_bytes memory_limits_bytes last_activity
function_duration_seconds function_duration_quantile_seconds errors_total scaled_up_nodes_total failed_scale_ups_total
failed_node_creations_total scaled_down_nodes_total evicted_pods_total unneeded_nodes_count unremovable_nodes_count
scale_down_in_cooldown old_unregistered_nodes_removed_count overflowing_controllers_count skipped_scale_events_count
node_taints_count pending_node_deletions binpacking_heterogeneity node_removal_latency_seconds
max_node_skip_eval_duration_seconds skipped_pods_count
"""
PER_GROUP = """
node_group_min_count node_group_max_count node_group_target_count node_group_healthiness node_group_backoff_status
"""


def made(**options: object) -> AutoscalerMetrics:
    return AutoscalerMetrics(VirtualClock(), AutoscalerOptions(**options))  # type: ignore[arg-type]  # whatever is tested


def names(metrics: AutoscalerMetrics) -> set[str]:
    found = metrics.registry.collect()
    return {family.name + ("_total" if family.type == "counter" else "") for family in found}


def value(metrics: AutoscalerMetrics, name: str, **labels: str) -> float | None:
    found: float | None = metrics.registry.get_sample_value(f"cluster_autoscaler_{name}", labels)
    return found


def test_they_have_upstreams_names() -> None:
    everywhere = {f"cluster_autoscaler_{name}" for name in EVERYWHERE.split()}
    per_group = {f"cluster_autoscaler_{name}" for name in PER_GROUP.split()}
    assert names(made()) == everywhere
    assert names(made(emit_per_nodegroup_metrics=True)) == everywhere | per_group


def test_they_can_stand_beside_those_of_the_program() -> None:
    program = Metrics()
    AutoscalerMetrics(VirtualClock(), AutoscalerOptions(), program.registry)
    text = program.render()[0].decode()
    assert 'cluster_autoscaler_errors_total{type="transientError"} 0.0' in text
    assert 'cluster_autoscaler_cpu_limits_cores{direction="maximum"} 320000.0' in text
    assert 'cluster_autoscaler_memory_limits_bytes{direction="minimum"} 0.0' in text


def test_reasons_that_are_gone_are_none() -> None:
    metrics = made()
    metrics.unremovable({"BlockedByPod": 2})
    metrics.unremovable({"NotUnderutilized": 1})
    assert value(metrics, "unremovable_nodes_count", reason="BlockedByPod") == 0
    assert value(metrics, "unremovable_nodes_count", reason="NotUnderutilized") == 1


def test_a_backoff_is_shown_by_its_reason() -> None:
    metrics = made(emit_per_nodegroup_metrics=True)
    metrics.group_health("g", is_healthy=True, backoff="QUOTA")
    metrics.group_health("g", is_healthy=True, backoff="")
    assert value(metrics, "node_group_backoff_status", node_group="g", reason="QUOTA") == 0
    assert value(metrics, "node_group_backoff_status", node_group="g", reason="unknown") == 1
    metrics.group_health("g", is_healthy=False, backoff=None)
    assert value(metrics, "node_group_backoff_status", node_group="g", reason="unknown") == 0
    assert value(metrics, "node_group_healthiness", node_group="g") == 0


def test_without_the_flag_groups_are_not_measured() -> None:
    metrics = made()
    metrics.group("g", 0, 1, 1)
    metrics.group_health("g", is_healthy=True, backoff=None)
    assert not [name for name in names(metrics) if "node_group_" in name]


def test_things_are_counted_with_their_accelerators() -> None:
    metrics = made()
    metrics.scaled_up(2, GpuConfig("label", "k80", "nvidia.com/gpu"))
    metrics.scale_up_failed("timeout", 3, None)
    metrics.error(ErrorKind.INTERNAL)
    metrics.skipped_for_limit("up", "cpu")
    metrics.skipped_for_limit("up", "nodes")
    gpu = {"gpu_resource_name": "nvidia.com/gpu", "gpu_name": "k80", "dra_drivers": ""}
    assert value(metrics, "scaled_up_nodes_total", **gpu) == 2
    assert value(metrics, "failed_node_creations_total", reason="timeout") == 3
    assert value(metrics, "errors_total", type="internalError") == 1
    assert value(metrics, "skipped_scale_events_count", direction="up", reason="CpuResourceLimit") == 1


def test_a_part_of_the_loop_is_timed_even_if_it_fails() -> None:
    metrics = made()
    with pytest.raises(RuntimeError), metrics.timed("main"):
        raise RuntimeError
    assert value(metrics, "function_duration_seconds_count", function="main") == 1
    assert value(metrics, "function_duration_quantile_seconds_count", function="main") == 1


def test_the_latency_of_a_removal_begins_when_a_node_may_go() -> None:
    metrics = made()
    latency = RemovalLatency(metrics)
    entries = [UnneededNode(node(name), 0.0, 600.0) for name in ("goes", "needed", "young")]
    latency.update(entries, [], 500.0)
    latency.update(entries, [], 605.0)
    latency.update([entries[0], entries[2]], ["goes"], 610.0)
    assert value(metrics, "node_removal_latency_seconds_sum", deleted="true", delay_reason="none") == 10
    assert value(metrics, "node_removal_latency_seconds_sum", deleted="false", delay_reason="none") == 10
    latency.update([], ["young"], 620.0)
    assert value(metrics, "node_removal_latency_seconds_count", deleted="true", delay_reason="none") == 2
