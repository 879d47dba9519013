"""How near to the cheapest plans come: ``python benchmarks/bench_karpenter_optimal.py [--quick]``.

Batches of 250 different pods (plain, big) on a small catalogue, and of few lopsided shapes on one of 660 types. For
each: the price that no plan can be below, what policy ``optimal`` pays, and what Karpenter's own way pays. The
anchor is
Karpenter's mean distance to the bound, in percent. Every plan is checked.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.optimal import batches

from holokube.karpenter.optimal.planning import lower_bound, plan
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.solver import Solver
from summary import header, record


def cases(quick: bool) -> dict[str, Problem]:
    small, cloud = batches.small_catalogue(), batches.cloud_catalogue()
    found: dict[str, Problem] = {}
    for seed in range(1 if quick else 4):
        wanted = (batches.ON_DEMAND, batches.AMD64) if seed % 2 == 0 else (batches.AMD64,)
        found[f"plain 250, seed {seed}"] = batches.problem(batches.plain_pods(seed), small, *wanted)
        found[f"big 250, seed {seed}"] = batches.problem(batches.big_pods(seed), small, *wanted)
        for name, shapes in (("lopsided", batches.LOPSIDED), ("nine shapes", batches.NINE)):
            pods = batches.shaped_pods(seed, shapes)
            found[f"{name} 120, seed {seed}"] = batches.problem(pods, cloud, batches.ON_DEMAND)
    eight = [batches.pod(f"c{n}", 1800, 500) for n in range(4)] + [batches.pod(f"m{n}", 100, 12_288) for n in range(4)]
    found["4 + 4 lopsided"] = batches.problem(eight, small, batches.ON_DEMAND, batches.AMD64)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed of each kind")
    quick = parser.parse_args().quick
    print(f"{'batch':<26}{'bound $/h':>11}{'optimal':>10}{'gap':>8}{'s':>7}{'karpenter':>11}{'gap':>8}  proven by")
    mine: list[float] = []
    theirs: list[float] = []
    for name, problem in cases(quick).items():
        started = time.monotonic()
        made = plan(problem, limit_s=30.0, monotonic=time.monotonic)
        seconds = time.monotonic() - started
        assert not check_placements(problem, made.claims, made.existing, made.errors)
        karpenter = Solver(problem).solve().price_usd_per_hour
        mine.append(made.gap)
        theirs.append(made.bound.gap(karpenter))
        print(
            f"{name:<26}{made.bound.price_usd_per_hour:>11.4f}{made.price_usd_per_hour:>10.4f}{made.gap:>8.2%}"
            f"{seconds:>7.1f}{karpenter:>11.4f}{theirs[-1]:>8.1%}  {made.bound.how}",
            flush=True,
        )
    many = batches.problem(batches.plain_pods(9, 2000), batches.small_catalogue(), batches.AMD64)
    started = time.monotonic()
    bound = lower_bound(many)
    seconds = time.monotonic() - started
    print(f"lower bound alone, 2,000 different pods: {bound.price_usd_per_hour:.4f} $/h in {seconds:.1f} s\n")
    header("karpenter")
    share = 100 / len(mine)
    worst = max(mine)
    record(
        "price above the lower bound, mean", sum(mine) * share, sum(theirs) * share, "%", goal="< 3 %", met=worst < 0.03
    )


if __name__ == "__main__":
    main()
