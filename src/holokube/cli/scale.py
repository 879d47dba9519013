"""``holokube scale nodes N``: as many hollow Node objects as asked for, on any cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from holokube.cli.settings import Settings, cluster_options, common_options

_OF_BUILT_IN = ("cpu", "memory", "pods", "zones", "labels", "taints", "resources")


@click.command("scale")
@click.argument("what", type=click.Choice(["nodes"]), metavar="nodes", expose_value=False)
@click.argument("count", type=click.IntRange(0, 1_000_000), metavar="N")
@click.option("--name-prefix", default="node", show_default=True, metavar="PREFIX",
              help="Nodes are named PREFIX-0, PREFIX-1 and so on; each prefix is a separate set.")
@click.option("--template", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
              help="A Node manifest, plain or with {{ Name }}, {{ Index }}, {{ AddIP }} and {{ AddCIDR }} in it.")
@click.option("--param", "parameters", multiple=True, metavar="KEY=VALUE",
              help="Parameter of the template, used as {{ .KEY }}; may be repeated.")
@click.option("--cpu", default=None, metavar="QUANTITY", help="CPUs of a node without a template; 32 by default.")
@click.option("--memory", default=None, metavar="QUANTITY", help="Its memory; 256Gi by default.")
@click.option("--pods", default=None, metavar="COUNT", help="Its maximum number of pods; 110 by default.")
@click.option("--resource", "resources", multiple=True, metavar="NAME=QUANTITY",
              help="Another resource, such as nvidia.com/gpu=8; may be repeated.")
@click.option("--zone", "zones", multiple=True, metavar="ZONE",
              help="Zone label (topology.kubernetes.io/zone); if repeated, nodes get the zones in turn.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label; may be repeated.")
@click.option("--taint", "taints", multiple=True, metavar="KEY[=VALUE]:EFFECT", help="A taint; may be repeated.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, count: int, name_prefix: str, template: Path | None,
            parameters: tuple[str, ...], kubeconfig: str, context: str, **built_in: object) -> None:
    """Create or remove hollow nodes until there are N of them.

    Only nodes that this command created with the same prefix count, and only they are removed, the newest first.
    A running fleet adopts them by their annotation kwok.x-k8s.io/node: fake. If interrupted, run it again to
    continue.
    """  # fmt: skip
    settings.configure_logging()
    from holokube.cli.node_options import built_in_maker, check_prefix, template_maker
    from holokube.hollow.node_sets import Maker, NodeSet

    check_prefix(name_prefix)
    maker: Maker
    if template is not None:
        given = [f"--{name.removesuffix('s') if name != 'pods' else name}" for name in _OF_BUILT_IN if built_in[name]]
        if given:
            raise click.UsageError(f"{', '.join(given)} cannot be used with --template, which says it all.")
        maker = template_maker(template, parameters)
    elif parameters:
        raise click.UsageError("--param needs --template.")
    else:
        maker = built_in_maker(built_in)
    asyncio.run(_scale(NodeSet(name_prefix, maker), count, kubeconfig, context))


async def _scale(nodes: object, count: int, kubeconfig: str, context: str) -> None:
    from holokube.base.clock import WallClock
    from holokube.cli.progress import ProgressLine
    from holokube.client.client import Client
    from holokube.client.http import HttpTransport
    from holokube.client.kubeconfig import load_access
    from holokube.hollow.node_sets import NodeSet

    assert isinstance(nodes, NodeSet)
    progress = ProgressLine()
    async with Client(HttpTransport(WallClock(), load_access(kubeconfig, context))) as client:
        result = await nodes.scale(client, count, lambda done, total: progress.show(f"{done}/{total} nodes"))
    progress.done(str(result))
