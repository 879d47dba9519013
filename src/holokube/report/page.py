"""A page that is one file: styles and scripts inside it, and a policy that forbids everything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

from holokube import __version__
from holokube.report.markup import text

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath fill='%230072B2' d='M1 1h6v6H1z'/%3E%3Cpath fill='%23E69F00' d='M9 1h6v6H9z'/%3E"
    "%3Cpath fill='%23009E73' d='M1 9h6v6H1z'/%3E%3Cpath fill='%2356B4E9' d='M9 9h6v6H9z'/%3E%3C/svg%3E"
)


@cache
def asset(name: str) -> str:
    """A source file of the page."""
    return (resources.files("holokube.report") / "assets" / name).read_text(encoding="utf-8")


def page(title: str, body: str, *, scripts: Sequence[str], blocks: Mapping[str, str]) -> str:
    """The whole file: a body with its scripts and its blocks of packed data."""
    style = asset("report.css")
    script = '"use strict";\n(() => {\n' + "\n".join(asset(name) for name in scripts) + "\n})();\n"
    # Only these very bytes may run: a name that slips into the page as a tag stays dead.
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = "".join(
        f'<script type="text/plain" id="{text(name)}">{block}</script>\n' for name, block in blocks.items()
    )
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="holokube {text(__version__)}">\n'
        f"<title>{text(title)}</title>\n"
        f'<link rel="icon" href="{_ICON}">\n'
        f"<style>{style}</style>\n</head>\n<body>\n{_PATTERNS}\n{body}\n{data}<script>{script}</script>\n"
        "</body>\n</html>\n"
    )


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _pattern(index: int, strokes: str) -> str:
    return (f'<pattern id="fill-{index}" width="6" height="6" patternUnits="userSpaceOnUse" class="p{index}">'
            f'<rect width="6" height="6"/><path d="{strokes}"/></pattern>')


# Bars are told apart by these as well as by colour: full, then lines one way, the other way, upright, ...
_PATTERNS: Final = '<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>' + "".join(
    _pattern(index, strokes) for index, strokes in enumerate((
        "", "M-1 1l2 -2M0 6l6 -6M5 7l2 -2", "M1.5 1.5h1v1h-1zM4.5 4.5h1v1h-1z", "M3 0v6", "M0 3h6",
        "M-1 5l2 2M0 0l6 6M5 -1l2 2", "M3 0v6M0 3h6", "M1 1h2v2h-2z",
    ))
) + "</defs></svg>"
