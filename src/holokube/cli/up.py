"""``holokube up``: the embedded API server in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from holokube.cli.settings import Settings, common_options


@click.command("up")
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
@common_options
@click.pass_obj
def command(
    settings: Settings,
    host: str,
    port: int | None,
    kubeconfig_out: Path | None,
    data_dir: Path | None,
    snapshot: str,
    seed: str,
    metrics_address: str,
) -> int:
    """Run a Kubernetes API server in the foreground.

    Prints KUBECONFIG=... and HOLOKUBE_SERVER=... on stdout when it is ready. Ctrl-C or SIGTERM stops it
    cleanly, with exit code 0; a second one ends it at once.
    """
    settings.configure_logging()
    from holokube.cli.foreground import Foreground, Plan

    plan = Plan(host, port, kubeconfig_out, data_dir, snapshot, seed, metrics_address)
    return Foreground(plan, settings).run()
