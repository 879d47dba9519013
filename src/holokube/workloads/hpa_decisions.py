"""What a HorizontalPodAutoscaler does about what was measured. Pure: readings, pods, history and time go in.

``plan`` says which size to set, if any; ``finish`` makes the status and the events, once it is known whether that
worked. Reasons, messages and the order of conditions are upstream's, for people and programs read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from holokube.kube.conditions import remove_condition, set_condition
from holokube.kube.quantity import Format, Quantity, milli_of, parse
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.workloads.hpa_limits import DOWNSCALE_STABILIZATION_S, History, limit
from holokube.workloads.hpa_replicas import (
    MetricError,
    Pod,
    PodMetric,
    Proposal,
    ReadinessRules,
    Tolerances,
    average_value_replicas,
    plain_replicas,
    resource_replicas,
    total_of_values,
    value_replicas,
)

Event = tuple[Literal["Normal", "Warning"], str, str]
"""Type, reason, message."""


@dataclass(frozen=True, slots=True)
class Settings:
    """kube-controller-manager's flags about autoscaling, with its defaults."""

    tolerance: float = 0.1
    downscale_stabilization_s: float = DOWNSCALE_STABILIZATION_S
    readiness: ReadinessRules = field(default_factory=ReadinessRules)


DEFAULT_SETTINGS: Final = Settings()


