"""Namespaces, configuration, quotas, events, component health, API services, flow control, Status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.conversions.events import events_to_core
from holokube.apiserver.tables.cells import condition_status, name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, UNKNOWN, Ages, Layout, column, wide
from holokube.kube.types import JsonObject


def namespace_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), status_of(obj).get("phase") or "", ages.of(obj)]


def config_map_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    entries = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [name_of(obj), entries, ages.of(obj)]


def quota_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    status = status_of(obj)
    hard: JsonObject = status.get("hard") or {}
    used: JsonObject = status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        column_of_it = limits if resource.startswith("limits.") else requests
        column_of_it.append(f"{resource}: {used.get(resource) or '0'}/{hard[resource]}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), ages.of(obj)]


def event_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    if obj.get("apiVersion") == "events.k8s.io/v1":
        obj = events_to_core(obj)
    about: JsonObject = obj.get("involvedObject") or {}
    first = ages.since(obj.get("firstTimestamp") or obj.get("eventTime"))
    last = ages.since(obj["lastTimestamp"]) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    series = obj.get("series")
    if series is not None:
        last = ages.since(series.get("lastObservedTime"))
        count = series.get("count") or 0
    kind = (about.get("kind") or "").lower()
    return [
        last,
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        _event_source(obj),
        (obj.get("message") or "").strip(),
        first,
        count,
        name_of(obj),
    ]


def _event_source(obj: JsonObject) -> str:
    source: JsonObject = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def component_cells(obj: JsonObject, _ages: Ages) -> list[Any]:
    for condition in obj.get("conditions") or ():
        if condition.get("type") == "Healthy":
            state = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name_of(obj), state, condition.get("message") or "", condition.get("error") or ""]
    return [name_of(obj), "Unknown", "", ""]


def api_service_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    service = spec_of(obj).get("service")
    where = "Local" if service is None else f"{service.get('namespace') or ''}/{service.get('name') or ''}"
    available = "Unknown"
    for condition in status_of(obj).get("conditions") or ():
        if condition.get("type") == "Available":
            available = condition.get("status") or ""
            if available != "True" and condition.get("reason"):
                available += f" ({condition['reason']})"
            break
    return [name_of(obj), where, available, ages.of(obj)]


def flow_schema_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        ages.of(obj),
        condition_status(status_of(obj).get("conditions"), "Dangling") or "?",
    ]


def flow_schema_order(obj: JsonObject) -> tuple[int, str]:
    return spec_of(obj).get("matchingPrecedence") or 0, name_of(obj)


def priority_level_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    limited = spec.get("limited")
    shares: Any = NONE
    queuing = None
    if limited is not None:
        shares = limited.get("nominalConcurrencyShares") or 0
        queuing = (limited.get("limitResponse") or {}).get("queuing")
    queues = [NONE] * 3 if queuing is None else [
        queuing.get(field) or 0 for field in ("queues", "handSize", "queueLengthLimit")
    ]  # fmt: skip
    return [name_of(obj), spec.get("type") or "", shares, *queues, ages.of(obj)]


def status_cells(obj: JsonObject, _ages: Ages) -> list[Any]:
    return [obj.get("status") or UNKNOWN, obj.get("reason") or "", obj.get("message") or ""]


STATUS = Layout(
    (
        column("Status", "Success or Failure."),
        column("Reason", "Why the request failed, in one word."),
        column("Message", "Why the request failed."),
    ),
    status_cells,
)

_EVENTS = Layout(
    (
        column("Last Seen", "Time since it was seen last."),
        column("Type", "Normal or Warning."),
        column("Reason", "Why, in one word."),
        column("Object", "Object it is about."),
        wide("Subobject", "Part of that object."),
        wide("Source", "Who reports it."),
        column("Message", "What happened."),
        wide("First Seen", "Time since it was seen first."),
        wide("Count", "How often it was seen."),
        wide("Name", "Name of the event.", format="name"),
    ),
    event_cells,
)

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "namespaces"): Layout((NAME, column("Status", "Active or Terminating."), AGE), namespace_cells),
    ("", "configmaps"): Layout((NAME, column("Data", "Number of entries."), AGE), config_map_cells),
    ("", "resourcequotas"): Layout(
        (
            NAME,
            column("Request", "Used and allowed: requests and object counts."),
            column("Limit", "Used and allowed: limits."),
            AGE,
        ),
        quota_cells,
    ),
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("", "componentstatuses"): Layout(
        (
            NAME,
            column("Status", "Healthy or not."),
            column("Message", "What the component answered."),
            column("Error", "Why it could not be asked."),
        ),
        component_cells,
    ),
    ("apiregistration.k8s.io", "apiservices"): Layout(
        (
            NAME,
            column("Service", "Service that answers for the group and version; Local is this server."),
            column("Available", "Whether it answers."),
            AGE,
        ),
        api_service_cells,
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Layout(
        (
            NAME,
            column("PriorityLevel", "Priority level that matching requests go to."),
            column("MatchingPrecedence", "Schemas with lower numbers are tried first."),
            column("DistinguisherMethod", "How requests are told apart into flows."),
            AGE,
            column("MissingPL", "Whether the priority level does not exist."),
        ),
        flow_schema_cells,
        order=flow_schema_order,
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Layout(
        (
            NAME,
            column("Type", "Exempt or Limited."),
            column("NominalConcurrencyShares", "Share of the server's concurrency."),
            column("Queues", "Number of queues."),
            column("HandSize", "Queues that each flow is dealt."),
            column("QueueLengthLimit", "Requests that may wait in one queue."),
            AGE,
        ),
        priority_level_cells,
    ),
}
