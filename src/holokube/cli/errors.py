"""How a failed command ends: a line for each thing that is wrong, one saying what to do, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from holokube.base.errors import HolokubeError, UsageError
from holokube.cli.settings import Settings

FAILED = 1
USAGE = 2
INTERRUPTED = 130


def report(error: BaseException, settings: Settings) -> int:
    """Say on stderr what went wrong; returns the exit code."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        # Click makes an Abort of it; a command that can go on where it was says so in its own words.
        own = error.__cause__ if isinstance(error.__cause__, KeyboardInterrupt) else error
        _say("interrupted", str(own) or "Run the command again to start over.", settings)
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has seen enough. Python would complain once more when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if settings.debug:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, click.ClickException):
        return _report_click(error, settings)
    if isinstance(error, HolokubeError):
        _say(error.mistakes, error.hint or "Run it again with --debug to see where this comes from.", settings)
        return USAGE if isinstance(error, UsageError) else FAILED
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        _say(what, "Check the path, its permissions and the free space on its disk.", settings)
        return FAILED
    _say(
        f"unexpected {type(error).__name__}: {error}",
        "This is a bug in holokube; run it again with --debug for the traceback to report.",
        settings,
    )
    return FAILED


def _report_click(error: click.ClickException, settings: Settings) -> int:
    command = "holokube"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        command = error.ctx.command_path
    _say(error.format_message(), f"See `{command} --help`.", settings)
    return error.exit_code


def _say(what: str | Sequence[str], hint: str, settings: Settings) -> None:
    label = click.style("Error:", fg="red", bold=True) if settings.colors_stderr() else "Error:"
    for line in (what,) if isinstance(what, str) else what:
        click.echo(f"{label} {_one_line(line)}", err=True)
    click.echo(f"Hint:  {_one_line(hint)}", err=True)


def _one_line(text: str) -> str:
    return " ".join(text.split()) or "(no message)"
