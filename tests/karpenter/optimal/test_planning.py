"""Plans for whole problems: near the bound, without a violation, never worse than Karpenter's own way."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.optimal.planning import OptimalPlan, lower_bound, mixture_bounds, plan
from holokube.karpenter.optimal.search import Effort
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.solver import Solver
from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.optimal import batches
from tests.karpenter.scheduling import builders, random_problems
from tests.karpenter.scheduling.builders import HOST, SIZES, ZONE

EFFORT = Effort(improvement_rounds=40, column_rounds=10, whole_nodes=40, pattern_work=100)


def planned(problem: Problem, effort: Effort = EFFORT) -> OptimalPlan:
    made = plan(problem, effort=effort)
    found = check_placements(problem, made.claims, made.existing, made.errors)
    assert found == [], "; ".join(map(str, found))
    assert made.bound.price_usd_per_hour <= made.price_usd_per_hour + 1e-9
    return made


def small(pods: list[dict[str, Any]], **more: Any) -> Problem:
    pool = more.pop("pool", None) or builders.pool()
    types = {pool.name: list(more.pop("types", SIZES))}
    return Problem([pool], types, pods=pods, well_known=builders.WELL_KNOWN, **more)


@pytest.mark.parametrize("family", ["plain", "big"])
def test_a_batch_of_250_different_pods_is_within_three_percent(family: str) -> None:
    pods = batches.plain_pods(5) if family == "plain" else batches.big_pods(5)
    problem = batches.problem(pods, batches.small_catalogue(), batches.ON_DEMAND, batches.AMD64)
    made = planned(problem)
    assert made.gap < 0.03 and not made.errors
    assert made.price_usd_per_hour < Solver(problem).solve().price_usd_per_hour


@pytest.mark.parametrize("shapes", [batches.LOPSIDED, batches.NINE])
def test_mixed_shapes_on_a_large_catalogue_are_within_five_percent(shapes: tuple[tuple[int, int], ...]) -> None:
    problem = batches.problem(batches.shaped_pods(5, shapes), batches.cloud_catalogue(), batches.ON_DEMAND)
    made = planned(problem)
    assert made.gap < 0.05 and not made.errors
    assert made.price_usd_per_hour < Solver(problem).solve().price_usd_per_hour * 0.8


def test_two_kinds_of_lopsided_pods_share_nodes() -> None:
    pods = [batches.pod(f"c{n}", 1800, 500) for n in range(4)] + [batches.pod(f"m{n}", 100, 12_288) for n in range(4)]
    made = planned(batches.problem(pods, batches.small_catalogue(), batches.ON_DEMAND, batches.AMD64))
    assert made.gap < 1e-5 and made.status == "optimal"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_asked_for_no_plan_breaks_a_rule(seed: int) -> None:
    problem = random_problems.problem(Random(seed), 14)
    made = plan(problem, effort=EFFORT)
    found = check_placements(problem, made.claims, made.existing, made.errors)
    ours = [one for one in found if one.pod not in _before(problem)]
    assert ours == [], "; ".join(map(str, ours))
    pods = [pod_key(pod) for claim in made.claims for pod in claim.pods]
    pods += [pod_key(pod) for placed in made.existing.values() for pod in placed]
    assert sorted([*pods, *made.errors]) == sorted(map(pod_key, problem.pods))
    assert made.bound.price_usd_per_hour <= made.price_usd_per_hour + 1e-6


def _before(problem: Problem) -> set[str]:
    """Pods that are no part of a plan: they may be in each other's way from the start."""
    return {pod_key(pod) for node in problem.state_nodes for pod in node.pods} | set(map(pod_key, problem.daemon_pods))


def _without_reservations(problem: Problem) -> Problem:
    """Prices of claims that share a reservation need not come true, so that no bound could hold for them."""
    kept = {
        pool: [one.with_offerings(place for place in one.offerings if not place.is_reserved) for one in types]
        for pool, types in problem.types_of_pool.items()
    }
    return replace(problem, types_of_pool=kept)


@pytest.mark.parametrize("seed", range(100, 160))
def test_the_bound_holds_for_karpenters_own_plans(seed: int) -> None:
    problem = _without_reservations(random_problems.problem(Random(seed), 14))
    results = Solver(problem).solve()
    placed = {pod_key(pod) for pod in problem.pods} - set(results.errors)
    assert lower_bound(problem, placed=placed).price_usd_per_hour <= results.price_usd_per_hour + 1e-6


