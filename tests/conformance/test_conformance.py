"""The embedded server and a real kube-apiserver must both answer as recorded."""

from __future__ import annotations

from typing import Any

import pytest

from .cases import ALL_CASES
from .known_differences import KNOWN_DIFFERENCES
from .model import Case
from .render import PAGE, rendered
from .runner import differences
from .target import Outcome

every_case = pytest.mark.parametrize("case", ALL_CASES, ids=[case.id for case in ALL_CASES])


def complaints(case: Case, outcomes: dict[str, Outcome], recorded: dict[str, list[Any]]) -> list[str]:
    outcome = outcomes[case.id]
    return [*outcome.broken, *differences(recorded.get(case.id, []), outcome.answers)]


@every_case
def test_the_real_server_answers_as_recorded(
    case: Case, real_outcomes: dict[str, Outcome], recorded: dict[str, list[Any]]
) -> None:
    lines = complaints(case, real_outcomes, recorded)
    assert not lines, "\n".join(lines)


# One worker runs the table once; without the group each would run it anew.
@pytest.mark.xdist_group("embedded_conformance")
@every_case
def test_the_embedded_server_answers_as_recorded(
    case: Case, embedded_outcomes: dict[str, Outcome], recorded: dict[str, list[Any]]
) -> None:
    lines = complaints(case, embedded_outcomes, recorded)
    if case.id in KNOWN_DIFFERENCES:
        assert lines, f"{case.id} no longer differs: take it out of known_differences.py and render the page"
    else:
        assert not lines, "\n".join(lines)


def test_exactly_the_cases_of_the_table_are_recorded(recorded: dict[str, list[Any]]) -> None:
    assert set(recorded) == {case.id for case in ALL_CASES}


def test_the_table_is_large_enough_to_mean_something() -> None:
    assert len(ALL_CASES) >= 300


def test_known_differences_name_existing_cases_and_give_a_reason() -> None:
    assert set(KNOWN_DIFFERENCES) <= {case.id for case in ALL_CASES}
    assert all(reason.strip().endswith(".") for reason in KNOWN_DIFFERENCES.values())


def test_the_compatibility_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == rendered(page), "run python -m tests.conformance.render"