@dataclass(frozen=True, slots=True)
class Reading:
    """What a metrics API answered for one metric: of pods, or one or more values; or why it did not."""

    pods: Mapping[str, PodMetric] = field(default_factory=dict)
    values_milli: tuple[int, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The scale subresource of what is scaled."""

    spec_replicas: int
    status_replicas: int
    selector: str

    @staticmethod
    def of(scale: Mapping[str, Any]) -> Target:
        spec, status = scale.get("spec") or {}, scale.get("status") or {}
        return Target(
            int(spec.get("replicas") or 0), int(status.get("replicas") or 0), str(status.get("selector") or "")
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and what is known so far of the new status."""

    current: int
    desired: int
    rescales: bool
    reason: str
    """Why it is rescaled."""
    conditions: list[JsonObject]
    history: History
    metrics: list[JsonObject] | None = None
    events: tuple[Event, ...] = ()
    failure: str = ""
    """Why no size could be found at all; then nothing is done."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one metric says."""

    proposal: Proposal
    name: str
    status: JsonObject


class _FailedMetric(Exception):
    """A metric that could not be used: the condition's reason, its own words, and the words around them."""

    def __init__(self, reason: str, message: str, summary: str) -> None:
        super().__init__(summary)
        self.reason = reason
        self.message = message


def least_replicas(hpa: Mapping[str, Any]) -> int:
    least = hpa["spec"].get("minReplicas")
    return 1 if least is None else int(least)


def needs_metrics(hpa: Mapping[str, Any], target: Target) -> bool:
    """Whether the size depends on what is measured; outside its bounds it does not."""
    current = target.spec_replicas
    return current != 0 and least_replicas(hpa) <= current <= int(hpa["spec"]["maxReplicas"])


def tolerances_of(hpa: Mapping[str, Any], default: float) -> Tolerances:
    """Those of ``spec.behavior``, where it has some."""
    behavior = hpa["spec"].get("behavior") or {}
    down, up = ((behavior.get(side) or {}).get("tolerance") for side in ("scaleDown", "scaleUp"))
    return Tolerances(
        default if down is None else float(parse(down)), default if up is None else float(parse(up))
    )


def able_to_get_scale(conditions: list[JsonObject], now: datetime) -> list[JsonObject]:
    return _with(
        conditions, now, "AbleToScale", "True", "SucceededGetScale",
        "the HPA controller was able to get the target's current scale",
    )  # fmt: skip


def unable_to_get_scale(hpa: Mapping[str, Any], error: str, now: datetime) -> JsonObject:
    """The status while the target's size cannot be read."""
    status = hpa.get("status") or {}
    message = f"the HPA controller was unable to get the target's current scale: {error}"
    conditions = _with(status.get("conditions") or [], now, "AbleToScale", "False", "FailedGetScale", message)
    return {**status, "conditions": conditions}


def selector_trouble(plan_of: Plan, reason: str, event_reason: str, condition: str, event: str, now: datetime) -> Plan:
    """The plan when it is not clear which pods belong to the target."""
    conditions = _with(plan_of.conditions, now, "ScalingActive", "False", reason, condition)
    return replace(
        plan_of, conditions=conditions, events=(("Warning", event_reason, event),), failure=event, metrics=None
    )


def first_look(hpa: Mapping[str, Any], target: Target, history: History, now: datetime) -> Plan:
    """Before anything is measured: nothing to do, and the scale could be read."""
    conditions = able_to_get_scale((hpa.get("status") or {}).get("conditions") or [], now)
    current = target.spec_replicas
    return Plan(current, current, False, "", conditions, history.begun(current, now.timestamp()))


def plan(
    hpa: Mapping[str, Any],
    target: Target,
    readings: Sequence[Reading],
    pods: Sequence[Pod],
    history: History,
    now: datetime,
    settings: Settings = DEFAULT_SETTINGS,
) -> Plan:
    """Which size to set. ``readings`` are one for each of ``spec.metrics``, empty where ``needs_metrics`` says so."""
    start = first_look(hpa, target, history, now)
    least, most, current = least_replicas(hpa), int(hpa["spec"]["maxReplicas"]), target.spec_replicas
    if current == 0:
        # Scaled to zero by hand: the autoscaler is switched off until somebody scales up again.
        conditions = _with(
            start.conditions, now, "ScalingActive", "False", "ScalingDisabled",
            "scaling is disabled since the replica count of the target is zero",
        )  # fmt: skip
        return replace(start, conditions=remove_condition(conditions, "ScaledToZero"))
    if current > most:
        return replace(start, desired=most, rescales=True, reason="Current number of replicas above Spec.MaxReplicas")
    if current < least:
        return replace(start, desired=least, rescales=True, reason="Current number of replicas below Spec.MinReplicas")
    return _by_metrics(hpa, target, readings, pods, start, now, settings)


def _by_metrics(
    hpa: Mapping[str, Any],
    target: Target,
    readings: Sequence[Reading],
    pods: Sequence[Pod],
    start: Plan,
    now: datetime,
    settings: Settings,
) -> Plan:
    specs: Sequence[JsonObject] = hpa["spec"].get("metrics") or ()
    current = target.spec_replicas
    desired, name = 0, ""
    statuses: list[JsonObject] = []
    failures: list[_FailedMetric] = []
    tolerances = tolerances_of(hpa, settings.tolerance)
    for spec, reading in zip(specs, readings, strict=True):
        try:
            outcome = _outcome(spec, reading, target, pods, tolerances, now, settings.readiness)
        except _FailedMetric as failure:
            failures.append(failure)
            # As upstream leaves it: a status that says nothing keeps the place of its metric.
            statuses.append({"type": ""})
            continue
        statuses.append(outcome.status)
        if desired == 0 or outcome.proposal.replicas > desired:
            desired, name = outcome.proposal.replicas, outcome.name
    events: tuple[Event, ...] = tuple(("Warning", f.reason, f.message) for f in failures)
    if len(failures) >= len(specs) or (failures and desired < current):
        first = failures[0] if failures else _FailedMetric("", "", "")
        message = f"the HPA was unable to compute the replica count: {first.message}"
        conditions = _with(start.conditions, now, "ScalingActive", "False", first.reason, message)
        why = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
        return replace(start, conditions=conditions, metrics=statuses, events=events, failure=why)
    conditions = _with(
        start.conditions, now, "ScalingActive", "True", "ValidMetricFound",
        f"the HPA was able to successfully calculate a replica count from {name}",
    )  # fmt: skip
    reason = f"{name} above target" if desired > current else "All metrics below target" if desired < current else ""
    limited = limit(
        hpa["spec"].get("behavior"), current, desired, least_replicas(hpa), int(hpa["spec"]["maxReplicas"]),
        start.history, now.timestamp(), settings.downscale_stabilization_s,
    )  # fmt: skip
    conditions = _with(conditions, now, "AbleToScale", "True", limited.able_reason, limited.able_message)
    is_limited = "True" if limited.is_limited else "False"
    conditions = _with(conditions, now, "ScalingLimited", is_limited, limited.limit_reason, limited.limit_message)
    return Plan(
        current, limited.replicas, limited.replicas != current, reason, conditions, limited.history, statuses, events
    )


def finish(
    hpa: Mapping[str, Any], plan: Plan, now: datetime, *, rescale_error: str = ""
) -> tuple[JsonObject, list[Event]]:
    """The new status and all events; ``rescale_error`` tells why the size could not be set."""
    old = hpa.get("status") or {}
    events: list[Event] = list(plan.events)
    conditions, desired, scaled = plan.conditions, plan.desired, False
    if plan.failure:
        desired = int(old.get("desiredReplicas") or 0)
        events.append(("Warning", "FailedComputeMetricsReplicas", plan.failure))
    elif plan.rescales and rescale_error:
        size = f"New size: {plan.desired}; reason: {plan.reason}; error: {rescale_error}"
        events.append(("Warning", "FailedRescale", size))
        message = f"the HPA controller was unable to update the target scale: {rescale_error}"
        conditions = _with(conditions, now, "AbleToScale", "False", "FailedUpdateScale", message)
        desired = int(old.get("desiredReplicas") or 0)
    elif plan.rescales:
        scaled = True
        events.append(("Normal", "SuccessfulRescale", f"New size: {plan.desired}; reason: {plan.reason}"))
        message = f"the HPA controller was able to update the target scale to {plan.desired}"
        conditions = _with(conditions, now, "AbleToScale", "True", "SucceededRescale", message)
        conditions = remove_condition(conditions, "ScaledToZero")
    status: JsonObject = {"currentReplicas": plan.current, "desiredReplicas": desired}
    last = format_time(now) if scaled else old.get("lastScaleTime")
    if last:
        status["lastScaleTime"] = last
    status["currentMetrics"] = plan.metrics
    status["conditions"] = conditions
    return status, events


def _with(
    conditions: list[JsonObject], now: datetime, type: str, status: str, reason: str, message: str
) -> list[JsonObject]:
    condition = {"type": type, "status": status, "reason": reason, "message": message}
    return set_condition(conditions, condition, now=format_time(now))


# One metric


def _outcome(
    spec: JsonObject,
    reading: Reading,
    target: Target,
    pods: Sequence[Pod],
    tolerances: Tolerances,
    now: datetime,
    rules: ReadinessRules,
) -> _Outcome:
    kind = spec["type"]
    if kind == "Resource":
        source, words = spec["resource"], f"failed to get {spec['resource']['name']} resource metric value"
        reason = "FailedGetResourceMetric"
    elif kind == "ContainerResource":
        source = spec["containerResource"]
        words = f"failed to get {source['container']} container metric value"
        reason = "FailedGetContainerResourceMetric"
    elif kind == "Pods":
        source, words, reason = spec["pods"], "failed to get pods metric value", "FailedGetPodsMetric"
    elif kind == "Object":
        source, words, reason = spec["object"], "failed to get object metric value", "FailedGetObjectMetric"
    elif kind == "External":
        source = spec["external"]
        words, reason = f"failed to get {source['metric']['name']} external metric value", "FailedGetExternalMetric"
    else:
        message = f'unknown metric source type "{kind}"'
        raise _FailedMetric("InvalidMetricSourceType", message, message)
    try:
        if kind in ("Resource", "ContainerResource"):
            return _of_resource(kind, source, reading, target, pods, tolerances, now, rules)
        if kind == "Pods":
            return _of_pods(source, reading, target, pods, tolerances, now, rules)
        if kind == "Object":
            return _of_object(source, reading, target, pods, tolerances)
        return _of_external(source, reading, target, pods, tolerances)
    except _Wrapped as error:
        raise _FailedMetric(reason, str(error), f"{words}: {error.outer}") from None
    except MetricError as error:
        raise _FailedMetric(reason, str(error), f"{words}: {error}") from None


class _Wrapped(MetricError):
    """An error that upstream tells with fewer words in the condition than in the summary."""

    def __init__(self, inner: str, outer: str) -> None:
        super().__init__(inner)
        self.outer = outer


def _read(reading: Reading, doing: str) -> Reading:
    if reading.error:
        raise MetricError(f"{doing}: {reading.error}")
    return reading


def _of_resource(
    kind: str,
    source: JsonObject,
    reading: Reading,
    target: Target,
    pods: Sequence[Pod],
    tolerances: Tolerances,
    now: datetime,
    rules: ReadinessRules,
) -> _Outcome:
    resource, container, wanted = source["name"], str(source.get("container") or ""), source["target"]
    doing, current = f"unable to get metrics for resource {resource}", target.spec_replicas
    shown: JsonObject = {}
    if wanted.get("averageValue") is not None:
        try:
            proposal = plain_replicas(
                current, milli_of(wanted["averageValue"]), resource, tolerances, pods,
                _read(reading, doing).pods, now, rules,
            )  # fmt: skip
        except MetricError as error:
            raise MetricError(f"failed to get {resource} usage: {error}") from None
        name = f"{resource} resource"
    elif wanted.get("averageUtilization") is not None:
        try:
            proposal = resource_replicas(
                current, int(wanted["averageUtilization"]), resource, container, tolerances, pods,
                _read(reading, doing).pods, now, rules,
            )  # fmt: skip
        except MetricError as error:
            raise MetricError(f"failed to get {resource} utilization: {error}") from None
        of = "container resource" if kind == "ContainerResource" else "resource"
        name = f"{resource} {of} utilization (percentage of request)"
        shown["averageUtilization"] = proposal.utilization
    else:
        raise MetricError(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    family = Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI
    shown["averageValue"] = str(Quantity.from_milli(proposal.milli, family))
    status: JsonObject = {"name": resource, "current": shown}
    if kind == "ContainerResource":
        status["container"] = container
        return _Outcome(proposal, name, {"type": kind, "containerResource": status})
    return _Outcome(proposal, name, {"type": kind, "resource": status})


def _of_pods(
    source: JsonObject,
    reading: Reading,
    target: Target,
    pods: Sequence[Pod],
    tolerances: Tolerances,
    now: datetime,
    rules: ReadinessRules,
) -> _Outcome:
    metric = source["metric"]["name"]
    measured = _read(reading, f"unable to get metric {metric}").pods
    proposal = plain_replicas(
        target.spec_replicas, milli_of(source["target"]["averageValue"]), "", tolerances, pods, measured, now, rules
    )
    status = {"metric": source["metric"], "current": {"averageValue": _milli(proposal.milli)}}
    return _Outcome(proposal, f"pods metric {metric}", {"type": "Pods", "pods": status})


def _of_object(
    source: JsonObject, reading: Reading, target: Target, pods: Sequence[Pod], tolerances: Tolerances
) -> _Outcome:
    metric, described, wanted = source["metric"]["name"], source["describedObject"], source["target"]
    status: JsonObject = {"describedObject": described, "metric": source["metric"]}
    if wanted.get("type") == "Value" and wanted.get("value") is not None:
        proposal = value_replicas(
            target.spec_replicas, milli_of(wanted["value"]), _first_value(reading, metric), tolerances, pods
        )
        status["current"] = {"value": _milli(proposal.milli)}
        return _Outcome(proposal, f"{described['kind']} metric {metric}", {"type": "Object", "object": status})
    if wanted.get("type") == "AverageValue" and wanted.get("averageValue") is not None:
        try:
            proposal = average_value_replicas(
                target.status_replicas, milli_of(wanted["averageValue"]), _first_value(reading, metric), tolerances
            )
        except MetricError as error:
            raise _Wrapped(str(error), f"failed to get {metric} object metric: {error}") from None
        status["current"] = {"averageValue": _milli(proposal.milli)}
        name = f"external metric {metric}({go_selector(source['metric'].get('selector'))})"
        return _Outcome(proposal, name, {"type": "Object", "object": status})
    raise MetricError("invalid object metric source: neither a value target nor an average value target was set")


def _of_external(
    source: JsonObject, reading: Reading, target: Target, pods: Sequence[Pod], tolerances: Tolerances
) -> _Outcome:
    metric, wanted = source["metric"]["name"], source["target"]
    name = f"external metric {metric}({go_selector(source['metric'].get('selector'))})"
    by_pod = wanted.get("averageValue") is not None
    if not by_pod and wanted.get("value") is None:
        raise MetricError("invalid external metric source: neither a value target nor an average value target was set")
    try:
        if reading.error:
            raise MetricError(reading.error)
        value = total_of_values(reading.values_milli)
        if by_pod:
            proposal = average_value_replicas(
                target.status_replicas, milli_of(wanted["averageValue"]), value, tolerances
            )
        else:
            proposal = value_replicas(target.spec_replicas, milli_of(wanted["value"]), value, tolerances, pods)
    except MetricError as error:
        outer = f"failed to get {metric} external metric" if by_pod else f"failed to get external metric {metric}"
        raise _Wrapped(str(error), f"{outer}: {error}") from None
    shown = {"averageValue" if by_pod else "value": _milli(proposal.milli)}
    return _Outcome(proposal, name, {"type": "External", "external": {"metric": source["metric"], "current": shown}})


def _first_value(reading: Reading, metric: str) -> int:
    """The one value of an object; the error comes in upstream's words, which end with the object's name."""
    if reading.error:
        raise MetricError(f"unable to get metric {metric}: {reading.error}")
    return reading.values_milli[0]


def _milli(milli: int) -> str:
    return str(Quantity.from_milli(milli))


def go_selector(selector: JsonObject | None) -> str:
    """A label selector as Go prints it, for it stands in messages that way."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
