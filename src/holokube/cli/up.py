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
    help="Start with so many hollow nodes; `holokube scale nodes` changes their number later.",
)  # fmt: skip
@click.option(
    "--zone", "zones", multiple=True, metavar="ZONE",
    help="Value of topology.kubernetes.io/zone of these nodes; of several, nodes take them in turn.",
)  # fmt: skip
@click.option(
    "--profile", default="kubelet", show_default=True, metavar="fast|kubelet|FILE",
    help="How hollow nodes and pods behave: with all phases and events of a kubelet, as fast as possible, or as "
    "a profile file says.",
)  # fmt: skip
@click.option(
    "--components", default="all", show_default=True, metavar="LIST", callback=_components,
    help="What runs besides the API server: some of scheduler,controllers,fleet, or none, to put another in its "
    "place.",
)  # fmt: skip
@click.option(
    "--policy", type=click.Choice(POLICIES), default="none", show_default=True,
    help="Who decides how many nodes there are.",
)  # fmt: skip
@click.option(
    "--policy-flags", default="", metavar="FLAGS",
    help='Flags of the policy with upstream\'s names, as one text: "--expander=price --scan-interval=2s".',
)  # fmt: skip
@click.option(
    "--node-groups", default="", metavar="FILE",
    help="Node templates of cluster-autoscaler's groups, in the form of the kwok provider: Nodes with annotations "
    "cluster-autoscaler.kwok.nodegroup/*, or what `kubectl get nodes -o yaml` printed. Unless told: small, medium and "
    "large.",
)  # fmt: skip
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
    help="Address to listen on. Any other than a loopback address opens the cluster to the network.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=None, metavar="PORT",
    help="Port to listen on, 0 for a free one. Unless told: the data directory's last one, else a free one.",
)  # fmt: skip
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Where to write the kubeconfig. Unless told: into the data directory, else into a runtime directory "
    "of yours, from which it is removed at the end.",
)  # fmt: skip
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="DIR",
    help="Keep objects, credentials and port here, so that the next `up` goes on where this one stopped. "
    "Without it everything is forgotten at the end.",
)  # fmt: skip
@click.option(
    "--from", "snapshot", default="", metavar="FILE",
    help="Start with the objects of a file: a snapshot, the output of `kubectl get -o yaml`, or manifests; "
    "JSON or YAML, also gzipped, - for standard input.",
)  # fmt: skip
@click.option(
    "--seed", default="", metavar="SEED",
    help="Seed of uids and generated names: the same seed and requests give the same ones.",
)  # fmt: skip
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Also serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 for no.",
)  # fmt: skip
@click.option(
    "--dashboard-port", type=click.IntRange(0, 65535), default=0, metavar="PORT",
    help="Port of the live page, on 127.0.0.1 in any case. Unless told, a free one.",
)  # fmt: skip
@click.option("--no-dashboard", is_flag=True, help="Serve no live page.")
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

    It has an API server, a scheduler, controllers and hollow nodes: whatever Node object there is gets a kubelet
    that runs no containers and behaves as if it did. Prints KUBECONFIG=..., HOLOKUBE_DASHBOARD=... (a page to
    watch it on) and HOLOKUBE_SERVER=... on stdout when it is ready. Ctrl-C or SIGTERM stops it cleanly, with exit
    code 0; a second one ends it at once.
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
