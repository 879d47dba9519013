"""``holokube snapshot``: a live cluster, read only, into a file."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import click

from holokube.cli.progress import ProgressLine
from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("snapshot")
@click.option(
    "-o", "--output", default="yaml", metavar="FILE",
    help="File to write: .json or .yaml, optionally with .gz. `yaml` (the default) and `json` write to stdout. "
    "JSON is read many times faster.",
)  # fmt: skip
@click.option(
    "-n", "--namespace", "namespaces", multiple=True, metavar="NAME",
    help="Only objects in this namespace, and cluster-scoped ones; may be repeated.",
)  # fmt: skip
@click.option(
    "--exclude", multiple=True, metavar="RESOURCE",
    help="Leave out a resource, such as configmaps or replicasets.apps; may be repeated.",
)  # fmt: skip
@click.option("--include-events", is_flag=True, help="Include events, which are many and soon outdated.")
@click.option("--include-leases", is_flag=True, help="Include leases, which are renewed every few seconds.")
@click.option("--include-secret-data", is_flag=True, help="Include the values of secrets, not only their keys.")
@cluster_options
@common_options
@click.pass_obj
def command(
    settings: Settings,
    output: str,
    namespaces: tuple[str, ...],
    exclude: tuple[str, ...],
    include_events: bool,
    include_leases: bool,
    include_secret_data: bool,
    kubeconfig: str,
    context: str,
) -> None:
    """Read a live cluster into a file that `holokube up --from` accepts.

    Nothing in the cluster is changed. Objects are written as the server sent them, as one Kubernetes List;
    events, leases and the values of secrets are left out unless requested. Resources that you may not list
    are reported, and then the exit code is 1.
    """
    settings.configure_logging()
    target, as_json = _target(output)
    from holokube.cli.dump import EVENTS, LEASES, Selection

    skipped = frozenset(name.lower() for name in exclude)
    if not include_events:
        skipped |= EVENTS
    if not include_leases:
        skipped |= LEASES
    selection = Selection(namespaces, skipped, include_secret_data)
    asyncio.run(_snapshot(target, as_json, selection, kubeconfig, context))


def _target(output: str) -> tuple[str, bool]:
    """Where to, and whether as JSON."""
    if output in ("yaml", "json", "-"):
        return "-", output == "json"
    path = Path(output)
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in (".json", ".yaml", ".yml"):
        raise click.BadParameter(
            f"{output!r} ends neither in .json nor in .yaml (nor either with .gz)", param_hint="'-o'"
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise click.BadParameter(f"{output!r} is not a file in an existing folder", param_hint="'-o'")
    return output, suffix == ".json"


async def _snapshot(target: str, as_json: bool, selection: object, kubeconfig: str, context: str) -> None:
    from holokube import __version__
    from holokube.base.clock import WallClock
    from holokube.base.errors import HolokubeError
    from holokube.cli.dump import Dump, Selection
    from holokube.cli.list_file import ListFile
    from holokube.client.client import Client
    from holokube.client.http import HttpTransport
    from holokube.client.kubeconfig import load_access
    from holokube.kube.timeformat import format_time

    assert isinstance(selection, Selection)
    clock = WallClock()
    access = load_access(kubeconfig, context)
    progress = ProgressLine()
    annotations = {
        "holokube.dev/version": __version__,
        "holokube.dev/server": access.server,
        "holokube.dev/taken-at": format_time(clock.now()),
    }
    async with Client(HttpTransport(clock, access)) as client:
        dump = Dump(client, selection, partial(_show, progress))
        with ListFile(target, as_json=as_json, annotations=annotations) as file:
            async for batch in dump.read():
                file.add(batch)
    progress.done(f"{file.count} objects{'' if target == '-' else f' in {target}'}")
    if dump.failed:
        for name, why in dump.failed.items():
            click.echo(f"not readable: {name}: {why}", err=True)
        raise HolokubeError(
            f"the snapshot lacks {', '.join(dump.failed)}, which you may not list",
            hint="Ask for permission to list them, or leave them out with --exclude.",
        )


def _show(progress: ProgressLine, name: str, number: int, total: int) -> None:
    progress.show(f"reading {name} ({number}/{total})")
