"""Karpenter's solver and consolidation: ``python benchmarks/bench_karpenter.py [--quick] [PART ...]``.

``solves``: the workloads of upstream's own benchmark, against what upstream v1.15.0 took on two shared cores (five
workers, best of several runs). Each solve runs in a process of its own; parsing and building the problem are not timed.
``consolidation``: what both methods decide on seeded clusters of 1,000 nodes and 400 types. ``shrinking``: clusters on
virtual time until Karpenter, or the policy ``optimal``, finds nothing more to gain, and what one move of any nodes to
any others makes of them, beside the lowest price possible. The independent checker of the tests looks at every plan.
Optimal plans for batches of pods have a benchmark of their own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data" / "karpenter"
sys.path[:0] = [str(HERE), str(HERE.parent)]

from summary import header, record  # noqa: E402 - the path comes first

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Anchor:
    """What upstream did with a workload."""

    file: str
    pods_per_s: float
    nodes: int
    memory_mb: float
    times: float
    """How many times as fast we want to be."""
    price: float | None = None
    preferences: str = "Respect"


ANCHORS = {
    "diverse-500": Anchor("diverse-500", 318, 100, 80, 10),
    "diverse-2000": Anchor("diverse-2000", 300, 400, 112, 10, 687.1),
    "diverse-5000": Anchor("diverse-5000", 279, 1_000, 178, 10),
    "preference-4000, respected": Anchor("preference-4000", 47, 4_000, 292, 50),
    "preference-4000, ignored": Anchor("preference-4000", 1_875, 21, 139, 1, preferences="Ignore"),
}
MULTI_S, SINGLE_S, CONSTRAINED_S = 0.6, 0.18, 5.0
"""Upstream's times with 1,000 nodes and pods that do not care; and what a decision may take where they do."""
SHRINKING = {"PLAIN": 1_000, "CONSTRAINED": 100}
"""Nodes of the clusters that shrink. With constraints that takes hundreds of commands, one after the other."""
REGROUP_S = 60.0
"""So long global consolidation may search; then the best so far counts."""


def read(name: str) -> Any:
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


def peak_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def in_a_process(*arguments: str) -> JsonObject:
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr}")
    found: JsonObject = json.loads(done.stdout)
    return found


def solve(name: str) -> JsonObject:
    """One solve, with what it took."""
    from tests.karpenter.checker_inputs import check_results

    from holokube.karpenter.plan.case import read_case
    from holokube.karpenter.scheduling.problem import SolveOptions
    from holokube.karpenter.scheduling.solver import Solver
    from holokube.pricing.catalog_files import catalog_from_json

    anchor = ANCHORS[name]
    catalog = catalog_from_json(read("catalog-400"), "catalog-400")
    policy: Any = anchor.preferences
    problem = read_case(read(anchor.file), anchor.file, catalog).problem(SolveOptions(preference_policy=policy))
    before_s = time.perf_counter()
    solver = Solver(problem)
    started_s = time.perf_counter()
    results = solver.solve()
    solved_s = time.perf_counter()
    memory_mb = peak_memory_mb()
    price = results.price_usd_per_hour
    priced_s = time.perf_counter()
    return {
        "pods": len(problem.pods), "build_s": started_s - before_s, "solve_s": solved_s - started_s,
        "price_s": priced_s - solved_s, "nodes": len(results.new_claims), "price": price, "memory_mb": memory_mb,
        "pending": len(results.errors),
        "violations": [str(violation) for violation in check_results(problem, results)][:5],
    }  # fmt: skip


def bench_solves(quick: bool) -> None:
    for name, anchor in ANCHORS.items():
        if quick and anchor.file not in ("diverse-500", "diverse-2000"):
            continue
        runs = [in_a_process("--solve", name) for _ in range(1 if quick else 3)]
        best = min(runs, key=lambda run: float(run["solve_s"]))
        rate = best["pods"] / best["solve_s"]
        record(f"{name}, solved", rate, anchor.pods_per_s, "pods/s", goal=f">= {anchor.times:g} x",
               met=rate >= anchor.times * anchor.pods_per_s)
        whole_s = best["build_s"] + best["solve_s"] + best["price_s"]
        record(f"{name}, built, solved, priced", best["pods"] / whole_s, None, "pods/s")
        record(f"{name}, nodes", best["nodes"], anchor.nodes, "nodes", goal="not more",
               met=best["nodes"] <= anchor.nodes and not best["pending"])
        record(f"{name}, price", best["price"], anchor.price, "$/h", goal="not above" if anchor.price else "",
               met=best["price"] <= anchor.price if anchor.price else None)
        record(f"{name}, peak memory", best["memory_mb"], anchor.memory_mb, "MB")
        tell_violations(name, [violation for run in runs for violation in run["violations"]])


