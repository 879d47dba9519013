"""How fast the Cluster Autoscaler is: ``python benchmarks/bench_cluster_autoscaler.py [--quick] [--nodes N]``.

First one turn alone, on an in-process API server and with a provider that only keeps books. The anchor is what the
real program took for as many pods, controllers and groups; the first turn knows nothing yet, the second finds the
nodes of the first on their way. A turn is divided as the metric ``function_duration_seconds`` divides it: looking
(``updateClusterState``), deciding (``filterOutSchedulable``, ``scaleUp``, ``findUnneeded``, ``scaleDown``), and the
rest, which is mostly telling pods and users. The whole turn is by the wall clock, its parts by the processor's.

Then upstream's scalability scenarios in a living cluster on virtual time (``autoscaler_scenarios``). A turn there is
measured in time of the processor, with everything that scheduler, controllers and kubelets do in between. The anchor
is the longest turn that upstream has published. A scenario that does not end as published fails the benchmark.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from autoscaler_scenarios import SCENARIOS, TurnTimes, Unlike
from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.loop.run_once import RunOnce
from holokube.cluster_autoscaler.loop.sources import Sources
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.plan.provider import GroupSpec, PlanProvider
from holokube.cluster_autoscaler.scale_up.quotas import limits_of
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.runtime import collector
from holokube.runtime.events import MAX_QUEUED, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.stop import StopSignal
from holokube.testing.cluster import Cluster
from summary import header, record

JsonObject = dict[str, Any]

DECIDING = ("filterOutSchedulable", "scaleUp", "findUnneeded", "scaleDown")
GOAL_S = 1.0
PUBLISHED_LONGEST_S, PUBLISHED_BOUND_S = 10.0, 30.0
TIME = "2024-01-01T00:00:00Z"


class Case(NamedTuple):
    """So many pods, alike within a controller, and groups of nodes of other sizes."""

    pods: int
    controllers: int
    cores: tuple[int, ...]
    upstream_s: float | None
    """What the real program took for its RunOnce, on a machine with 2 cores."""


CASES = (
    Case(1_000, 10, (2, 4, 8, 16), 0.12),
    Case(5_000, 20, (2, 4, 8, 16), 0.79),
    # More pods than fit on the 1,000 nodes that one scale-up may add.
    Case(30_000, 20, (4, 8), 2.0),
)


class Turn(NamedTuple):
    """How long one turn took, and the parts of it."""

    all_s: float
    looking_s: float
    deciding_s: float
    told: int
    """Events of the turn."""
    queued: int
    """Those of them that the recorder took; it drops the rest of a burst that is too large for its queue."""


def pod(number: int, controller: int) -> JsonObject:
    """A pod as a ReplicaSet and admission make it, for which a scheduler has found no place."""
    app, volume = f"app-{controller}", f"kube-api-access-{number:05x}"
    requests = {"cpu": f"{200 + 10 * controller}m", "memory": f"{400 + 16 * controller}Mi"}
    container = {
        "name": "c", "image": "registry.example/app:1", "resources": {"requests": requests},
        "volumeMounts": [
            {"name": volume, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
        ],
    }  # fmt: skip
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    refused = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": TIME,
        "message": "no nodes available to schedule pods",
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number}", "namespace": "default", "uid": f"pod-{number}", "creationTimestamp": TIME,
            "labels": {"app": app, "pod-template-hash": "6d4cf56db6"}, "ownerReferences": [owner],
        },
        "spec": {
            "serviceAccountName": "default", "containers": [container],
            "volumes": [{"name": volume, "projected": {"sources": [token]}}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending", "conditions": [refused]},
    }  # fmt: skip


def group(cores: int) -> GroupSpec:
    """A group of nodes with so many cores, as large as anybody wants it."""
    name = f"cores-{cores}"
    size = {"cpu": str(cores), "memory": f"{cores * 4}Gi", "pods": "110"}
    node = {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "labels": {"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": name},
        },
        "spec": {"providerID": f"plan://{name}"},
        "status": {
            "capacity": size, "allocatable": dict(size),
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
        },
    }  # fmt: skip
    return GroupSpec(name, 0, 2_000, NodeInfo(node, ()))


async def take_turns(cluster: Cluster, case: Case, count: int, max_queued: int) -> list[Turn]:
    clock, client, rng, options = cluster.clock, cluster.client, Rng(0), AutoscalerOptions()
    informers = InformerSet(clock, client, rng.fork("informers"))
    sources = Sources(client, informers, options)
    stop = StopSignal()
    running = asyncio.create_task(informers.runner().run(stop))
    await sources.synced()
    limits = limits_of(options.cores_total, options.memory_total_gib, options.gpu_total)
    provider = PlanProvider(clock, client, [group(cores) for cores in case.cores], {}, limiter=limits)
    times = TurnTimes(options)
    # Nobody runs the recorder: what it has to write is its own business, and not that of the turn.
    recorder = EventRecorder(clock, client, "cluster-autoscaler", rng=rng.fork("events"), max_queued=max_queued)
    once = RunOnce(
        clock, client, sources, provider, options, recorder=recorder, rng=rng.fork("autoscaler"), metrics=times)
    await once.status.begin(clock.time())
    turns = []
    for number in range(count):
        await clock.sleep(10.0)
        times.seconds.clear()
        queued = recorder.queued
        started_s = time.perf_counter()
        report = await once.run()
        all_s = time.perf_counter() - started_s
        assert report.error is None, report.error
        assert number or report.scale_up.result is ScaleUpResult.SUCCESSFUL, report.scale_up.result
        assert report.pending == case.pods, "all pods are looked at"
        deciding_s = sum(sum(times.seconds[part]) for part in DECIDING)
        turns.append(Turn(
            all_s, sum(times.seconds["updateClusterState"]), deciding_s, len(report.events), recorder.queued - queued))
    stop.set("enough turns")
    await running
    return turns


def turns_of(case: Case, max_queued: int) -> list[Turn]:
    pods = [pod(number, number % case.controllers) for number in range(case.pods)]
    gc.collect()
    with Cluster(objects=pods) as cluster:
        del pods
        return cluster.run(take_turns(cluster, case, 2, max_queued))


def bench_run_once(case: Case) -> None:
    first, later = turns_of(case, MAX_QUEUED)
    name = f"{case.pods:,} pods/{case.controllers}/{len(case.cores)}"
    is_goal = case is CASES[-1]
    record(f"turn, {name}, first", first.all_s, case.upstream_s, "s",
           goal=f"below {GOAL_S} s" if is_goal else "", met=first.all_s < GOAL_S if is_goal else None)
    for part, seconds in (("looking", first.looking_s), ("deciding", first.deciding_s),
                          ("telling", first.all_s - first.looking_s - first.deciding_s)):
        record(f"  of it {part}", seconds, None, "s")
    record(f"turn, {name}, later", later.all_s, case.upstream_s, "s")
    if first.queued < first.told:
        # The recorder takes no more than its queue holds, which makes a turn look faster than it is.
        print(f"  the recorder dropped {first.told - first.queued:,} of {first.told:,} events", flush=True)
        kept = turns_of(case, 2 * case.pods + 1_000)[0]
        record("  first, no event dropped", kept.all_s, case.upstream_s, "s",
               goal=f"below {GOAL_S} s" if is_goal else "", met=kept.all_s < GOAL_S if is_goal else None)


def bench_scenarios(nodes: int) -> int:
    """How many scenarios did not end as published."""
    unlike = 0
    for scenario in SCENARIOS:
        gc.collect()
        started_s = time.perf_counter()
        try:
            outcome = scenario(nodes)
        except Unlike as error:
            unlike += 1
            print(f"{scenario.__name__}: NOT AS PUBLISHED: {error}", flush=True)
            continue
        turns_s = outcome.turns_s
        longest_s = max(turns_s)
        print(f"{outcome.name}: {outcome.nodes:,} nodes, {outcome.pods:,} pods run after "
              f"{outcome.took_virtual_s / 60:.1f} virtual minutes; {len(turns_s)} turns; "
              f"{time.perf_counter() - started_s:.0f} s by the wall clock, peak {peak_mib():,.0f} MiB", flush=True)
        record("  longest turn", longest_s, PUBLISHED_LONGEST_S, "s", goal=f"below {PUBLISHED_LONGEST_S:.0f} s",
               met=longest_s < PUBLISHED_LONGEST_S)
        record("  mean turn", fmean(turns_s), None, "s")
        parts = {part: max(seconds) for part, seconds in outcome.parts_s.items() if seconds}
        slowest = max(parts, key=parts.__getitem__)
        record(f"  longest part: {slowest}", parts[slowest], None, "s")
        unlike += longest_s >= PUBLISHED_BOUND_S
    return unlike


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="turns as ever; scenarios with 50 nodes instead of 1,000")
    parser.add_argument("--nodes", type=int, default=0, help="the size of scenarios; 0 leaves the choice to --quick")
    parser.add_argument("--turns", action="store_true", help="turns alone, no scenarios")
    args = parser.parse_args()
    # As `holokube up` does; once only, since what is there by then is never freed.
    collector.relax()
    header("upstream")
    for case in CASES:
        bench_run_once(case)
    record("peak memory, turns", peak_mib(), None, "MiB")
    if args.turns:
        return 0
    header("published")
    unlike = bench_scenarios(args.nodes or (50 if args.quick else 1_000))
    record("peak memory, all", peak_mib(), None, "MiB")
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
