"""The report as people use it: in a real browser, from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holokube.lab.results import Decision, RunResult
from holokube.report import write_report
from tests.chromium import Chromium, Page
from tests.report.outline import NASTY, nasty
from tests.report.samples import three_policies

pytestmark = pytest.mark.xdist_group("chromium")

READY = "document.documentElement.dataset.ready === 'yes'"
PLOT = "#charts .chart:nth-child(1) .plot"
PLACES = f"[...document.querySelectorAll('{PLOT} .grid .tick')].map((one) => one.getAttribute('x1'))"
TICKS = f"[...document.querySelectorAll('{PLOT} .grid text')].map((one) => one.textContent)"


@pytest.fixture(scope="module")
def results() -> list[RunResult]:
    return three_policies(nodes=40)


@pytest.fixture(scope="module")
def report(results: list[RunResult], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(results, path)
    return path


@pytest.fixture
def page(chromium: Chromium, report: Path) -> Iterator[Page]:
    opened = open_ready(chromium, report)
    yield opened
    opened.close()


def open_ready(chromium: Chromium, path: Path, *, width: int = 1280, height: int = 900, **media: str) -> Page:
    opened = chromium.open(path.as_uri(), width=width, height=height, **media)
    opened.until(READY)
    return opened


def plot_point(page: Page, share: float, selector: str = PLOT) -> tuple[float, float]:
    left, top, width, height = page.box(selector)
    return left + 46 + (width - 56) * share, top + height / 2


def find_tile(page: Page) -> tuple[float, float]:
    """Move the mouse over the wall, as a reader would, until it tells of a node."""
    left, top, width, height = page.box("#wall-canvas")
    for step in range(400):
        x, y = left + 6 + (step % 20) * (width - 12) / 20, top + 24 + (step // 20) * (height - 24) / 20
        page.mouse("mouseMoved", x, y)
        if page.evaluate("document.querySelector('#wall-panel button') !== null"):
            return x, y
    raise AssertionError("there is no tile on the wall")


def nodes_at(result: RunResult, at_s: float) -> int:
    return sum(node.created_s <= at_s and (node.removed_s is None or node.removed_s > at_s) for node in result.nodes)


def status(page: Page) -> str:
    return page.text("#wall-status").replace("\u00a0", " ")


def test_it_opens_from_a_file_without_complaints_or_network(page: Page, report: Path) -> None:
    assert page.complaints == []
    assert [address for address in page.requests if not address.startswith("data:")] == [report.as_uri()]
    assert page.evaluate("document.querySelectorAll('#charts .chart').length") == 8
    assert page.evaluate("document.querySelectorAll('#charts .chart:first-child .line').length") == 3


def test_its_policy_refuses_the_network_and_foreign_scripts(page: Page) -> None:
    refused = page.evaluate("""new Promise((done) => {
        const seen = [];
        addEventListener('securitypolicyviolation', (event) => {
            seen.push(event.effectiveDirective);
            if (seen.length === 2) done(seen.sort());
        });
        fetch('http://127.0.0.1:9/').catch(() => {});
        const script = document.createElement('script');
        script.textContent = 'window.foreign = true';
        document.body.append(script);
    })""")
    assert refused == ["connect-src", "script-src-elem"]
    assert page.evaluate("window.foreign") is None


def test_names_that_look_like_markup_stay_text(chromium: Chromium, results: list[RunResult], tmp_path: Path) -> None:
    write_report([nasty(results[0]), nasty(results[1])], tmp_path / "nasty.html")
    page = open_ready(chromium, tmp_path / "nasty.html")
    find_tile(page)
    assert page.text("#wall-panel h3") == NASTY
    page.click("#journal-rows .entry")
    assert page.text("#journal-panel h3") == NASTY
    assert page.complaints == []
    page.close()


def test_dragging_across_a_chart_zooms_all_and_a_double_click_shows_the_whole_run(page: Page) -> None:
    whole = page.evaluate(TICKS)
    lines = "[...document.querySelectorAll('#charts .line.p0')].map((one) => one.getAttribute('d'))"
    before = page.evaluate(lines)
    page.drag(plot_point(page, 0.5), plot_point(page, 0.75))
    zoomed = page.evaluate(TICKS)
    assert "13:00" in zoomed and "13:00" not in whole and "06:00" not in zoomed
    assert all(one != other for one, other in zip(before, page.evaluate(lines), strict=True))
    assert page.text("#moment").startswith("Mon 1")
    page.click_at(*plot_point(page, 0.5), clicks=2)
    assert page.evaluate(TICKS) == whole
    assert page.evaluate("document.querySelector('#zoom-reset').disabled") is True


def test_the_cursor_is_shared_by_all_charts(page: Page, results: list[RunResult]) -> None:
    page.mouse("mouseMoved", *plot_point(page, 0.5))
    page.settle()
    readings = page.evaluate(
        "[...document.querySelectorAll('#charts .chart')].map((one) => "
        "[...one.querySelectorAll('.reading:not([hidden])')].map((reading) => reading.textContent))")
    assert [len(one) for one in readings] == [3] * 8
    place = next(k for k, at_s in enumerate(results[0].series.times_s) if at_s > 43_000) - 1
    near = {results[0].series.columns["nodes"][place + step] for step in (0, 1)}
    assert float(readings[0][0]) in near
    assert page.text("#moment").startswith(("Mon 11:5", "Mon 12:0"))


def test_charts_can_be_used_with_the_keyboard_alone(page: Page) -> None:
    page.evaluate(f"document.querySelector('{PLOT}').focus()")
    whole = page.evaluate(TICKS)
    page.press("ArrowRight")
    spoken = page.text("#live")
    assert spoken.startswith("Mon 12:") and "Nodes: cluster-autoscaler" in spoken
    page.press("+")
    zoomed = page.evaluate(TICKS)
    assert zoomed != whole
    before = page.evaluate(PLACES)
    page.press("ArrowRight", shift=True)
    assert page.evaluate(PLACES) != before
    page.press("Enter")
    assert status(page).startswith("Mon 1")
    page.press("0")
    assert page.evaluate(TICKS) == whole


def test_a_finger_zooms_too(chromium: Chromium, report: Path) -> None:
    page = open_ready(chromium, report, width=360, height=740)
    page.resize(360, 740, touch=True)
    page.settle()
    whole = page.evaluate(TICKS)
    (from_x, y), (to_x, _) = plot_point(page, 0.3), plot_point(page, 0.6)
    page.call("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": from_x, "y": y}]})
    for step in range(1, 9):
        x = from_x + (to_x - from_x) * step / 8
        page.call("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y}]})
    page.call("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.settle()
    assert page.evaluate(TICKS) != whole
    page.click("#zoom-reset")
    assert page.evaluate(TICKS) == whole
    page.close()


def test_a_run_can_be_hidden_and_brought_back(page: Page) -> None:
    lines = f"document.querySelectorAll('{PLOT} .line').length"
    page.click("#time .key[data-run='2']")
    assert page.evaluate(lines) == 2
    assert page.evaluate("document.querySelector('#time .key[data-run=\"2\"]').getAttribute('aria-pressed')") == "false"
    page.click("#time .key[data-run='2']")
    assert page.evaluate(lines) == 3


def test_the_wall_shows_as_many_nodes_as_there_were_at_that_time(page: Page, results: list[RunResult]) -> None:
    for run, at_s in ((0, 25_200.0), (0, 72_000.0), (1, 72_000.0), (2, 3_600.0)):
        page.choose("#wall-run", str(run))
        page.choose("#wall-time", str(at_s))
        nodes = nodes_at(results[run], at_s)
        page.until(f"document.querySelector('#wall-status').textContent.includes('{nodes} node')")


def test_the_wall_counts_pods_that_run_and_pods_that_wait(page: Page, results: list[RunResult]) -> None:
    at_s = next(
        minute * 60.0 for pod in results[0].pods for minute in range(1, 1440)
        if pod.bound_s is not None and pod.created_s < minute * 60 < pod.bound_s)
    here = [pod for pod in results[0].pods if pod.created_s <= at_s and (pod.ended_s is None or pod.ended_s > at_s)]
    running = sum(pod.bound_s is not None and pod.bound_s <= at_s for pod in here)
    page.choose("#wall-time", str(at_s))
    assert status(page).endswith(f"{running} pods running · {len(here) - running} pending")
    assert len(here) > running


def test_scrubbing_draws_another_picture_and_the_charts_show_where(page: Page) -> None:
    pixels = "document.querySelector('#wall-canvas').toDataURL()"
    page.choose("#wall-time", "20000")
    before = page.evaluate(pixels)
    mark = f"document.querySelector('{PLOT} .wall-mark').getAttribute('x1')"
    marked = page.evaluate(mark)
    page.choose("#wall-time", "70000")
    assert page.evaluate(pixels) != before
    page.settle()
    assert float(page.evaluate(mark)) > float(marked)


def test_a_click_on_a_chart_takes_the_wall_there(page: Page) -> None:
    page.click_at(*plot_point(page, 0.25))
    assert page.text("#wall-clock") in {"Mon 05:59", "Mon 06:00", "Mon 06:01"}


def test_a_tile_tells_about_its_node_and_leads_to_its_decisions(page: Page, results: list[RunResult]) -> None:
    page.choose("#wall-group", "node_zone")
    page.click_at(*find_tile(page))
    name = page.text("#wall-panel h3")
    node = next(one for one in results[0].nodes if one.name == name)
    told = page.text("#wall-panel")
    assert node.instance_type in told and node.zone in told and f"${node.price_usd_per_hour:.2f}/h" in told
    assert " pod" in told or "No pods" in told
    page.evaluate("[...document.querySelectorAll('#wall-panel button')].at(-1).click()")
    page.until(f"document.querySelector('#journal-search').value === {json.dumps(name)}")
    about = sum(name in " ".join((one.subject, *one.reasons, str(one.facts))) for one in results[0].decisions)
    page.until(f"document.querySelector('#journal-status').textContent.startsWith('{about} of')")


def test_the_wall_can_be_used_with_the_keyboard_alone(page: Page, results: list[RunResult]) -> None:
    page.evaluate("document.querySelector('#wall-canvas').focus()")
    names = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight"):
        page.press(key)
        names.add(page.text("#wall-panel h3"))
    assert len(names) == 4 and names <= {node.name for node in results[0].nodes}
    assert page.text("#live").startswith(page.text("#wall-panel h3"))
    page.press("Escape")
    assert page.text("#wall-panel h3") == "Mon 12:00"


def test_playing_moves_time_and_stops_when_told(page: Page) -> None:
    page.choose("#wall-time", "0")
    page.click("#wall-play")
    page.until("Number(document.querySelector('#wall-time').value) > 600")
    assert page.evaluate("document.querySelector('#wall-play').getAttribute('aria-pressed')") == "true"
    page.click("#wall-play")
    stopped = page.evaluate("document.querySelector('#wall-time').value")
    page.settle()
    assert page.evaluate("document.querySelector('#wall-time').value") == stopped


def test_whoever_wants_less_motion_sees_time_move_in_large_steps(chromium: Chromium, report: Path) -> None:
    page = open_ready(chromium, report, prefers_reduced_motion="reduce")
    page.choose("#wall-time", "0")
    page.click("#wall-play")
    page.until("Number(document.querySelector('#wall-time').value) > 0")
    assert float(page.evaluate("document.querySelector('#wall-time').value")) >= 3_500
    page.close()


def test_a_workload_can_be_singled_out(page: Page) -> None:
    pixels = "document.querySelector('#wall-canvas').toDataURL()"
    before = page.evaluate(pixels)
    page.click("#wall-legend button:nth-child(2)")
    single = page.evaluate(pixels)
    assert single != before
    page.click("#wall-legend button:nth-child(2)")
    assert page.evaluate(pixels) == before
    page.click("#wall-patterns")
    assert page.evaluate(pixels) != before


def test_the_journal_is_searched_by_words_component_kind_and_time(page: Page, results: list[RunResult]) -> None:
    entries = results[0].decisions
    stays = [one for one in entries if "utilization" in one.decision]
    page.write("#journal-search", "UTILIZATION stays")
    assert page.text("#journal-status").startswith(f"{len(stays)} of {len(entries)} ")
    page.choose("#journal-kind", "fault")
    assert page.text("#journal-status").startswith("0 of")
    assert page.evaluate("document.querySelector('#journal-list').classList.contains('nothing')")
    page.click("#journal-clear")
    assert page.text("#journal-status") == f"{len(entries)} decisions."
    page.choose("#journal-component", "scenario")
    assert page.text("#journal-status").startswith(f"{sum(one.component == 'scenario' for one in entries)} of")
    page.click("#journal-clear")
    page.choose("#journal-from", "2026-01-05T06:00")
    page.choose("#journal-to", "2026-01-05T12:00")
    within = [one for one in entries if 6 * 3600 <= one.at_s <= 12 * 3600]
    assert page.text("#journal-status").startswith(f"{len(within)} of")


def test_the_journal_can_be_asked_a_question(page: Page, results: list[RunResult]) -> None:
    entries = results[0].decisions
    name = next(one.subject for one in entries if one.decision.startswith("stays"))
    stays = [one for one in entries if one.subject == name and one.decision.startswith("stays")]
    for question in (f"Why did node {name} stay?", f"why was {name} kept", f'What keeps "{name}"'):
        page.write("#journal-search", question)
        assert page.text("#journal-status").startswith(f"{len(stays)} of {len(entries)} decisions with: ")
    page.write("#journal-search", "why did nobody-knows-it stay?")
    assert page.text("#journal-status").startswith("0 of")


def test_the_end_of_a_long_name_is_seen_in_the_journal(
    chromium: Chromium, results: list[RunResult], tmp_path: Path,
) -> None:
    name = f"group-{'x' * 200}-7k2p9"
    long = replace(results[0], decisions=(Decision(1.0, "ca", "node", name, "removed"),))
    write_report([long], tmp_path / "long-name.html")
    page = open_ready(chromium, tmp_path / "long-name.html")
    assert page.evaluate("document.querySelector('.entry .subject').textContent") == name
    assert page.evaluate("(() => { const cell = document.querySelector('.entry .subject').getBoundingClientRect(); "
                         "const end = document.querySelector('.entry .subject .end').getBoundingClientRect(); "
                         "return end.width > 20 && end.right <= cell.right + 1; })()")
    page.close()


def test_files_are_saved_with_their_names(chromium: Chromium, results: list[RunResult], tmp_path: Path) -> None:
    named = "kind: Scenario\nspec: {cluster: {manifests: [a/pool.yaml]}}\n\n# --- a/pool.yaml ---\n# kind: NodePool\n"
    write_report([replace(results[0], scenario_text=named)], tmp_path / "files.html")
    page = open_ready(chromium, tmp_path / "files.html")
    chromium.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.evaluate("document.querySelectorAll('#reproduce details').forEach((one) => { one.open = true; })")
    page.click("button.save[data-name='a/pool.yaml']")
    for _ in range(600):
        if not (tmp_path / "pool.yaml").exists():
            page.settle()
    assert (tmp_path / "pool.yaml").read_text() == "kind: NodePool\n"
    assert page.complaints == []
    page.close()


def test_the_journal_follows_the_zoom_when_asked_to(page: Page, results: list[RunResult]) -> None:
    page.click("#journal-zoomed")
    assert page.text("#journal-status") == f"{len(results[0].decisions)} decisions."
    page.drag(plot_point(page, 0.5), plot_point(page, 0.75))
    page.until("document.querySelector('#journal-status').textContent.includes(' of ')")


def test_a_long_journal_keeps_few_rows_and_reaches_its_end(
    chromium: Chromium, results: list[RunResult], tmp_path: Path,
) -> None:
    entries = tuple(
        Decision(number * 0.8, "ca", "node", f"node-{number % 1000}", "stays: too full", (f"{number} times",))
        for number in range(100_000))
    write_report([replace(results[0], decisions=entries)], tmp_path / "long.html")
    page = open_ready(chromium, tmp_path / "long.html")
    assert page.text("#journal-status") == "100,000 decisions."
    page.evaluate("document.querySelector('#journal-list').focus()")
    page.press("End")
    assert "99999 times" in page.text("#journal-panel")
    assert "99999 times" in page.text("#journal-rows")
    assert page.evaluate("document.querySelectorAll('#journal-rows .entry').length") < 60
    page.write("#journal-search", "node-77 99077")
    assert page.text("#journal-status") == "1 of 100,000 decisions."
    assert page.complaints == []
    page.close()


def test_an_entry_leads_to_the_wall_at_its_time(page: Page) -> None:
    page.write("#journal-search", "stock-out")
    page.click("#journal-rows .entry")
    page.evaluate("[...document.querySelectorAll('#journal-panel button')].at(-1).click()")
    page.until("document.querySelector('#wall-clock').textContent === 'Mon 15:00'")


def test_light_and_dark_follow_the_system_and_the_button(chromium: Chromium, report: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    tile = "document.querySelector('#wall-canvas').toDataURL()"
    page = open_ready(chromium, report, prefers_color_scheme="dark")
    dark, dark_tiles = page.evaluate(paper), page.evaluate(tile)
    page.click("#theme")
    assert page.text("#theme") == "Theme: light"
    assert page.evaluate(paper) == "rgb(255, 255, 255)" != dark
    assert page.evaluate(tile) != dark_tiles
    page.click("#theme")
    assert (page.text("#theme"), page.evaluate(paper)) == ("Theme: dark", dark)
    page.click("#theme")
    assert (page.text("#theme"), page.evaluate(paper)) == ("Theme: auto", dark)
    page.close()


@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_sticks_out_to_the_side(chromium: Chromium, report: Path, width: int) -> None:
    page = open_ready(chromium, report, width=width, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter((one) => one.offsetParent && "
        "one.type !== 'checkbox' && one.getBoundingClientRect().height < 28).map((one) => one.outerHTML)")
    assert small == []
    page.close()


@pytest.mark.parametrize("runs", [2, 6])
def test_names_as_long_as_they_may_be_do_not_stick_out(
    chromium: Chromium, results: list[RunResult], tmp_path: Path, runs: int,
) -> None:
    long = [replace(results[0], scenario="s" * 63, policy=f"{place}{'p' * 62}") for place in range(runs)]
    write_report(long, tmp_path / f"long-{runs}.html")
    for width in (390, 820, 1440):
        page = open_ready(chromium, tmp_path / f"long-{runs}.html", width=width, height=800)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.close()


def test_a_table_of_many_runs_fills_the_width(chromium: Chromium, results: list[RunResult], tmp_path: Path) -> None:
    write_report([replace(results[0], policy=f"run-{place}") for place in range(6)], tmp_path / "six.html")
    page = open_ready(chromium, tmp_path / "six.html", width=1440)
    assert page.evaluate("(() => { const body = document.querySelector('#summary tbody').getBoundingClientRect(); "
                         "return Math.abs(body.width - document.querySelector('#summary').clientWidth); })()") < 2
    page.close()


def test_everything_that_can_be_used_has_a_name(page: Page) -> None:
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, select, input, canvas[tabindex], [role=application], [role=listbox]')]"
        ".filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length))"
        ".map((one) => one.outerHTML)")
    assert nameless == []


def test_paper_is_light_has_no_scrollers_and_no_buttons(chromium: Chromium, report: Path, tmp_path: Path) -> None:
    page = open_ready(chromium, report, prefers_color_scheme="dark")
    page.call("Emulation.setEmulatedMedia", {"media": "print"})
    page.settle()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    scrollers = page.evaluate(
        "[...document.body.querySelectorAll('*')].filter((one) => one.getClientRects().length && "
        "['auto', 'scroll'].includes(getComputedStyle(one).overflowY)).map((one) => one.outerHTML.slice(0, 80))")
    assert scrollers == []
    pressed = page.evaluate(
        "[...document.querySelectorAll('button:not(.key), select, input')]"
        ".filter((one) => one.getClientRects().length).map((one) => one.outerHTML)")
    assert pressed == []
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert page.evaluate("document.querySelectorAll('#journal-printed tr').length") > 10
    assert page.evaluate("document.querySelector('#wall-printed')") is None
    page.close()


def test_empty_runs_show_words_instead_of_empty_boxes(
    chromium: Chromium, results: list[RunResult], tmp_path: Path,
) -> None:
    series = replace(results[0].series, times_s=(), columns={})
    bare = replace(results[0], nodes=(), pods=(), decisions=(), series=series)
    write_report([bare], tmp_path / "bare.html")
    page = open_ready(chromium, tmp_path / "bare.html")
    assert page.text("#charts") == "No samples were taken in these runs."
    assert status(page) == "There was no node in this run."
    assert page.evaluate("[...document.querySelectorAll('#wall-play, #wall-time, #wall-group, #wall-panel')]"
                         ".filter((one) => one.offsetParent).length") == 0
    assert page.text("#journal-status") == "No decisions were taken in this run."
    assert page.complaints == []
    page.close()


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_the_widest_tiles_fill_their_row(
    chromium: Chromium, results: list[RunResult], tmp_path: Path, width: int,
) -> None:
    nodes = tuple(replace(node, group="g", cpu_milli=8000, created_s=0.0, removed_s=None)
                  for node in results[0].nodes[:30])
    write_report([replace(results[0], nodes=nodes, pods=())], tmp_path / f"row-{width}.html")
    page = open_ready(chromium, tmp_path / f"row-{width}.html", width=width)
    left, top, wide, _ = page.box("#wall-canvas")
    page.mouse("mouseMoved", left + wide - 6, top + 24)
    assert page.evaluate("document.querySelector('#wall-panel button') !== null")
    page.close()
