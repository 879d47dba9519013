"""``holokube up``: an embedded cluster in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.policy_option import POLICIES
from holokube.cli.settings import Settings, common_options

_COMPONENTS = ("scheduler", "controllers", "fleet")


def _components(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    if value in ("all", "none"):
        return _COMPONENTS if value == "all" else ()
    words = tuple(word.strip() for word in value.split(","))
    for word in words:
        if word not in _COMPONENTS:
            raise click.BadParameter(
                f"{word!r} is not a component; give all, none, or some of {', '.join(_COMPONENTS)}"
            )
    return words


@click.command("up")
@click.option(
    "--nodes", type=click.IntRange(0, 100_000), default=0, show_default=True, metavar="N",
    help="Number of hollow nodes to start with; `holokube scale nodes` changes it later.",
)  # fmt: skip
@click.option(
    "--zone", "zones", multiple=True, metavar="ZONE",
    help="Zone label (topology.kubernetes.io/zone) of these nodes; if repeated, nodes get the zones in turn.",
)  # fmt: skip
@click.option(
    "--profile", default="kubelet", show_default=True, metavar="fast|kubelet|FILE",
    help="How hollow nodes and pods behave: kubelet shows all phases and events of a real one, fast takes as few steps "
    "as possible, a file describes its own.",
)  # fmt: skip
@click.option(
    "--components", default="all", show_default=True, metavar="LIST", callback=_components,
    help="What runs besides the API server: all, none, or some of scheduler,controllers,fleet. Leave one out to run "
    "your own in its place.",
)  # fmt: skip
@click.option(
    "--policy", type=click.Choice(POLICIES), default="none", show_default=True,
    help="The autoscaler that decides how many nodes there are.",
)  # fmt: skip
@click.option(
    "--policy-flags", default="", metavar="FLAGS",
    help='Flags of the policy, with upstream\'s names, as one string: "--expander=price --scan-interval=2s".',
)  # fmt: skip
@click.option(
    "--node-groups", default="", metavar="FILE",
    help="Node templates of the Cluster Autoscaler's groups, in the format of its kwok provider: Nodes with "
    "annotations cluster-autoscaler.kwok.nodegroup/*, or the output of `kubectl get nodes -o yaml`. By default three "
    "groups: small, medium and large.",
)  # fmt: skip
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
    help="Address to listen on. Anything but a loopback address exposes the cluster to the network.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=None, metavar="PORT",
    help="Port to listen on, 0 for a free one. By default the last one of the data directory, or else a free one.",
)  # fmt: skip
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Where to write the kubeconfig. By default into the data directory, or else into your runtime directory, "
    "from which it is removed at the end.",
)  # fmt: skip
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="DIR",
    help="Keep objects, credentials and port here, so that the next `up` continues where this one stopped. "
    "Without it, everything is discarded at the end.",
)  # fmt: skip
@click.option(
    "--from", "snapshot", default="", metavar="FILE",
    help="Start with the objects in a file: a snapshot, the output of `kubectl get -o yaml`, or manifests; "
    "JSON or YAML, optionally gzipped, - for standard input.",
)  # fmt: skip
@click.option(
    "--seed", default="", metavar="SEED",
    help="Seed of uids and generated names: the same seed and the same requests give the same names.",
)  # fmt: skip
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Also serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 disables it.",
)  # fmt: skip
@click.option(
    "--dashboard-port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
    help="Port of the dashboard, always on 127.0.0.1; by default a free one.",
)  # fmt: skip
@click.option("--no-dashboard", is_flag=True, help="Do not serve the dashboard.")
@common_options
@click.pass_obj
def command(
    settings: Settings,
    nodes: int,
    zones: tuple[str, ...],
    profile: str,
    components: tuple[str, ...],
    policy: str,
    policy_flags: str,
    node_groups: str,
    host: str,
    port: int | None,
    kubeconfig_out: Path | None,
    data_dir: Path | None,
    snapshot: str,
    seed: str,
    metrics_address: str,
    dashboard_port: int,
    no_dashboard: bool,
) -> int:
    """Run a Kubernetes cluster in the foreground.

    It has an API server, a scheduler, controllers and hollow nodes: every Node object gets a kubelet that runs no
    containers but behaves as if it did. When it is ready, it prints KUBECONFIG=..., HOLOKUBE_DASHBOARD=... (the address
    of a live page) and HOLOKUBE_SERVER=... on stdout. Ctrl-C or SIGTERM stops it cleanly, with exit code 0; a second
    one ends it immediately.
    """
    settings.configure_logging()
    from holokube.cli.foreground import Foreground, Plan

    if nodes and "fleet" not in components:
        raise click.UsageError(
            f"--nodes {nodes} needs the component fleet, for nobody else would make them Ready; "
            "add it to --components, or leave --nodes out"
        )
    if policy != "none" and "fleet" not in components:
        raise click.UsageError(
            f"--policy {policy} needs the component fleet, for nobody else would make its nodes Ready; "
            "add it to --components"
        )
    plan = Plan(
        host, port, kubeconfig_out, data_dir, snapshot, seed, metrics_address, nodes, profile, zones, components,
        policy, policy_flags, node_groups, None if no_dashboard else dashboard_port,
    )  # fmt: skip
    return Foreground(plan, settings).run()
