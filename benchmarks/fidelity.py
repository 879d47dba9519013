"""One scenario twice: on virtual time, and in real time on a real control plane. How far apart are they?

    python benchmarks/fidelity.py [--scenario examples/fidelity/scenario.yaml] [--policy cluster-autoscaler]
                                  [--virtual-only] [--out fidelity.json]

In the second run kube-apiserver, kube-scheduler and kube-controller-manager are the real ones; the hollow fleet and the
autoscaler are holokube's, over HTTPS. It takes as long as the scenario says. The meters are the same in both runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES, PODS
from holokube.cluster.cloud import CloudState
from holokube.cluster.components import Part
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.cluster.policies import PolicyOrder, make_policy
from holokube.lab.results import RunResult
from holokube.lab.run.decisions import DecisionBook
from holokube.lab.run.driver import WorkloadDriver
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.node_meter import NodeMeter
from holokube.lab.run.owners import Owners
from holokube.lab.run.pod_meter import PodMeter
from holokube.lab.run.runner import run_scenario
from holokube.lab.run.sampling import Sampler
from holokube.lab.run.summary import Findings
from holokube.lab.run.usage_meter import UsageMeter
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.lab.scenario.reading import read_scenario
from holokube.testing.binaries import find_or_build
from holokube.testing.controlplane import COMPONENTS, ControlPlane, programs_for

DEFAULT = Path(__file__).parent.parent / "examples/fidelity/scenario.yaml"
NODES_GOAL, PENDING_GOAL = 0.10, 0.15
PROGRESS_EVERY = 6


class SinceBegin(WallClock):
    """Real time, counted from the begin of the run as virtual time is."""

    def __init__(self) -> None:
        self.begin_s = time.monotonic()

    def monotonic(self) -> float:
        return time.monotonic() - self.begin_s


async def run_really(plane: ControlPlane, scenario: Scenario, policy: PolicySpec) -> RunResult:
    """The scenario on a real control plane, with our fleet and our autoscaler."""
    clock, rng = WallClock(), Rng(scenario.seed)
    access = load_access(str(plane.kubeconfig))
    clients: list[Client] = []

    def connect(name: str) -> Client:
        clients.append(Client(HttpTransport(clock, access, user_agent=name)))
        return clients[-1]

    order = PolicyOrder(
        policy.kind, policy.flags, policy.node_groups, policy.manifests, scenario.catalog, CloudState())
    options = LivingOptions(
        parts=frozenset({Part.FLEET}), profile=scenario.cluster.profile, zones=scenario.cluster.zones,
        policy=make_policy(order),
    )  # fmt: skip
    log = EventLog(None)
    since = SinceBegin()
    book = DecisionBook(since, policy.kind, since.time(), log)
    living = LivingCluster(clock, connect, rng.fork("cluster"), options, journal=book.journal)
    await living.start()
    try:
        since.begin_s = time.monotonic()
        nodes = NodeMeter(since, scenario.catalog, log)
        nodes.on_added = book.node_added
        usage = UsageMeter(since, scenario.cluster.profile.usage)
        pods = PodMeter(since, nodes, Owners(living.informers), usage, log, book.unschedulable)
        living.informers.get(NODES).add_handler(nodes.on_event)
        living.informers.get(PODS).add_handler(pods.on_event)
        nodes.has_begun = pods.has_begun = True
        sampler = Sampler(nodes, pods, usage)
        driver = WorkloadDriver(
            since, connect("scenario"), rng.fork("workloads"), log, start_s=scenario.start_s,
            duration_s=scenario.duration_s,
        )  # fmt: skip
        driving = asyncio.create_task(driver.run(scenario.workloads))
        number = 0
        while (at_s := number * scenario.sampling_s) < scenario.duration_s:
            await since.sleep(max(0.0, at_s - since.monotonic()))
            if driving.done():
                driving.result()
            sampler.take(at_s)
            if number % PROGRESS_EVERY == 0:
                _tell(f"{at_s / 60:3.0f} min: {nodes.nodes.amount} nodes, {pods.pending.amount} pods pending")
            number += 1
        driving.cancel()
        findings = Findings(scenario, policy, scenario.seed, nodes, pods, sampler, book, {}, living.informers)
        return findings.result(scenario.duration_s)
    finally:
        await living.stop()
        for client in clients:
            await client.close()


@dataclass(frozen=True)
class Comparison:
    """Two runs of one scenario."""

    nodes_apart: float
    """Mean of the absolute difference of node counts, as a share of the real mean."""
    nodes_apart_at_most: float
    """The largest difference at any moment, as a share of the real maximum."""
    pending_p50_apart: float

    @classmethod
    def of(cls, virtual: RunResult, real: RunResult) -> Comparison:
        ours, theirs = virtual.series.columns["nodes"], real.series.columns["nodes"]
        apart = [abs(one - other) for one, other in zip(ours, theirs, strict=True)]
        mine, its = virtual.summary["pending_p50_s"], real.summary["pending_p50_s"]
        assert mine is not None
        assert its
        return cls(sum(apart) / sum(theirs), max(apart) / max(theirs), abs(mine - its) / its)


SHOWN = ("nodes_mean", "nodes_max", "pending_p50_s", "pending_p90_s", "pending_max_s", "ready_p50_s", "pods_created",
         "evictions", "node_launches", "node_removals", "cost_usd")  # fmt: skip


def show(virtual: RunResult, real: RunResult) -> None:
    found = Comparison.of(virtual, real)
    print(f"{'':24}{'virtual':>12}{'real':>12}{'ratio':>8}")
    for name in SHOWN:
        one, other = virtual.summary[name], real.summary[name]
        ratio = f"{one / other:.3f}" if one is not None and other else ""
        print(f"{name:24}{_number(one):>12}{_number(other):>12}{ratio:>8}")
    print("\nminute   virtual   real nodes")
    for at_s, one, other in zip(virtual.series.times_s, virtual.series.columns["nodes"], real.series.columns["nodes"],
                                strict=True):  # fmt: skip
        if at_s % 120 == 0:
            print(f"{at_s / 60:6.0f}   {one:7.0f}   {other:7.0f}")
    print(f"\nnode counts over time: {found.nodes_apart:.1%} apart on average (goal {NODES_GOAL:.0%}: "
          f"{_met(found.nodes_apart <= NODES_GOAL)}), {found.nodes_apart_at_most:.1%} of the maximum at most")
    print(f"pending, median: {found.pending_p50_apart:.1%} apart (goal {PENDING_GOAL:.0%}: "
          f"{_met(found.pending_p50_apart <= PENDING_GOAL)})")


def _met(is_so: bool) -> str:
    return "met" if is_so else "MISSED"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenario", type=Path, default=DEFAULT)
    parser.add_argument("--policy", default="cluster-autoscaler")
    parser.add_argument("--virtual-only", action="store_true", help="do not play it in real time")
    parser.add_argument("--out", type=Path, help="write both results as JSON")
    given = parser.parse_args(arguments)
    scenario = read_scenario(given.scenario)
    policy = next(one for one in scenario.policies if one.name == given.policy)
    virtual = run_scenario(scenario, policy)
    _tell(f"virtual time: done; now {scenario.duration_s / 60:.0f} minutes of real time")
    if given.virtual_only:
        print(json.dumps(dict(virtual.summary), indent=1))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        binaries = find_or_build(build=True, programs=programs_for(COMPONENTS))
        with ControlPlane(binaries, Path(folder), COMPONENTS) as plane:
            real = asyncio.run(run_really(plane, scenario, policy))
    show(virtual, real)
    if given.out:
        both: dict[str, Any] = {"virtual": virtual.as_json(), "real": real.as_json()}
        given.out.write_text(json.dumps(both, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
