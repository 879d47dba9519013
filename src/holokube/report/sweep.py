"""The report of a sweep: many runs over settings, as little charts beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holokube import __version__
from holokube.lab.results import MEASURE_BY_NAME, Measure, RunResult
from holokube.report.columns import Column, floats, pack
from holokube.report.document import footer, masthead, verdict
from holokube.report.figures import NOTHING, seconds, share, start_text, usd, value_text
from holokube.report.markup import BEST, empty, section, swatch, text
from holokube.report.page import asset, page
from holokube.report.payload import SERIES
from holokube.report.reproduce import sweep_section
from holokube.report.scenario_text import description
from holokube.report.tables import best_of

SAMPLES_MAX: Final = 240
"""In a little chart; it has not many more pixels."""
_MEASURES: Final = (
    "cost_usd", "pending_p50_s", "pending_p99_s", "pods_pending_end", "evictions", "node_launches", "nodes_max",
    "cpu_allocated_share", "memory_allocated_share",
)
_SCRIPTS: Final = ("base.js", "axes.js", "sweep.js")

Row = tuple[Mapping[str, str], RunResult]


def small_multiples_html(rows: Sequence[Row]) -> str:
    """One HTML file: cost against waiting, a little chart for each setting, and a table to sort."""
    if not rows:
        body = f'{masthead("Sweep", "", "")}<main>{empty("There are no runs to report on.")}</main>{footer()}'
        return page("Sweep · holokube", body, scripts=_SCRIPTS, blocks={})
    sweep = _read(rows)
    title = " and ".join(dict.fromkeys(result.scenario for result in sweep.results))
    sections = [
        section("trade", "Cost and its price",
                asset("trade.html").replace("{measures}", _choices(sweep, _MEASURES[1:])),
                note="Each point is a run. No other run beats one on the line in both cost and what is shown."),
        section("multiples", "Over time", asset("multiples.html").replace("{keys}", _keys(sweep)),
                note="All little charts have the same scales."),
        section("runs", "Runs", _table(sweep), note="★ marks the best of a column. Headings sort."),
        section("reproduce", "Run it again", sweep_section(sweep.results, [one for one, _ in rows])),
    ]
    about = description(sweep.results[0].scenario_text)
    top = masthead(title, _headline(sweep), _facts(sweep), about)
    body = f"{top}<main>{verdict(sweep.results, told_in='runs')}{''.join(sections)}</main>{footer()}"
    return page(f"{title}, sweep · holokube", body, scripts=_SCRIPTS, blocks={"sweep": _block(sweep)})


def write_sweep_report(rows: Sequence[Row], path: Path | str) -> None:
    """Write :func:`small_multiples_html` to a file."""
    Path(path).write_text(small_multiples_html(rows), encoding="utf-8", newline="\n")


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The rows, and what differs between them."""

    settings: tuple[dict[str, str], ...]
    results: tuple[RunResult, ...]
    varying: tuple[str, ...]
    policies: tuple[str, ...]

    def label(self, index: int) -> str:
        """A run in words: only what sets it apart."""
        parts = [f"{name}={self.settings[index].get(name, NOTHING)}" for name in self.varying]
        if len(self.policies) > 1:
            parts.insert(0, self.results[index].policy)
        return ", ".join(parts) or self.results[index].policy


def _read(rows: Sequence[Row]) -> _Sweep:
    results = tuple(result for _, result in rows)
    settings = tuple({name.removeprefix("spec."): value for name, value in one.items()} for one, _ in rows)
    told_apart = {(result.policy, *sorted(one.items())) for one, result in zip(settings, results, strict=True)}
    if len(told_apart) < len(results) and len({result.seed for result in results}) > 1:
        settings = tuple({**one, "seed": str(result.seed)} for one, result in zip(settings, results, strict=True))
    names = dict.fromkeys(name for one in settings for name in one)
    varying = tuple(name for name in names if len({one.get(name) for one in settings}) > 1)
    return _Sweep(settings, results, varying, tuple(dict.fromkeys(result.policy for result in results)))


def _headline(sweep: _Sweep) -> str:
    costs = {index: cost for index, result in enumerate(sweep.results)
             if (cost := result.summary.get("cost_usd")) is not None}
    if not costs:
        return "No prices are known for these nodes, so the runs are compared by waiting time and churn only."
    cheapest = min(costs, key=lambda index: (costs[index], index))
    dearest = max(costs, key=lambda index: (costs[index], -index))
    start = f"Cheapest of {len(sweep.results)} runs: " if len(sweep.results) > 1 else ""
    sentence = f"{start}{sweep.label(cheapest)}, {usd(costs[cheapest])}"
    waits = {index: wait for index, result in enumerate(sweep.results)
             if (wait := result.summary.get("pending_p99_s")) is not None}
    if cheapest in waits:
        sentence += f" with pending p99 {seconds(waits[cheapest])}"
    if costs[dearest] > costs[cheapest]:
        less = (costs[dearest] - costs[cheapest]) / costs[dearest]
        sentence += f"; {share(less)} less than the dearest, {sweep.label(dearest)} ({usd(costs[dearest])})"
    sentence += "."
    if waits:
        quickest = min(waits, key=lambda index: (waits[index], costs.get(index, math.inf), index))
        if quickest != cheapest and waits[quickest] < waits.get(cheapest, math.inf):
            at = f" for {usd(costs[quickest])}" if quickest in costs else ""
            sentence += f" Shortest waits: {sweep.label(quickest)}, pending p99 {seconds(waits[quickest])}{at}."
    left = sweep.results[cheapest].summary.get("pods_pending_end") or 0
    if left > min(result.summary.get("pods_pending_end") or 0 for result in sweep.results):
        sentence += f" But the cheapest leaves {left:,.0f} pods without a place."
    return sentence


