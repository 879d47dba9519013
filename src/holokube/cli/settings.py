"""What the options that every command has in common are set to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class Settings:
    """Logging, colour and debugging; one object per run of the program."""

    verbosity: int = 0
    log_format: Literal["text", "json"] = "text"
    debug: bool = False
    no_color: bool = False

    def colors_stderr(self) -> bool:
        """Whether what people read on stderr may be coloured."""
        return self._colors(sys.stderr.isatty())

    def colors_stdout(self) -> bool:
        return self._colors(sys.stdout.isatty())

    def _colors(self, is_terminal: bool) -> bool:
        wanted = not self.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return is_terminal and wanted

    def configure_logging(self) -> None:
        """Warnings without -v, information with it, everything with -vv; always on stderr."""
        from holokube.base import log
        from holokube.base.clock import WallClock

        level = ("warning", "info", "debug")[min(self.verbosity, 2)]
        log.configure(level=level, format=self.log_format, clock=WallClock(), color=self.colors_stderr())


def common_options(command: F) -> F:
    """Give a command, or the group, the options of ``Settings``; both places count."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


def _settings(context: click.Context) -> Settings:
    return context.ensure_object(Settings)


def _take_verbosity(context: click.Context, _parameter: click.Parameter, value: int) -> None:
    _settings(context).verbosity += value


def _take_log_format(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        _settings(context).log_format = "json" if value == "json" else "text"


def _take_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    _settings(context).debug |= value


def _take_no_color(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    _settings(context).no_color |= value
    if value:
        context.color = False


_COMMON = (
    click.option(
        "-v", "--verbose", count=True, expose_value=False, callback=_take_verbosity,
        help="Log more: -v logs what happens, -vv everything.",
    ),
    click.option(
        "--log-format", type=click.Choice(["text", "json"]), expose_value=False, callback=_take_log_format,
        help="Format of the log on stderr; text by default.",
    ),
    click.option(
        "--debug", is_flag=True, expose_value=False, callback=_take_debug, is_eager=True,
        help="Show tracebacks of errors.",
    ),
    click.option(
        "--no-color", is_flag=True, expose_value=False, callback=_take_no_color,
        help="Disable colours, as the environment variable NO_COLOR does.",
    ),
)  # fmt: skip


def cluster_options(command: F) -> F:
    """The options of commands that talk to a cluster, with kubectl's names and order of precedence."""
    context = click.option(
        "--context",
        metavar="NAME",
        default="",
        help="Context of the kubeconfig; by default its current context.",
    )
    kubeconfig = click.option(
        "--kubeconfig", metavar="FILE", default="", type=click.Path(),
        help="How to reach the cluster; by default KUBECONFIG, ~/.kube/config or the pod's service account.",
    )  # fmt: skip
    return kubeconfig(context(command))
