from __future__ import annotations

import re
from dataclasses import replace

from holokube.lab.results import MEASURE_BY_NAME, Outcome, RunResult
from holokube.report.figures import NO_BREAK
from holokube.report.tables import best_of, cards, missed, outcomes_table, summary_table
from tests.report.samples import run_result

RUN = run_result("none", nodes=2, hours=0.25)


def run(policy: str, **summary: float | None) -> RunResult:
    return replace(RUN, policy=policy, summary=summary, api_calls={})


def rows(table: str) -> dict[str, list[str]]:
    found = {}
    for row in re.findall(r"<tr role=\"row\"[^>]*><th scope=\"row\".*?</tr>", table):
        name, *cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        found[words(name)] = [words(cell.replace('<span class="change', ' <span class="change')) for cell in cells]
    return found


def words(markup: str, between: str = "") -> str:
    return re.sub("<[^>]*>", between, markup).replace(NO_BREAK, " ").strip()


def test_the_best_is_marked_by_a_sign_and_changes_are_against_the_first() -> None:
    table = rows(summary_table([run("a", cost_usd=100, evictions=3), run("b", cost_usd=80, evictions=6)], ["a", "b"]))
    assert table["Cost"] == ["$100.00", "★best: $80.00 \u221220.0 %"]
    assert table["Evictions"] == ["★best: 3", "6 +100.0 %"]


def test_a_measure_that_nobody_has_is_left_out_and_one_that_some_lack_is_a_dash() -> None:
    table = rows(summary_table([run("a", cost_usd=100), run("b", evictions=1)], ["a", "b"]))
    assert table == {"Cost": ["$100.00", "\u2013"], "Evictions": ["\u2013", "1"]}


def test_api_calls_are_listed_by_verb() -> None:
    one = replace(run("a", cost_usd=1), api_calls={"patch": 10, "create": 5})
    table = rows(summary_table([one, replace(one, api_calls={"patch": 20})], ["a", "b"]))
    assert list(table)[1:] == ["API calls, create", "API calls, patch"]
    assert table["API calls, patch"] == ["10", "20 +100.0 %"]


def test_nothing_is_best_where_all_look_alike_or_nothing_is_better() -> None:
    cost, made = MEASURE_BY_NAME["cost_usd"], MEASURE_BY_NAME["pods_created"]
    assert best_of(cost, [run("a", cost_usd=1.001), run("b", cost_usd=1.002)]) == set()
    assert best_of(cost, [run("a", cost_usd=1), run("b", cost_usd=1), run("c", cost_usd=2)]) == {0, 1}
    assert best_of(made, [run("a", pods_created=1), run("b", pods_created=2)]) == set()
    assert best_of(cost, [run("a", cost_usd=1), run("b")]) == set()
    used = MEASURE_BY_NAME["cpu_used_share"]
    assert best_of(used, [run("a", cpu_used_share=0.1), run("b", cpu_used_share=0.2)]) == {1}


def test_a_table_without_measures_says_so() -> None:
    assert "Nothing was measured." in summary_table([run("a")], ["a"])


def test_assertions_are_told_by_word_and_sign_with_what_was_measured() -> None:
    first = replace(RUN, outcomes=(Outcome("pending_p99_s < 60", False, 90.0), Outcome("cost_usd < 9", True, 5.0)))
    second = replace(RUN, outcomes=(Outcome("pending_p99_s < 60", True, 10.0),))
    table = rows(outcomes_table([first, second], ["a", "b"]))
    assert table == {
        "pending_p99_s &lt; 60": ["✗ missed 1 min 30 s", "✓ holds 10 s"],
        "cost_usd &lt; 9": ["✓ holds $5.00", "\u2013"],
    }
    assert missed([first, second]) == (1, 3)


def test_a_scenario_without_assertions_is_told_how_to_add_them() -> None:
    assert "assertions" in outcomes_table([replace(RUN, outcomes=())], ["a"])


def test_cards_name_the_baseline_and_the_cheapest() -> None:
    shown = words(cards([run("a", cost_usd=100), run("b", cost_usd=80)], ["a", "b"]), between=" ")
    assert re.search(r"a\s+\$100\.00\s+baseline", shown)
    assert re.search(r"b\s+★\s+best:\s+\$80\.00\s+\u221220\.0 %", shown)


def test_more_runs_than_fit_beside_each_other_are_scrolled() -> None:
    for number, scrolled in ((4, False), (6, True)):
        table = summary_table([RUN] * number, [f"run-{place}" for place in range(number)])
        assert table.startswith('<div class="scroller">') is scrolled
