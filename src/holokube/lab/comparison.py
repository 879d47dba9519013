"""Runs side by side: each measure with what is best, and by how much others differ from the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.lab.results import MEASURES, RESULT_VERSION, Measure, RunResult

_EQUAL_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one run."""

    value: float | None
    change: float | None
    """By which share it differs from the first run; None for the first, and where that is zero or unknown."""
    is_best: bool
    """Better than some other run, and worse than none."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of all runs."""

    measure: Measure
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether not all runs have the same value."""
        return len({cell.value for cell in self.cells}) > 1


def compare(results: Sequence[RunResult]) -> list[Row]:
    """A row for each measure that at least one run has, in the order of tables."""
    rows = []
    for measure in MEASURES:
        values = [result.summary.get(measure.name) for result in results]
        if any(value is not None for value in values):
            best = _best(measure, values)
            first = values[0] if values else None
            cells = tuple(
                Cell(value, _change(value, first) if number else None, best is not None and value == best)
                for number, value in enumerate(values)
            )
            rows.append(Row(measure, cells))
    return rows


def _best(measure: Measure, values: Iterable[float | None]) -> float | None:
    """The best value; None where there is nothing to choose."""
    known = [value for value in values if value is not None]
    if not measure.better or len(known) < 2 or max(known) - min(known) <= _EQUAL_SHARE * abs(max(known, key=abs)):
        return None
    return min(known) if measure.better == "lower" else max(known)


def _change(value: float | None, first: float | None) -> float | None:
    if value is None or not first:
        return None
    return (value - first) / abs(first)


def format_value(measure: Measure, value: float | None) -> str:
    """A value for people."""
    if value is None:
        return "-"
    match measure.unit:
        case "usd":
            return f"${value:,.2f}"
        case "usd/h":
            return f"${value:,.3f}/h"
        case "s":
            return _duration(value)
        case "share":
            return f"{value * 100:.1f} %"
        case "h":
            return f"{value:,.1f} h"
        case _:
            return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds != round(seconds) else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def length_text(seconds: float) -> str:
    """The length of a run, which is mostly round: ``12 h``, ``10 min``, ``1 h 30 min``."""
    return _duration(seconds).removesuffix(" 00 s").removesuffix(" 00 min")


def csv_rows(results: Sequence[RunResult]) -> list[list[str]]:
    """A header and a line for each run."""
    header = ["scenario", "policy", "seed", "duration_s", *(measure.name for measure in MEASURES)]
    rows = [header]
    for result in results:
        values = [result.summary.get(measure.name) for measure in MEASURES]
        rows.append([
            result.scenario, result.policy, str(result.seed), f"{result.duration_s:g}",
            *("" if value is None else f"{value:.15g}" for value in values),
        ])  # fmt: skip
    return rows


def as_document(results: Sequence[RunResult]) -> dict[str, Any]:
    """What ``-o json`` prints: one result as it is, several as a list."""
    if len(results) == 1:
        return results[0].as_json()
    return {
        "apiVersion": RESULT_VERSION, "kind": "RunResultList", "items": [result.as_json() for result in results]
    }  # fmt: skip
