"""The report of one or several runs of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holokube import __version__
from holokube.lab.results import RunResult
from holokube.report.bars import bars
from holokube.report.families import by_family
from holokube.report.figures import NO_BREAK, count, seconds, start_text, usd
from holokube.report.headline import headline
from holokube.report.labels import labels_of
from holokube.report.markup import empty, section, swatch, text
from holokube.report.page import asset, page
from holokube.report.payload import journal_block, series_block, wall_block
from holokube.report.reproduce import run_section
from holokube.report.scenario_text import description
from holokube.report.tables import cards, missed, outcomes_table, summary_table

_SCRIPTS = ("base.js", "axes.js", "charts.js", "places.js", "tiles.js", "wall.js", "journal.js", "report.js")


def report_html(results: Sequence[RunResult]) -> str:
    """One HTML file with everything in it; the same results give the same bytes."""
    labels = labels_of(results)
    blocks = {}
    for index, result in enumerate(results):
        blocks[f"series-{index}"] = series_block(result)
        blocks[f"wall-{index}"] = wall_block(result)
        blocks[f"journal-{index}"] = journal_block(result)
    return page(f"{_title(results)} · holokube", _body(results, labels), scripts=_SCRIPTS, blocks=blocks)


def write_report(results: Sequence[RunResult], path: Path | str) -> None:
    """Write :func:`report_html` to a file."""
    Path(path).write_text(report_html(results), encoding="utf-8", newline="\n")


def _title(results: Sequence[RunResult]) -> str:
    names = list(dict.fromkeys(result.scenario for result in results))
    return " and ".join(names) if names else "No runs"


def _body(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    if not results:
        return f'{masthead("No runs", "", "")}<main>{empty("There are no runs to report on.")}</main>{footer()}'
    summary_note = ("★ marks the best of a row. Changes are against the first column; shares differ by percentage "
                    "points (pp)." if len(results) > 1 else "")
    sections = [
        section("summary", "Summary", summary_table(results, labels), note=summary_note),
        section("time", "Over time", _charts(labels)),
        '<div class="pair">'
        + section("types", "Node hours by type", bars(
            [result.node_hours_by_type for result in results], labels, lambda hours: f"{count(hours)}{NO_BREAK}h",
            nothing="No node was there for any time."))
        + section("workloads", "Cost by workload", bars(
            [by_family(result.cost_by_workload_usd) for result in results], labels, usd,
            nothing="No costs are known by workload."))
        + "</div>",
        section("wall", "Node wall", asset("wall.html").replace("{runs}", _options(labels))),
        section("journal", "Decision journal", asset("journal.html").replace("{runs}", _options(labels))),
        section("assertions", "Assertions", outcomes_table(results, labels)),
        section("reproduce", "Run it again", run_section(results, labels)),
    ]
    top = masthead(_title(results), headline(results, labels), _facts(results), description(results[0].scenario_text))
    return (f"{top}{_contents()}<main>"
            f"{verdict(results, told_in='assertions')}{cards(results, labels)}{''.join(sections)}</main>{footer()}")


def _contents() -> str:
    links = "".join(f'<a href="#{identity}">{title}</a>' for identity, title in (
        ("summary", "Summary"), ("time", "Over time"), ("types", "Node types"), ("workloads", "Workloads"),
        ("wall", "Node wall"), ("journal", "Journal"), ("assertions", "Assertions"), ("reproduce", "Run it again"),
    ))
    return f'<nav class="screen-only" aria-label="Parts of the report">{links}</nav>'


def masthead(title: str, sentence: str, facts: str, about: str = "") -> str:
    """The top of a page: what it is about, the answer, and the choice of light or dark."""
    described = f'<p class="about">{text(about)}</p>' if about else ""
    said = f'<p class="headline">{text(sentence)}</p>' if sentence else ""
    return (
        '<header class="masthead"><div class="topline"><span class="brand">holokube</span>'
        '<button type="button" id="theme" class="quiet" hidden>Theme: auto</button></div>'
        f'<h1>{text(title)}</h1>{described}<p class="facts">{text(facts)}</p>{said}'
        '<noscript><p class="empty">Scripts are switched off: the tables are complete, but charts, node wall and '
        "journal need them.</p></noscript></header>"
    )


def footer() -> str:
    """The bottom of a page."""
    return (f'<footer>Made by holokube {text(__version__)}. This file needs no network: share it as it is.</footer>'
            '<div id="live" class="unseen" aria-live="polite"></div>')


def _facts(results: Sequence[RunResult]) -> str:
    seeds = list(dict.fromkeys(result.seed for result in results))
    spans = list(dict.fromkeys(seconds(result.duration_s) for result in results))
    runs = f"{len(results)} run{'' if len(results) == 1 else 's'}"
    seed_text = f"seed{'' if len(seeds) == 1 else 's'} {', '.join(str(seed) for seed in seeds)}"
    return f"{' / '.join(spans)} from {start_text(results[0].start)} · {seed_text} · {runs} · holokube {__version__}"


def verdict(results: Sequence[RunResult], *, told_in: str) -> str:
    """Whether all assertions of all runs hold, with a link to the part of the page that says more."""
    lost, total = missed(results)
    if not total:
        return ""
    if lost:
        return (f'<p class="verdict missed"><a href="#{told_in}"><span aria-hidden="true">✗</span> {lost} of {total} '
                "assertions missed</a></p>")
    return (f'<p class="verdict holds"><a href="#{told_in}"><span aria-hidden="true">✓</span> all {total} assertions '
            "hold</a></p>")


def _charts(labels: Sequence[str]) -> str:
    keys = "".join(
        f'<button type="button" class="key" aria-pressed="true" data-run="{index}">{swatch(index)}'
        f"<span>{text(label)}</span></button>"
        for index, label in enumerate(labels)
    )
    return asset("charts.html").replace("{keys}", keys)


def _options(labels: Sequence[str]) -> str:
    return "".join(f'<option value="{index}">{text(label)}</option>' for index, label in enumerate(labels))
