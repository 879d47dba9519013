"""``holokube fleet``: hollow kubelets for any API server."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.one_node_options import OneNode, one_node_options
from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("fleet")
@click.option("--manage-all-nodes", is_flag=True, help="Adopt every node of the cluster.")
@click.option(
    "--manage-nodes-with-annotation-selector", "annotation_selector", default="", metavar="SELECTOR",
    help="Adopt nodes whose annotations match; kwok.x-k8s.io/node=fake if no other selection is given.",
)  # fmt: skip
@click.option(
    "--manage-nodes-with-label-selector", "label_selector", default="", metavar="SELECTOR",
    help="Adopt nodes whose labels match; together with an annotation selector, nodes that match both.",
)  # fmt: skip
@click.option(
    "--node-lease-duration-seconds", "lease_duration_s", type=click.IntRange(0, 3600), default=40, show_default=True,
    metavar="SECONDS", help="Duration of the leases, which are renewed every quarter of it. 0 for no leases.",
)  # fmt: skip
@click.option(
    "--profile", default="fast", show_default=True, metavar="fast|kubelet|FILE",
    help="How pods and nodes behave: fast sends one status patch per pod, kubelet all that a real one sends, a file "
    "describes its own.",
)  # fmt: skip
@click.option(
    "--stages", "stage_files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Let nodes or pods follow kwok's Stages in this file or folder instead of the profile; may be repeated.",
)  # fmt: skip
@click.option("--cluster-stages", is_flag=True, help="Also follow the Stage objects of the cluster.")
@click.option(
    "--shard", default="", metavar="I/N",
    help="This is fleet I of N, counted from 0: it starts with its share of the nodes, and takes over others when "
    "their leases are no longer renewed. `ordinal/N` takes I from the end of HOSTNAME, where StatefulSets put the "
    "number of a pod.",
)  # fmt: skip
@click.option(
    "--register", type=click.IntRange(0), default=0, metavar="N", help="Also create N nodes, if they do not exist."
)
@click.option(
    "--name-prefix", default="hollow-", show_default=True, metavar="PREFIX",
    help="Name of the nodes of --register, to which a number is appended.",
)  # fmt: skip
@click.option(
    "--identity", default="", metavar="NAME",
    help="Holder of the leases, unique in the cluster. One that survives a restart, such as the name of a "
    "StatefulSet's pod, keeps its leases. By default random; with --node-name, the name of the node.",
)  # fmt: skip
@one_node_options
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random by default.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 disables it.",
)  # fmt: skip
@click.option(
    "--kubelet-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve the kubelet API there, over HTTPS: `kubectl logs`, /stats/summary, /metrics/resource. Host 127.0.0.0/8 "
    "listens on all loopback addresses; anything but a loopback address needs --kubelet-client-ca-file. 0 disables it.",
)  # fmt: skip
@click.option(
    "--node-ip", default="", metavar="ADDRESS",
    help="InternalIP of nodes that have none: the address at which the API server reaches --kubelet-address.",
)  # fmt: skip
@click.option(
    "--kubelet-client-ca-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="CA of the client certificates that the kubelet API accepts, above all the API server's.",
)  # fmt: skip
@click.option(
    "--kubelet-tls-cert-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Certificate of the kubelet API, with --kubelet-tls-private-key-file; by default self-signed.",
)  # fmt: skip
@click.option(
    "--kubelet-tls-private-key-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Private key of the kubelet API.",
)  # fmt: skip
@cluster_options
@common_options
@click.pass_obj
def command(
    settings: Settings,
    /,
    manage_all_nodes: bool,
    annotation_selector: str,
    label_selector: str,
    lease_duration_s: int,
    profile: str,
    stage_files: tuple[Path, ...],
    cluster_stages: bool,
    shard: str,
    register: int,
    name_prefix: str,
    identity: str,
    seed: str,
    metrics_address: str,
    kubelet_address: str,
    node_ip: str,
    kubelet_client_ca_file: Path | None,
    kubelet_tls_cert_file: Path | None,
    kubelet_tls_private_key_file: Path | None,
    kubeconfig: str,
    context: str,
    **one_node: str,
) -> int:
    """Run hollow kubelets for nodes of any cluster.

    Adopts the nodes that a selector matches, keeps their leases and status up to date, and takes the pods bound to
    them through their lifecycles; nothing else in the cluster is touched. Several processes may share a cluster: each
    acts for the nodes whose leases it holds, and takes over the nodes of one that died. Ctrl-C or SIGTERM releases
    the leases and ends it, with exit code 0.

    With --node-name it registers that one node and is its kubelet alone, so that a pod can be a hollow node.
    """
    settings.configure_logging()
    from holokube.cli.fleet_run import FleetPlan, FleetRun

    plan = FleetPlan(
        manage_all_nodes, annotation_selector, label_selector, lease_duration_s, profile, shard, register,
        name_prefix, identity, seed, metrics_address, kubeconfig, context,
        stage_files, cluster_stages, kubelet_address, node_ip, kubelet_client_ca_file, kubelet_tls_cert_file,
        kubelet_tls_private_key_file, OneNode(**one_node).flags(),
    )  # fmt: skip
    return FleetRun(plan).run()
