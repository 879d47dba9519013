"""``holokube node-sizing``: the admission webhook that sizes DaemonSet pods by their node."""

from __future__ import annotations

import click

from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("node-sizing")
@click.option(
    "--listen", default=":9443", show_default=True, metavar="HOST:PORT", help="Where the webhook is served, over TLS."
)
@click.option(
    "--url", default="", metavar="URL",
    help="Where API servers reach the webhook, if not by a Service: https://host:port/mutate. The port 0 is replaced "
    "by the one that it listens on.",
)  # fmt: skip
@click.option(
    "--service", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The Service by which API servers reach the webhook.",
)  # fmt: skip
@click.option(
    "--namespace", default="", metavar="NAME",
    help="Of the Service, the Secret and the lease; the kubeconfig's or the pod's own unless told.",
)  # fmt: skip
@click.option(
    "--secret", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The Secret by which replicas share their certificate; made if it is missing.",
)  # fmt: skip
@click.option(
    "--configuration", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The MutatingWebhookConfiguration; made if it is missing, and kept up to date.",
)  # fmt: skip
@click.option(
    "--on-error", type=click.Choice(["allow", "deny"]), default="allow", show_default=True,
    help="What becomes of pods that cannot be sized: admitted as they are, with a warning, or refused.",
)  # fmt: skip
@click.option(
    "--failure-policy", type=click.Choice(["Ignore", "Fail"]), default="Ignore", show_default=True,
    help="What API servers do when they cannot reach the webhook. Fail blocks pods that opt in.",
)  # fmt: skip
@click.option(
    "--resize-running", is_flag=True,
    help="Also resize running pods in place when their node's allocatable or their annotations change.",
)  # fmt: skip
@click.option(
    "--node-wait", default="2s", show_default=True, metavar="DURATION",
    help="How long a review may wait for a node that is not known yet; API servers wait 5s for an answer.",
)  # fmt: skip
@click.option(
    "--tls-cert-file", default="", type=click.Path(), metavar="FILE",
    help="A certificate of your own, read again when it changes, instead of one that is made and renewed here.",
)  # fmt: skip
@click.option("--tls-private-key-file", default="", type=click.Path(), metavar="FILE", help="Its private key.")
@click.option(
    "--tls-ca-file", default="", type=click.Path(), metavar="FILE",
    help="Its authorities, to be written as caBundle; left alone unless told.",
)  # fmt: skip
@click.option(
    "--certificate-lifetime", default="2160h", show_default=True, metavar="DURATION",
    help="Of certificates made here; they are renewed when a third of it is left.",
)  # fmt: skip
@click.option(
    "--ca-lifetime", default="87600h", show_default=True, metavar="DURATION",
    help="Of authorities made here, which are renewed likewise.",
)  # fmt: skip
@click.option(
    "--ca-settle", default="1m", show_default=True, metavar="DURATION",
    help="How long a new authority is published before it signs.",
)  # fmt: skip
@click.option(
    "--drain", default="5s", show_default=True, metavar="DURATION",
    help="How long reviews are still answered after a signal, until API servers have turned to other replicas.",
)  # fmt: skip
@click.option(
    "--identity", default="", metavar="NAME", help="Who holds the lease; the host's name unless told."
)
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random unless told.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 for no.",
)  # fmt: skip
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: str | bool) -> int:
    """Size DaemonSet pods by the node they run on.

    Serves an admission webhook for pods with the label node-specific-sizing.manomano.tech/enabled: "true", registers
    it, and takes care of its certificates. Runs until Ctrl-C or SIGTERM, with exit code 0.
    """
    settings.configure_logging()
    from holokube.cli.node_sizing_run import SizingPlan, SizingRun

    return SizingRun(SizingPlan(**given)).run()  # type: ignore[arg-type]  # click's names and types are the plan's own
