"""The runs of one ``holokube run``: which there are, their files, and what is printed."""

from __future__ import annotations

import csv
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

import click
import orjson

from holokube.base import log
from holokube.base.clock import WallClock
from holokube.base.errors import UsageError
from holokube.base.pace import Pace
from holokube.cli.progress import ProgressLine
from holokube.cli.settings import Settings
from holokube.cluster.policies import check_installed, kinds
from holokube.lab.comparison import as_document, csv_rows
from holokube.lab.results import RunResult
from holokube.lab.run.runner import Observe, Progress, run_scenario
from holokube.lab.run.transport import is_on_purpose
from holokube.lab.scenario.model import PolicySpec, Scenario
from holokube.lab.scenario.reading import read_scenario
from holokube.runtime import collector

ASSERTION_MISSED: Final = 3
SCENARIO_FILE: Final = "scenario.yaml"
SAID_MOST: Final = 3
WATCHED_SPEED: Final = 600.0
"""Virtual seconds a second to begin with when somebody watches: a day takes some minutes."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for."""

    scenario: Path
    policies: tuple[str, ...] = ()
    variants: tuple[Path, ...] = ()
    seed: int | None = None
    report: Path | None = None
    event_log: Path | None = None
    output: str = "table"
    dashboard_port: int | None = None
    """Where the live page is; None for no page."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One run; its policy's name is the label in tables."""

    scenario: Scenario
    policy: PolicySpec


def run_all(order: Order, settings: Settings) -> int:
    """Run everything, print and write it; the exit code."""
    planned = plan_runs(order)
    # Before the first of them: what it found would be lost when a later one cannot begin.
    check_installed(one.policy.kind for one in planned)
    collector.collect_rarely()
    with _page(order.dashboard_port) as observe:
        results = [_run_one(order, one, len(planned), observe, settings) for one in planned]
    if order.report is not None:
        from holokube.report.document import write_report

        write_report(results, order.report)
        click.echo(f"Report: {order.report}", err=True)
    _print(results, order.output, settings)
    held = all(outcome.holds for result in results for outcome in result.outcomes)
    return 0 if held else ASSERTION_MISSED


def plan_runs(order: Order) -> list[Planned]:
    """The scenario with each policy, then each variant with each."""
    path = order.scenario / SCENARIO_FILE if order.scenario.is_dir() else order.scenario
    base = read_scenario(path)
    found = [Planned(base, policy) for policy in choose(base, order.policies)]
    for variant in order.variants:
        changed = read_scenario(path, variants=[variant])
        chosen = choose(changed, order.policies)
        for policy in chosen:
            label = variant.stem if len(chosen) == 1 else f"{policy.name}/{variant.stem}"
            found.append(Planned(changed, replace(policy, name=label)))
    return found


def choose(scenario: Scenario, names: Sequence[str]) -> list[PolicySpec]:
    """The policies of a scenario by name; those that it does not list, by kind and with their defaults."""
    if not names:
        return list(scenario.policies)
    listed = {policy.name: policy for policy in scenario.policies}
    found = []
    for name in dict.fromkeys(names):
        if name in listed:
            found.append(listed[name])
        elif name in kinds():
            found.append(PolicySpec(name))
        else:
            raise UsageError(
                f"--policy {name}: the scenario has no policy of that name, and there is no such kind",
                hint=f"It has {', '.join(listed)}; kinds are {', '.join(kinds())}.",
            )
    return found


@contextmanager
def _page(port: int | None) -> Iterator[Observe | None]:
    """The live page, while the runs go on."""
    if port is None:
        yield None
        return
    from holokube.dashboard.run_watching import RunPage

    # A run is over before anybody has typed the address. A person gets to see it from the beginning; a script, which
    # could not press anything, does not wait.
    is_waited_for = sys.stderr.isatty()
    pace = Pace(WATCHED_SPEED, is_paused=True) if is_waited_for else None
    page = RunPage(WallClock(), pace=pace, port=port)
    click.echo(f"Dashboard: {page.start()}", err=True)
    if is_waited_for:
        click.echo("The run waits there for you to press Resume; Ctrl-C ends it.", err=True)
    try:
        yield page.observe
    finally:
        page.stop()


def _run_one(
    order: Order, planned: Planned, count: int, observe: Observe | None, settings: Settings
) -> RunResult:
    if count > 1:
        # The clusters of the runs before are full of cycles, and nobody else takes them away.
        gc.collect()
    line = ProgressLine()
    label = planned.policy.name if count > 1 else ""
    with _said(is_shown=settings.verbosity > 0), _log_file(order.event_log, label) as event_log:
        return run_scenario(
            planned.scenario, planned.policy, seed=order.seed, event_log=event_log,
            on_progress=lambda progress: _show(line, progress), observe=observe,
        )  # fmt: skip


@contextmanager
def _said(*, is_shown: bool) -> Iterator[None]:
    """What the components of a cluster log: as it comes, or in few lines at the end.

    In a run with faults they have the same to say hundreds of times, and it is what the scenario is about.
    """
    if is_shown:
        yield
        return
    with log.counted(is_on_purpose) as counts:
        yield
    if counts:
        click.echo("  logged meanwhile (-v shows it as it comes):", err=True)
        for text, number in counts.most_common(SAID_MOST):
            click.echo(f"  {number:6,} x {text.removeprefix('holokube.')}", err=True)
        if len(counts) > SAID_MOST:
            click.echo(f"         and {len(counts) - SAID_MOST:,} other messages", err=True)


def _show(line: ProgressLine, progress: Progress) -> None:
    text = (
        f"{progress.scenario}, {progress.policy}: {_hours(progress.done_s)} of {_hours(progress.duration_s)} h, "
        f"{progress.speed_up:,.0f} times real time, {progress.nodes} nodes, {progress.pending} pods pending"
    )
    if progress.done_s < progress.duration_s:
        line.show(text, progress.took_s)
    else:
        line.done(f"{text}, {progress.took_s:.1f} s")


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02}"


@contextmanager
def _log_file(path: Path | None, label: str) -> Iterator[TextIO | None]:
    """The event log of a run. It gets its name when it is complete; an interrupted one is not left behind."""
    if path is None:
        yield None
        return
    final = path.with_name(f"{path.stem}.{label.replace('/', '-')}{path.suffix}") if label else path
    partial = final.with_name(f".{final.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as out:
            yield out
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


def _print(results: Sequence[RunResult], output: str, settings: Settings) -> None:
    if output == "json":
        sys.stdout.write(orjson.dumps(as_document(results), option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(csv_rows(results))
    else:
        from rich.console import Console

        from holokube.cli.run_tables import show_runs

        console = Console(
            no_color=not settings.colors_stdout(), highlight=False, width=None if sys.stdout.isatty() else 160
        )
        show_runs(console, results)
