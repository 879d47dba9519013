"""Every recorded problem is answered as the real Karpenter answered it, by plans that keep the rules."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from holokube.base.clock import WallClock
from holokube.karpenter.plan.case import read_case
from holokube.karpenter.plan.disrupting import disrupt
from holokube.karpenter.plan.planner import plan_karpenter
from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.karpenter.settings import Settings
from holokube.pricing.catalog_files import read_catalog
from holokube.pricing.instance_types import Catalog
from tests.golden.karpenter.compare import differences
from tests.golden.karpenter.records import CATALOG, catalog_entries, names, problem, recorded
from tests.karpenter.checker_commands import check_command
from tests.karpenter.checker_inputs import check_answer


@cache
def _catalog() -> Catalog:
    return read_catalog(CATALOG)


def _answer(name: str) -> dict[str, Any]:
    given = read_case(problem(name), f"{name}.json", _catalog())
    return plan_karpenter(given, Settings(), WallClock(), is_bounded=False)


@pytest.mark.parametrize("name", names("solve"))
def test_a_provisioning_problem_is_solved_as_recorded(name: str) -> None:
    answer = _answer(name)
    assert check_answer(problem(name), answer, catalog_entries()) == []
    assert differences(recorded(name), answer) == []


@pytest.mark.parametrize("name", names("disrupt"))
def test_a_cluster_is_disrupted_as_recorded(name: str) -> None:
    assert differences(recorded(name), _answer(name)) == []


@pytest.mark.parametrize("name", names("disrupt"))
def test_every_disruption_command_keeps_the_rules(name: str) -> None:
    given = read_case(problem(name), f"{name}.json", _catalog())
    found = disrupt(given, SolveOptions(), spot_to_spot=bool(given.spot_to_spot))
    for command in found.commands:
        assert check_command(given.disruption_problem(SolveOptions()), found.view, command) == []
