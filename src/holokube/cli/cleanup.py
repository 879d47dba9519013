"""``holokube cleanup``: removes the nodes that kwok groups left on a cluster."""

from __future__ import annotations

import asyncio

import click

from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("cleanup")
@click.option("--node-group", "groups", multiple=True, metavar="GROUP",
              help="Only nodes of this group; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print the names of the nodes without removing any.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, groups: tuple[str, ...], dry_run: bool, kubeconfig: str, context: str) -> None:
    """Remove the nodes of kwok groups, and no others.

    A node is removed if it has the annotations kwok.x-k8s.io/node: fake and cluster-autoscaler.kwok.nodegroup/name,
    and a providerID kwok:NAME. Stop the autoscaler first, or it creates new ones. Pods on the nodes are left to the
    pod garbage collector. If interrupted, run it again to continue.
    """  # fmt: skip
    settings.configure_logging()
    asyncio.run(_clean_up(groups, kubeconfig, context, dry_run=dry_run))


async def _clean_up(groups: tuple[str, ...], kubeconfig: str, context: str, *, dry_run: bool) -> None:
    from holokube.base.clock import WallClock
    from holokube.cli.progress import ProgressLine
    from holokube.client.client import Client
    from holokube.client.http import HttpTransport
    from holokube.client.kubeconfig import load_access
    from holokube.cluster_autoscaler.cloud.kwok.cleanup import find_nodes, remove_nodes
    from holokube.cluster_autoscaler.cloud.kwok.marks import group_of

    progress = ProgressLine()
    async with Client(HttpTransport(WallClock(), load_access(kubeconfig, context))) as client:
        nodes = await find_nodes(client, groups or None)
        there = {group_of(node) for node in nodes}
        for missing in sorted(set(groups) - there):
            click.echo(f"no nodes of group {missing}", err=True)
        if dry_run:
            for node in nodes:
                click.echo(node["metadata"]["name"])
            progress.done(f"{len(nodes)} nodes of {len(there)} groups would be removed")
            return
        done = await remove_nodes(client, nodes, lambda done, total: progress.show(f"{done}/{total} nodes"))
    progress.done(f"{done} nodes of {len(there)} groups removed")