def tell_violations(name: str, violations: list[str]) -> None:
    record(f"{name}, rules broken", len(violations), None, "", goal="none", met=not violations)
    for violation in violations[:3]:
        print(f"  {violation}")


def consolidate(shape_name: str, nodes: int, seed: int) -> JsonObject:
    """What both methods decide, and how long that takes on a cluster that nobody has looked at."""
    from dataclasses import replace

    from tests.karpenter.checker_commands import check_command
    from tests.karpenter.disruption import clusters

    from holokube.karpenter.disruption.memory import Memory
    from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
    from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
    from holokube.karpenter.disruption.view import DisruptionView
    from holokube.karpenter.scheduling.problem import Problem
    from holokube.karpenter.scheduling.simulation import Simulation

    shape: clusters.Shape = getattr(clusters, shape_name)
    found: JsonObject = {}
    for method in (MultiNodeConsolidation(), SingleNodeConsolidation()):
        given = clusters.build(seed, replace(shape, nodes=nodes))
        started_s = time.perf_counter()
        problem = Problem(
            pools=given.pools, types_of_pool=given.types_of_pool, state_nodes=given.nodes, now_s=clusters.NOW_S)
        view = DisruptionView(
            now_s=clusters.NOW_S, nodes=given.nodes, pools={pool.name: pool for pool in given.pools},
            types_of_pool=given.types_of_pool, simulator=Simulation(problem))
        command = method.compute(view, Memory()).command
        took_s = time.perf_counter() - started_s
        violations = [] if command is None else [str(one) for one in check_command(problem, view, command)]
        found[method.name] = {
            "took_s": took_s, "nodes": 0 if command is None else len(command.candidates),
            "decision": "nothing" if command is None else str(command.decision), "violations": violations[:5],
        }  # fmt: skip
    return found


def bench_consolidation(quick: bool) -> None:
    nodes = 200 if quick else 1_000
    for shape in ("PLAIN", "CONSTRAINED", "CROWDED"):
        runs = [in_a_process("--consolidate", shape, str(nodes)) for _ in range(1 if quick else 3)]
        for method, anchor_s in (("multi", MULTI_S), ("single", SINGLE_S)):
            best = min((run[method] for run in runs), key=lambda one: float(one["took_s"]))
            is_plain = shape == "PLAIN"
            limit_s = anchor_s if is_plain else CONSTRAINED_S
            name = f"{method}-node, {nodes} nodes, {shape.lower()}"
            record(name, best["took_s"], anchor_s if is_plain else None, "s",
                   goal=f"<= {limit_s:g} s ({best['decision']} {best['nodes']})", met=best["took_s"] <= limit_s)
            tell_violations(name, best["violations"])


def shrink(policy: str, shape_name: str, nodes: int, seed: int) -> JsonObject:
    """A cluster until a policy finds nothing more to do, and what its pods would cost at least."""
    from dataclasses import replace

    from tests.karpenter.disruption import clusters

    from holokube.karpenter.optimal.planning import lower_bound
    from karpenter_shrinking import shrink as run

    shape: clusters.Shape = getattr(clusters, shape_name)
    found = run(replace(shape, nodes=nodes), seed, policy)
    cpu_s = time.process_time()
    bound = lower_bound(found.problem)
    return {
        "nodes_before": found.nodes_before, "nodes": found.nodes_after, "price_before": found.price_before,
        "price": found.price_after, "bound": bound.price_usd_per_hour, "hours": found.hours, "wall_s": found.wall_s,
        "cpu_s": cpu_s, "has_ended": found.has_ended,
        "pods": found.pods, "pending": found.pending, "memory_mb": peak_memory_mb(),
        "for_pods": found.for_pods, "as_replacements": found.as_replacements,
        "violations": found.violations[:5],
    }  # fmt: skip


