"""How many replicas one metric asks for. Pure: pods, what was measured of them, and the time go in.

All amounts are thousandths, as upstream computes with them; ratios are floats, as upstream's are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holokube.kube.conditions import get_condition
from holokube.kube.quantity import milli_of
from holokube.kube.resources import is_pod_level_resource, pod_requests
from holokube.kube.timeformat import parse_time
from holokube.workloads.pod_status import is_pod_ready, phase

Pod = Mapping[str, Any]

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class MetricError(Exception):
    """A metric that says nothing about the number of replicas; the message says why."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far from its target a metric may be without any change."""

    down: float = 0.1
    up: float = 0.1

    def hold(self, ratio: float) -> bool:
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


@dataclass(frozen=True, slots=True)
class ReadinessRules:
    """When the CPU usage of a young pod counts: kube-controller-manager's flags of the same names."""

    cpu_initialization_period_s: float = 300.0
    initial_readiness_delay_s: float = 30.0


@dataclass(frozen=True, slots=True)
class PodMetric:
    """What was measured of one pod."""

    milli: int
    at: datetime | None = None
    window_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """Replicas, and what to show of the measurement."""

    replicas: int
    milli: int
    utilization: int | None = None
    """In percent of the requests."""


@dataclass(frozen=True, slots=True)
class _Groups:
    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def resource_replicas(
    current: int,
    target_utilization: int,
    resource: str,
    container: str,
    tolerances: Tolerances,
    pods: Sequence[Pod],
    measured: Mapping[str, PodMetric],
    now: datetime,
    rules: ReadinessRules,
) -> Proposal:
    """For a target in percent of what pods, or one container of each, request."""
    groups = _group(_some(pods), measured, resource, now, rules)
    metrics = _counted(measured, groups)
    requests = {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}
    ratio, utilization, average = _utilization_ratio(metrics, requests, target_utilization)
    scales_up_with_unready = bool(groups.unready) and ratio > 1.0
    if not scales_up_with_unready and not groups.missing:
        return Proposal(_by_ratio(ratio, groups.ready, current, tolerances), average, utilization)
    if ratio < 1.0:
        # Pods without a measurement might be busy: they count with all of their request, or with a higher target.
        for name in groups.missing:
            metrics[name] = requests[name] * max(100, target_utilization) // 100
    elif ratio > 1.0:
        metrics.update(dict.fromkeys(groups.missing, 0))
    if scales_up_with_unready:
        metrics.update(dict.fromkeys(groups.unready, 0))
    again, _, _ = _utilization_ratio(metrics, requests, target_utilization)
    return Proposal(_by_both_ratios(ratio, again, len(metrics), current, tolerances), average, utilization)


