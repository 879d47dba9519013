"""metrics.k8s.io: what nodes and pods use, for ``kubectl top`` and autoscalers. Answered, never stored.

The group is there only while somebody measures: without a ``MetricsSource`` neither discovery nor a path knows of it,
as in a cluster without metrics-server. What is measured is looked up among the stored nodes and pods, whose labels
the metrics carry; a pod or node without a measurement is simply absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from holokube.apiserver.answers import ListResult
from holokube.apiserver.options import ListOptions
from holokube.apiserver.resources import ResourceType, ResourceVersionInfo, Served
from holokube.kube.errors import BadRequest, not_found
from holokube.kube.quantity import Format, Quantity
from holokube.kube.schema import ANYTHING
from holokube.kube.timeformat import format_duration, format_time
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_VERBS: Final = ("get", "list")


@dataclass(frozen=True, slots=True)
class Amounts:
    """What is used: CPU on average over the window, memory at its end."""

    cpu_nano: int
    memory_bytes: int

    def to_json(self) -> JsonObject:
        return {
            "cpu": str(Quantity(self.cpu_nano, -9)),
            "memory": str(Quantity(self.memory_bytes, 0, Format.BINARY_SI)),
        }


@dataclass(frozen=True, slots=True)
class Measurement:
    """A node or pod, measured over the ``window_s`` seconds that ended at ``end_s``."""

    end_s: float
    window_s: float
    amounts: Amounts | None = None
    """Of a node."""
    containers: Mapping[str, Amounts] | None = None
    """Of a pod, by container."""


class MetricsSource(Protocol):
    """Measures nodes and pods; None while there is nothing to tell yet."""

    def measure_node(self, node: JsonObject) -> Measurement | None: ...

    def measure_pod(self, pod: JsonObject) -> Measurement | None: ...


class MetricsApi:
    """The virtual group of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._source: MetricsSource | None = None

    def use(self, source: MetricsSource | None) -> None:
        """Serve the group from a source; None takes it away again."""
        table = self._registry.table
        self._source = source
        for plural, kind, namespaced in (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True)):
            if source is None:
                table.remove(GROUP, plural)
                continue
            schema = table.catalog.schema_of_kind(GROUP, VERSION, kind) or ANYTHING
            info = ResourceVersionInfo(VERSION, schema, {}, _VERBS)
            table.add(
                ResourceType(
                    group=GROUP,
                    plural=plural,
                    singular="",
                    kind=kind,
                    list_kind=f"{kind}List",
                    namespaced=namespaced,
                    versions={VERSION: info},
                    storage_version=VERSION,
                    bucket=f"{plural}.{GROUP}",
                )
            )

    def serves(self, served: Served) -> bool:
        return served.group == GROUP and not served.type.custom

    def get(self, served: Served, namespace: str, name: str) -> Stored:
        subject = self._registry.find("", served.plural, namespace if served.namespaced else "", name)
        found = self._measured(served, subject) if subject is not None else None
        if found is None:
            # metrics-server names the kind of what it measures here, not its own resource.
            raise not_found(GROUP, served.plural, f"{namespace}/{name}" if served.namespaced else name)
        return Stored(found, 0)

    def list(self, served: Served, namespace: str, options: ListOptions) -> ListResult:
        """All that is measured; metrics-server knows label selectors, and the two fields every object has."""
        subjects: Iterable[JsonObject] = self._registry.objects(
            "", served.plural, namespace if served.namespaced else ""
        )
        labels, fields = options.label_selector, options.field_selector
        if labels is not None and not labels.is_empty:
            subjects = [s for s in subjects if labels.matches(s["metadata"].get("labels") or {})]
        if fields is not None and not fields.is_empty:
            for requirement in fields.requirements:
                if requirement.field not in ("metadata.name", "metadata.namespace"):
                    raise BadRequest(f"field label not supported: {requirement.field}")
            subjects = [s for s in subjects if fields.matches(partial(_field, s))]
        found = (self._measured(served, subject) for subject in subjects)
        return ListResult([Stored(item, 0) for item in found if item is not None], 0)

    def _measured(self, served: Served, subject: JsonObject) -> JsonObject | None:
        source = self._source
        if source is None:
            return None
        is_pod = served.plural == "pods"
        measurement = source.measure_pod(subject) if is_pod else source.measure_node(subject)
        if measurement is None:
            return None
        meta = subject["metadata"]
        shown: JsonObject = {"name": meta["name"]}
        if is_pod:
            shown["namespace"] = meta["namespace"]
        shown["creationTimestamp"] = format_time(self._registry.clock.now())
        if meta.get("labels"):
            shown["labels"] = meta["labels"]
        found: JsonObject = {
            "kind": served.kind,
            "apiVersion": served.api_version,
            "metadata": shown,
            "timestamp": format_time(measurement.end_s),
            "window": format_duration(measurement.window_s),
        }
        if is_pod:
            containers = measurement.containers or {}
            found["containers"] = [
                {"name": name, "usage": amounts.to_json()} for name, amounts in containers.items()
            ]
        else:
            found["usage"] = (measurement.amounts or Amounts(0, 0)).to_json()
        return found


def _field(subject: JsonObject, label: str) -> str:
    return str(subject["metadata"].get(label.removeprefix("metadata.")) or "")
