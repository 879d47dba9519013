"""How fast the packing engine is: ``python benchmarks/bench_packing.py [--quick]``.

A cluster of 5,000 nodes and 50 classes of pods: plain ones, and ones with spread constraints, affinity and
anti-affinity. A placement is the question where a pod may go, taking the first such node, and putting it there;
the next question sees the change. The anchor is the same by a state that remembers nothing from one class to the
next, and so asks every filter about every node and counts pods per topology domain anew each time.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from holokube.packing import ClusterState, PodClass
from summary import header, record

JsonObject = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def node(number: int) -> JsonObject:
    name = f"node-{number:05}"
    labels = {HOST: name, ZONE: f"zone-{number % 3}", "pool": f"pool-{number % 7}"}
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if number % 10 == 0 else []
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints},
            "status": {"allocatable": allocatable}}  # fmt: skip


def pod(number: int, kind: str) -> JsonObject:
    app = f"app-{number}"
    selector = {"matchLabels": {"app": app}}
    requests = {"cpu": f"{100 + 10 * number}m", "memory": "256Mi"}
    spec: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if kind == "spread":
        spec["topologySpreadConstraints"] = [
            {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
            for key, skew in ((ZONE, 1), (HOST, 2))
        ]
    elif kind == "anti":
        term = {"topologyKey": HOST, "labelSelector": selector}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif kind == "near":
        term = {"topologyKey": ZONE, "labelSelector": selector}
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif kind == "selecting":
        spec["nodeSelector"] = {"pool": f"pool-{number % 7}"}
    return {"metadata": {"name": app, "namespace": "default", "labels": {"app": app}}, "spec": spec}


def built(
    nodes: int, kinds: tuple[str, ...], *, classes: int = 50, remember: int = 1024
) -> tuple[ClusterState, list[PodClass]]:
    state = ClusterState(remember=remember)
    for number in range(nodes):
        state.add_node(node(number))
    found = state.classify(pod(number, kinds[number % len(kinds)]) for number in range(classes))
    for cls in found:
        state.feasible(cls)
    return state, found


def place(state: ClusterState, classes: list[PodClass], count: int) -> float:
    """Microseconds per placement."""
    started = time.perf_counter()
    for number in range(count):
        cls = classes[number % len(classes)]
        state.place(cls, int(state.feasible(cls).argmax()))
    return (time.perf_counter() - started) / count * 1e6


def undo(state: ClusterState, classes: list[PodClass], count: int) -> float:
    """Microseconds per placement that is made and taken back."""
    started = time.perf_counter()
    with state.trial():
        for number in range(count):
            state.place(classes[number % len(classes)], number % 1000)
    return (time.perf_counter() - started) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small round of each")
    quick = parser.parse_args().quick
    nodes, count = (1_000, 500) if quick else (5_000, 5_000)
    header("recomputed")
    mixes = {
        "plain": ("plain", "selecting"), "spread": ("spread",), "affinity": ("anti", "near"),
        "mixed": ("plain", "selecting", "spread", "anti", "near"),
    }  # fmt: skip
    for name, kinds in mixes.items():
        each_us = place(*built(nodes, kinds), count)
        full_us = place(*built(nodes, kinds, remember=1), count)
        record(f"placement, {nodes} nodes, 50 classes, {name}", each_us, full_us, "us")
    record("placement made and undone, mixed", undo(*built(nodes, mixes["mixed"]), count), None, "us")
    started = time.perf_counter()
    built(nodes, mixes["mixed"], classes=0)
    record("node added", (time.perf_counter() - started) / nodes * 1e6, None, "us")
    state, _ = built(nodes, mixes["mixed"])
    started = time.perf_counter()
    for number in range(100):
        state.add_node(node(nodes + number))
    record("node added, 50 classes looked at it before", (time.perf_counter() - started) / 100 * 1e6, None, "us")


if __name__ == "__main__":
    main()