def regroup(shape_name: str, nodes: int, seed: int) -> JsonObject:
    """The same cluster, consolidated in one move of any nodes to any others."""
    from dataclasses import replace

    from tests.karpenter.checker_inputs import check_placements
    from tests.karpenter.disruption import clusters

    from holokube.karpenter.disruption.view import DisruptionView
    from holokube.karpenter.optimal.global_consolidation import consolidate_globally
    from holokube.karpenter.plan.optimal_planner import global_budget, removable
    from holokube.karpenter.scheduling.problem import Problem
    from holokube.karpenter.scheduling.simulation import Simulation

    shape: clusters.Shape = getattr(clusters, shape_name)
    given = clusters.build(seed, replace(shape, nodes=nodes))
    problem = Problem(
        pools=given.pools, types_of_pool=given.types_of_pool, state_nodes=given.nodes, now_s=clusters.NOW_S)
    view = DisruptionView(
        now_s=clusters.NOW_S, nodes=given.nodes, pools={pool.name: pool for pool in given.pools},
        types_of_pool=given.types_of_pool, simulator=Simulation(problem))
    candidates = removable(view)
    started_s = time.perf_counter()
    ends_s = started_s + REGROUP_S
    move = consolidate_globally(
        problem, candidates, global_budget(view), seconds_left=lambda: ends_s - time.perf_counter())
    took_s = time.perf_counter() - started_s
    gone = set(move.removed)
    moved = [pod for candidate in candidates if candidate.name in gone for pod in candidate.movable_pods]
    after = replace(problem, pods=moved, state_nodes=[one for one in given.nodes if one.name not in gone])
    violations = check_placements(after, move.claims, move.existing)
    return {
        "price_before": move.price_before, "price": move.price_after, "bound": move.bound, "took_s": took_s,
        "nodes_before": len(given.nodes), "nodes": len(given.nodes) - len(gone) + len(move.claims),
        "violations": [str(violation) for violation in violations][:5],
    }  # fmt: skip


def bench_shrinking(quick: bool) -> None:
    for shape, all_nodes in SHRINKING.items():
        nodes = 30 if quick else all_nodes
        best = in_a_process("--regroup", shape, str(nodes))
        name = f"optimal, one move, {nodes} nodes, {shape.lower()}"
        record(f"{name}, price", best["price"], best["bound"], "$/h", goal=f"was {best['price_before']:,.0f}")
        record(f"{name}, nodes", best["nodes"], best["nodes_before"], "nodes", goal=f"in {best['took_s']:.0f} s")
        tell_violations(name, best["violations"])
        for policy in ("karpenter", "optimal"):
            done = in_a_process("--shrink", policy, shape, str(nodes))
            tell_shrinking(f"{policy}, {nodes} nodes, {shape.lower()}", done)


def tell_shrinking(name: str, done: JsonObject) -> None:
    """What became of a cluster, beside what its pods cost at least."""
    ratio = done["price"] / done["bound"]
    was = f"{ratio:.3f} x the bound, was {done['price_before']:,.2f}"
    record(f"{name}, price after", done["price"], done["bound"], "$/h", goal=was)
    record(f"{name}, nodes after", done["nodes"], None, "nodes", goal=f"of {done['nodes_before']}")
    record(f"{name}, pods not running", done["pending"], None, "pods", goal="none", met=not done["pending"])
    record(f"{name}, virtual time", done["hours"], None, "h", goal="until nothing is left to do", met=done["has_ended"])
    record(f"{name}, time here", done["cpu_s"], None, "s", goal=f"of cpu, {done['wall_s']:,.0f} s in all")
    others = f"and {done['as_replacements']} as replacements"
    record(f"{name}, claims for pods", done["for_pods"], None, "claims", goal=others)
    tell_violations(name, done["violations"])


PARTS: dict[str, tuple[str, Callable[[bool], None]]] = {
    "solves": ("upstream", bench_solves),
    "consolidation": ("upstream", bench_consolidation),
    "shrinking": ("bound", bench_shrinking),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small round of each")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all unless told")
    parser.add_argument("--solve", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--consolidate", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--shrink", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--regroup", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    unknown = [part for part in args.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    if args.solve:
        print(json.dumps(solve(args.solve)))
    elif args.consolidate:
        print(json.dumps(consolidate(args.consolidate[0], int(args.consolidate[1]), 1)))
    elif args.shrink:
        print(json.dumps(shrink(args.shrink[0], args.shrink[1], int(args.shrink[2]), 1)))
    elif args.regroup:
        print(json.dumps(regroup(args.regroup[0], int(args.regroup[1]), 1)))
    else:
        for part in args.parts or PARTS:
            anchor, bench = PARTS[part]
            print(f"\n-- {part} --")
            header(anchor)
            bench(args.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
