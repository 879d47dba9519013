"""``holokube node-sizing``: the admission webhook that sizes DaemonSet pods by their node."""

from __future__ import annotations

import click

from holokube.cli.settings import Settings, cluster_options, common_options


@click.command("node-sizing")
@click.option(
    "--listen", default=":9443", show_default=True, metavar="HOST:PORT",
    help="Address on which the webhook is served, over TLS.",
)
@click.option(
    "--url", default="", metavar="URL",
    help="URL at which API servers reach the webhook, if not through a Service: https://host:port/mutate. Port 0 is "
    "replaced by the port it listens on.",
)  # fmt: skip
@click.option(
    "--service", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The Service through which API servers reach the webhook.",
)  # fmt: skip
@click.option(
    "--namespace", default="", metavar="NAME",
    help="Namespace of the Service, the Secret and the lease; by default that of the kubeconfig or the pod.",
)  # fmt: skip
@click.option(
    "--secret", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The Secret in which replicas share their certificate; created if it does not exist.",
)  # fmt: skip
@click.option(
    "--configuration", default="holokube-node-sizing", show_default=True, metavar="NAME",
    help="The MutatingWebhookConfiguration; created if it does not exist, and kept up to date.",
)  # fmt: skip
@click.option(
    "--on-error", type=click.Choice(["allow", "deny"]), default="allow", show_default=True,
    help="What happens to pods that cannot be sized: admitted unchanged, with a warning, or rejected.",
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
    help="How long a review waits for a node that is not known yet; API servers wait 5s for an answer.",
)  # fmt: skip
@click.option(
    "--tls-cert-file", default="", type=click.Path(), metavar="FILE",
    help="Use your own certificate, reloaded when it changes, instead of one created and renewed by this program.",
)  # fmt: skip
@click.option("--tls-private-key-file", default="", type=click.Path(), metavar="FILE", help="Its private key.")
@click.option(
    "--tls-ca-file", default="", type=click.Path(), metavar="FILE",
    help="Its CA certificates, written as caBundle; by default caBundle is not touched.",
)  # fmt: skip
@click.option(
    "--certificate-lifetime", default="2160h", show_default=True, metavar="DURATION",
    help="Lifetime of certificates created here; they are renewed when a third of it is left.",
)  # fmt: skip
@click.option(
    "--ca-lifetime", default="87600h", show_default=True, metavar="DURATION",
    help="Lifetime of CAs created here; they are renewed when a third of it is left.",
)  # fmt: skip
@click.option(
    "--ca-settle", default="1m", show_default=True, metavar="DURATION",
    help="How long a new CA is published before it signs certificates.",
)  # fmt: skip
@click.option(
    "--drain", default="5s", show_default=True, metavar="DURATION",
    help="How long reviews are still answered after a signal, while API servers switch to other replicas.",
)  # fmt: skip
@click.option(
    "--identity", default="", metavar="NAME", help="Identity of the lease holder; by default the host name."
)
@click.option("--seed", default="", metavar="SEED", help="Seed of all random draws; random by default.")
@click.option(
    "--metrics-address", default="0", show_default=True, metavar="HOST:PORT",
    help="Serve /metrics, /healthz, /livez and /readyz over plain HTTP, unauthenticated; 0 disables it.",
)  # fmt: skip
@cluster_options
@common_options
@click.pass_obj
def command(settings: Settings, /, **given: str | bool) -> int:
    """Size DaemonSet pods by the node they run on.

    Serves an admission webhook for pods with the label node-specific-sizing.manomano.tech/enabled: "true", registers
    it, and manages its certificates. Runs until Ctrl-C or SIGTERM, with exit code 0.
    """
    settings.configure_logging()
    from holokube.cli.node_sizing_run import SizingPlan, SizingRun

    return SizingRun(SizingPlan(**given)).run()  # type: ignore[arg-type]  # click's names and types are the plan's own
