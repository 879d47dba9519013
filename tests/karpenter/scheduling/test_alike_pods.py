"""Pods that are placed together because they are alike end up where they would one by one."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.solve_run import SolveRun
from holokube.karpenter.scheduling.solver import Solver
from holokube.kube.types import JsonObject
from tests.karpenter.scheduling.builders import (
    TYPE,
    ZONE,
    ZONES,
    need,
    pod,
    pods,
    pool,
    preferred_nodes,
    problem,
    state_node,
)


def some_pods(rng: Random, prefix: str, most: int) -> list[JsonObject]:
    """A few kinds of pods, of which some ask for labels that not every node has, or that none knows of."""
    found = []
    for number in range(rng.randint(0, most)):
        extra: dict[str, Any] = {}
        draw = rng.random()
        if draw < 0.15:
            extra["nodeSelector"] = {"topology.kubernetes.io/zone": rng.choice(("zone-a", "zone-b"))}
        elif draw < 0.25:
            affinity = {"matchExpressions": [{"key": "example.com/team", "operator": "DoesNotExist"}]}
            required = {"nodeSelectorTerms": [affinity]}
            extra["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        elif draw < 0.3:
            extra["nodeSelector"] = {"topology.kubernetes.io/zone": "nowhere"}
        found.append(pod(f"{prefix}{number}", rng.choice(("500m", "500m", "1", "20")), **extra))
    return found


def some_problem(rng: Random) -> Problem:
    nodes = [
        state_node(f"n{number}", cpu=rng.choice(("1", "3", "5")), zone=rng.choice(("zone-a", "zone-b")),
                   bound=pods(rng.randint(0, 3), f"n{number}-", cpu=rng.choice(("250m", "500m"))))
        for number in range(rng.randint(1, 6))
    ]  # fmt: skip
    return problem(some_pods(rng, "p", 30), state_nodes=nodes)


def told(results: Results) -> tuple[Any, ...]:
    return (
        {name: [one["metadata"]["name"] for one in found] for name, found in results.existing.items()},
        [
            ([one["metadata"]["name"] for one in claim.pods], str(claim.requirements), claim.requests,
             [one.name for one in claim.candidate_types])
            for claim in results.new_claims
        ],
        {key: error.reason for key, error in results.failed.items()},
        results.timed_out,
    )


def answers(given: Problem, seed: int) -> list[tuple[Any, ...]]:
    rng = Random(seed)
    late_after = rng.randint(0, 20)
    calls = iter([*[False] * late_after, *[True] * 100])
    gone = [node.name for node in given.state_nodes if rng.random() < 0.4]
    moving = [one for node in given.state_nodes if node.name in gone for one in node.pods]
    return [
        told(Solver(given).solve()),
        told(Solver(given).solve(is_late=lambda: next(calls))),
        told(Simulation(given).simulate(gone, moving)),
    ]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_alike_pods_are_placed_as_one_by_one(seed: int) -> None:
    given_problem = some_problem(Random(seed))
    found = answers(given_problem, seed)
    with patch.object(SolveRun, "_place_alike", lambda *_args: None):
        assert answers(given_problem, seed) == found


def some_crowd(rng: Random) -> Problem:
    """Many pods of a few kinds for which there are next to no nodes: dozens of claims, of which many have room."""
    sizes = [f"{rng.choice((500, 1000, 1500, 2000, 3000, 7000))}m" for _ in range(rng.randint(1, 4))]
    crowd = []
    for number in range(rng.randint(1, 250)):
        extra: dict[str, Any] = {}
        draw = rng.random()
        if draw < 0.1:
            extra["nodeSelector"] = {ZONE: rng.choice(ZONES)}
        elif draw < 0.12:
            extra["ports"] = [80]
        elif draw < 0.14:
            extra["affinity"] = preferred_nodes((1, need(ZONE, "In", "nowhere")))
        crowd.append(pod(f"p{number}", rng.choice(sizes), rng.choice(("100Mi", "4Gi")), **extra))
    limits = {"cpu": str(rng.randint(10, 100))} if rng.random() < 0.3 else None
    minimum = need(TYPE, "Exists", min_values=2)
    pools = [
        pool("first", weight=1, limits=limits, requirements=[minimum] if rng.random() < 0.2 else ()),
        pool("second", taints=[{"key": "k", "effect": "NoSchedule"}] if rng.random() < 0.3 else ()),
    ]
    nodes = [state_node("n", cpu="3")] if rng.random() < 0.5 else []
    return problem(crowd, pools=pools, state_nodes=nodes)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_alike_pods_join_claims_as_one_by_one(seed: int) -> None:
    given_problem = some_crowd(Random(seed))
    found = answers(given_problem, seed)
    with patch.object(SolveRun, "_place_alike", lambda *_args: None):
        assert answers(given_problem, seed) == found


def test_pods_that_join_a_claim_are_not_looked_at_one_by_one() -> None:
    # Of the largest type each takes 16; the last claim has room for some of the second kind.
    given_problem = problem([*pods(40, cpu="500m"), *pods(4, "q", cpu="250m")])
    tries: list[object] = []
    one_by_one = SolveRun._try
    with patch.object(SolveRun, "_try", lambda run, queued: tries.append(queued) or one_by_one(run, queued)):
        results = Solver(given_problem).solve()
    assert [len(claim.pods) for claim in results.new_claims] == [12, 16, 16]
    assert len(tries) == len(results.new_claims) + 1


def test_pods_that_are_alike_are_not_looked_at_one_by_one() -> None:
    given_problem = problem(pods(12, cpu="500m"), state_nodes=[state_node("a", cpu="4"), state_node("b", cpu="4")])
    tries: list[object] = []
    one_by_one = SolveRun._try
    with patch.object(SolveRun, "_try", lambda run, queued: tries.append(queued) or one_by_one(run, queued)):
        results = Solver(given_problem).solve()
    assert sum(map(len, results.existing.values())) == 12
    assert len(tries) == len(results.existing) == 2
