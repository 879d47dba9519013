"""The strategy ``optimal``: batches of pods get the cheaper plan, and the same one every time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace

from holokube.base.clock import WallClock
from holokube.karpenter.optimal.kept_plan import PlanBook
from holokube.karpenter.optimal.strategy import optimal_strategy, plan_batch, solve_on
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.solver import Solver
from tests.karpenter.checker_inputs import check_results
from tests.karpenter.disruption import clusters
from tests.karpenter.optimal import batches


def lopsided() -> Problem:
    pods = [batches.pod(f"c{n}", 1800, 500) for n in range(8)] + [batches.pod(f"m{n}", 100, 12_288) for n in range(8)]
    return batches.problem(pods, batches.small_catalogue(), batches.ON_DEMAND, batches.AMD64)


def test_a_batch_costs_less_than_by_karpenters_own_way_and_breaks_no_rule() -> None:
    problem = lopsided()
    results = plan_batch(problem)
    assert check_results(problem, results) == []
    assert not results.failed
    assert results.price_usd_per_hour < Solver(problem).solve().price_usd_per_hour


def test_the_same_batch_gets_the_same_plan() -> None:
    one, two = ([sorted(map(pod_key, claim.pods)) for claim in plan_batch(lopsided()).new_claims] for _ in range(2))
    assert one == two


def test_pods_that_fit_on_nodes_that_are_there_buy_nothing() -> None:
    given = clusters.build(2, clusters.Shape(nodes=4, types=20))
    pods = [batches.pod("small", 100, 100)]
    problem = Problem(given.pools, given.types_of_pool, pods=pods, state_nodes=given.nodes, now_s=clusters.NOW_S)
    results = plan_batch(problem)
    assert not results.new_claims
    assert [len(there) for there in results.existing.values()] == [1]


def test_a_pod_that_nothing_can_hold_is_told_and_does_not_keep_the_others() -> None:
    pods = [batches.pod("giant", 900_000, 10), batches.pod("small", 100, 100)]
    problem = batches.problem(pods, batches.small_catalogue(), batches.ON_DEMAND)
    results = plan_batch(problem)
    assert list(results.failed) == ["default/giant"]
    assert [pod_key(pod) for claim in results.new_claims for pod in claim.pods] == ["default/small"]


def test_pods_that_consolidation_provides_for_are_not_bought_for_again() -> None:
    problem = lopsided()
    running = [{**pod, "spec": {**pod["spec"], "nodeName": "old"}} for pod in problem.pods]
    moving = replace(problem, pods=running)
    book = PlanBook()
    solve = solve_on(WallClock(), book)
    assert asyncio.run(_result(solve(moving))).new_claims
    book.keep({"old"}, plan_batch(moving))
    assert not asyncio.run(_result(solve(moving))).new_claims


async def _result(results: Awaitable[Results]) -> Results:
    return await results


def test_emptiness_and_drift_stay_and_the_rest_is_one_method() -> None:
    assert [method.name for method in optimal_strategy().methods] == ["emptiness", "drift", "global"]
