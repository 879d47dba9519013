from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.karpenter.api.budgets import (
    DRIFTED,
    EMPTY,
    REASONS,
    UNDERUTILIZED,
    UNLIMITED,
    Budget,
    allowed_disruptions,
)

NOON_S = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("nodes", "of", "allowed"),
    [
        ("10%", 10, 1), ("10%", 11, 2), ("10%", 1, 1), ("10%", 0, 0), ("0%", 50, 0), ("100%", 7, 7),
        ("5", 3, 5), ("0", 9, 0),
    ],
)  # fmt: skip
def test_percent_rounds_up_and_a_number_stands_as_it_is(nodes: str, of: int, allowed: int) -> None:
    assert Budget(nodes).allowed(NOON_S, of) == allowed


@given(percent=st.integers(0, 100), nodes=st.integers(0, 10_000))
def test_a_share_is_at_least_the_share_and_less_than_one_more(percent: int, nodes: int) -> None:
    allowed = Budget(f"{percent}%").allowed(NOON_S, nodes)
    assert percent * nodes <= allowed * 100 < percent * nodes + 100


def test_the_strictest_of_the_active_budgets_counts() -> None:
    budgets = [Budget("50%"), Budget("3"), Budget("1", schedule="0 9 * * *", duration="4h")]
    assert allowed_disruptions(budgets, NOON_S, 10, EMPTY) == 1
    assert allowed_disruptions(budgets, NOON_S + 3600, 10, EMPTY) == 3, "the window ended at 13:00"
    assert allowed_disruptions(budgets, NOON_S + 3600, 4, EMPTY) == 2


def test_a_budget_counts_for_its_reasons_only() -> None:
    budgets = [Budget("2"), Budget("0", frozenset({DRIFTED, UNDERUTILIZED}))]
    assert {reason: allowed_disruptions(budgets, NOON_S, 10, reason) for reason in REASONS} == {
        "Underutilized": 0, "Empty": 2, "Drifted": 0, "Unhealthy": 2,
    }  # fmt: skip


def test_without_an_active_budget_there_is_no_limit() -> None:
    assert allowed_disruptions([], NOON_S, 10, EMPTY) == UNLIMITED
    assert allowed_disruptions([Budget("0", schedule="@yearly", duration="1h")], NOON_S, 10, EMPTY) == UNLIMITED
    assert allowed_disruptions([Budget("0", frozenset({DRIFTED}))], NOON_S, 10, EMPTY) == UNLIMITED


@pytest.mark.parametrize(
    "wrong",
    [
        Budget("0", schedule="@sometimes", duration="1h"), Budget("many"), Budget("-1"), Budget("1", duration="1h"),
        Budget("1", schedule="@daily", duration="long"),
        # Its reasons do not matter: upstream looks at every budget first.
        Budget("many", frozenset({DRIFTED})),
    ],
)  # fmt: skip
def test_a_budget_that_cannot_be_understood_allows_nothing(wrong: Budget) -> None:
    assert allowed_disruptions([Budget("100%"), wrong], NOON_S, 10, EMPTY) == 0


def test_a_schedule_without_duration_is_never_active() -> None:
    assert Budget("0", schedule="0 12 * * *").allowed(NOON_S, 10) == UNLIMITED


def test_fields_are_read_from_json() -> None:
    given = {"nodes": "5", "reasons": ["Empty"], "schedule": "@daily", "duration": "1h0m0s"}
    assert Budget.from_json(given) == Budget("5", frozenset({"Empty"}), "@daily", "1h0m0s")
    assert Budget.from_json({}) == Budget("10%")
    assert Budget.from_json({"reasons": []}).applies_to(EMPTY)
