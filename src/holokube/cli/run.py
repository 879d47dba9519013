"""``holokube run``: scenarios on virtual time, one run per policy, compared side by side."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.settings import Settings, common_options

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("run")
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO")
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME",
    help="Run only this policy of the scenario; may be repeated. A kind of policy that the scenario does not list runs "
    "with its defaults.",
)  # fmt: skip
@click.option(
    "--variant", "variants", multiple=True, type=_FILE, metavar="FILE",
    help="Also run the scenario with the changes in this file; may be repeated.",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=None, metavar="SEED",
    help="Seed of all random draws; by default that of the scenario.",
)  # fmt: skip
@click.option(
    "--report", type=_FILE, default=None, metavar="F.html",
    help="Write a report: one HTML file that opens offline in any browser.",
)  # fmt: skip
@click.option(
    "--event-log", type=_FILE, default=None, metavar="FILE",
    help="Write what happened and what was decided, as JSON lines. With several runs there is a file for each, with "
    "the run's name before the extension.",
)  # fmt: skip
@click.option(
    "--dashboard", is_flag=True,
    help="Serve a live page that shows the runs, and can slow them down or pause them. On a terminal, the first run "
    "waits for you to press Resume there.",
)  # fmt: skip
@click.option(
    "--dashboard-port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
    help="Port of the live page, on 127.0.0.1; by default a free one.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="Output format.",
)  # fmt: skip
@common_options
@click.pass_obj
def command(
    settings: Settings,
    scenario: Path,
    policies: tuple[str, ...],
    variants: tuple[Path, ...],
    seed: int | None,
    report: Path | None,
    event_log: Path | None,
    dashboard: bool,
    dashboard_port: int,
    output: str,
) -> int:
    """Run SCENARIO on virtual time, once for each of its policies, and compare the runs.

    All components run as in `holokube up`: API server, scheduler, controllers, hollow kubelets and autoscaler; only
    time is virtual. The same seed gives the same results, byte for byte. Exit codes: 0 done, 3 an assertion of the
    scenario does not hold.
    """
    settings.configure_logging()
    from holokube.cli.run_many import Order, run_all

    port = dashboard_port if dashboard or dashboard_port else None
    order = Order(scenario, policies, variants, seed, report, event_log, output, port)
    return run_all(order, settings)
