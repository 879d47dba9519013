"""``holokube sweep``: one scenario with many settings, over all cores or a Dask cluster."""

from __future__ import annotations

import os
from pathlib import Path

import click

from holokube.cli.settings import Settings, common_options

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("sweep")
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO")
@click.option(
    "--set", "axes", multiple=True, metavar="PATH=A,B,...",
    help="Run with each of these values: spec.workloads[web].curve.high=20,40. With several --set, with each "
    "combination.",
)  # fmt: skip
@click.option(
    "--list", "list_file", type=_FILE, metavar="F.csv",
    help="Run with each row of this file: its header names paths, and perhaps policy. Every row goes with every "
    "combination of --set.",
)  # fmt: skip
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME",
    help="Only this policy of the scenario; may be given several times.",
)  # fmt: skip
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=None, metavar="N",
    help="Processes of this machine; one for each of its cores unless told.",
)  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler: tcp://host:8786.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep each finished run in this folder. Runs that are there already are not run again.",
)  # fmt: skip
@click.option("--report", type=_FILE, metavar="F.html", help="Write a report with a small chart for each run.")
@click.option(
    "--measure", "measures", multiple=True, metavar="NAME",
    help="Show this measure in the table, such as cost_usd; may be given several times.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="Form of what is printed; json and csv have all measures.",
)  # fmt: skip
@common_options
@click.pass_obj
def command(
    settings: Settings,
    scenario: Path,
    axes: tuple[str, ...],
    list_file: Path | None,
    policies: tuple[str, ...],
    jobs: int | None,
    dask: str | None,
    out: Path | None,
    report: Path | None,
    measures: tuple[str, ...],
    output: str,
) -> int:
    """Run SCENARIO with many settings, and put the results into one table.

    Settings are a grid (--set) or a list (--list). The runs go over all cores, or the workers of a Dask cluster. A run
    whose worker dies is tried twice more. With --out, an interrupted sweep goes on where it was. Exit codes: 0 done, 1
    some runs failed, 3 an assertion of the scenario does not hold.
    """
    settings.configure_logging()
    if dask is not None and jobs is not None:
        raise click.UsageError("--jobs is for this machine, and --dask for another; give one of them.")
    from holokube.cli.sweep_run import Order, run_sweep

    order = Order(scenario, axes, list_file, policies, jobs or _cores(), dask, out, report, measures, output)
    return run_sweep(order, settings)


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
