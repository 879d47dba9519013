"""How long a day of a large cluster takes: ``python benchmarks/bench_day.py [--quick] [--nodes N ...] [--policy P]``.

``examples/day-of-1000-nodes`` is made smaller and larger (so many Deployments, Jobs and first nodes) and run on virtual
time, each run in a process of its own, one after the other. Shown are the time that passes until the result is there,
the most memory the process held, and the exponent: how the processor time grows with the nodes, 1 being in proportion.
Byte code is cached, as it is from the second start of a program on: a short run comes first, and does not count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.reading import read_scenario
from holokube.runtime.collector import collect_rarely
from summary import header, record

EXAMPLE = Path(__file__).parent.parent / "examples" / "day-of-1000-nodes" / "scenario.yaml"
FULL_NODES = 1000
SIZES = (100, 200, 500, 1000, 2000)
QUICK_SIZES = (20, 40)
WARM_UP_NODES = 5
POLICIES = ("cluster-autoscaler", "karpenter")
GOAL_S = 60.0
KIB_PER_MIB = 1024


@dataclass(frozen=True, slots=True)
class Day:
    """What one run took."""

    nodes: int
    policy: str
    wall_s: float
    processor_s: float
    memory_mib: float
    nodes_most: int
    pods_made: int
    evictions: int
    launched: int


def scaled(nodes: int, hours: int) -> str:
    """The example for so many nodes."""
    scenario: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    spec = scenario["spec"]
    services, batch = spec["workloads"]

    def share(number: int) -> int:
        return max(1, round(number * nodes / FULL_NODES))

    services["copies"] = share(services["copies"])
    batch["arrivals"]["perHour"] = share(batch["arrivals"]["perHour"])
    spec["duration"] = f"{hours}h"
    del spec["assertions"]
    for policy in spec["policies"]:
        policy["flags"] = [
            f"--max-nodes-total={max(2 * nodes, 10)}" if flag.startswith("--max-nodes-total") else flag
            for flag in policy.get("flags", [])
        ]
        for group in policy.get("nodeGroups", []):
            group["initial"], group["max"] = share(group["initial"]), max(2 * nodes, 10)
    return yaml.safe_dump(scenario, sort_keys=False)


def one(nodes: int, policy_name: str, hours: int) -> Day:
    """Run it here and now, as the command does: the collector stays away until the process ends."""
    collect_rarely()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(scaled(nodes, hours))
        file.flush()
        scenario = read_scenario(Path(file.name))
    policy = next(policy for policy in scenario.policies if policy.name == policy_name)
    began_s, spent_s = time.monotonic(), time.process_time()
    result = run_scenario(scenario, policy)
    wall_s, spent_s = time.monotonic() - began_s, time.process_time() - spent_s
    memory_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = result.summary
    return Day(
        nodes, policy_name, wall_s, spent_s, memory_kib / KIB_PER_MIB,
        int(found["nodes_max"] or 0), int(found["pods_created"] or 0), int(found["evictions"] or 0),
        int(found["node_launches"] or 0),
    )  # fmt: skip


def in_own_process(nodes: int, policy: str, hours: int, byte_code: str) -> Day:
    """Memory is only known for a whole process. ``byte_code`` is a folder for it."""
    command = [sys.executable, __file__, "--one", "--nodes", str(nodes), "--policy", policy, "--hours", str(hours)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": byte_code}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return Day(**json.loads(done.stdout))


def exponent(days: list[Day]) -> float:
    """The slope of the line through the points, both axes logarithmic."""
    points = [(math.log(day.nodes), math.log(day.processor_s)) for day in days]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / math.fsum((x - mean_x) ** 2 for x, _ in points)


def show(day: Day, hours: int) -> None:
    goal = day.nodes == FULL_NODES and hours == 24
    record(
        f"{day.policy}, {day.nodes} nodes, {hours} h", day.wall_s, GOAL_S if goal else None, "s",
        goal=f"< {GOAL_S:.0f} s" if goal else "", met=day.wall_s < GOAL_S if goal else None,
    )  # fmt: skip
    print(
        f"    processor {day.processor_s:,.1f} s, memory {day.memory_mib:,.0f} MiB, at most {day.nodes_most:,} nodes,"
        f" {day.pods_made:,} pods made, {day.evictions:,} evicted, {day.launched:,} nodes launched",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small clusters, two hours")
    parser.add_argument("--nodes", type=int, nargs="*", help="sizes of the cluster")
    parser.add_argument("--policy", nargs="*", choices=POLICIES, default=POLICIES)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(asdict(one(args.nodes[0], args.policy[0], args.hours))))
        return
    sizes = args.nodes or (QUICK_SIZES if args.quick else SIZES)
    hours = 2 if args.quick else args.hours
    header("goal")
    with tempfile.TemporaryDirectory() as byte_code:
        for policy in args.policy:
            in_own_process(WARM_UP_NODES, policy, 1, byte_code)
            days = []
            for nodes in sizes:
                days.append(in_own_process(nodes, policy, hours, byte_code))
                show(days[-1], hours)
            if len(days) > 1:
                record(f"{policy}, exponent {sizes[0]} to {sizes[-1]} nodes", exponent(days), None, "", goal="about 1")


if __name__ == "__main__":
    main()