def test_pods_spread_over_zones_and_hosts() -> None:
    pods = builders.pods(7, app="web", topologySpreadConstraints=[builders.spread(ZONE, "web")])
    pods += builders.pods(3, "h", app="db", topologySpreadConstraints=[builders.spread(HOST, "db")])
    made = planned(small(pods))
    assert not made.errors
    zones = [claim.requirements.of(ZONE).values for claim in made.claims for pod in claim.pods if _starts(pod, "p")]
    assert sorted(zones.count(frozenset({zone})) for zone in builders.ZONES) == [2, 2, 3]


def _starts(pod: dict[str, Any], letter: str) -> bool:
    return str(pod["metadata"]["name"]).startswith(letter)


def test_pods_that_want_each_other_share_a_node_and_others_keep_apart() -> None:
    near = {"affinity": builders.required_pods("podAffinity", HOST, "near")}
    apart = {"affinity": builders.required_pods("podAntiAffinity", HOST, "apart")}
    made = planned(small(builders.pods(3, "n", app="near", **near) + builders.pods(3, "a", app="apart", **apart)))
    assert not made.errors and len(made.claims) == 3
    together = [sum(_starts(pod, "n") for pod in claim.pods) for claim in made.claims]
    assert sorted(together) == [0, 0, 3]


def test_limits_are_kept_and_what_they_leave_out_is_told() -> None:
    made = planned(small(builders.pods(8, cpu="900m"), pool=builders.pool(limits={"cpu": "4"})))
    assert sum(claim.instance_types[0].capacity["cpu"] for claim in made.claims) <= 4000
    assert len(made.errors) == 4 and made.status == "limit"


def test_a_pod_for_which_there_is_no_node_is_told_and_costs_nothing() -> None:
    made = planned(small([*builders.pods(2), builders.pod("giant", cpu="100")]))
    assert list(made.errors) == ["default/giant"] and made.status == "optimal"


def test_without_pods_there_is_nothing_to_pay() -> None:
    made = planned(small([]))
    assert made.price_usd_per_hour == 0.0 and made.gap == 0.0 and not made.claims


def test_wishes_do_not_cost_money() -> None:
    wish = builders.required_pods("podAntiAffinity", HOST, "web")["podAntiAffinity"]
    term = next(iter(wish.values()))[0]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    made = planned(small(builders.pods(4, app="web", affinity={"podAntiAffinity": preferred})))
    assert len(made.claims) == 1


def test_a_time_limit_needs_a_clock_and_then_ends_the_search() -> None:
    problem = batches.problem(batches.plain_pods(1, 60), batches.small_catalogue(), batches.AMD64)
    with pytest.raises(ValueError, match="clock"):
        plan(problem, limit_s=1.0)
    ticks = count()
    made = plan(problem, limit_s=5.0, monotonic=lambda: float(next(ticks)))
    assert not made.errors and check_placements(problem, made.claims, made.existing) == []


def test_the_same_problem_has_the_same_plan() -> None:
    problem = batches.problem(batches.big_pods(2, 40), batches.small_catalogue(), batches.AMD64)
    first, second = plan(problem, effort=EFFORT), plan(problem, effort=EFFORT)
    assert [(c.cheapest(), [pod_key(pod) for pod in c.pods]) for c in first.claims] == [
        (c.cheapest(), [pod_key(pod) for pod in c.pods]) for c in second.claims
    ]


def test_the_bound_of_a_plan_that_leaves_pods_out_is_that_of_the_others() -> None:
    problem = batches.problem(batches.plain_pods(3, 30), batches.small_catalogue(), batches.AMD64)
    some = {pod_key(pod) for pod in problem.pods[:10]}
    expected = lower_bound(replace(problem, pods=problem.pods[:10])).price_usd_per_hour
    assert lower_bound(problem, placed=some).price_usd_per_hour == expected
    assert expected < lower_bound(problem).price_usd_per_hour


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=3, max_size=3))
def test_the_bound_of_a_mixture_is_that_of_a_batch_of_the_same_pods(counts: list[int]) -> None:
    kinds = [batches.pod("a", 900, 700), batches.pod("b", 300, 4000), batches.pod("c", 2500, 1000)]
    batch = [
        {**kind, "metadata": {**kind["metadata"], "name": f"{place}-{number}", "uid": f"{place}-{number}"}}
        for place, kind in enumerate(kinds)
        for number in range(counts[place])
    ]
    alone = Effort(improvement_rounds=0, column_rounds=0, whole_nodes=0, pattern_work=0)
    expected = lower_bound(small(batch), effort=alone).price_usd_per_hour
    assert mixture_bounds(small(kinds), [dict(enumerate(counts))], effort=alone) == [pytest.approx(expected)]
