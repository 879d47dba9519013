"""``holokube cloud-provider``: hollow nodes for the real cluster-autoscaler."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("cloud-provider")
@click.option(
    "--provider", type=click.Choice(["kwok", "kubemark"]), default="kwok", show_default=True,
    help="The kind of node groups to serve.",
)  # fmt: skip
@click.option(
    "--address", default="127.0.0.1:8086", show_default=True, metavar="HOST:PORT",
    help="Address on which gRPC is served; port 0 is replaced by a free one.",
)  # fmt: skip
@click.option(
    "--advertise", default="", metavar="HOST:PORT",
    help="Address for the printed file, if the autoscaler does not reach it at --address: the name of a Service, "
    "perhaps.",
)  # fmt: skip
@click.option(
    "--key", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Private key of the server, PEM; enables TLS together with --cert. Reloaded when it changes.",
)  # fmt: skip
@click.option(
    "--cert", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Its certificate, for the host that the autoscaler connects to.",
)  # fmt: skip
@click.option(
    "--cacert", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="CA of client certificates (mutual TLS); clients without one are rejected.",
)  # fmt: skip
@click.option(
    "--certificates", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="FOLDER",
    help="Instead of these three: create a CA, and certificates for both sides, in this folder.",
)  # fmt: skip
@click.option(
    "--kwok-templates", default="", type=click.Path(), metavar="FILE", envvar="KWOK_TEMPLATES_PATH",
    help="Node templates of kwok groups; by default the ConfigMap kwok-provider-config, or the cluster's nodes.",
)  # fmt: skip
@click.option("--nodes", multiple=True, metavar="MIN:MAX:NAME", help="A kubemark group; may be repeated.")
@click.option(
    "--external-kubeconfig", default="", type=click.Path(), metavar="FILE",
    help="The cluster in which kubemark's hollow nodes run as pods; by default the same cluster.",
)  # fmt: skip
@click.option("--external-context", default="", metavar="NAME", help="Context of --external-kubeconfig.")
@click.option(
    "--kubemark-template", default="", type=click.Path(), metavar="FILE",
    help="A ReplicationController for each kubemark group; by default taken from the hollow nodes that run.",
)  # fmt: skip
@click.option(
    "--kubemark-template-config-map", default="", metavar="NAME", help="A ConfigMap of the external cluster with these."
)
@click.option(
    "--kubemark-namespace", default="kubemark", show_default=True, metavar="NAME", help="Namespace of the hollow nodes."
)
@click.option(
    "--cleanup", type=click.Choice(["request", "exit", "never"]), default="request", show_default=True,
    help="When kwok's nodes are removed: when the autoscaler exits and requests it, also when this program exits, or "
    "never, so that both can be restarted.",
)  # fmt: skip
@click.option(
    "--grpc-timeout", default="1m", show_default=True, metavar="DURATION",
    help="Timeout of the autoscaler's calls, for the printed file; its default of 5s is short for many nodes at once.",
)  # fmt: skip
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random by default.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 disables it.",
)  # fmt: skip
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: object) -> int:
    """Serve hollow nodes to the real cluster-autoscaler.

    Implements the protocol of its externalgrpc provider. When it is ready, it prints the file for --cloud-config on
    stdout; start the autoscaler with --cloud-provider=externalgrpc --cloud-config=FILE. Faults of kwok's groups are
    annotations on templates. Runs until Ctrl-C or SIGTERM, with exit code 0. Needs the extra grpc.
    """
    settings.configure_logging()
    from holokube.cli.cloud_provider_run import CloudProviderPlan, CloudProviderRun

    return CloudProviderRun(CloudProviderPlan(**given)).run()  # type: ignore[arg-type]  # click's names are the plan's
