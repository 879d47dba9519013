from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from holokube.lab.results import Outcome, RunResult, Series
from holokube.report import small_multiples_html, write_sweep_report
from holokube.report.columns import unpack
from holokube.report.figures import NO_BREAK
from holokube.report.sweep import SAMPLES_MAX, Row, thinned
from tests.report.outline import NASTY, Outline, nasty
from tests.report.samples import run_result

RUN = run_result("karpenter", nodes=6, hours=2)


def rows() -> list[Row]:
    return [
        ({"nodes": str(nodes), "delay": delay, "zone": "a"}, replace(
            RUN, policy=policy,
            summary={**RUN.summary, "cost_usd": nodes * 10.0 + len(delay), "pending_p99_s": 100.0 / nodes}))
        for nodes in (2, 4) for delay in ("1m", "10m") for policy in ("ca", "karpenter")
    ]


def block(source: str) -> dict[str, object]:
    found = re.search(r'<script type="text/plain" id="sweep">(.*?)</script>', source)
    assert found is not None
    header, columns = unpack(found[1])
    return {**header, "columns": columns}


def words(source: str) -> str:
    return "".join(Outline(source).words).replace(NO_BREAK, " ")


def test_there_is_a_cell_for_each_setting_and_a_line_for_each_policy() -> None:
    data = block(small_multiples_html(rows()))
    assert data["names"] == ["nodes", "delay"]
    assert data["cells"] == [["2", "1m"], ["2", "10m"], ["4", "1m"], ["4", "10m"]]
    runs = data["runs"]
    assert isinstance(runs, list)
    assert [(run["cell"], run["policy"]) for run in runs] == [(run // 2, run % 2) for run in range(8)]


def test_the_headline_names_the_cheapest_the_dearest_and_the_quickest() -> None:
    said = words(small_multiples_html(rows()))
    assert ("Cheapest of 8 runs: ca, nodes=2, delay=1m, $22.00 with pending p99 50 s; 48.8 % less than the dearest, "
            "ca, nodes=4, delay=10m ($43.00). Shortest waits: ca, nodes=4, delay=1m, pending p99 25 s for $42.00."
            ) in said
    assert "zone=a" in said


def test_a_cheapest_run_that_leaves_pods_waiting_is_told_as_such() -> None:
    one, other = rows()[0], rows()[-1]
    left = (one[0], replace(one[1], summary={**one[1].summary, "pods_pending_end": 12.0}))
    assert "But the cheapest leaves 12 pods without a place." in words(small_multiples_html([left, other]))


def test_the_table_has_the_settings_and_numbers_to_sort_by() -> None:
    source = small_multiples_html(rows())
    body = source[source.index("<tbody>"):source.index("</tbody>")]
    first = re.findall(r'data-value="([^"]*)"', body.split("</tr>")[0])
    assert first[:5] == ["ca", "2", "1m", "1", "22.0"]
    assert body.count("<tr") == 8


def test_seeds_are_a_setting_where_nothing_else_tells_runs_apart() -> None:
    source = small_multiples_html([({}, RUN), ({}, replace(RUN, seed=8))])
    assert block(source)["cells"] == [["7"], ["8"]]
    assert block(small_multiples_html([({"a": "1"}, RUN), ({"a": "2"}, replace(RUN, seed=8))]))["names"] == ["a"]


def test_a_long_run_is_thinned_and_spikes_of_pending_pods_survive() -> None:
    times = tuple(float(second) for second in range(1441))
    pending = tuple(99.0 if second == 700 else 0.0 for second in range(1441))
    long = replace(RUN, series=Series(times, {"pods_pending": pending, "nodes": times}))
    kept, sampled = thinned(long)
    assert len(kept) <= SAMPLES_MAX and kept == sorted(kept)
    assert max(sampled["pods_pending"]) == 99
    assert sampled["nodes"][0] == pytest.approx(3.0)
    assert thinned(replace(RUN, series=Series((), {}))) == ([], {})


def test_the_sweep_can_be_run_again() -> None:
    assert ("holokube sweep shop-day.yaml --set nodes=2,4 --set delay=1m,10m --set zone=a "
            "--report sweep.html") in words(small_multiples_html(rows()))


def test_names_and_settings_cannot_leave_their_place() -> None:
    bad = Outline(small_multiples_html([({NASTY: NASTY}, nasty(RUN)), ({NASTY: "b"}, nasty(RUN))]))
    good = Outline(small_multiples_html([({"a": "a"}, RUN), ({"a": "b"}, RUN)]))
    assert sum(tag == "script" for tag, _ in bad.tags) == sum(tag == "script" for tag, _ in good.tags)
    assert not any(tag == "img" for tag, _ in bad.tags)
    assert not any(name.startswith("on") or name == "style" for _, attributes in bad.tags for name in attributes)
    ids = bad.ids()
    assert len(ids) == len(set(ids))


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    write_sweep_report(rows(), tmp_path / "one.html")
    write_sweep_report(rows(), tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_no_rows_and_rows_without_prices_make_pages_too() -> None:
    assert "There are no runs to report on." in words(small_multiples_html([]))
    unpriced: RunResult = replace(RUN, summary={})
    assert "No prices are known" in words(small_multiples_html([({"a": "1"}, unpriced), ({"a": "2"}, unpriced)]))


def test_missed_assertions_are_told_at_the_top_and_in_the_row_of_their_run() -> None:
    (first, one), (second, other) = rows()[:2]
    lost, kept = Outcome("pending_p90_s < 60", False, 70.0), Outcome("evictions < 9", True, 1.0)
    source = small_multiples_html([
        (first, replace(one, outcomes=(lost, kept))), (second, replace(other, outcomes=(kept,)))])
    assert "✗ 1 of 3 assertions missed" in words(source)
    told = re.findall(r'<td class="left (missed|holds)" data-value="(\d)">', source)
    assert told == [("missed", "1"), ("holds", "0")]
    assert "missedpending_p90_s < 60" in words(source)
    assert "Assertions" not in words(small_multiples_html([(first, replace(one, outcomes=()))]))


def test_a_single_run_is_not_the_cheapest_of_many() -> None:
    said = words(small_multiples_html(rows()[:1]))
    assert "1 run ·" in said and "Cheapest" not in said
