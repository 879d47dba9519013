"""What measures a node: /stats/summary and /metrics/resource, made from simulated usage.

Only what is simulated is told. There are no file systems, networks or processes, so there are no numbers of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holokube.hollow.kubelet_api.view import KubeletView, core_seconds, node_start_s
from holokube.hollow.usage import Usage
from holokube.kube.quantity import parse
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def summary(view: KubeletView, node: JsonObject) -> JsonObject:
    """The node and its pods, as stats/v1alpha1 has them."""
    now_s = view.now_s
    time = format_time(now_s)
    pods = []
    for pod in view.pods_on(node["metadata"]["name"]):
        uses = view.containers(pod)
        if not uses:
            continue
        containers, total, total_ns = [], Usage(0, 0), 0
        for use in uses:
            usage, core_ns = use.at(now_s), use.cpu_core_ns(now_s)
            total, total_ns = total + usage, total_ns + core_ns
            containers.append(
                {"name": use.name, "startTime": format_time(use.start_s), **_stats(time, usage, core_ns)}
            )
        meta = pod["metadata"]
        started = (pod.get("status") or {}).get("startTime") or meta["creationTimestamp"]
        pods.append(
            {
                "podRef": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
                "startTime": started,
                "containers": containers,
                **_stats(time, total, total_ns),
            }
        )
    own = _stats(time, view.node_usage(node), view.node_core_ns(node))
    capacity = ((node.get("status") or {}).get("capacity") or {}).get("memory")
    if capacity is not None:
        own["memory"]["availableBytes"] = max(0, parse(capacity).value() - own["memory"]["workingSetBytes"])
    name = node["metadata"]["name"]
    return {"node": {"nodeName": name, "startTime": format_time(node_start_s(node)), **own}, "pods": pods}


def _stats(time: str, usage: Usage, core_ns: int) -> JsonObject:
    return {
        "cpu": {"time": time, "usageNanoCores": usage.cpu_nano, "usageCoreNanoSeconds": core_ns},
        "memory": {
            "time": time,
            "usageBytes": usage.memory_bytes,
            "workingSetBytes": usage.memory_bytes,
            "rssBytes": usage.memory_bytes,
        },
    }


@dataclass(slots=True)
class _Family:
    """One metric and its samples."""

    name: str
    help: str
    type: str
    samples: list[tuple[str, float]]

    def text(self, now_ms: int) -> Iterable[str]:
        if self.samples:
            yield f"# HELP {self.name} [STABLE] {self.help}"
            yield f"# TYPE {self.name} {self.type}"
            for labels, value in self.samples:
                yield f"{self.name}{labels} {_number(value)} {now_ms}"


def resource_metrics(view: KubeletView, node: JsonObject) -> bytes:
    """What metrics-server scrapes, in Prometheus' text form."""
    now_s = view.now_s
    container_cpu = _Family(
        "container_cpu_usage_seconds_total", "CPU time used by the container, in core-seconds", "counter", []
    )
    container_memory = _Family(
        "container_memory_working_set_bytes", "Working set of the container, in bytes", "gauge", []
    )
    container_start = _Family(
        "container_start_time_seconds", "Start of the container, in Unix seconds", "gauge", []
    )
    node_cpu = _Family("node_cpu_usage_seconds_total", "CPU time used by the node, in core-seconds", "counter", [])
    node_memory = _Family("node_memory_working_set_bytes", "Working set of the node, in bytes", "gauge", [])
    pod_cpu = _Family("pod_cpu_usage_seconds_total", "CPU time used by the pod, in core-seconds", "counter", [])
    pod_memory = _Family("pod_memory_working_set_bytes", "Working set of the pod, in bytes", "gauge", [])
    for pod in view.pods_on(node["metadata"]["name"]):
        total, total_ns = Usage(0, 0), 0
        where = f'namespace="{pod["metadata"]["namespace"]}",pod="{pod["metadata"]["name"]}"'
        uses = view.containers(pod)
        for use in uses:
            usage, core_ns = use.at(now_s), use.cpu_core_ns(now_s)
            total, total_ns = total + usage, total_ns + core_ns
            labels = f'{{container="{use.name}",{where}}}'
            container_cpu.samples.append((labels, core_seconds(core_ns)))
            container_memory.samples.append((labels, usage.memory_bytes))
            container_start.samples.append((labels, use.start_s))
        if uses:
            pod_cpu.samples.append((f"{{{where}}}", core_seconds(total_ns)))
            pod_memory.samples.append((f"{{{where}}}", total.memory_bytes))
    node_cpu.samples.append(("", core_seconds(view.node_core_ns(node))))
    node_memory.samples.append(("", view.node_usage(node).memory_bytes))
    families = (
        container_cpu, container_memory, container_start, node_cpu, node_memory, pod_cpu, pod_memory,
    )  # fmt: skip
    lines = [line for family in families for line in family.text(int(now_s * 1000))]
    lines += [
        "# HELP resource_scrape_error [STABLE] 1 if the numbers could not be had, 0 otherwise",
        "# TYPE resource_scrape_error gauge",
        "resource_scrape_error 0",
    ]
    return ("\n".join(lines) + "\n").encode()


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
