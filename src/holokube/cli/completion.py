"""``holokube completion``."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from holokube.cli.settings import common_options

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@common_options
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    source <(holokube completion bash)        # in ~/.bashrc
    source <(holokube completion zsh)         # in ~/.zshrc, after compinit
    holokube completion fish | source         # in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    script = kind(root.command, {}, "holokube", "_HOLOKUBE_COMPLETE")
    # Not the bash class's own method: it starts a bash, which need not be on this machine, for its version.
    click.echo(ShellComplete.source(script), nl=False)
