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
    help="Run with each of these values: spec.workloads[web].curve.high=20,40. Several --set run every combination.",
)  # fmt: skip
@click.option(
    "--list", "list_file", type=_FILE, metavar="F.csv",
    help="Run with each row of this file: its header has paths, and optionally policy. Every row is combined with "
    "every combination of --set.",
)  # fmt: skip
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME",
    help="Run only this policy of the scenario; may be repeated.",
)  # fmt: skip
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=None, metavar="N",
    help="Number of processes on this machine; by default one per core.",
)  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Run on the workers of this Dask scheduler: tcp://host:8786.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Keep each finished run in this folder. Runs that are already there are not repeated.",
)  # fmt: skip
@click.option("--report", type=_FILE, metavar="F.html", help="Write a report with a small chart for each run.")
@click.option(
    "--measure", "measures", multiple=True, metavar="NAME",
    help="Show this measure in the table, such as cost_usd; may be repeated.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="Output format; json and csv have all measures.",
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

    Settings are a grid (--set) or a list (--list). The runs use all cores, or the workers of a Dask cluster. A run
    whose worker dies is retried twice. With --out, an interrupted sweep resumes where it stopped. Exit codes: 0 done, 1
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
