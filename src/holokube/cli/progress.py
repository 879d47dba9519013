"""Progress on stderr: one line on a terminal that is written over; nothing but the result elsewhere."""

from __future__ import annotations

import os
import sys

import click


class ProgressLine:
    """What a command that takes its time is doing."""

    def __init__(self) -> None:
        self.moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: str) -> None:
        if self.moves:
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def done(self, text: str) -> None:
        """The result, which stays."""
        click.echo(f"\r\x1b[K{text}" if self.moves else text, err=True)
