"""``holokube cloud-provider``: hollow nodes for the real cluster-autoscaler."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("cloud-provider")
@click.option(
    "--provider", type=click.Choice(["kwok", "kubemark"]), default="kwok", show_default=True,
    help="Whose node groups are served.",
)  # fmt: skip
@click.option(
    "--address", default="127.0.0.1:8086", show_default=True, metavar="HOST:PORT",
    help="Where gRPC is served; the port 0 is replaced by a free one.",
)  # fmt: skip
@click.option(
    "--advertise", default="", metavar="HOST:PORT",
    help="Where the autoscaler reaches it, if not at --address: the name of a Service, say. Goes into what is printed.",
)  # fmt: skip
@click.option(
    "--key", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Private key of the server, PEM; with --cert, TLS is spoken. Read again when it changes.",
)  # fmt: skip
@click.option(
    "--cert", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Its certificate, for the host that the autoscaler connects to.",
)  # fmt: skip
@click.option(
    "--cacert", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
    help="Authority that signed the certificates of clients; nobody else is served then.",
)  # fmt: skip
@click.option(
    "--certificates", type=click.Path(path_type=Path, file_okay=False), default=None, metavar="FOLDER",
    help="Instead of the three: make an authority and certificates for both sides in this folder.",
)  # fmt: skip
@click.option(
    "--kwok-templates", default="", type=click.Path(), metavar="FILE", envvar="KWOK_TEMPLATES_PATH",
    help="Nodes that kwok groups are made from; the ConfigMap kwok-provider-config or the cluster's nodes unless told.",
)  # fmt: skip
@click.option("--nodes", multiple=True, metavar="MIN:MAX:NAME", help="A group of kubemark; may be repeated.")
@click.option(
    "--external-kubeconfig", default="", type=click.Path(), metavar="FILE",
    help="The cluster in which kubemark's hollow nodes are pods; the same one unless told.",
)  # fmt: skip
@click.option("--external-context", default="", metavar="NAME", help="Its context.")
@click.option(
    "--kubemark-template", default="", type=click.Path(), metavar="FILE",
    help="A ReplicationController for each kubemark group; taken from hollow nodes that run unless told.",
)  # fmt: skip
@click.option(
    "--kubemark-template-config-map", default="", metavar="NAME", help="A ConfigMap of the external cluster with them."
)
@click.option(
    "--kubemark-namespace", default="kubemark", show_default=True, metavar="NAME", help="Of the hollow nodes."
)
@click.option(
    "--cleanup", type=click.Choice(["request", "exit", "never"]), default="request", show_default=True,
    help="When kwok's nodes are removed: when the autoscaler ends and asks for it, also when this program ends, or "
    "never, so that both may be started again.",
)  # fmt: skip
@click.option(
    "--grpc-timeout", default="1m", show_default=True, metavar="DURATION",
    help="How long the autoscaler is told to wait for an answer; its default of 5s is short for many nodes at once.",
)  # fmt: skip
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random unless told.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 for no.",
)  # fmt: skip
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: object) -> int:
    """Serve hollow nodes to the real cluster-autoscaler.

    Speaks the protocol of its externalgrpc provider. Prints the file for --cloud-config on stdout when it is ready;
    the autoscaler is then started with --cloud-provider=externalgrpc --cloud-config=FILE. Faults of kwok's groups are
    annotations on templates. Runs until Ctrl-C or SIGTERM, with exit code 0. Needs holokube[grpc].
    """
    settings.configure_logging()
    from holokube.cli.cloud_provider_run import CloudProviderPlan, CloudProviderRun

    return CloudProviderRun(CloudProviderPlan(**given)).run()  # type: ignore[arg-type]  # click's names are the plan's