def plain_replicas(
    current: int,
    target_milli: int,
    resource: str,
    tolerances: Tolerances,
    pods: Sequence[Pod],
    measured: Mapping[str, PodMetric],
    now: datetime,
    rules: ReadinessRules,
) -> Proposal:
    """For a target of an average amount per pod; ``resource`` is empty for custom metrics."""
    groups = _group(_some(pods), measured, resource, now, rules)
    metrics = _counted(measured, groups)
    average = sum(metrics.values()) // len(metrics)
    ratio = average / target_milli
    scales_up_with_unready = bool(groups.unready) and ratio > 1.0
    if not scales_up_with_unready and not groups.missing:
        return Proposal(_by_ratio(ratio, groups.ready, current, tolerances), average)
    if ratio < 1.0:
        metrics.update(dict.fromkeys(groups.missing, target_milli))
    elif ratio > 1.0:
        metrics.update(dict.fromkeys(groups.missing, 0))
    if scales_up_with_unready:
        metrics.update(dict.fromkeys(groups.unready, 0))
    again = (sum(metrics.values()) // len(metrics)) / target_milli
    return Proposal(_by_both_ratios(ratio, again, len(metrics), current, tolerances), average)


def value_replicas(
    current: int, target_milli: int, value_milli: int, tolerances: Tolerances, pods: Sequence[Pod]
) -> Proposal:
    """For a target of one value as a whole: an object's, or an external metric's."""
    ratio = value_milli / target_milli
    if current == 0:
        return Proposal(math.ceil(ratio), value_milli)
    if tolerances.hold(ratio):
        return Proposal(current, value_milli)
    try:
        ready = sum(1 for pod in _some(pods) if phase(pod) == "Running" and is_pod_ready(pod))
    except MetricError as error:
        raise MetricError(f"unable to calculate ready pods: {error}") from None
    return Proposal(min(math.ceil(ratio * ready), _INT32_MAX), value_milli)


def average_value_replicas(
    status_replicas: int, target_milli: int, value_milli: int, tolerances: Tolerances
) -> Proposal:
    """For a target of one value, divided by the replicas there are."""
    replicas = status_replicas
    # With no replicas the ratio has no meaning: upstream divides by zero, gets infinity, and scales.
    holds = replicas > 0 and tolerances.hold(value_milli / (target_milli * replicas))
    if not holds:
        replicas = min(math.ceil(value_milli / target_milli), _INT32_MAX)
    shown = math.ceil(value_milli / status_replicas) if status_replicas else _INT64_MAX
    return Proposal(replicas, min(shown, _INT64_MAX))


def total_of_values(values: Iterable[int]) -> int:
    return min(sum(values), _INT64_MAX)


def _some(pods: Sequence[Pod]) -> Sequence[Pod]:
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    return pods


def _by_ratio(ratio: float, ready: int, current: int, tolerances: Tolerances) -> int:
    return current if tolerances.hold(ratio) else math.ceil(ratio * ready)


def _by_both_ratios(first: float, again: float, counted: int, current: int, tolerances: Tolerances) -> int:
    """What was assumed of pods that were not measured may damp a change, never turn its direction."""
    if tolerances.hold(again) or (first < 1.0 < again) or (first > 1.0 > again):
        return current
    replicas = math.ceil(again * counted)
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return current
    return replicas


def _counted(measured: Mapping[str, PodMetric], groups: _Groups) -> dict[str, int]:
    left_out = groups.ignored | groups.unready
    metrics = {name: metric.milli for name, metric in measured.items() if name not in left_out}
    if not metrics:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    return metrics


def _utilization_ratio(
    metrics: Mapping[str, int], requests: Mapping[str, int], target_utilization: int
) -> tuple[float, int, int]:
    """Ratio to the target, utilization in percent, and the average amount."""
    known = [name for name in metrics if name in requests]
    requested = sum(requests[name] for name in known)
    if requested == 0:
        raise MetricError("no metrics returned matched known pods")
    used = sum(metrics[name] for name in known)
    utilization = used * 100 // requested
    return utilization / target_utilization, utilization, used // len(known)


def _group(
    pods: Sequence[Pod], measured: Mapping[str, PodMetric], resource: str, now: datetime, rules: ReadinessRules
) -> _Groups:
    ready = 0
    unready: set[str] = set()
    missing: set[str] = set()
    ignored: set[str] = set()
    for pod in pods:
        name = pod["metadata"]["name"]
        if pod["metadata"].get("deletionTimestamp") or phase(pod) == "Failed":
            ignored.add(name)
        elif phase(pod) == "Pending":
            unready.add(name)
        elif name not in measured:
            missing.add(name)
        elif resource == "cpu" and _is_unready(pod, measured[name], now, rules):
            unready.add(name)
        else:
            ready += 1
    return _Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_unready(pod: Pod, metric: PodMetric, now: datetime, rules: ReadinessRules) -> bool:
    """Whether the CPU usage of a pod may still be that of its start-up."""
    condition = get_condition(pod, "Ready")
    started_text = (pod.get("status") or {}).get("startTime")
    if condition is None or not started_text:
        return True
    started = parse_time(started_text)
    is_false = condition.get("status") == "False"
    changed_text = condition.get("lastTransitionTime")
    changed = parse_time(changed_text) if changed_text else None
    if started + timedelta(seconds=rules.cpu_initialization_period_s) > now:
        # The window of the measurement must lie after the last change of readiness.
        too_early = (
            changed is not None and metric.at is not None and metric.at < changed + timedelta(seconds=metric.window_s)
        )
        return is_false or too_early
    never_ready = changed is None or started + timedelta(seconds=rules.initial_readiness_delay_s) > changed
    return is_false and never_ready


def _request(pod: Pod, container: str, resource: str) -> int:
    spec, name = pod["spec"], pod["metadata"]["name"]
    pod_level = ((spec.get("resources") or {}).get("requests")) or {}
    if not container and any(is_pod_level_resource(each) for each in pod_level):
        requests = pod_requests(pod)
        if resource not in requests:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return requests[resource]
    total = 0
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for each in (*spec["containers"], *sidecars):
        if container in ("", each["name"]):
            requests = (each.get("resources") or {}).get("requests") or {}
            if resource not in requests:
                raise MetricError(f"missing request for {resource} in container {each['name']} of Pod {name}")
            total += milli_of(requests[resource])
        if container == each["name"]:
            return total
    if container:
        raise MetricError(f"container {container} not found in Pod {name}")
    return total
