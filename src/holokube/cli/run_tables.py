"""Runs as a table, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holokube.lab.comparison import Cell, Row, compare, format_value, length_text
from holokube.lab.results import RunResult

_BEST = "*"


def show_runs(console: Console, results: Sequence[RunResult]) -> None:
    """All measures of all runs, and what became of the assertions."""
    first = results[0]
    console.print(f"[bold]{escape(first.scenario)}[/bold]: {length_text(first.duration_s)} from {first.start}, "
                  f"seed {first.seed}")  # fmt: skip
    console.print(_table(results))
    if len(results) > 1:
        console.print(f"{_BEST} best of its row; differences from {escape(first.policy)}", style="dim")
    _show_outcomes(console, results)


def _table(results: Sequence[RunResult]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for result in results:
        table.add_column(escape(result.policy), justify="right", overflow="fold")
    for row in compare(results):
        style = "" if row.differs or len(results) == 1 else "dim"
        table.add_row(row.measure.title, *(_cell(row, cell) for cell in row.cells), style=style)
    return table


def _cell(row: Row, cell: Cell) -> str:
    text = format_value(row.measure, cell.value)
    if cell.change and row.differs:
        text += f" {_points(row, cell)}" if row.measure.unit == "share" else f" {_change(cell.change)}"
    return f"[bold green]{text} {_BEST}[/]" if cell.is_best else f"{text}  "


def _change(change: float) -> str:
    """Never 0 where something has changed: +0.3 %, and not more digits than tell something."""
    percent = change * 100
    return f"({percent:+.0f} %)" if abs(percent) >= 10 or not percent else f"({percent:+.1f} %)"


def _points(row: Row, cell: Cell) -> str:
    """Shares differ in percentage points: percents of percents would be misread."""
    return f"({((cell.value or 0.0) - (row.cells[0].value or 0.0)) * 100:+.1f} pp)"


def _show_outcomes(console: Console, results: Sequence[RunResult]) -> None:
    for result in results:
        for outcome in result.outcomes:
            if not outcome.holds:
                console.print(
                    f"[bold red]missed[/] {escape(result.policy)}: {escape(outcome.text)}, measured "
                    f"{_measured(outcome.measured)}")  # fmt: skip
    total = sum(len(result.outcomes) for result in results)
    held = sum(outcome.holds for result in results for outcome in result.outcomes)
    if total:
        console.print(f"{held} of {total} assertions hold", style="green" if held == total else "red")


def _measured(value: float | None) -> str:
    return "nothing" if value is None else f"{value:g}"
