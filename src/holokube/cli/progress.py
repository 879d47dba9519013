"""Progress on stderr: one line on a terminal that is written over; elsewhere the result, and a line now and then."""

from __future__ import annotations

import os
import sys
from typing import Final

import click

LINE_EVERY_S: Final = 10.0
"""Where no line can be written over."""


class ProgressLine:
    """What a command that takes its time is doing."""

    def __init__(self) -> None:
        self.moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next_s = LINE_EVERY_S

    def show(self, text: str, took_s: float = 0.0) -> None:
        """``took_s`` is how long it has taken up to now: in the log of a pipeline that is told every so often."""
        if self.moves:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
        elif took_s >= self._next_s:
            self._next_s = took_s + LINE_EVERY_S
            click.echo(text, err=True)

    def done(self, text: str) -> None:
        """The result, which stays."""
        click.echo(f"\r\x1b[K{text}" if self.moves else text, err=True)
