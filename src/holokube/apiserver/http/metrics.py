"""What the server counts, under upstream's metric names."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from holokube.apiserver.http.wire import Request
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import Served

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class RequestMetrics:
    """One registry of metrics per server; nothing global."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._collectors = CollectorRegistry()
        labels = ("verb", "group", "version", "resource", "subresource", "scope")
        self._requests = Counter(
            "apiserver_request", "Requests by what they asked for and how they were answered",
            (*labels, "code"), registry=self._collectors,
        )  # fmt: skip
        self._durations = Histogram(
            "apiserver_request_duration_seconds", "Time to answer, watches left out",
            labels, buckets=_BUCKETS_S, registry=self._collectors,
        )  # fmt: skip
        self._watches = Gauge(
            "apiserver_longrunning_requests", "Watches that are open",
            ("verb", "group", "version", "resource"), registry=self._collectors,
        )  # fmt: skip
        self._objects = Gauge(
            "apiserver_storage_objects", "Objects stored, by resource", ("resource",), registry=self._collectors
        )
        self._children: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}

    def observe(self, method: str, request: Request | None, code: int, seconds: float) -> None:
        if request is None:
            key = (method, "", "", "", "", "", str(code))
        else:
            verb = (request.verb or method).upper()
            key = (
                verb, request.group, request.version, request.resource, request.subresource, request.scope, str(code),
            )  # fmt: skip
        children = self._children.get(key)
        if children is None:
            children = (self._requests.labels(*key), self._durations.labels(*key[:-1]))
            self._children[key] = children
        children[0].inc()
        if key[0] != "WATCH":
            children[1].observe(seconds)

    def watch_started(self, served: Served) -> Callable[[], None]:
        """Count a watch; call what is returned when it ends."""
        gauge = self._watches.labels("WATCH", served.group, served.version, served.plural)
        gauge.inc()
        return gauge.dec

    def render(self) -> tuple[bytes, str]:
        for bucket in self._registry.store.buckets():
            self._objects.labels(bucket).set(self._registry.store.count(bucket))
        return generate_latest(self._collectors), CONTENT_TYPE_LATEST
