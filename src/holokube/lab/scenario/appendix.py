"""The files that a scenario names, written below it as comments, and taken apart again.

Without them nobody could run a scenario again of which only the text is left: in a result, or in a report.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAX_BYTES: Final = 65_536
_HEAD: Final = re.compile(r"# --- (.+) ---")
_TOO_LARGE: Final = re.compile(r"# (\d+ bytes), too much to be shown here; (SHA-256 [0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a scenario names."""

    name: str
    """As the scenario has it: a path relative to its folder."""
    text: str | None
    """None if it was too large, or no text."""
    size: str = ""
    """How large one without text is, and its digest."""


def appendix(files: Mapping[str, Path]) -> str:
    """The files as comments; empty if there are none."""
    found = []
    for name, path in files.items():
        data = path.read_bytes()
        found.append(f"\n# --- {name} ---")
        try:
            text = data.decode() if len(data) <= _MAX_BYTES else None
        except UnicodeDecodeError:
            text = None
        if text is None:
            digest = hashlib.sha256(data).hexdigest()
            found.append(f"# {len(data)} bytes, too much to be shown here; SHA-256 {digest}")
        else:
            found.extend(f"# {line}".rstrip() for line in text.splitlines())
    return "\n".join(found) + "\n" if found else ""


def take_apart(text: str) -> tuple[str, list[NamedFile]]:
    """A scenario without the files below it, and these."""
    lines = text.split("\n")
    tail = len(lines)
    while tail and (not lines[tail - 1] or lines[tail - 1].startswith("#")):
        tail -= 1
    named = "\n".join(lines[:tail])
    # A heading in a comment of the scenario's own is none of ours: what we append is named above.
    heads = [
        place for place in range(tail, len(lines))
        if (head := _HEAD.fullmatch(lines[place])) and head[1] in named and (place == tail or not lines[place - 1])
    ]  # fmt: skip
    if not heads:
        return text, []
    found = []
    for place, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        # Empty lines of a file are comments too: an empty line is where the next one begins.
        body = [line[2:] for line in lines[place + 1:end] if line]
        name = lines[place].removeprefix("# --- ").removesuffix(" ---")
        large = _TOO_LARGE.fullmatch(lines[place + 1]) if len(body) == 1 else None
        if large:
            found.append(NamedFile(name, None, f"{large[1]}, {large[2]}"))
        else:
            found.append(NamedFile(name, "".join(f"{line}\n" for line in body)))
    return "\n".join(lines[:heads[0]]), found
