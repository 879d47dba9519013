"""``holokube plan``: what an autoscaler would do to a cluster, and why, without touching it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from holokube.cli.catalog_option import overlays_option
from holokube.cli.settings import Settings, common_options

if TYPE_CHECKING:
    from rich.console import Console

# Policy -> its module, which has a function ``plan(Request) -> Answer``.
POLICIES: Mapping[str, str] = {
    "cluster-autoscaler": "holokube.cli.plan_cluster_autoscaler",
    "karpenter": "holokube.cli.plan_karpenter",
    "optimal": "holokube.cli.plan_optimal",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be planned, and how."""

    files: tuple[str, ...]
    """Files and folders, ``-`` for standard input."""
    templates: tuple[str, ...]
    flags: tuple[str, ...]
    """The policy's own flags."""
    seed: str
    node_order: str | None
    waits: bool
    catalog: str = ""
    """A file with instance types."""
    overlays: str = ""
    """A file with other prices for them."""
    time_limit_s: float | None = None
    """For a search that gets better the longer it goes on."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy would do."""

    values: dict[str, Any]
    """For ``-o json`` and ``-o yaml``."""
    show: Callable[[Console], None]
    """For people."""


@click.command(
    "plan", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
)
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, metavar="FILE",
    help="A snapshot, the output of `kubectl get nodes,pods,... -A -o json|yaml`, manifests, or a scenario; a folder "
    "stands for all .json and .yaml files in it, - for standard input. May be repeated.",
)  # fmt: skip
@click.option(
    "--policy", type=click.Choice(sorted(POLICIES)), default="cluster-autoscaler", show_default=True,
    help="The autoscaler that plans.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True,
    help="Output format; json and yaml contain every reason.",
)  # fmt: skip
@click.option(
    "--templates", multiple=True, metavar="FILE",
    help="Node templates of further groups, in the format of the kwok provider: one Node, a List, or several "
    "documents, with annotations cluster-autoscaler.kwok.nodegroup/{name,min-count,max-count,price-per-hour}. May be "
    "repeated.",
)  # fmt: skip
@click.option(
    "--catalog", default="", type=click.Path(), metavar="FILE",
    help="Instance types and prices for karpenter and optimal: JSON in the format of upstream's kwok provider, "
    "or CSV; by default generated.",
)  # fmt: skip
@overlays_option
@click.option(
    "--time-limit", "time_limit_s", type=click.FloatRange(min=0.1), default=None, metavar="SECONDS",
    help="Stop the search of optimal after this time, with the best plan so far; only without a limit do the same "
    "files always give the same plan.",
)  # fmt: skip
@click.option(
    "--wait/--no-wait", "waits", default=True,
    help="Wait until unneeded nodes may be removed, or plan only for this moment.",
)  # fmt: skip
@click.option("--seed", default="0", show_default=True, metavar="SEED", help="Seed of random choices between equals.")
@click.option(
    "--node-order", default=None, metavar="SEED",
    help="Try nodes for pods in a random order with this seed, as the real autoscaler does; by default in the order of "
    "the file. Where plans differ, the outcome is a matter of chance.",
)  # fmt: skip
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- POLICY FLAGS]")
@common_options
@click.pass_obj
def command(
    settings: Settings,
    files: tuple[str, ...],
    policy: str,
    output: str,
    templates: tuple[str, ...],
    catalog: str,
    overlays: str,
    time_limit_s: float | None,
    waits: bool,
    seed: str,
    node_order: str | None,
    flags: tuple[str, ...],
) -> None:
    """Show what an autoscaler would do to a cluster, and why.

    The autoscaler runs on a copy of what the files contain, on virtual time; nothing outside is touched. The policy's
    own flags may follow, with their usual names and defaults: --expander=price, --nodes=1:10:default-pool,
    --scale-down-utilization-threshold=0.6 for cluster-autoscaler, --preference-policy=Ignore,
    --feature-gates=SpotToSpotConsolidation=true for karpenter.

    A scenario (an object with nodeGroups) is played by cluster-autoscaler; its answer has one entry per loop. A problem
    (an object with nodePools) is solved by karpenter and optimal, which otherwise need NodePools among the objects.
    Policy optimal looks for the cheapest plan, and reports how far it can be from the cheapest possible.
    """
    settings.configure_logging()
    request = Request(
        files, templates, tuple(flag for flag in flags if flag != "--"), seed, node_order, waits, catalog,
        overlays, time_limit_s)
    answer: Answer = importlib.import_module(POLICIES[policy]).plan(request)
    if output == "json":
        import orjson

        sys.stdout.buffer.write(orjson.dumps(answer.values, option=orjson.OPT_INDENT_2) + b"\n")
    elif output == "yaml":
        from holokube.kube.yaml_text import dump_document

        sys.stdout.buffer.write(dump_document(answer.values).encode())
    else:
        from rich.console import Console

        # Whoever reads the output from a pipe wants whole lines.
        width = None if sys.stdout.isatty() else 240
        answer.show(Console(no_color=not settings.colors_stdout(), highlight=False, width=width))
