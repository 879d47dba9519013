"""``holokube version``."""

from __future__ import annotations

import json
import platform

import click

from holokube import __version__
from holokube.cli.settings import common_options


def versions() -> dict[str, str]:
    """What is installed, and which release of Kubernetes its API server stands for."""
    from holokube.apiserver.discovery import GIT_VERSION

    return {
        "holokube": __version__,
        "kubernetes": GIT_VERSION.partition("+")[0],
        "python": platform.python_version(),
        "platform": f"{platform.system()}/{platform.machine()}".lower(),
    }


@click.command("version")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
@common_options
def command(output: str) -> None:
    """Show the versions of holokube and of the API it serves."""
    found = versions()
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(found, sort_keys=False), nl=False)
    else:
        for name, value in found.items():
            click.echo(f"{name:<12}{value}")
