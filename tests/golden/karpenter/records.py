"""The recorded files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CATALOG = HERE / "catalog.json"

Json = dict[str, Any]


def names(kind: str) -> list[str]:
    """The names of all problems of a kind: solve or disrupt."""
    return sorted(path.name.removesuffix(".answer.json") for path in HERE.glob(f"{kind}-*.answer.json"))


def problem(name: str) -> Json:
    """What was asked."""
    return read(f"{name}.json")


def recorded(name: str) -> Json:
    """What upstream answered."""
    return read(f"{name}.answer.json")


def read(file: str) -> Json:
    """A file, afresh, so that a test may change it."""
    found: Json = json.loads((HERE / file).read_text())
    return found


@cache
def catalog_entries() -> list[Json]:
    """The instance types, as the file has them."""
    entries: list[Json] = json.loads(CATALOG.read_text())
    return entries
