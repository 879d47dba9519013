"""Results made by hand, small enough to be read."""

from __future__ import annotations

from typing import Any

from holokube.lab.results import Decision, NodeSpan, Outcome, PodSpan, RunResult, Series

GIB = 2**30


def node_span(name: str = "a-1", group: str = "a", **changed: Any) -> NodeSpan:
    fields: dict[str, Any] = {
        "name": name, "group": group, "instance_type": "m5.large", "zone": "z1", "capacity_type": "on-demand",
        "price_usd_per_hour": 0.1, "cpu_milli": 2000, "memory_bytes": 8 * GIB, "created_s": 0.0, "ready_s": 0.0,
        "removed_s": None,
    }  # fmt: skip
    return NodeSpan(**(fields | changed))


def pod_span(name: str = "shop/web-1", node: int | None = 0, **changed: Any) -> PodSpan:
    fields: dict[str, Any] = {
        "name": name, "workload": "shop/Deployment/web", "node": node, "cpu_milli": 500, "memory_bytes": GIB,
        "created_s": 0.0, "bound_s": 0.0, "ready_s": 1.0, "ended_s": None,
    }  # fmt: skip
    return PodSpan(**(fields | changed))


def run_result(policy: str = "cluster-autoscaler", **changed: Any) -> RunResult:
    fields: dict[str, Any] = {
        "scenario": "small", "policy": policy, "seed": 7, "start": "2026-01-05T00:00:00Z", "duration_s": 7200.0,
        "summary": {"cost_usd": 1.25, "pending_p99_s": 61.5, "lower_bound_usd": None},
        "cost_by_workload_usd": {"shop/Deployment/web": 1.0}, "node_hours_by_type": {"m5.large": 4.0},
        "api_calls": {"get": 3}, "series": Series((0.0, 60.0), {"nodes": (1.0, 2.0)}, {"m5.large": (1, 2)}),
        "nodes": (), "pods": (), "decisions": (), "outcomes": (Outcome("pending_p99_s < 60", False, 61.5),),
        "scenario_text": "kind: Scenario\n",
    }  # fmt: skip
    return RunResult(**(fields | changed))


def story_result(policy: str = "cluster-autoscaler") -> RunResult:
    """A pod waits for a node; another is evicted when its node goes; a third never gets a place."""
    return run_result(
        policy,
        nodes=(
            node_span("a-1"),
            node_span("a-2", created_s=90.0, ready_s=120.0, why_added="a 1->2, for 1 pods"),
            node_span("b-1", "b", removed_s=3600.0, why_removed="drained"),
        ),
        pods=(
            pod_span("shop/web-1"),
            pod_span("shop/web-2", 1, created_s=60.0, bound_s=121.0, ready_s=125.0),
            pod_span("shop/old-1", 2, ended_s=3590.0, end="evicted"),
            pod_span("shop/big-1", None, created_s=200.0, bound_s=None, ready_s=None),
        ),
        decisions=(
            Decision(60.0, "scheduler", "pod", "shop/web-2", "pending", ("0/2 nodes are available",)),
            Decision(70.0, "cluster-autoscaler", "scale-up", "cluster", "chose a", (), {"options": {"a": 1, "b": 2}}),
            Decision(70.0, "cluster-autoscaler", "scale-up", "a", "enlarged", ("a 1->2 (max: 9)",), {
                "pods": 1,
                "expanders": [{"expander": "least-waste", "kept": ["a"], "scores": {"a": "5 %", "b": "9 %"}}],
            }),
            Decision(100.0, "cluster-autoscaler", "node", "a-1", "stays: NotUnderutilized", ("cpu 0.9",)),
            Decision(210.0, "cluster-autoscaler", "group", "b", "skipped", ("max size reached",)),
            Decision(
                210.0, "cluster-autoscaler", "pod", "shop/big-1", "not helped (NoOptions)", ("a: Insufficient cpu",),
                {"alike": 1},
            ),
            Decision(900.0, "cluster-autoscaler", "node", "b-1", "unneeded", (), {"since": 1_767_572_100.0}),
            Decision(
                3500.0, "cluster-autoscaler", "node", "b-1", "removed", ("drained",),
                {"group": "b", "evicted": ["shop/old-1"]},
            ),
        ),
    )  # fmt: skip
