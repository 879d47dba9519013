"""How large a cluster one process carries: ``python benchmarks/bench_living.py [--quick] [--nodes N] [--pods N]``.

API server behind HTTPS, scheduler, controllers and hollow kubelets in this process, on the wall clock, leases on. Nodes
are made, then pods through Deployments, and after each the cluster is left alone for a while: what does standing still
cost, and how old does the oldest lease get? Memory is what the process has in addition, divided by what was added. The
anchor is the goal itself, since nobody else runs a whole cluster in one process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from holokube.apiserver.server import EmbeddedServer
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import DEPLOYMENTS, LEASES, PODS
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.hollow.profile import named_profile
from holokube.kube.timeformat import parse_micro_time
from holokube.runtime import collector
from summary import header, record

REPLICAS = 2000
LEASE_AGE_MAX_S = 12.0
LOOK_EVERY_S = 7.0


def resident_kib() -> float:
    """What the process has in memory now, not at its worst."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise RuntimeError("/proc/self/status has no VmRSS: this benchmark needs Linux")


def deployment(number: int, replicas: int) -> dict[str, object]:
    labels = {"app": f"web-{number}"}
    container = {
        "name": "web", "image": "registry.example/web:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }  # fmt: skip
    return {
        "metadata": {"name": f"web-{number}", "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }  # fmt: skip


class Run:
    """One cluster, grown step by step."""

    def __init__(self, nodes: int, pods: int, steady_s: float) -> None:
        self._nodes, self._pods, self._steady_s = nodes, pods, steady_s
        self._clock = WallClock()
        self.oldest_lease_s = 0.0

    async def run(self) -> None:
        async with EmbeddedServer(self._clock, Rng("bench")) as server:
            self._client = Client(InProcessTransport(server.registry))
            options = LivingOptions(profile=named_profile("fast"))
            living = LivingCluster.in_process(self._clock, server.registry, Rng("bench"), options)
            await living.start()
            collector.relax()  # as `holokube up` does
            try:
                await self._grow(living)
            finally:
                await living.stop()

    async def _grow(self, living: LivingCluster) -> None:
        before_kib = resident_kib()
        await self._timed(f"{self._nodes} nodes Ready", self._nodes, living.scale_nodes(self._nodes))
        nodes_kib = resident_kib()
        record("memory per node", (nodes_kib - before_kib) / self._nodes, None, "KiB")
        await self._stand_still("nodes alone, steady")
        await self._timed(f"{self._pods} pods Running", self._pods, self._run_pods(living))
        pods_kib = resident_kib()
        record("memory per pod", (pods_kib - nodes_kib) / self._pods, None, "KiB")
        record("memory of all", pods_kib / 1024, None, "MiB")
        await self._stand_still("nodes and pods, steady")
        met = self.oldest_lease_s <= LEASE_AGE_MAX_S
        record("oldest lease", self.oldest_lease_s, LEASE_AGE_MAX_S, "s", goal="at most 12 s", met=met)

    async def _timed(self, name: str, count: int, work: Coroutine[object, object, None]) -> None:
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        watching = asyncio.create_task(self._watch_leases())
        await work
        watching.cancel()
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        record(f"{name}, wall", wall_s, None, "s")
        record(f"{name}, processor for each", cpu_s / count * 1e6, None, "us")

    async def _run_pods(self, living: LivingCluster) -> None:
        left, number = self._pods, 0
        while left:
            replicas = min(left, REPLICAS)
            await self._client.create(DEPLOYMENTS, deployment(number, replicas))
            left, number = left - replicas, number + 1
        running: set[str] = set()
        done = asyncio.get_running_loop().create_future()

        def on_pod(_type: str, _old: object, new: dict[str, dict[str, str]] | None) -> None:
            if new is not None and new["status"].get("phase") == "Running":
                running.add(new["metadata"]["uid"])
                show(len(running), self._pods)
                if len(running) == self._pods and not done.done():
                    done.set_result(None)

        remove: Callable[[], None] = living.informers.get(PODS).add_handler(on_pod)
        await done
        remove()

    async def _stand_still(self, name: str) -> None:
        cpu_s = time.process_time()
        watching = asyncio.create_task(self._watch_leases())
        await asyncio.sleep(self._steady_s)
        watching.cancel()
        record(f"{name}, cores", (time.process_time() - cpu_s) / self._steady_s, None, "")

    async def _watch_leases(self) -> None:
        """How old the oldest lease is. Looking at all of them costs more than renewing them, so not too often."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = self._clock.now()
            for lease in (await self._client.list(LEASES, "kube-node-lease")).items:
                age_s = (now - parse_micro_time(lease["spec"]["renewTime"])).total_seconds()
                self.oldest_lease_s = max(self.oldest_lease_s, age_s)


def show(done: int, total: int) -> None:
    if sys.stderr.isatty() and done % 100 == 0:
        print(f"\r{done}/{total} pods", end="", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2,000 nodes and 20,000 pods")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods", type=int, default=0)
    args = parser.parse_args()
    nodes = args.nodes or (2_000 if args.quick else 20_000)
    pods = args.pods or (20_000 if args.quick else 200_000)
    header("goal")
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if importlib.util.find_spec("uvloop"):
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(Run(nodes, pods, 10.0 if args.quick else 60.0).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
