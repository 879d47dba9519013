"""What one pod costs on its whole way: ``python benchmarks/bench_pod_way.py [--quick] [--nodes N] [--pods N]``.

A cluster in this process, on virtual time: Deployments are scaled up, their pods are made, bound and brought to
Running, and later they are scaled down again. The anchor is a plain client that creates, binds and deletes pods of the
same kind, with nobody watching. Then nodes come up one by one while many pods wait for them; the anchor is the same
number of nodes that come up together. All times are of the processor, since nothing here waits for anything.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from holokube.client.resources import DEPLOYMENTS, NODES, PODS, SERVICES
from holokube.cluster.living import LivingOptions
from holokube.hollow.node_sets import NodeSet
from holokube.hollow.node_template import ProfileTemplate
from holokube.hollow.profile import named_profile
from holokube.runtime import collector
from holokube.testing.cluster import Cluster
from summary import header, record

JsonObject = dict[str, Any]
DEPLOYMENTS_OF_A_RUN = 30
SETTLE_S = 120.0
PODS_PER_NODE = 30


def deployment(number: int, replicas: int) -> JsonObject:
    labels = {"app": f"web-{number}"}
    requests = {"cpu": f"{50 + number % 5 * 10}m", "memory": "64Mi"}
    container = {"name": "web", "image": "registry.example/web:1", "resources": {"requests": requests}}
    return {
        "metadata": {"name": f"web-{number}", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }  # fmt: skip


def service(number: int) -> JsonObject:
    spec = {"selector": {"app": f"web-{number}"}, "ports": [{"port": 80}]}
    return {"metadata": {"name": f"web-{number}", "namespace": "default"}, "spec": spec}


def options() -> LivingOptions:
    return LivingOptions(profile=named_profile("fast"))


class Way:
    """One cluster whose Deployments go up and down."""

    def __init__(self, cluster: Cluster, deployments: int) -> None:
        self._client, self._clock, self._deployments = cluster.client, cluster.clock, deployments

    async def make(self, *, services: int) -> None:
        for number in range(self._deployments):
            await self._client.create(DEPLOYMENTS, deployment(number, 0), "default")
        for number in range(services):
            await self._client.create(SERVICES, service(number), "default")
        await self._clock.sleep(SETTLE_S)

    async def settle(self) -> float:
        started = time.process_time()
        await self._clock.sleep(SETTLE_S)
        return time.process_time() - started

    async def want(self, pods: int) -> None:
        patch = {"spec": {"replicas": pods // self._deployments}}
        for number in range(self._deployments):
            await self._client.patch(DEPLOYMENTS, f"web-{number}", patch, namespace="default")

    async def scale(self, pods: int) -> float:
        """Processor seconds of bringing the number of pods to ``pods``."""
        started = time.process_time()
        await self.want(pods)
        await self._clock.sleep(SETTLE_S)
        spent_s = time.process_time() - started
        await self.check(pods)
        return spent_s

    async def check(self, pods: int) -> None:
        pods -= pods % self._deployments
        listed = (await self._client.list(PODS, "default")).items
        running = sum(each["status"]["phase"] == "Running" for each in listed)
        if (len(listed), running) != (pods, pods):
            raise SystemExit(f"{len(listed)} pods, {running} of them Running, where {pods} are wanted")


def plain(pods: int) -> float:
    """Microseconds of a client that makes, binds and deletes pods which nobody watches."""
    made = deployment(0, 0)["spec"]["template"]
    with Cluster() as cluster:
        started = time.process_time()
        cluster.run(_plain, cluster.client, made, pods)
        return (time.process_time() - started) / pods * 1e6


async def _plain(client: Any, template: JsonObject, pods: int) -> None:
    for number in range(pods):
        name = f"pod-{number}"
        await client.create(PODS, {**template, "metadata": {"name": name}}, "default")
        await client.bind("default", name, "nowhere")
        await client.delete(PODS, name, "default", grace_s=0)


async def up_and_down(way: Way, pods: int, services: int) -> tuple[float, float]:
    await way.make(services=services)
    collector.relax()
    idle_s = await way.settle()
    return await way.scale(pods) - idle_s, await way.scale(0) - idle_s


def whole_way(nodes: int, pods: int, *, services: int, deployments: int, name: str, anchor_us: float) -> None:
    with Cluster(nodes=nodes, options=options()) as cluster:
        spent = cluster.run(up_and_down(Way(cluster, deployments), pods, services))
        for direction, spent_s in zip(("up", "down"), spent, strict=True):
            record(f"{name}, {direction}", spent_s / pods * 1e6, anchor_us, "us")


async def late_nodes(cluster: Cluster, nodes: int, over_s: float) -> float:
    collector.relax()
    client, maker = cluster.client, ProfileTemplate(named_profile("fast").nodes, ())
    started = time.process_time()
    if over_s:
        for number in range(nodes):
            await client.create(NODES, maker.render(f"late-{number}", number))
            await cluster.clock.sleep(over_s / nodes)
    else:
        await NodeSet("late", maker).scale(client, nodes, lambda _done, _total: None)
    await cluster.clock.sleep(SETTLE_S)
    return time.process_time() - started


async def staggered(cluster: Cluster, nodes: int, pods: int, over_s: float) -> float:
    """Processor seconds from pending pods to Running ones while nodes come up over some time."""
    way = Way(cluster, 10)
    await way.make(services=0)
    await way.want(pods)
    await cluster.clock.sleep(60.0)
    spent_s = await late_nodes(cluster, nodes, over_s)
    await way.check(pods)
    return spent_s


def profiled(path: str, work: Callable[[], None]) -> None:
    if not path:
        work()
        return
    profile = cProfile.Profile()
    profile.runcall(work)
    profile.dump_stats(path)
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small round of each")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--only", choices=("way", "services", "large", "staggered"), default="")
    parser.add_argument("--profile", default="", metavar="FILE", help="profile the part, into this file")
    args = parser.parse_args()
    nodes = args.nodes or (60 if args.quick else 200)
    pods = args.pods or nodes * PODS_PER_NODE
    header("plain")
    anchor_us = plain(500)

    def way(services: int, deployments: int, name: str) -> None:
        whole_way(nodes, pods, services=services, deployments=deployments, name=name, anchor_us=anchor_us)

    def late() -> None:
        spent_s = []
        for over_s in (90.0, 0.0):
            with Cluster(nodes=1, options=options()) as cluster:
                spent_s.append(cluster.run(staggered(cluster, nodes, pods, over_s)))
        record(f"{nodes} late nodes, {pods} pods", *spent_s, "s")

    parts: dict[str, Callable[[], None]] = {
        "way": lambda: way(0, DEPLOYMENTS_OF_A_RUN, f"pod of {DEPLOYMENTS_OF_A_RUN} Deployments"),
        "services": lambda: way(DEPLOYMENTS_OF_A_RUN, DEPLOYMENTS_OF_A_RUN, "pod behind a Service"),
        "large": lambda: way(0, 1, "pod of one Deployment"),
        "staggered": late,
    }
    for name, part in parts.items():
        if args.only in ("", name):
            profiled(args.profile, part)


if __name__ == "__main__":
    main()
