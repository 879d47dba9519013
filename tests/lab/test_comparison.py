"""Runs side by side."""

from __future__ import annotations

import pytest

from holokube.lab.comparison import as_document, compare, csv_rows, format_value
from holokube.lab.results import MEASURE_BY_NAME, MEASURES, RunResult, Series


def run(policy: str, **summary: float | None) -> RunResult:
    return RunResult(
        scenario="s", policy=policy, seed=1, start="2026-01-05T00:00:00Z", duration_s=3600.0, summary=summary,
        cost_by_workload_usd={}, node_hours_by_type={}, api_calls={}, series=Series((), {}), nodes=(), pods=(),
        decisions=(), outcomes=(), scenario_text="",
    )  # fmt: skip


def test_the_best_of_a_row_is_marked_by_what_is_better() -> None:
    rows = compare([
        run("a", cost_usd=10.0, cpu_used_share=0.4), run("b", cost_usd=8.0, cpu_used_share=0.5),
        run("c", cost_usd=8.0, cpu_used_share=0.1),
    ])  # fmt: skip
    assert [[cell.is_best for cell in row.cells] for row in rows] == [[False, True, True], [False, True, False]]


def test_differences_are_shares_of_the_first() -> None:
    (row,) = compare([run("a", cost_usd=10.0), run("b", cost_usd=8.0)])
    assert [cell.change for cell in row.cells] == [None, pytest.approx(-0.2)]


def test_what_all_have_in_common_is_nobodys_best() -> None:
    (row,) = compare([run("a", evictions=3.0), run("b", evictions=3.0)])
    assert not any(cell.is_best for cell in row.cells)
    assert not row.differs


def test_measures_without_a_better_have_no_best() -> None:
    (row,) = compare([run("a", lower_bound_usd=3.0), run("b", lower_bound_usd=4.0)])
    assert not any(cell.is_best for cell in row.cells)


def test_a_difference_from_nothing_is_no_share() -> None:
    (row,) = compare([run("a", evictions=0.0), run("b", evictions=4.0)])
    assert row.cells[1].change is None
    (row,) = compare([run("a", cost_usd=None), run("b", cost_usd=4.0)])
    assert row.cells[1].change is None
    assert not row.cells[1].is_best


def test_measures_that_no_run_has_get_no_row() -> None:
    assert compare([run("a", cost_usd=None)]) == []


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cost_usd", 1234.5, "$1,234.50"),
        ("cost_usd_per_hour", 0.4, "$0.400/h"),
        ("pending_p50_s", 0.0, "0 s"),
        ("pending_p50_s", 12.34, "12.3 s"),
        ("pending_p50_s", 125.0, "2 min 05 s"),
        ("pending_p50_s", 7260.0, "2 h 01 min"),
        ("cpu_used_share", 0.4567, "45.7 %"),
        ("node_hours", 1234.56, "1,234.6 h"),
        ("evictions", 1234.0, "1,234"),
        ("nodes_mean", 16.84, "16.8"),
        ("cost_usd", None, "-"),
    ],
)
def test_values_read_as_people_write_them(name: str, value: float | None, text: str) -> None:
    assert format_value(MEASURE_BY_NAME[name], value) == text


def test_csv_has_a_line_for_each_run_and_a_column_for_each_measure() -> None:
    header, first, second = csv_rows([run("a", cost_usd=0.1), run("b", evictions=3.0)])
    assert header[:4] == ["scenario", "policy", "seed", "duration_s"]
    assert header[4:] == [measure.name for measure in MEASURES]
    assert first[header.index("cost_usd")] == "0.1"
    assert first[header.index("evictions")] == ""
    assert second[header.index("evictions")] == "3"


def test_one_result_is_itself_and_several_are_a_list() -> None:
    one, two = run("a"), run("b")
    assert as_document([one])["kind"] == "RunResult"
    many = as_document([one, two])
    assert many["kind"] == "RunResultList"
    assert [item["policy"] for item in many["items"]] == ["a", "b"]
