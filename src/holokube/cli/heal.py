"""``holokube heal node``: end the faults of hollow nodes."""

from __future__ import annotations

import asyncio

import click

from holokube.cli.fault import KINDS
from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("heal")
@click.argument("what", type=click.Choice(["node"]), metavar="node", expose_value=False)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only this fault; may be repeated.")
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="Select nodes by label instead of by name.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, names: tuple[str, ...], kinds: tuple[str, ...], selector: str,
            kubeconfig: str, context: str) -> None:
    """End the faults of hollow nodes: all of them, or those given with --kind.

    Removes the annotation or label holokube.dev/fault, and kwok's label for a node that is not ready.
    """  # fmt: skip
    settings.configure_logging()
    asyncio.run(_heal(names, kinds, selector, kubeconfig, context))


async def _heal(names: tuple[str, ...], kinds: tuple[str, ...], selector: str, kubeconfig: str, context: str) -> None:
    from holokube.base.clock import WallClock
    from holokube.cli.node_faults import chosen_nodes, heal_node
    from holokube.cli.progress import ProgressLine
    from holokube.client.client import Client
    from holokube.client.http import HttpTransport
    from holokube.client.kubeconfig import load_access

    progress, healed = ProgressLine(), 0
    async with Client(HttpTransport(WallClock(), load_access(kubeconfig, context))) as client:
        chosen = await chosen_nodes(client, names, selector)
        for name in chosen:
            healed += await heal_node(client, name, kinds)
            progress.show(name)
    progress.done(f"{healed} of {len(chosen)} nodes healed")
