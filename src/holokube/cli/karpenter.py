"""``holokube karpenter``: Karpenter on any cluster, with upstream's flags and environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from holokube.cli.catalog_option import overlays_option
from holokube.cli.settings import Settings, cluster_options, common_options
from holokube.karpenter.settings import FLAGS, Flag

F = TypeVar("F", bound=Callable[..., Any])

_VERBOSITY = {"debug": 2, "info": 1}
"""What upstream's log levels mean for -v; nothing is logged but warnings unless told, as by all commands here."""


def _flag_options(command: F) -> F:
    for flag in reversed(FLAGS):
        command = _option(flag)(command)
    return command


def _option(flag: Flag) -> Callable[[F], F]:
    # Go's switches take a value only behind "=": --disable-leader-election=false.
    extra: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if _is_switch(flag) else {}
    shown = f"  [default: {flag.default}]" if flag.default else ""
    return click.option(
        f"--{flag.name}", _parameter(flag), default=None, metavar="[=true|false]" if _is_switch(flag) else "VALUE",
        help=f"{flag.text} ({flag.variable}){shown}", **extra,
    )  # fmt: skip


def _is_switch(flag: Flag) -> bool:
    return flag.default in ("true", "false")


def _parameter(flag: Flag) -> str:
    return "flag_" + flag.name.replace("-", "_")


@click.command("karpenter")
@_flag_options
@click.option(
    "--catalog", default="", type=click.Path(), metavar="FILE",
    help="Instance types and prices, JSON or CSV; the same as --instance-types-file-path. By default generated.",
)  # fmt: skip
@overlays_option
@click.option(
    "--no-crds", is_flag=True, help="Do not create or update the CustomResourceDefinitions of NodePools and NodeClaims."
)
@click.option("--identity", default="", metavar="NAME", help="Identity of the lease holder; by default the host name.")
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random by default.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: Any) -> int:
    """Create hollow nodes for unschedulable pods, and consolidate them.

    Takes the settings of Karpenter with their names and defaults, as flags or as environment variables; a flag wins.
    Watches NodePools and NodeClaims (karpenter.sh/v1). Runs until Ctrl-C or SIGTERM, with exit code 0; nodes stay.
    """
    flags = {flag.name: text for flag in FLAGS if (text := given.pop(_parameter(flag))) is not None}
    level = flags.get("log-level") or os.environ.get("LOG_LEVEL", "")
    settings.verbosity = max(settings.verbosity, _VERBOSITY.get(level, 0))
    settings.configure_logging()
    from holokube.cli.karpenter_run import KarpenterPlan, KarpenterRun

    return KarpenterRun(KarpenterPlan(flags=flags, **given)).run()
