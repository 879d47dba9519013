"""The program ``holokube``: finds the command, runs it, and makes a message and an exit code of an error.

Commands are imported when they are asked for: ``holokube version`` must not wait for the API server's
modules.
"""

from __future__ import annotations

import difflib
import gc
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from holokube import __version__
from holokube.cli.errors import report
from holokube.cli.settings import Settings, common_options

# Command -> its module, which has it as ``command``, and the line that `holokube --help` shows.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("holokube.cli.up", "Run a Kubernetes cluster in the foreground."),
    "fleet": ("holokube.cli.fleet", "Run hollow kubelets for nodes of any cluster."),
    "scale": ("holokube.cli.scale", "Create or remove hollow nodes until there are N of them."),
    "fault": ("holokube.cli.fault", "Break hollow nodes, on any cluster with a fleet."),
    "heal": ("holokube.cli.heal", "End the faults of hollow nodes."),
    "cleanup": ("holokube.cli.cleanup", "Remove the nodes of kwok groups, and no others."),
    "node-sizing": ("holokube.cli.node_sizing", "Size DaemonSet pods by the node they run on."),
    "cluster-autoscaler": ("holokube.cli.cluster_autoscaler", "Scale node groups of hollow nodes up and down."),
    "cloud-provider": ("holokube.cli.cloud_provider", "Serve hollow nodes to the real cluster-autoscaler."),
    "karpenter": ("holokube.cli.karpenter", "Create hollow nodes for unschedulable pods, and consolidate them."),
    "run": ("holokube.cli.run", "Run SCENARIO on virtual time, once for each of its policies, and compare the runs."),
    "plan": ("holokube.cli.plan", "Show what an autoscaler would do to a cluster, and why."),
    "sweep": ("holokube.cli.sweep", "Run SCENARIO with many settings, and put the results into one table."),
    "explain": (
        "holokube.cli.explain", "Explain why a pod was pending, or why a node was added, kept or removed."
    ),
    "convert": ("holokube.cli.convert", "Convert a trace or recording into the format of another program."),
    "snapshot": ("holokube.cli.snapshot", "Read a live cluster into a file."),
    "version": ("holokube.cli.version", "Show the versions of holokube and of the API it serves."),
    "completion": ("holokube.cli.completion", "Print a script that completes commands and options in SHELL."),
}


class Program(click.Group):
    """The group of all commands, each loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click asks so
        return list(COMMANDS)

    def get_command(
        self, ctx: click.Context, cmd_name: str  # noqa: ARG002 - click asks so
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter  # noqa: ARG002 - click asks so
    ) -> None:
        # The inherited method would import every command for its one line.
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.format_message()} Did you mean {near[0]!r}?", ctx) from None


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common_options
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s", prog_name="holokube")
@click.pass_context
def program(context: click.Context) -> None:
    """A Kubernetes autoscaling laboratory that fits on a laptop.

    Data goes to stdout; logs and progress go to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 an
    assertion of a scenario failed, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    usual = gc.get_threshold()
    try:
        return _run(arguments)
    finally:
        # A command may have the collector come seldom, which is no matter of whoever goes on after it.
        gc.set_threshold(*usual)


def _run(arguments: Sequence[str] | None) -> int:
    settings = Settings()
    try:
        result: Any = program.main(
            None if arguments is None else list(arguments), "holokube", standalone_mode=False, obj=settings
        )
        sys.stdout.flush()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 1
    except BaseException as error:
        return report(error, settings)
    return result if isinstance(result, int) else 0


def main() -> None:
    """The entry point."""
    code = _run(None)
    # To look for garbage among all that lies around takes a second after a large run, and the process ends anyway.
    gc.freeze()
    sys.exit(code)