def _facts(sweep: _Sweep) -> str:
    fixed = {name: value for name, value in sweep.settings[0].items() if name not in (*sweep.varying, "seed")}
    first = sweep.results[0]
    runs = f"{len(sweep.results)} run{'' if len(sweep.results) == 1 else 's'}"
    parts = [f"{seconds(first.duration_s)} from {start_text(first.start)}", runs]
    parts += [f"{name}={value}" for name, value in fixed.items()]
    seeds = list(dict.fromkeys(result.seed for result in sweep.results))
    if "seed" not in sweep.varying:
        parts.append(f"seed{'' if len(seeds) == 1 else 's'} {', '.join(str(seed) for seed in seeds)}")
    return " · ".join([*parts, f"holokube {__version__}"])


def _measures(sweep: _Sweep, names: Sequence[str]) -> list[Measure]:
    return [MEASURE_BY_NAME[name] for name in names
            if any(result.summary.get(name) is not None for result in sweep.results)]


def _choices(sweep: _Sweep, names: Sequence[str]) -> str:
    measures = _measures(sweep, names)
    # The long waits are what people pay to avoid.
    return "".join(
        f'<option value="{measure.name}"{" selected" if measure.name == "pending_p99_s" else ""}>{text(measure.title)}'
        "</option>" for measure in measures
    )


def _keys(sweep: _Sweep) -> str:
    if len(sweep.policies) < 2:
        return ""
    return "".join(f'<span class="key">{swatch(index)}<span>{text(policy)}</span></span>'
                   for index, policy in enumerate(sweep.policies))


def _table(sweep: _Sweep) -> str:
    measures = _measures(sweep, _MEASURES)
    best = {measure.name: best_of(measure, sweep.results) for measure in measures}
    names = [*sweep.varying]
    heads = "".join(_head(name, "left") for name in (["Policy"] if len(sweep.policies) > 1 else []) + names)
    asserted = any(result.outcomes for result in sweep.results)
    if asserted:
        heads += _head("Assertions", "left")
    heads += "".join(_head(measure.title, "") for measure in measures)
    rows = []
    for index, result in enumerate(sweep.results):
        cells = ""
        if len(sweep.policies) > 1:
            mark = swatch(sweep.policies.index(result.policy))
            cells += f'<td class="left" data-value="{text(result.policy)}">{mark} {text(result.policy)}</td>'
        for name in names:
            value = sweep.settings[index].get(name, NOTHING)
            cells += f'<td class="left" data-value="{text(value)}">{text(value)}</td>'
        if asserted:
            cells += _outcomes(result)
        for measure in measures:
            number = result.summary.get(measure.name)
            mark = BEST if index in best[measure.name] else ""
            sort = "" if number is None else repr(float(number))
            shown = text(value_text(measure, number))
            cells += f'<td data-value="{sort}"><span class="value">{mark}{shown}</span></td>'
        rows.append(f'<tr data-run="{index}">{cells}</tr>')
    return (f'<div class="scroller"><table class="runs"><thead><tr>{heads}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table></div>')


def _outcomes(result: RunResult) -> str:
    lost = [outcome.text for outcome in result.outcomes if not outcome.holds]
    if lost:
        said = "".join(f"<div><code>{text(one)}</code></div>" for one in lost)
        return f'<td class="left missed" data-value="{len(lost)}"><span aria-hidden="true">✗</span> missed{said}</td>'
    if result.outcomes:
        return '<td class="left holds" data-value="0"><span aria-hidden="true">✓</span> hold</td>'
    return f'<td class="left" data-value="">{NOTHING}</td>'


def _head(title: str, side: str) -> str:
    classes = f' class="{side}"' if side else ""
    # Paths of settings are long words.
    shown = text(title).replace("[", "<wbr>[").replace(".", ".<wbr>")
    return f'<th scope="col"{classes}><button type="button" class="sort">{shown}</button></th>'


def _block(sweep: _Sweep) -> str:
    cells: dict[tuple[str, ...], int] = {}
    runs: list[dict[str, Any]] = []
    columns: dict[str, Column] = {}
    for index, result in enumerate(sweep.results):
        place = tuple(sweep.settings[index].get(name, NOTHING) for name in sweep.varying)
        cells.setdefault(place, len(cells))
        runs.append({
            "label": sweep.label(index), "cell": cells[place], "policy": sweep.policies.index(result.policy),
            "summary": {name: result.summary.get(name) for name in _MEASURES},
        })
        times, sampled = thinned(result)
        columns[f"{index}/times"] = floats(times)
        for name, values in sampled.items():
            columns[f"{index}/{name}"] = floats(values)
    measures = {
        measure.name: {"title": measure.title, "unit": measure.unit, "better": measure.better}
        for measure in _measures(sweep, _MEASURES)
    }
    header = {
        "names": sweep.varying, "cells": [list(place) for place in cells], "runs": runs, "measures": measures,
        "duration_s": max(result.duration_s for result in sweep.results),
    }
    return pack(header, columns)


def thinned(result: RunResult) -> tuple[list[float], dict[str, list[float]]]:
    """A run's samples, at most :data:`SAMPLES_MAX`: means, but of pods that wait the most."""
    times = result.series.times_s
    size = max(1, math.ceil(len(times) / SAMPLES_MAX))
    starts = range(0, len(times), size)
    sampled = {}
    for name in SERIES:
        values = result.series.columns.get(name)
        if values is None:
            continue
        parts = [values[start:start + size] for start in starts]
        sampled[name] = [max(part) if name == "pods_pending" else math.fsum(part) / len(part) for part in parts]
    return [times[start] for start in starts], sampled
