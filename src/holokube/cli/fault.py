"""``holokube fault node``: break hollow nodes."""

from __future__ import annotations

import asyncio

import click

from holokube.cli.settings import Settings, cluster_options, common_options

KINDS = (
    "not-ready", "silent", "slow", "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable", "reboot",
)  # fmt: skip


@click.command("fault")
@click.argument("what", type=click.Choice(["node"]), metavar="node", expose_value=False)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", "kinds", multiple=True, required=True, type=click.Choice(KINDS),
              help="What is wrong with the nodes; may be repeated.")
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="Select nodes by label instead of by name.")
@click.option("--for", "duration", default="", metavar="DURATION",
              help="Heal after this time, such as 5m; Ctrl-C heals at once. By default the fault stays.")
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, names: tuple[str, ...], kinds: tuple[str, ...], selector: str,
            duration: str, kubeconfig: str, context: str) -> None:
    """Break hollow nodes, on any cluster with a fleet.

    The fault is an annotation of the Node object, holokube.dev/fault; `holokube heal` removes it. A silent node
    sends nothing any more, neither lease renewals nor the status of its pods; a reboot ends by itself.
    """  # fmt: skip
    settings.configure_logging()
    asyncio.run(_fault(names, kinds, selector, _seconds(duration), kubeconfig, context))


def _seconds(duration: str) -> float:
    from holokube.kube.timeformat import parse_duration

    if not duration:
        return 0.0
    try:
        seconds = parse_duration(duration)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--for'") from error
    if seconds <= 0:
        raise click.BadParameter(f"{duration} is not a time to wait", param_hint="'--for'")
    return seconds


async def _fault(
    names: tuple[str, ...], kinds: tuple[str, ...], selector: str, seconds: float, kubeconfig: str, context: str
) -> None:
    from holokube.base.clock import WallClock
    from holokube.cli.node_faults import break_node, chosen_nodes, heal_node, node_count
    from holokube.cli.progress import ProgressLine
    from holokube.client.client import Client
    from holokube.client.http import HttpTransport
    from holokube.client.kubeconfig import load_access
    from holokube.kube.timeformat import format_duration, format_micro_time

    clock, progress = WallClock(), ProgressLine()
    async with Client(HttpTransport(clock, load_access(kubeconfig, context))) as client:
        chosen = await chosen_nodes(client, names, selector)
        broken: list[str] = []
        try:
            for name in chosen:
                await break_node(client, name, kinds, format_micro_time(clock.time()))
                broken.append(name)
                progress.show(f"{name}: {', '.join(kinds)}")
            progress.done(f"{node_count(len(chosen))}: {', '.join(kinds)}")
            if seconds:
                progress.show(f"healing after {format_duration(seconds)}; Ctrl-C heals now")
                await clock.sleep(seconds)
        finally:
            if seconds:
                for name in broken:
                    await heal_node(client, name, kinds)
                progress.done(f"{node_count(len(broken))} healed")
