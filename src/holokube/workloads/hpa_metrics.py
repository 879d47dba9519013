"""Reads what autoscalers go by from the three metrics APIs, through the client: they may be served by anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from holokube.base.errors import HolokubeError, UsageError
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import Resource
from holokube.kube.errors import NotFound, ServiceUnavailable
from holokube.kube.quantity import milli_of
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import parse_duration, parse_time
from holokube.kube.types import JsonObject
from holokube.workloads.hpa_decisions import Reading, go_selector
from holokube.workloads.hpa_replicas import PodMetric

POD_METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True)
_CUSTOM: Final = "custom.metrics.k8s.io"
_EXTERNAL: Final = "external.metrics.k8s.io"
_CUSTOM_VERSIONS: Final = ("v1beta2", "v1beta1")
_CUSTOM_WINDOW_S: Final = 60.0


class MetricsReader:
    """Asks the metrics APIs of one cluster."""

    def __init__(self, client: Client, discovery: Discovery) -> None:
        self._client = client
        self._discovery = discovery

    async def read(self, spec: JsonObject, namespace: str, selector: LabelSelector) -> Reading:
        """What is known for one entry of ``spec.metrics``; trouble is part of the reading."""
        kind = spec["type"]
        if kind == "Resource":
            return await self._resource(spec["resource"]["name"], "", namespace, selector)
        if kind == "ContainerResource":
            source = spec["containerResource"]
            return await self._resource(source["name"], source["container"], namespace, selector)
        if kind == "Pods":
            return await self._pods(spec["pods"]["metric"], namespace, selector)
        if kind == "Object":
            return await self._object(spec["object"], namespace)
        if kind == "External":
            return await self._external(spec["external"]["metric"], namespace)
        return Reading()

    async def _resource(self, resource: str, container: str, namespace: str, selector: LabelSelector) -> Reading:
        try:
            items = (await self._client.list(POD_METRICS, namespace, label_selector=str(selector))).items
        except HolokubeError as error:
            what = _words(error, "get pods.metrics.k8s.io")
            return Reading(error=f"unable to fetch metrics from resource metrics API: {what}")
        if not items:
            return Reading(error="no metrics returned from resource metrics API")
        found = {}
        for item in items:
            milli = _usage_milli(item, resource, container)
            if milli is not None:
                found[item["metadata"]["name"]] = PodMetric(
                    milli, parse_time(item["timestamp"]), parse_duration(item["window"])
                )
        return Reading(pods=found)

    async def _pods(self, metric: JsonObject, namespace: str, selector: LabelSelector) -> Reading:
        query = {"labelSelector": str(selector), **_metric_selector(metric, "metricLabelSelector")}
        try:
            items = await self._custom(f"namespaces/{namespace}/pods/*/{_segment(metric['name'])}", query)
        except HolokubeError as error:
            return Reading(error=f"unable to fetch metrics from custom metrics API: {_words(error, '')}")
        if not items:
            return Reading(error="no metrics returned from custom metrics API")
        found = {}
        for item in items:
            window_s = item.get("windowSeconds", item.get("window"))
            found[str(item["describedObject"]["name"])] = PodMetric(
                milli_of(item["value"]),
                parse_time(item["timestamp"]),
                _CUSTOM_WINDOW_S if window_s is None else float(window_s),
            )
        return Reading(pods=found)

    async def _object(self, source: JsonObject, namespace: str) -> Reading:
        described, metric = source["describedObject"], source["metric"]
        # The words and their odd order are upstream's.
        where = f"{described['kind']} on {namespace} {described['name']}"
        try:
            group = str(described.get("apiVersion") or "").rpartition("/")[0]
            if described["kind"] == "Namespace" and not group:
                path = f"namespaces/{namespace}/metrics/{_segment(metric['name'])}"
            else:
                plural = await self._plural(group, described["kind"])
                path = f"namespaces/{namespace}/{plural}/{_segment(described['name'])}/{_segment(metric['name'])}"
            items = await self._custom(path, _metric_selector(metric, "metricLabelSelector"))
        except HolokubeError as error:
            what = f"unable to fetch metrics from custom metrics API: {_words(error, '')}"
            return Reading(error=f"{where}/{what}")
        if len(items) != 1:
            what = f"the custom metrics API server returned {len(items)} results when we asked for exactly one"
            return Reading(error=f"{where}/unable to fetch metrics from custom metrics API: {what}")
        return Reading(values_milli=(milli_of(items[0]["value"]),))

    async def _external(self, metric: JsonObject, namespace: str) -> Reading:
        name = metric["name"]
        path = f"/apis/{_EXTERNAL}/v1beta1/namespaces/{namespace}/{_segment(name)}"
        prefix = f"unable to get external metric {namespace}/{name}/{go_selector(metric.get('selector'))}"
        try:
            answer = await self._client.request("GET", path, query=_metric_selector(metric, "labelSelector"))
        except HolokubeError as error:
            what = _words(error, f"get {name}.{_EXTERNAL}")
            return Reading(error=f"{prefix}: unable to fetch metrics from external metrics API: {what}")
        items = (answer.get("items") if isinstance(answer, Mapping) else None) or ()
        if not items:
            return Reading(error=f"{prefix}: no metrics returned from external metrics API")
        return Reading(values_milli=tuple(milli_of(item["value"]) for item in items))

    async def _custom(self, path: str, query: Mapping[str, str]) -> list[JsonObject]:
        try:
            group = await self._client.request("GET", f"/apis/{_CUSTOM}")
        except NotFound:
            raise UsageError(f"no custom metrics API ({_CUSTOM}) registered") from None
        served = {str(version["version"]) for version in group.get("versions") or ()}
        version = next((each for each in _CUSTOM_VERSIONS if each in served), None)
        if version is None:
            raise UsageError("no known available metric versions found")
        answer: Any = await self._client.request("GET", f"/apis/{_CUSTOM}/{version}/{path}", query=query)
        return list(answer.get("items") or ())

    async def _plural(self, group: str, kind: str) -> str:
        for each in await self._discovery.all():
            if (each.resource.group, each.resource.kind) == (group, kind):
                return each.resource.qualified_name
        self._discovery.forget()
        name = f"{kind}.{group}" if group else kind
        raise UsageError(f'unable to map kind {name} to resource: no matches for kind "{kind}" in group "{group}"')


def _usage_milli(item: JsonObject, resource: str, container: str) -> int | None:
    """The sum over all containers, or that of one; None unless all of them were measured."""
    containers = item.get("containers") or ()
    if container:
        containers = [each for each in containers if each["name"] == container]
    if not containers or any(resource not in each["usage"] for each in containers):
        return None
    return sum(milli_of(each["usage"][resource]) for each in containers)


def _selector_text(metric: JsonObject) -> str:
    return str(LabelSelector.from_json(metric["selector"])) if metric.get("selector") else ""


def _metric_selector(metric: JsonObject, parameter: str) -> dict[str, str]:
    text = _selector_text(metric)
    return {parameter: text} if text else {}


def _segment(text: str) -> str:
    return quote(text, safe="|")


def _words(error: HolokubeError, doing: str) -> str:
    """How a Go client words it when there is nobody to answer."""
    if isinstance(error, NotFound) and doing:
        return f"the server could not find the requested resource ({doing})"
    if isinstance(error, ServiceUnavailable) and doing:
        return f"the server is currently unable to handle the request ({doing})"
    return error.message
