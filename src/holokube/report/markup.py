"""HTML in small pieces. Whatever comes from outside goes through :func:`text`."""

from __future__ import annotations

import html
from typing import Final

STYLES: Final = 8
"""Colours with patterns of their own; the ninth run looks like the first again, and is told apart by its name."""
BEST: Final = (
    '<span class="best" title="best"><span aria-hidden="true">★</span><span class="unseen">best: </span></span>'
)


def text(value: object) -> str:
    """Text that is safe between tags and inside quoted attributes."""
    return html.escape(str(value), quote=True)


def style_class(index: int) -> str:
    """The class that gives a run its colour, dash and pattern."""
    return f"p{index % STYLES}"


def swatch(index: int) -> str:
    """A bit of a run's line, to be set before its name."""
    return (f'<svg class="swatch {style_class(index)}" width="22" height="10" aria-hidden="true">'
            '<line x1="1" y1="5" x2="21" y2="5"/></svg>')


def bar_swatch(index: int) -> str:
    """A bit of a run's bars, to be set before its name."""
    return (f'<svg class="swatch {style_class(index)}" width="16" height="10" aria-hidden="true">'
            '<rect width="16" height="10" rx="1"/></svg>')


def section(identity: str, title: str, body: str, *, note: str = "", kind: str = "") -> str:
    """A part of the page under a heading of its own."""
    said = f'<p class="note">{text(note)}</p>' if note else ""
    classes = f' class="{kind}"' if kind else ""
    return (f'<section id="{identity}" aria-labelledby="{identity}-title"{classes}>'
            f'<h2 id="{identity}-title">{text(title)}</h2>{said}{body}</section>')


def empty(message: str) -> str:
    """What stands where there is nothing to show."""
    return f'<p class="empty">{text(message)}</p>'
