"""A problem that was just solved is not solved again, and the answer is the one that a solve would give."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.karpenter.provisioning.repeats import LastAnswer, is_repeated
from holokube.karpenter.scheduling.problem import Problem, SolveOptions, Storage
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.solver import Solver
from holokube.karpenter.strategy import solve_on
from tests.karpenter.scheduling import random_problems
from tests.karpenter.scheduling.builders import pod, problem

OTHERS: dict[str, Any] = {
    "pools": (), "types_of_pool": {}, "pods": (), "daemon_pods": (pod("d"),), "state_nodes": (),
    "pdbs": ({"kind": "PodDisruptionBudget"},), "storage": Storage(), "namespaces": {"n": {}},
    "services": ({"kind": "Service"},), "owners": {"uid": {}}, "volume_limits": {"t": {}},
    "options": SolveOptions(preference_policy="Ignore"), "well_known": frozenset({"key"}),
}  # fmt: skip
"""Something else for each field that an answer follows from."""


def _told(results: Results) -> object:
    claims = [(one.pool.name, one.requests, one.pods, one.instance_types) for one in results.new_claims]
    return claims, results.existing, results.errors


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), later_s=st.floats(0, 10_000))
def test_the_answer_that_is_kept_is_that_of_another_solve_at_another_time(seed: int, later_s: float) -> None:
    async def both() -> None:
        solve, first = solve_on(VirtualClock()), random_problems.problem(Random(seed))
        answer = await solve(first)
        later = replace(first, now_s=first.now_s + later_s, pods=[*first.pods])
        assert await solve(later) is answer
        assert _told(Solver(later).solve()) == _told(answer)

    asyncio.run(both())


def test_each_field_of_a_problem_is_compared_or_does_not_matter() -> None:
    known = {field.name for field in fields(Problem)}
    assert known - OTHERS.keys() == {"now_s", "known_leaving", "standing"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_problem_with_anything_else_in_it_is_another(name: str) -> None:
    first = random_problems.problem(Random(1))
    assert is_repeated(first, replace(first))
    assert not is_repeated(first, replace(first, **{name: OTHERS[name]}))


def test_a_pod_that_was_written_is_another() -> None:
    first = problem([pod("a"), pod("b")])
    assert not is_repeated(first, replace(first, pods=[{**first.pods[0]}, first.pods[1]]))


def test_where_time_matters_nothing_is_repeated() -> None:
    first = problem([pod("a")])
    asks = replace(first, options=replace(first.options, enforce_consolidate_after=True))
    assert not is_repeated(asks, replace(asks))


def test_an_answer_that_was_cut_short_is_not_kept() -> None:
    first, last = problem([pod("a")]), LastAnswer()
    last.keep(first, Results([], {}, {}))
    assert last.find(first) is not None
    last.keep(first, Results([], {}, {}, timed_out=True))
    assert last.find(first) is None
