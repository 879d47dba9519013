"""Whether the dashboard stays smooth: ``python benchmarks/bench_dashboard.py [--quick] [--nodes N] [--pods N]``.

A view of many nodes is fed with made-up events, a thousand pods changing every quarter of a second, and shown in a
real Chromium, drawn without a graphics card. Told are the cluster's side (what an event, a delta and a snapshot take
from its loop) and the page's (how long a frame is worked on when a few hundred tiles change, and when all are drawn
anew). The goal is the screen's own pace: 16.7 ms, and a scroll that never waits for longer than three of them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.chromium import Chromium, Page, find_chromium

from holokube.base.clock import WallClock
from holokube.dashboard.dashboard import Dashboard
from holokube.dashboard.scene import Scene
from holokube.dashboard.view import ClusterView
from summary import header, record

FRAME_MS = 1000 / 60
CHANGES = 1000
WORKLOADS = ("shop/web", "shop/api", "shop/cart", "data/search", "data/cache", "batch/nightly", "ops/agent", "ml/serve")


def node(number: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    labels = {
        "topology.kubernetes.io/zone": f"eu-{'abc'[number % 3]}", "karpenter.sh/nodepool": f"pool-{number % 5}",
        "node.kubernetes.io/instance-type": "m-16x-amd64-linux", "eks-node-viewer/instance-price": "0.76",
    }  # fmt: skip
    return {
        "metadata": {"name": f"node-{number}", "uid": str(number), "labels": labels,
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {}, "status": {"conditions": [ready], "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
    }  # fmt: skip


def pod(number: int, on: str, state: str = "True") -> dict[str, Any]:
    namespace, name = WORKLOADS[number % len(WORKLOADS)].split("/")
    owner = {"kind": "StatefulSet", "name": name, "controller": True}
    requests = {"cpu": f"{400 + 150 * (number % 8)}m", "memory": f"{1 + number % 5}Gi"}
    return {
        "metadata": {"name": f"{name}-{number}", "namespace": namespace, "ownerReferences": [owner],
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": state}]},
    }  # fmt: skip


def took_ms(work: Callable[[], object], rounds: int = 5) -> float:
    """The best of some rounds: other load on the machine only ever makes one slower."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        best = min(best, (time.perf_counter() - began) * 1000)
    return best


class Churn:
    """Pods that end and come back, for as long as somebody looks."""

    def __init__(self, view: ClusterView, pods: list[dict[str, Any]], nodes: int) -> None:
        self._view, self._pods, self._nodes = view, pods, nodes
        self._turn = itertools.count(1)
        self.event_us = float("inf")

    def once(self) -> None:
        number = next(self._turn)
        changes = []
        for at in range(CHANGES):
            index = (number * CHANGES + at * 7) % len(self._pods)
            on = f"node-{(index * 31 + number) % self._nodes}"
            after = pod(index, on, "True" if at % 3 else "False")
            changes.append((self._pods[index], after))
            self._pods[index] = after
        began = time.perf_counter()
        for before, after in changes:
            self._view.on_pod("MODIFIED", before, after)
        self.event_us = min(self.event_us, (time.perf_counter() - began) / CHANGES * 1e6)

    async def forever(self) -> None:
        while True:
            self.once()
            await asyncio.sleep(0.25)


def frames(page: Page, provoke: str, rounds: int) -> list[float]:
    """How long the page worked on each of so many frames, in milliseconds."""
    return sorted(page.evaluate(
        "(async () => { const wall = holokube.wall, times = []; for (let i = 0; i < " + str(rounds) + "; i++) {"
        " wall.frameTimes.length = 0; " + provoke + ";"
        " await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
        " times.push(...wall.frameTimes); } return times; })()"
    ))  # fmt: skip


def look(url: str, rounds: int, shot: str) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as home, Chromium(find_chromium(), Path(home)) as browser:
        page = browser.open(url, width=1920, height=1080)
        page.until("document.documentElement.dataset.ready")
        page.settle()
        measured = {
            "delta": frames(page, "await new Promise((done) => setTimeout(done, 270))", rounds),
            "all": frames(page, "wall.redraw()", rounds),
            "layout": frames(page, "wall.relayout()", rounds),
            "gaps": page.evaluate(
                "(async () => { const gaps = []; let last = performance.now(); for (let i = 0; i < 240; i++) {"
                " await new Promise(requestAnimationFrame); const now = performance.now();"
                " gaps.push(now - last); last = now; } return gaps; })()"
            ),
        }  # fmt: skip
        if shot:
            page.screenshot(Path(shot))
        return measured


async def measure(nodes: int, pods: int, rounds: int, shot: str) -> None:
    view = ClusterView(WallClock())
    for number in range(nodes):
        view.on_node("ADDED", None, node(number))
    listed = [pod(number, f"node-{number % nodes}") for number in range(pods)]
    for one in listed:
        view.on_pod("ADDED", None, one)
    view.begin()
    churn = Churn(view, listed, nodes)

    def delta() -> None:
        churn.once()
        began = time.perf_counter()
        view.drain()
        drains.append((time.perf_counter() - began) * 1000)

    drains: list[float] = []
    for _ in range(5):
        delta()
    snapshot_ms = took_ms(view.snapshot)
    size = len(orjson.dumps(view.snapshot()))
    record("event, on the cluster's loop", churn.event_us, None, "us")
    record(f"delta of {2 * CHANGES} tiles, on the cluster's loop", min(drains), None, "ms")
    record("snapshot, on the cluster's loop", snapshot_ms, None, "ms")
    record("snapshot, as it is sent", size / 2**20, None, "MiB")
    dashboard = Dashboard(WallClock())
    dashboard.show(Scene(view, asyncio.get_running_loop(), title="bench"))
    await asyncio.to_thread(dashboard.start)
    churning = asyncio.create_task(churn.forever())
    try:
        page = await asyncio.to_thread(look, dashboard.url, rounds, shot)
    finally:
        churning.cancel()
        await asyncio.to_thread(dashboard.stop)
    for name, what in (("delta", "frame, changes only"), ("all", "frame, everything"), ("layout", "frame, new layout")):
        middle = statistics.median(page[name])
        record(f"{what}, median", middle, None, "ms", goal=f"< {FRAME_MS:.1f}", met=middle < FRAME_MS)
        record(f"{what}, 95 of 100", page[name][int(len(page[name]) * 0.95)], None, "ms")
    gaps = sorted(page["gaps"])
    record("between two frames while it lives, median", statistics.median(gaps), FRAME_MS, "ms")
    record("between two frames while it lives, 99 of 100", gaps[int(len(gaps) * 0.99)], None, "ms",
           goal=f"< {3 * FRAME_MS:.0f}", met=gaps[int(len(gaps) * 0.99)] < 3 * FRAME_MS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 nodes")
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods", type=int, default=0)
    parser.add_argument("--screenshot", default="", help="write one here")
    args = parser.parse_args()
    nodes = args.nodes or (1000 if args.quick else 5000)
    pods = args.pods or 12 * nodes
    print(f"{nodes} nodes, {pods} pods, {CHANGES} of which change every 250 ms")
    header("60 Hz")
    asyncio.run(measure(nodes, pods, 20 if args.quick else 40, args.screenshot))
    return 0


if __name__ == "__main__":
    sys.exit(main())
