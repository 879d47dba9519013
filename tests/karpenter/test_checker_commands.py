"""The checker finds what is wrong with disruption commands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holokube.karpenter.disruption.types import Command, DisruptionClass
from holokube.karpenter.plan.case import read_case
from holokube.karpenter.plan.disrupting import Disruption, disrupt
from holokube.karpenter.plan.given import Given
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.karpenter.scheduling.results import Results
from holokube.pricing.catalog_files import catalog_from_json
from tests.karpenter.checker_commands import check_command
from tests.karpenter.plan.clusters import CATALOG, node, node_pool, pod

OPTIONS = SolveOptions()


def _given(pods_by_node: dict[str, list[dict[str, Any]]], **pool: Any) -> Given:
    existing = []
    for name, pods in pods_by_node.items():
        made, claim = node(name)
        claim["status"]["conditions"].append({"type": "Consolidatable", "status": "True"})
        existing.append({"node": made, "nodeClaim": claim, "pods": pods})
    case = {"nodePools": [node_pool(**pool)], "existingNodes": existing, "options": {"now": "2026-01-02T00:00:00Z"}}
    return read_case(case, "case", catalog_from_json(CATALOG))


def _found(given: Given) -> tuple[Problem, Disruption]:
    return given.disruption_problem(OPTIONS), disrupt(given, OPTIONS, spot_to_spot=False)


@pytest.fixture(name="replacing")
def _replacing() -> tuple[Problem, Disruption, Command]:
    problem, found = _found(_given({"a": [pod("x", "a", cpu="3")]}))
    (command,) = found.commands
    assert command.decision == "replace"
    return problem, found, command


@pytest.fixture(name="deleting")
def _deleting() -> tuple[Problem, Disruption, Command]:
    problem, found = _found(_given({"a": [pod("x", "a", cpu="3")], "b": [pod("y", "b", cpu="4")]}))
    command = next(one for one in found.commands if one.method == "single")
    assert command.decision == "delete"
    return problem, found, command


def test_good_commands_have_no_violations(
    replacing: tuple[Problem, Disruption, Command], deleting: tuple[Problem, Disruption, Command]
) -> None:
    for problem, found, command in (replacing, deleting):
        assert check_command(problem, found.view, command) == []


def test_empty_nodes_need_nobody_to_look_where_their_pods_go() -> None:
    problem, found = _found(_given({"a": []}))
    assert [check_command(problem, found.view, command) for command in found.commands] == [[]]


def _rules(problem: Problem, found: Disruption, command: Command) -> set[str]:
    return {violation.rule for violation in check_command(problem, found.view, command)}


def test_a_pod_that_is_forgotten_is_found(deleting: tuple[Problem, Disruption, Command]) -> None:
    problem, found, command = deleting
    assert _rules(problem, found, replace(command, results=Results([], {}, {}))) == {"pods"}
    assert _rules(problem, found, replace(command, results=None)) == {"pods"}


def test_a_place_without_room_is_found(deleting: tuple[Problem, Disruption, Command]) -> None:
    problem, found, command = deleting
    (other,) = {"a", "b"} - set(command.names)
    full = [
        replace(one, pods=(*one.pods, pod("more", other, cpu="4"))) if one.name == other else one
        for one in problem.state_nodes
    ]
    assert _rules(replace(problem, state_nodes=full), found, command) == {"resources"}


def test_a_replacement_that_costs_as_much_is_found(replacing: tuple[Problem, Disruption, Command]) -> None:
    problem, found, command = replacing
    claim = command.replacements[0]
    large = [one for one in problem.types_of_pool["default"] if one.name == "large"]
    dear = replace(claim, candidate_types=large, requirements=claim.requirements)
    cheap = replace(command.candidates[0], price=0.01)
    assert _rules(problem, found, replace(command, candidates=(cheap,), replacements=(dear,))) == {"price"}


def test_more_nodes_than_a_budget_allows_are_found() -> None:
    given = _given({"a": [], "b": []}, disruption={"budgets": [{"nodes": "1"}]})
    problem, found = _found(given)
    (command,) = found.commands
    assert len(command.candidates) == 1
    assert check_command(problem, found.view, command) == []
    everything = found.view.scan(DisruptionClass.GRACEFUL).candidates
    assert _rules(problem, found, replace(command, candidates=everything)) == {"budgets"}
