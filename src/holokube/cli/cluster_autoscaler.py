"""``holokube cluster-autoscaler``: the Cluster Autoscaler on any cluster, with upstream's flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holokube.cli.settings import Settings, cluster_options, common_options
from holokube.cluster_autoscaler.flag_table import FLAGS, SECTIONS, Fate, Flag, Kind

F = TypeVar("F", bound=Callable[..., Any])

_HERE = "This program"


class _FlagOption(click.Option):
    """One of upstream's flags."""

    flag: Flag


class _Sectioned(click.Command):
    """Shows options by what they are about, as there are more than a hundred."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in (_HERE, *SECTIONS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                section = parameter.flag.section if isinstance(parameter, _FlagOption) else _HERE
                rows[section].append(record)
        for section, records in rows.items():
            with formatter.section(section):
                formatter.write_dl(records)


def _flag_options(command: F) -> F:
    for flag in reversed(FLAGS):
        command = _option(flag)(command)
    return command


def _option(flag: Flag) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        # Go's switches take a value only behind "=": --scale-down-enabled=false.
        extra: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if flag.kind is Kind.BOOL else {}
        decorated = click.option(
            f"--{flag.name}", _parameter(flag), cls=_FlagOption, multiple=True, metavar=_metavar(flag),
            help=_help(flag), **extra,
        )(command)
        made = decorated.__click_params__[-1]  # type: ignore[attr-defined]  # click keeps them there until the end
        made.flag = flag
        return decorated

    return decorate


def _parameter(flag: Flag) -> str:
    return "flag_" + flag.name.replace("-", "_")


def _metavar(flag: Flag) -> str:
    if flag.kind is Kind.BOOL:
        return "[=true|false]" if flag.default == "true" else ""
    return str(flag.kind.value).upper()


def _help(flag: Flag) -> str:
    if flag.fate is Fate.REFUSED:
        return f"Only {flag.default or 'empty'}: {flag.why}."
    if flag.fate is Fate.IGNORED:
        return f"Does nothing: {flag.why}."
    return f"{flag.help}  [default: {flag.default}]" if flag.default else flag.help


@click.command("cluster-autoscaler", cls=_Sectioned)
@_flag_options
@click.option(
    "--kwok-templates", default="", type=click.Path(), metavar="FILE", envvar="KWOK_TEMPLATES_PATH",
    help="Node templates of kwok groups; by default the ConfigMap kwok-provider-config, or the cluster's nodes.",
)  # fmt: skip
@click.option(
    "--external-kubeconfig", default="", type=click.Path(), metavar="FILE",
    help="The cluster in which kubemark's hollow nodes run as pods; by default the same cluster.",
)  # fmt: skip
@click.option("--external-context", default="", metavar="NAME", help="Context of --external-kubeconfig.")
@click.option(
    "--kubemark-template", default="", type=click.Path(), metavar="FILE",
    help="A ReplicationController for each kubemark group; by default taken from the hollow nodes that run.",
)  # fmt: skip
@click.option(
    "--kubemark-template-config-map", default="", metavar="NAME", help="A ConfigMap of the external cluster with these."
)
@click.option(
    "--kubemark-namespace", default="kubemark", show_default=True, metavar="NAME", help="Namespace of the hollow nodes."
)
@click.option(
    "--keep-nodes", is_flag=True,
    help="Keep nodes and status at the end; by default kwok's nodes are removed, as upstream does.",
)  # fmt: skip
@click.option(
    "--journal", default="", type=click.Path(), metavar="FILE",
    help="Write decisions and their reasons to this file, as JSON lines.",
)
@click.option("--identity", default="", metavar="NAME", help="Identity of the lease holder; by default the host name.")
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random by default.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: Any) -> int:
    """Scale node groups of hollow nodes up and down.

    Takes the flags of the Kubernetes Cluster Autoscaler, with its names and defaults. Those under "For compatibility"
    are accepted so that existing command lines work. Runs until Ctrl-C or SIGTERM, with exit code 0; removals that have
    not reached the cloud provider by then are cancelled.
    """
    settings.configure_logging()
    from holokube.cli.cluster_autoscaler_run import AutoscalerPlan, AutoscalerRun

    flags = {flag.name: texts for flag in FLAGS if (texts := given.pop(_parameter(flag)))}
    return AutoscalerRun(AutoscalerPlan(flags=flags, **given)).run()


