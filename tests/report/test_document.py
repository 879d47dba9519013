from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from holokube import __version__
from holokube.lab.results import Outcome, RunResult, Series
from holokube.report import report_html, write_report
from tests.report.outline import NASTY, Outline, nasty
from tests.report.samples import SCENARIO_TEXT, run_result, three_policies


@pytest.fixture(scope="module")
def results() -> list[RunResult]:
    return three_policies(nodes=20)


def test_the_page_is_well_formed_and_each_id_is_there_once(results: list[RunResult]) -> None:
    ids = Outline(report_html(results)).ids()
    assert len(ids) == len(set(ids))
    assert {"summary", "time", "types", "workloads", "wall", "journal", "assertions", "reproduce"} <= set(ids)


def test_links_inside_the_page_lead_somewhere(results: list[RunResult]) -> None:
    outline = Outline(report_html(results))
    links = {str(attributes["href"]) for tag, attributes in outline.tags if tag == "a"}
    assert links and all(link.startswith("#") and link[1:] in outline.ids() for link in links)


def test_the_same_results_give_the_same_bytes(results: list[RunResult], tmp_path: Path) -> None:
    write_report(results, tmp_path / "one.html")
    write_report(three_policies(nodes=20), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_names_cannot_leave_their_place(results: list[RunResult]) -> None:
    plain, bad = Outline(report_html(results[:1])), Outline(report_html([nasty(results[0])]))
    assert sum(tag == "script" for tag, _ in bad.tags) == sum(tag == "script" for tag, _ in plain.tags)
    assert not any(tag == "img" for tag, _ in bad.tags)
    assert not any(name.startswith("on") for _, attributes in bad.tags for name in attributes)
    assert NASTY in "".join(bad.words)


def test_the_page_has_no_style_attributes_that_its_policy_would_refuse(results: list[RunResult]) -> None:
    assert not any("style" in attributes for _, attributes in Outline(report_html(results)).tags)


def test_whoever_reads_it_can_run_it_again(results: list[RunResult]) -> None:
    words = "".join(Outline(report_html(results)).words)
    assert SCENARIO_TEXT in words
    assert ("holokube run shop-day.yaml --policy cluster-autoscaler --policy karpenter --policy none --seed 7 "
            "--report report.html") in words
    assert f"holokube {__version__}" in words


def test_runs_with_different_seeds_have_commands_of_their_own(results: list[RunResult]) -> None:
    words = "".join(Outline(report_html([results[0], replace(results[0], seed=8)])).words)
    assert "--seed 7" in words and "--seed 8" in words


def test_missed_assertions_are_said_at_the_top(results: list[RunResult]) -> None:
    held = [replace(result, outcomes=(Outcome("cost_usd < 1e9", True, 1.0),)) for result in results]
    assert "all 3 assertions hold" in report_html(held)
    held[1] = replace(held[1], outcomes=(Outcome("cost_usd < 1e9", False, 1e10),))
    assert "1 of 3 assertions missed" in re.sub(r"\s+", " ", report_html(held))


def test_nothing_at_all_still_makes_a_page(results: list[RunResult]) -> None:
    assert "There are no runs to report on." in "".join(Outline(report_html([])).words)
    bare = replace(results[0], summary={}, nodes=(), pods=(), decisions=(), outcomes=(), cost_by_workload_usd={},
                   node_hours_by_type={}, api_calls={}, series=Series((), {}))
    words = "".join(Outline(report_html([bare])).words)
    for said in ("Nothing was measured.", "No node was there for any time.", "No costs are known by workload."):
        assert said in words


def test_a_day_of_a_cluster_stays_small_enough_to_send() -> None:
    day = run_result("cluster-autoscaler", nodes=300)
    bare = len(report_html([replace(day, nodes=(), pods=(), decisions=())]))
    whole = len(report_html([day]))
    assert bare < 160_000
    assert (whole - bare) / len(day.pods) < 40


def test_a_scenario_says_what_it_is_about(results: list[RunResult]) -> None:
    about = "kind: Scenario\nspec: {description: 'A day of <b>a shop</b>.'}\n"
    assert "A day of &lt;b&gt;a shop&lt;/b&gt;." in report_html([replace(results[0], scenario_text=about)])
