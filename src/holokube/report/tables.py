"""The parts of a report that are text and numbers: cards, the summary, assertions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holokube.lab.results import MEASURE_BY_NAME, MEASURES, Measure, RunResult
from holokube.report.figures import NOTHING, count, difference_text, usd, value_text
from holokube.report.markup import BEST, empty, swatch, text

_ABREAST_MAX: Final = 4
"""So many runs fit beside each other on a phone; a table with more is scrolled."""
_CARD_MEASURES: Final = (
    ("pending_p99_s", "pending, p99"),
    ("evictions", "evictions"),
    ("node_launches", "nodes launched"),
    ("cpu_allocated_share", "CPU allocated"),
)


def cards(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """A card for each run: what it costs, and four things to hold against it."""
    return f'<ul class="cards">{"".join(_card(results, index, labels[index]) for index in range(len(results)))}</ul>'


def _card(results: Sequence[RunResult], index: int, label: str) -> str:
    result = results[index]
    cost = result.summary.get("cost_usd")
    change, verdict = difference_text(MEASURE_BY_NAME["cost_usd"], cost, results[0].summary.get("cost_usd"))
    if index == 0:
        change, verdict = ("baseline" if len(results) > 1 else ""), ""
    best = BEST if index in best_of(MEASURE_BY_NAME["cost_usd"], results) else ""
    facts = "".join(
        f"<div><dt>{text(title)}</dt><dd>{text(value_text(MEASURE_BY_NAME[name], result.summary.get(name)))}</dd></div>"
        for name, title in _CARD_MEASURES
    )
    return (
        f'<li class="card"><h3>{swatch(index)}<span>{text(label)}</span></h3>'
        f'<p class="cost">{best}<b>{text(NOTHING if cost is None else usd(cost))}</b> '
        f'<span class="change {verdict}">{text(change)}</span></p><dl>{facts}</dl></li>'
    )


def best_of(measure: Measure, results: Sequence[RunResult]) -> set[int]:
    """The runs that do best by a measure; none where all do equally well or nothing is better than other things."""
    values = {index: value for index, result in enumerate(results)
              if (value := result.summary.get(measure.name)) is not None}
    if not measure.better or len(values) < 2:
        return set()
    best = min(values.values()) if measure.better == "lower" else max(values.values())
    # What is shown alike is marked alike.
    shown = value_text(measure, best)
    alike = {index for index, value in values.items() if value_text(measure, value) == shown}
    return alike if len(alike) < len(values) else set()


def summary_table(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """All measures of all runs, the best of each row marked, differences against the first."""
    rows = [
        _summary_row(measure, results) for measure in MEASURES
        if any(result.summary.get(measure.name) is not None for result in results)
    ]
    rows.extend(_api_rows(results))
    if not rows:
        return empty("Nothing was measured.")
    heads = "".join(
        f'<th scope="col" role="columnheader">{swatch(index)}<span>{text(label)}</span></th>'
        for index, label in enumerate(labels)
    )
    return _table("summary", "Measure", heads, rows, len(results))


def _table(kind: str, corner: str, heads: str, rows: Sequence[str], runs: int) -> str:
    table = (
        f'<table class="{kind} n{min(runs, _ABREAST_MAX + 1)}" role="table"><thead role="rowgroup"><tr role="row">'
        f'<th scope="col" role="columnheader" class="corner">{text(corner)}</th>{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )
    return f'<div class="scroller">{table}</div>' if runs > _ABREAST_MAX else table


def _summary_row(measure: Measure, results: Sequence[RunResult]) -> str:
    best = best_of(measure, results)
    first = results[0].summary.get(measure.name)
    cells = []
    for index, result in enumerate(results):
        value = result.summary.get(measure.name)
        change, verdict = difference_text(measure, value, first) if index else ("", "")
        cells.append(_cell(value_text(measure, value), change, verdict, best=index in best))
    return f'<tr role="row"><th scope="row" role="rowheader">{text(measure.title)}</th>{"".join(cells)}</tr>'


def _cell(value: str, change: str, verdict: str, *, best: bool) -> str:
    mark = BEST if best else ""
    said = f'<span class="change {verdict}">{text(change)}</span>' if change else ""
    classes = ' class="best-cell"' if best else ""
    return f'<td role="cell"{classes}><span class="value">{mark}{text(value)}</span>{said}</td>'


def _api_rows(results: Sequence[RunResult]) -> list[str]:
    """API calls by verb, where they were counted."""
    verbs = sorted({verb for result in results for verb in result.api_calls})
    rows = []
    for verb in verbs:
        measure = Measure(f"api_calls_{verb}", f"API calls, {verb}", "count", "")
        first = results[0].api_calls.get(verb, 0)
        cells = []
        for index, result in enumerate(results):
            calls = result.api_calls.get(verb, 0)
            change, verdict = difference_text(measure, calls, first) if index else ("", "")
            cells.append(_cell(count(calls), change, verdict, best=False))
        rows.append(f'<tr role="row" class="minor"><th scope="row" role="rowheader">{text(measure.title)}</th>'
                    f'{"".join(cells)}</tr>')
    return rows


def outcomes_table(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """The scenario's assertions, and whether they held in each run."""
    texts = list(dict.fromkeys(outcome.text for result in results for outcome in result.outcomes))
    if not texts:
        return empty("The scenario asserts nothing. Add `assertions`, such as `pending_p99_s < 60`, and a run that "
                     "misses one exits with 3.")
    heads = "".join(f'<th scope="col" role="columnheader">{swatch(index)}<span>{text(label)}</span></th>'
                    for index, label in enumerate(labels))
    rows = []
    for asserted in texts:
        cells = []
        for result in results:
            outcome = next((one for one in result.outcomes if one.text == asserted), None)
            if outcome is None:
                cells.append(f'<td role="cell">{NOTHING}</td>')
                continue
            word, sign = ("holds", "✓") if outcome.holds else ("missed", "✗")
            measure = _measure_in(asserted)
            measured = NOTHING if outcome.measured is None else (
                value_text(measure, outcome.measured) if measure else f"{outcome.measured:g}")
            cells.append(f'<td role="cell" class="{word}"><span class="value"><span aria-hidden="true">{sign}</span> '
                         f'{word}</span><span class="change">{text(measured)}</span></td>')
        rows.append(f'<tr role="row"><th scope="row" role="rowheader"><code>{text(asserted)}</code></th>'
                    f'{"".join(cells)}</tr>')
    return _table("summary outcomes", "Assertion", heads, rows, len(results))


def missed(results: Sequence[RunResult]) -> tuple[int, int]:
    """How many assertions were missed, of how many."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    return sum(not outcome.holds for outcome in outcomes), len(outcomes)


def _measure_in(asserted: str) -> Measure | None:
    words = asserted.replace("<", " ").replace(">", " ").replace("=", " ").split()
    return next((MEASURE_BY_NAME[word] for word in words if word in MEASURE_BY_NAME), None)
