"""The report of a sweep in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holokube.report import write_sweep_report
from tests.chromium import Chromium, Page
from tests.report.outline import NASTY, nasty
from tests.report.samples import run_result

pytestmark = pytest.mark.xdist_group("chromium")

READY = "document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "sweep.html"
    write_sweep_report([
        ({"nodes": str(nodes), "patience": patience}, run_result(policy, nodes=nodes, hours=6))
        for nodes in (10, 30, 20) for patience in ("1m", "10m") for policy in ("cluster-autoscaler", "karpenter")
    ], path)
    return path


@pytest.fixture
def page(chromium: Chromium, report: Path) -> Iterator[Page]:
    opened = chromium.open(report.as_uri())
    opened.until(READY)
    yield opened
    opened.close()


def test_it_opens_from_a_file_without_complaints_or_network(page: Page, report: Path) -> None:
    assert page.complaints == []
    assert page.requests == [report.as_uri()]
    assert page.evaluate("document.querySelectorAll('#cells .little').length") == 6
    assert page.evaluate("document.querySelectorAll('#cells .little:first-child .line').length") == 2
    assert page.evaluate("document.querySelectorAll('#trade-plot .point').length") == 12


def test_another_series_is_drawn_when_chosen_and_the_cursor_is_shared(page: Page) -> None:
    path = "document.querySelector('#cells .line').getAttribute('d')"
    before = page.evaluate(path)
    page.choose("#multiples-series", "cpu_allocated_share")
    assert page.evaluate(path) != before
    left, top, width, height = page.box("#cells .plot")
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    readings = page.evaluate("[...document.querySelectorAll('.reading-line')].map((one) => one.textContent)")
    assert len(readings) == 6 and all(one.count("%") == 2 for one in readings)
    assert page.text("#moment").replace("\u00a0", " ").startswith(("+2 h 59", "+3 h 00"))


def test_a_point_tells_its_settings_and_marks_its_row(page: Page) -> None:
    left, top, width, height = page.box("#trade-plot .point")
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.settle()
    assert "nodes=" in page.text("#trade-status") and "Pending, p99" in page.text("#trade-status")
    assert page.evaluate("document.querySelectorAll('tr.chosen').length") == 1
    page.choose("#trade-measure", "evictions")
    page.evaluate("document.querySelector('#trade-plot .point').focus()")
    assert "Evictions" in page.text("#trade-status")


def test_headings_sort_numbers_as_numbers_both_ways(page: Page) -> None:
    column = "[...document.querySelectorAll('table.runs tbody tr')].map((row) => Number(row.cells[1].dataset.value))"
    assert page.evaluate(column) == [10] * 4 + [30] * 4 + [20] * 4
    page.click("table.runs th:nth-child(2) button")
    assert page.evaluate(column) == [10] * 4 + [20] * 4 + [30] * 4
    page.click("table.runs th:nth-child(2) button")
    assert page.evaluate(column) == [30] * 4 + [20] * 4 + [10] * 4
    assert page.evaluate("document.querySelector('th:nth-child(2)').getAttribute('aria-sort')") == "descending"


def test_nothing_sticks_out_on_a_phone(chromium: Chromium, report: Path) -> None:
    page = chromium.open(report.as_uri(), width=360, height=740)
    page.until(READY)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.close()


def test_settings_that_look_like_markup_stay_text(chromium: Chromium, tmp_path: Path) -> None:
    run = nasty(run_result("karpenter", nodes=4, hours=1))
    write_sweep_report([({NASTY: NASTY}, run), ({NASTY: "b"}, run)], tmp_path / "nasty.html")
    page = chromium.open((tmp_path / "nasty.html").as_uri())
    page.until(READY)
    assert page.text("#cells h3") == f"{NASTY}={NASTY}"
    assert page.complaints == []
    page.close()
