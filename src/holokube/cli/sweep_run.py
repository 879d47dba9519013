"""The work behind ``holokube sweep``: plan, run, print."""

from __future__ import annotations

import csv
import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holokube.base.errors import UsageError
from holokube.cli.errors import FAILED
from holokube.cli.progress import ProgressLine
from holokube.cli.run_many import ASSERTION_MISSED, SCENARIO_FILE, choose
from holokube.cli.settings import Settings
from holokube.cluster.policies import check_installed
from holokube.lab.comparison import compare, format_value
from holokube.lab.results import MEASURE_BY_NAME, Measure
from holokube.lab.sweep.dask_cluster import DaskRunner
from holokube.lab.sweep.folder import SweepFolder
from holokube.lab.sweep.processes import ProcessRunner
from holokube.lab.sweep.settings import combine, parse_axis, read_list
from holokube.lab.sweep.sweeping import Row, Runner, SweepProgress, as_document, csv_table, setting_names, sweep
from holokube.lab.sweep.tasks import RunTask, Task, plan_tasks, run_task

_SHOWN: Final = ("cost_usd", "nodes_mean", "cpu_allocated_share", "pending_p99_s", "evictions", "node_launches")
_BEST: Final = "*"


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for."""

    scenario: Path
    axes: tuple[str, ...] = ()
    list_file: Path | None = None
    policies: tuple[str, ...] = ()
    jobs: int = 1
    dask: str | None = None
    out: Path | None = None
    report: Path | None = None
    measures: tuple[str, ...] = ()
    output: str = "table"


def run_sweep(order: Order, settings: Settings, run: RunTask = run_task) -> int:
    """Do it all; the exit code."""
    measures = _measures(order.measures)
    tasks = plan(order)
    check_installed(task.policy.kind for task in tasks)
    folder = SweepFolder(order.out) if order.out is not None else None
    runner: Runner = DaskRunner(order.dask, run) if order.dask is not None else ProcessRunner(order.jobs, run)
    try:
        rows = sweep(tasks, runner, folder, _Progress(ProgressLine()))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_go_on(order.out)) from None
    if order.report is not None:
        _report(rows, order.report)
    _print(rows, order.output, measures, settings)
    if any(row.result is None for row in rows):
        return FAILED
    held = all(outcome.holds for row in rows if row.result is not None for outcome in row.result.outcomes)
    return 0 if held else ASSERTION_MISSED


def _go_on(out: Path | None) -> str:
    """What to do after an interruption."""
    if out is None:
        return "Nothing is kept. With --out DIR finished runs are, and the same command goes on where it was."
    return f"Finished runs are in {out}; the same command goes on with the others."


def plan(order: Order) -> list[Task]:
    """The runs in the order of the table."""
    path = order.scenario / SCENARIO_FILE if order.scenario.is_dir() else order.scenario
    axes = [parse_axis(text) for text in order.axes]
    if order.list_file is not None:
        axes.append(read_list(order.list_file))
    return plan_tasks(path, combine(axes), order.policies, choose)


def _measures(names: Sequence[str]) -> list[Measure]:
    for name in names:
        if name not in MEASURE_BY_NAME:
            near = difflib.get_close_matches(name, MEASURE_BY_NAME, n=1) or list(MEASURE_BY_NAME)[:5]
            raise UsageError(f"--measure {name}: there is no such measure", hint=f"Use one such as {', '.join(near)}.")
    return [MEASURE_BY_NAME[name] for name in dict.fromkeys(names or _SHOWN)]


class _Progress:
    """One line on a terminal; elsewhere a line for each run that is over."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line

    def __call__(self, progress: SweepProgress) -> None:
        counts = f"{progress.done} of {progress.total} runs done, {progress.left} left"
        if progress.failed:
            counts += f", {progress.failed} failed"
        if progress.reused:
            counts += f", {progress.reused} of them from before"
        if self._line.moves:
            self._line.show(f"{counts}, {progress.running} running")
        if progress.last is not None and (progress.last.error or not self._line.moves):
            self._line.done(f"{_verdict(progress.last)} ({counts})")
        elif progress.left == 0:
            self._line.done(counts)


def _verdict(row: Row) -> str:
    again = f" at the {row.tries}. try" if row.tries > 1 and row.result is not None else ""
    return f"failed: {row.task.title}: {row.error}" if row.result is None else f"done{again}: {row.task.title}"


def _report(rows: Sequence[Row], path: Path) -> None:
    from holokube.report.sweep import write_sweep_report

    good = [(row.task.settings, row.result) for row in rows if row.result is not None]
    if not good:
        click.echo("No report: no run has a result.", err=True)
        return
    write_sweep_report(good, path)
    click.echo(f"Report: {path}", err=True)


def _print(rows: Sequence[Row], output: str, measures: Sequence[Measure], settings: Settings) -> None:
    if output == "json":
        sys.stdout.write(orjson.dumps(as_document(rows), option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(csv_table(rows))
    else:
        width = None if sys.stdout.isatty() else 160
        console = Console(no_color=not settings.colors_stdout(), highlight=False, width=width)
        _show(console, rows, measures)


def _show(console: Console, rows: Sequence[Row], measures: Sequence[Measure]) -> None:
    names = setting_names(rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in (*(name.removeprefix("spec.") for name in names), "policy"):
        table.add_column(escape(title), overflow="fold")
    for measure in measures:
        table.add_column(measure.title, justify="right")
    table.add_column("")
    best = _best(rows)
    for number, row in enumerate(rows):
        cells = [escape(row.task.settings.get(name, "-")) for name in names]
        cells.append(escape(row.task.policy.name))
        for measure in measures:
            value = row.result.summary.get(measure.name) if row.result is not None else None
            text = format_value(measure, value)
            cells.append(f"[bold green]{text} {_BEST}[/]" if (number, measure.name) in best else f"{text}  ")
        table.add_row(*cells, _remark(row))
    console.print(table)
    if best:
        console.print(f"{_BEST} best of its column", style="dim")


def _best(rows: Sequence[Row]) -> set[tuple[int, str]]:
    """Which row is the best by which measure."""
    places = [number for number, row in enumerate(rows) if row.result is not None]
    results = [row.result for row in rows if row.result is not None]
    return {
        (place, line.measure.name)
        for line in compare(results)
        for place, cell in zip(places, line.cells, strict=True)
        if cell.is_best
    }


def _remark(row: Row) -> str:
    if row.result is None:
        return f"[bold red]failed[/] {escape(row.error)}"
    missed = [outcome.text for outcome in row.result.outcomes if not outcome.holds]
    return f"[bold red]missed[/] {escape(', '.join(missed))}" if missed else ""
