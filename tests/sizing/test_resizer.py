"""Running pods follow their node and their annotations, on an in-process cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holokube.client.informer import Informer
from holokube.client.resources import NODES, PODS
from holokube.kube.sizing import PREFIX, STATUS_ANNOTATION
from holokube.runtime.events import EventRecorder
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from holokube.sizing.in_process import install
from holokube.sizing.known_nodes import keep_sizes
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.resizer import BY_NODE, Resizer, index_by_node, keep_resizable
from holokube.testing import Cluster
from tests.kube.sizing.pods import container, daemon
from tests.sizing.worlds import events, make_nodes, set_allocatable

JsonObject = dict[str, Any]


@contextmanager
def resizing(*, admits: bool = True) -> Iterator[tuple[Cluster, Metrics]]:
    with Cluster() as cluster:
        metrics = Metrics()
        stop = StopSignal()
        if admits:
            install(cluster.registry)

        async def start() -> list[asyncio.Task[Any]]:
            client, clock = cluster.client, cluster.clock
            recorder = EventRecorder(clock, client, "node-sizing", rng=cluster.rng.fork("events"))
            nodes = Informer(clock, client, NODES, transform=keep_sizes)
            pods = Informer(clock, client, PODS, indexers={BY_NODE: index_by_node}, transform=keep_resizable)
            resizer = Resizer(clock, client, pods, nodes, recorder, SizingMetrics(metrics))
            await make_nodes(client, n="10", m="10")
            return [
                nodes.start(), pods.start(), asyncio.create_task(recorder.run(stop)),
                asyncio.create_task(resizer.controller.run(stop)),
            ]  # fmt: skip

        async def end(tasks: list[asyncio.Task[Any]]) -> None:
            stop.set()
            for task in tasks[:2]:
                task.cancel()
            await asyncio.wait(tasks)

        tasks = cluster.run(start())
        try:
            yield cluster, metrics
        finally:
            cluster.run(end(tasks))


def create(cluster: Cluster, pod: JsonObject, node: str = "n") -> str:
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
    made = cluster.run(cluster.client.create(PODS, bound))
    cluster.pass_time(1.0)
    name: str = made["metadata"]["name"]
    return name


def cpus(cluster: Cluster, name: str) -> list[str]:
    pod = cluster.run(cluster.client.get(PODS, name, "default"))
    return [one["resources"]["requests"]["cpu"] for one in pod["spec"]["containers"]]


def status(cluster: Cluster, name: str) -> JsonObject:
    pod = cluster.run(cluster.client.get(PODS, name, "default"))
    found: JsonObject = json.loads(pod["metadata"]["annotations"][STATUS_ANNOTATION])
    return found


def agent(fraction: str = "0.1", node: str = "n") -> JsonObject:
    return daemon(container("a", {"cpu": "1"}), container("b", {"cpu": "3"}), node=node, request_cpu_fraction=fraction)


def value(metrics: Metrics, outcome: str) -> float:
    return metrics.registry.get_sample_value("holokube_node_sizing_resizes_total", {"outcome": outcome}) or 0.0


def test_pods_follow_their_node_and_only_theirs() -> None:
    with resizing() as (cluster, metrics):
        here, there = create(cluster, agent()), create(cluster, agent(node="m"), "m")
        assert cpus(cluster, here) == ["250m", "750m"] and value(metrics, "resized") == 0
        cluster.run(set_allocatable(cluster.client, "n", "40"))
        cluster.pass_time(1.0)
        assert cpus(cluster, here) == ["1", "3"] and cpus(cluster, there) == ["250m", "750m"]
        assert value(metrics, "resized") == 1
        assert status(cluster, here)["allocatable"] == {"cpu": "40"}
        assert [event["involvedObject"]["name"] for event in events(cluster, "NodeSizingResized")] == [here]


def test_a_node_that_shrinks_and_grows_back_leaves_no_trace() -> None:
    with resizing() as (cluster, _):
        name = create(cluster, agent())
        for cores in ("30m", "10"):
            cluster.run(set_allocatable(cluster.client, "n", cores))
            cluster.pass_time(1.0)
        assert cpus(cluster, name) == ["250m", "750m"]


def test_pods_follow_their_annotations() -> None:
    with resizing() as (cluster, _):
        name = create(cluster, agent())
        change = {"metadata": {"annotations": {PREFIX + "request-cpu-fraction": "0.4"}}}
        cluster.run(cluster.client.patch(PODS, name, change, namespace="default"))
        cluster.pass_time(1.0)
        assert cpus(cluster, name) == ["1", "3"] and status(cluster, name)["requests"] == {"cpu": "4"}


def test_pods_that_were_admitted_while_the_webhook_was_away_get_their_size() -> None:
    with resizing(admits=False) as (cluster, _):
        name = create(cluster, agent())
        assert cpus(cluster, name) == ["250m", "750m"] and status(cluster, name)["requests"] == {"cpu": "1"}


def test_a_pod_that_cannot_be_resized_is_told_about_and_left_alone() -> None:
    """A resize may not change the class of service: this pod would stop being Guaranteed."""
    whole = {"cpu": "1", "memory": "1Gi"}
    with resizing(admits=False) as (cluster, metrics):
        name = create(cluster, daemon(container("a", whole, whole), request_cpu_fraction="0.01"))
        assert cpus(cluster, name) == ["1"]
        assert value(metrics, "refused") == 1
        (event,) = events(cluster, "NodeSizingResizeRefused")
        assert "QOS" in event["message"].upper()


def test_an_annotation_that_turns_bad_is_told_on_the_pod() -> None:
    with resizing() as (cluster, _):
        name = create(cluster, agent())
        change = {"metadata": {"annotations": {PREFIX + "request-cpu-fraction": "lots"}}}
        cluster.run(cluster.client.patch(PODS, name, change, namespace="default"))
        cluster.pass_time(1.0)
        assert cpus(cluster, name) == ["250m", "750m"]
        assert "request-cpu-fraction" in events(cluster, "NodeSizingFailed")[0]["message"]
