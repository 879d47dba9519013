"""``holokube fleet``: hollow kubelets for any API server."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.one_node_options import OneNode, one_node_options
from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("fleet")
@click.option("--manage-all-nodes", is_flag=True, help="Speak for every node of the cluster.")
@click.option(
    "--manage-nodes-with-annotation-selector", "annotation_selector", default="", metavar="SELECTOR",
    help="Nodes whose annotations match; kwok.x-k8s.io/node=fake if no way to choose nodes is given.",
)  # fmt: skip
@click.option(
    "--manage-nodes-with-label-selector", "label_selector", default="", metavar="SELECTOR",
    help="Nodes whose labels match; together with annotations, nodes that match both.",
)  # fmt: skip
@click.option(
    "--node-lease-duration-seconds", "lease_duration_s", type=click.IntRange(0, 3600), default=40, show_default=True,
    metavar="SECONDS", help="How long leases last; they are renewed four times as often. 0 for no leases.",
)  # fmt: skip
@click.option(
    "--profile", default="fast", show_default=True, metavar="fast|kubelet|FILE",
    help="How pods and nodes behave: one status patch per pod, all that a kubelet sends, or a profile file.",
)  # fmt: skip
@click.option(
    "--stages", "stage_files", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Nodes or pods live by kwok's Stages in this file or folder instead of by the profile; may be repeated.",
)  # fmt: skip
@click.option("--cluster-stages", is_flag=True, help="Live by the Stage objects of the cluster as well.")
@click.option(
    "--shard", default="", metavar="I/N",
    help="This is fleet I of N, counted from 0, and begins with its share of the nodes; it takes those of another "
    "when nobody else renews their leases. `ordinal/N` takes I from the end of HOSTNAME, as StatefulSets number "
    "their pods.",
)  # fmt: skip
@click.option(
    "--register", type=click.IntRange(0), default=0, metavar="N", help="Also create N nodes of its own, if missing."
)
@click.option(
    "--name-prefix", default="hollow-", show_default=True, metavar="PREFIX",
    help="How the nodes of --register are called, with a number behind.",
)  # fmt: skip
@click.option(
    "--identity", default="", metavar="NAME",
    help="Holder of the leases, unique in the cluster. One that survives a restart, such as the name of a "
    "StatefulSet's pod, goes on with its leases at once. Random unless told; of --node-name, the node's name.",
)  # fmt: skip
@one_node_options
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random unless told.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 for no.",
)  # fmt: skip
@click.option(
    "--kubelet-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Answer there for the kubelets, over HTTPS: `kubectl logs`, /stats/summary, /metrics/resource. "
    "Host 127.0.0.0/8 answers at all loopback addresses; any other than a loopback one needs "
    "--kubelet-client-ca-file. 0 for no.",
)  # fmt: skip
@click.option(
    "--node-ip", default="", metavar="ADDRESS",
    help="Internal address of nodes that have none: where the API server reaches --kubelet-address.",
)  # fmt: skip
@click.option(
    "--kubelet-client-ca-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Authority that signed the certificates of who may ask the kubelets, the API server above all.",
)  # fmt: skip
@click.option(
    "--kubelet-tls-cert-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Certificate of the kubelets, with --kubelet-tls-private-key-file; self-made unless told.",
)  # fmt: skip
@click.option(
    "--kubelet-tls-private-key-file", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Its key.",
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

    Adopts the nodes that a selector picks, keeps their leases and status alive and brings the pods bound to them
    through their lives; nothing else in the cluster is touched. Several processes may share a cluster: each speaks
    for the nodes whose leases it holds, and takes over those of one that died. Ctrl-C or SIGTERM gives the leases
    back and ends it, with exit code 0.

    With --node-name it is the kubelet of that node alone, which it registers: so a pod can be a hollow node.
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
