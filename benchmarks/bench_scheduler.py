"""How fast the scheduler is: ``python benchmarks/bench_scheduler.py [--quick]``.

First the decisions alone, in memory: a pod is decided, and assumed on its node. The anchor decides with nothing
remembered from one pod to the next. Then the whole component in a cluster on virtual time, from created pods to
bound ones, API server included; its anchor is a client that binds the same pods to given nodes without a scheduler.
All times are of the processor, since nothing here waits for anything.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bench_packing import node, pod
from holokube.base.clock import DEFAULT_START
from holokube.base.rng import Rng
from holokube.client.resources import PODS
from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.scheduler.cycle import Bind, Cycle
from holokube.scheduler.nominations import Nominations
from holokube.scheduler.scheduler import build
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scoring import Scoring
from holokube.testing.cluster import Cluster
from summary import header, record

JsonObject = dict[str, Any]
DIVERSE = ("plain", "selecting", "spread", "anti", "near")


def numbered(number: int, kind: str, template: int) -> JsonObject:
    made = pod(template, kind)
    metadata = {**made["metadata"], "name": f"pod-{number}", "uid": f"uid-{number}"}
    return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": metadata}


def equal_pods(count: int) -> list[JsonObject]:
    return [numbered(number, "plain", 0) for number in range(count)]


def diverse_pods(count: int) -> list[JsonObject]:
    """Each fifth of another kind, of 100 templates."""
    return [numbered(number, DIVERSE[number % len(DIVERSE)], number % 100) for number in range(count)]


def built(nodes: int, *, remember: bool, spread: bool) -> tuple[ClusterState, Cycle]:
    state = ClusterState(remember=1024 if remember else 1)
    for number in range(nodes):
        state.add_node(node(number))

    def selector_of(made: JsonObject) -> LabelSelector | None:
        return LabelSelector.from_labels(made["metadata"]["labels"]) if spread else None

    scoring = Scoring(state, ScoreProfile(), selector_of, reuse=remember)
    return state, Cycle(state, Nominations(), scoring, Rng(0))


def decide(nodes: int, pods: list[JsonObject], *, remember: bool, spread: bool = False) -> float:
    """Microseconds per pod."""
    state, cycle = built(nodes, remember=remember, spread=spread)
    started = time.process_time()
    for number, made in enumerate(pods):
        if not remember and number % 2:
            # A state that keeps one class forgets it when it is asked about another.
            state.feasible(state.class_of({"spec": {"nodeName": "nowhere"}}))
        decision = cycle.decide(made, DEFAULT_START)
        if isinstance(decision, Bind):
            state.assume_pod(made, decision.row)
    return (time.process_time() - started) / len(pods) * 1e6


def refuse(nodes: int, count: int) -> float:
    """Microseconds per pod that fits nowhere, all of one class."""
    _, cycle = built(nodes, remember=True, spread=False)
    pods = equal_pods(count)
    for made in pods:
        made["spec"] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "999"}}}]}
    started = time.process_time()
    for made in pods:
        assert not isinstance(cycle.decide(made, DEFAULT_START), Bind)
    return (time.process_time() - started) / count * 1e6


def api_pod(made: JsonObject) -> JsonObject:
    containers = [{**container, "image": "app:1"} for container in made["spec"]["containers"]]
    return {**made, "spec": {**made["spec"], "containers": containers}}


async def bind_all(cluster: Cluster, pods: list[JsonObject], nodes: int) -> float:
    started = time.process_time()
    for number, made in enumerate(pods):
        await cluster.client.bind("default", made["metadata"]["name"], f"node-{number % nodes:05}")
    return time.process_time() - started


async def schedule_all(cluster: Cluster, pods: list[JsonObject]) -> float:
    clock, client, rng = cluster.clock, cluster.client, Rng(0)
    informers = InformerSet(clock, client, rng)
    recorder = EventRecorder(clock, client, "scheduler", rng=rng, api="events.k8s.io/v1", max_queued=len(pods) * 2)
    scheduler = build(clock, client, informers, recorder, rng)
    app = App(clock)
    for component in (recorder, informers.runner(), scheduler):
        app.add(component)
    started = time.process_time()
    running = asyncio.create_task(app.run())
    await clock.sleep(60)
    seconds = time.process_time() - started
    listed = await client.list(PODS, "default")
    assert all(item["spec"].get("nodeName") for item in listed.items), "every pod fits"
    app.stop()
    await running
    return seconds


def whole(nodes: int, pods: list[JsonObject]) -> tuple[float, float]:
    """Microseconds per pod, from pending to bound: by the scheduler, and by plain binds."""
    seconds = []
    for by_scheduler in (True, False):
        objects = [{"apiVersion": "v1", "kind": "Node", **node(number)} for number in range(nodes)]
        with Cluster(objects=objects) as cluster:
            for made in pods:
                cluster.run(cluster.client.create(PODS, api_pod(made), "default"))
            if by_scheduler:
                seconds.append(cluster.run(schedule_all(cluster, pods)))
            else:
                seconds.append(cluster.run(bind_all(cluster, pods, nodes)))
    ours, plain = (each / len(pods) * 1e6 for each in seconds)
    return ours, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small round of each")
    quick = parser.parse_args().quick
    nodes, equal, diverse = (200, 500, 300) if quick else (1_000, 5_000, 2_000)
    header("no memory")
    for name, pods, spread in (
        ("equal", equal_pods(equal), False), ("equal, spread by service", equal_pods(equal), True),
        ("diverse", diverse_pods(diverse), False),
    ):  # fmt: skip
        ours, anchor = (decide(nodes, pods, remember=remember, spread=spread) for remember in (True, False))
        record(f"decision, {nodes} nodes, {len(pods)} {name}", ours, anchor, "us")
    record(f"refusal, {nodes} nodes, one class", refuse(nodes, equal), None, "us")
    header("plain bind")
    ours, plain = whole(nodes, equal_pods(equal))
    record(f"pod bound, {nodes} nodes, {equal} equal", ours, plain, "us")


if __name__ == "__main__":
    main()
