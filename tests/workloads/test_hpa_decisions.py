"""What an autoscaler decides and what it says about it."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.timeformat import parse_time
from holokube.workloads.hpa_decisions import (
    Plan,
    Reading,
    Target,
    finish,
    go_selector,
    needs_metrics,
    plan,
    tolerances_of,
    unable_to_get_scale,
)
from holokube.workloads.hpa_limits import History
from holokube.workloads.hpa_replicas import PodMetric, Tolerances
from tests.workloads.test_hpa_replicas import NOW, a_pod, measured

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
DEPLOYMENT = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}


def hpa(*metrics: dict[str, Any], least: int = 1, most: int = 10, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "minReplicas": least, "maxReplicas": most, "metrics": list(metrics), "scaleTargetRef": DEPLOYMENT, **spec,
        },
    }  # fmt: skip


def decide(
    given: dict[str, Any], replicas: int, *readings: Reading, pods: int | None = None, history: History | None = None
) -> Plan:
    made = [a_pod(number) for number in range(replicas if pods is None else pods)]
    target = Target(replicas, replicas, "app=web")
    return plan(given, target, readings, made, history or History(), NOW)


def said(found: Plan | dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    conditions = found.conditions if isinstance(found, Plan) else found["conditions"]
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in conditions}


def test_a_busy_target_grows() -> None:
    given = hpa(CPU)
    found = decide(given, 2, Reading(pods=measured(1000, 500)))
    assert (found.desired, found.rescales) == (3, True)
    status, events = finish(given, found, NOW)
    name = "cpu resource utilization (percentage of request)"
    assert events == [("Normal", "SuccessfulRescale", f"New size: 3; reason: {name} above target")]
    assert status["currentReplicas"] == 2 and status["desiredReplicas"] == 3
    assert status["lastScaleTime"] == "2026-01-01T12:00:00Z"
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 75, "averageValue": "750m"}}}
    ]  # fmt: skip
    assert said(status) == {
        "AbleToScale": ("True", "SucceededRescale", "the HPA controller was able to update the target scale to 3"),
        "ScalingActive": (
            "True", "ValidMetricFound",
            f"the HPA was able to successfully calculate a replica count from {name}",
        ),
        "ScalingLimited": ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
    }  # fmt: skip


def test_an_idle_target_shrinks_and_a_fitting_one_stays() -> None:
    given = hpa(CPU)
    found = decide(given, 4, Reading(pods=measured(100, 100, 100, 100)), history=History(((0.0, 4),)))
    assert (found.desired, found.reason) == (1, "All metrics below target")
    steady = decide(given, 2, Reading(pods=measured(500, 520)))
    assert not steady.rescales
    status, events = finish(given, steady, NOW)
    assert events == [] and "lastScaleTime" not in status
    assert said(status)["AbleToScale"][1] == "ReadyForNewScale"


@pytest.mark.parametrize(
    ("replicas", "desired", "reason"),
    [
        (20, 10, "Current number of replicas above Spec.MaxReplicas"),
        (1, 3, "Current number of replicas below Spec.MinReplicas"),
    ],
)
def test_outside_its_bounds_a_size_is_set_without_measuring(replicas: int, desired: int, reason: str) -> None:
    given = hpa(CPU, least=3)
    assert not needs_metrics(given, Target(replicas, replicas, ""))
    found = decide(given, replicas)
    assert (found.desired, found.reason) == (desired, reason)
    assert finish(given, found, NOW)[1] == [
        ("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
    ]


def test_zero_replicas_switch_an_autoscaler_off() -> None:
    given = hpa(CPU)
    assert not needs_metrics(given, Target(0, 0, ""))
    found = decide(given, 0)
    assert not found.rescales
    assert said(found)["ScalingActive"] == (
        "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero",
    )  # fmt: skip


def test_of_several_metrics_the_one_that_wants_most_wins() -> None:
    target = {"type": "AverageValue", "averageValue": "100Mi"}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    readings = Reading(pods=measured(500, 500)), Reading(pods=measured(*[200 * 1024**2 * 1000] * 2))
    given = hpa(CPU, memory)
    found = decide(given, 2, *readings)
    assert (found.desired, found.reason) == (4, "memory resource above target")
    status, _ = finish(given, found, NOW)
    assert status["currentMetrics"][1] == {
        "type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "200Mi"}},
    }  # fmt: skip


FAILED = Reading(error="unable to fetch metrics from resource metrics API: the server is down")
WHY = f"failed to get cpu utilization: unable to get metrics for resource cpu: {FAILED.error}"


def test_without_any_metric_nothing_is_done_and_that_is_said() -> None:
    given = hpa(CPU)
    given["status"] = {"desiredReplicas": 7}
    found = decide(given, 2, FAILED)
    assert not found.rescales and found.failure
    status, events = finish(given, found, NOW)
    assert said(status)["ScalingActive"] == (
        "False", "FailedGetResourceMetric", f"the HPA was unable to compute the replica count: {WHY}",
    )  # fmt: skip
    summary = f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {WHY}"
    assert events == [
        ("Warning", "FailedGetResourceMetric", WHY), ("Warning", "FailedComputeMetricsReplicas", summary),
    ]  # fmt: skip
    assert status["desiredReplicas"] == 7 and status["currentReplicas"] == 2
    assert status["currentMetrics"] == [{"type": ""}]


def test_with_one_metric_missing_a_size_may_grow_but_not_shrink() -> None:
    pods_metric = {
        "type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }  # fmt: skip
    given = hpa(CPU, pods_metric)
    grows = decide(given, 2, FAILED, Reading(pods=measured(15000, 15000)))
    assert grows.desired == 3 and grows.rescales
    assert grows.events == (("Warning", "FailedGetResourceMetric", WHY),)
    shrinks = decide(given, 2, FAILED, Reading(pods=measured(1000, 1000)))
    assert not shrinks.rescales
    assert shrinks.failure.startswith("invalid metrics (1 invalid out of 2), first error is: ")
    assert said(shrinks)["ScalingActive"][:2] == ("False", "FailedGetResourceMetric")


def metric(kind: str, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    source = {"metric": {"name": "qps"}, "target": target, **more}
    if kind in ("Resource", "ContainerResource"):
        source = {"name": "cpu", "target": target, **more}
    return {"type": kind, kind[0].lower() + kind[1:]: source}


@pytest.mark.parametrize(
    ("spec", "reading", "desired", "name", "current"),
    [
        (metric("ContainerResource", {"type": "Utilization", "averageUtilization": 50}, container="c"),
         Reading(pods=measured(1000, 1000)), 4,
         "cpu container resource utilization (percentage of request)",
         {"averageUtilization": 100, "averageValue": "1"}),
        (metric("Resource", {"type": "AverageValue", "averageValue": "250m"}),
         Reading(pods=measured(500, 500)), 4, "cpu resource", {"averageValue": "500m"}),
        (metric("Pods", {"type": "AverageValue", "averageValue": "10"}),
         Reading(pods=measured(20000, 20000)), 4, "pods metric qps", {"averageValue": "20"}),
        (metric("Object", {"type": "Value", "value": "10"}, describedObject=DEPLOYMENT),
         Reading(values_milli=(20000,)), 4, "Deployment metric qps", {"value": "20"}),
        (metric("Object", {"type": "AverageValue", "averageValue": "10"}, describedObject=DEPLOYMENT),
         Reading(values_milli=(40000,)), 4, "external metric qps(nil)", {"averageValue": "20"}),
        (metric("External", {"type": "Value", "value": "10"}),
         Reading(values_milli=(15000, 5000)), 4, "external metric qps(nil)", {"value": "20"}),
        (metric("External", {"type": "AverageValue", "averageValue": "10"}),
         Reading(values_milli=(40000,)), 4, "external metric qps(nil)", {"averageValue": "20"}),
    ],
)  # fmt: skip
def test_every_kind_of_metric_scales(
    spec: dict[str, Any], reading: Reading, desired: int, name: str, current: dict[str, Any]
) -> None:
    found = decide(hpa(spec), 2, reading)
    assert (found.desired, found.reason) == (desired, f"{name} above target")
    assert found.metrics is not None
    kind = spec["type"]
    shown = found.metrics[0][kind[0].lower() + kind[1:]]
    assert shown["current"] == current


NO_CPU = "unable to get metrics for resource cpu: no"
NO_TARGET = "invalid external metric source: neither a value target nor an average value target was set"


@pytest.mark.parametrize(
    ("spec", "reason", "condition", "summary"),
    [
        (metric("Pods", {"type": "AverageValue", "averageValue": "1"}), "FailedGetPodsMetric",
         "unable to get metric qps: no", "failed to get pods metric value: unable to get metric qps: no"),
        (metric("Object", {"type": "Value", "value": "1"}, describedObject=DEPLOYMENT), "FailedGetObjectMetric",
         "unable to get metric qps: no", "failed to get object metric value: unable to get metric qps: no"),
        (metric("Object", {"type": "AverageValue", "averageValue": "1"}, describedObject=DEPLOYMENT),
         "FailedGetObjectMetric", "unable to get metric qps: no",
         "failed to get object metric value: failed to get qps object metric: unable to get metric qps: no"),
        (metric("External", {"type": "Value", "value": "1"}), "FailedGetExternalMetric",
         "no", "failed to get qps external metric value: failed to get external metric qps: no"),
        (metric("External", {"type": "AverageValue", "averageValue": "1"}), "FailedGetExternalMetric",
         "no", "failed to get qps external metric value: failed to get qps external metric: no"),
        (metric("ContainerResource", {"type": "Utilization", "averageUtilization": 5}, container="c"),
         "FailedGetContainerResourceMetric",
         f"failed to get cpu utilization: {NO_CPU}",
         f"failed to get c container metric value: failed to get cpu utilization: {NO_CPU}"),
        (metric("External", {"type": "Value"}), "FailedGetExternalMetric",
         NO_TARGET, f"failed to get qps external metric value: {NO_TARGET}"),
        ({"type": "Moon"}, "InvalidMetricSourceType", 'unknown metric source type "Moon"',
         'unknown metric source type "Moon"'),
    ],
)  # fmt: skip
def test_every_kind_of_metric_says_why_it_failed(
    spec: dict[str, Any], reason: str, condition: str, summary: str
) -> None:
    found = decide(hpa(spec), 2, Reading(error="no"))
    assert said(found)["ScalingActive"] == (
        "False", reason, f"the HPA was unable to compute the replica count: {condition}",
    )  # fmt: skip
    assert found.events == (("Warning", reason, condition),)
    assert found.failure == f"invalid metrics (1 invalid out of 1), first error is: {summary}"


def test_a_size_that_cannot_be_set_is_told() -> None:
    given = hpa(CPU)
    found = decide(given, 2, Reading(pods=measured(1000, 500)))
    status, events = finish(given, found, NOW, rescale_error="forbidden")
    assert events[0][:2] == ("Warning", "FailedRescale")
    assert events[0][2].startswith("New size: 3; reason: cpu") and events[0][2].endswith("; error: forbidden")
    assert said(status)["AbleToScale"] == (
        "False", "FailedUpdateScale", "the HPA controller was unable to update the target scale: forbidden",
    )  # fmt: skip
    assert "lastScaleTime" not in status


def test_a_target_that_cannot_be_read_is_told_and_keeps_the_rest_of_the_status() -> None:
    given = {**hpa(CPU), "status": {"desiredReplicas": 3, "lastScaleTime": "2026-01-01T00:00:00Z"}}
    status = unable_to_get_scale(given, 'deployments.apps "web" not found', NOW)
    assert status["desiredReplicas"] == 3
    assert said(status)["AbleToScale"] == (
        "False", "FailedGetScale",
        'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found',
    )  # fmt: skip


def test_a_condition_keeps_the_time_since_which_it_is_so() -> None:
    given = hpa(CPU)
    status, _ = finish(given, decide(given, 2, Reading(pods=measured(500, 500))), NOW)
    later = parse_time("2026-01-01T13:00:00Z")
    target, pods = Target(2, 2, "app=web"), [a_pod(0), a_pod(1)]
    given = {**given, "status": status}
    reading = Reading(pods={name: PodMetric(500, later) for name in ("p0", "p1")})
    again = plan(given, target, [reading], pods, History(), later)
    assert {c["lastTransitionTime"] for c in again.conditions} == {"2026-01-01T12:00:00Z"}
    disabled = plan(given, Target(0, 0, ""), [], [], History(), later)
    changed = {c["type"]: c["lastTransitionTime"] for c in disabled.conditions}
    assert changed["ScalingActive"] == "2026-01-01T13:00:00Z"


def test_tolerances_come_from_the_behavior() -> None:
    assert tolerances_of(hpa(CPU), 0.1) == Tolerances(0.1, 0.1)
    behavior = {"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "500m"}}
    assert tolerances_of(hpa(CPU, behavior=behavior), 0.1) == Tolerances(down=0.5, up=0.0)
    assert decide(hpa(CPU), 2, Reading(pods=measured(540, 540))).desired == 2
    eager = hpa(CPU, behavior={"scaleUp": {"tolerance": "0.01"}})
    assert decide(eager, 2, Reading(pods=measured(540, 540))).desired == 3


def test_selectors_are_printed_as_go_does() -> None:
    assert go_selector(None) == "nil"
    expression = {"key": "k", "operator": "In", "values": ["x", "y"]}
    assert go_selector({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [expression]}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    )
