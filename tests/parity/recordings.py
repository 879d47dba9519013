"""What the real kube-scheduler said, one JSON line per seed, compressed."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import orjson

from tests.builders import JsonObject

DATA = Path(__file__).parent / "data"


def save(name: str, rows: Iterable[JsonObject]) -> None:
    """Write a recording; the same content gives the same bytes."""
    DATA.mkdir(exist_ok=True)
    content = b"\n".join(orjson.dumps(row, option=orjson.OPT_SORT_KEYS) for row in rows)
    (DATA / f"{name}.jsonl.gz").write_bytes(gzip.compress(content, mtime=0))


def load(name: str) -> list[JsonObject]:
    """Read a recording."""
    content = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes())
    return [orjson.loads(line) for line in content.splitlines()]


def exists(name: str) -> bool:
    """Whether there is a recording."""
    return (DATA / f"{name}.jsonl.gz").exists()
