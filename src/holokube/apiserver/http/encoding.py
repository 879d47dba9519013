"""Bytes for the wire. Stored objects carry their own JSON, so a LIST joins bytes instead of encoding anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import yaml

from holokube.apiserver.answers import ListResult
from holokube.apiserver.resources import Served
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

PIECE_BYTES = 512 * 1024
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

EVENT_ENDS = b"}\n"
EVENT_STARTS = {
    kind: b'{"type":"' + kind.encode() + b'","object":'
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
}


def to_json(value: Any, *, pretty: bool = False) -> bytes:
    option = orjson.OPT_INDENT_2 if pretty else 0
    return orjson.dumps(value, option=option) + b"\n"


def to_yaml(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)
    return text.encode()


def list_metadata(result: ListResult) -> JsonObject:
    # What is computed rather than stored has no revision.
    meta: JsonObject = {"resourceVersion": str(result.revision)} if result.revision else {}
    if result.continue_:
        meta["continue"] = result.continue_
    if result.remaining:
        meta["remainingItemCount"] = result.remaining
    return meta


def list_object(served: Served, result: ListResult) -> JsonObject:
    """The list as an object; built-in items leave out kind and apiVersion, as upstream's typed lists do."""
    items: Sequence[JsonObject]
    if served.type.custom:
        items = [stored.obj for stored in result.items]
    else:
        items = [{k: v for k, v in stored.obj.items() if k not in ("kind", "apiVersion")} for stored in result.items]
    return {
        "kind": served.type.list_kind,
        "apiVersion": served.api_version,
        "metadata": list_metadata(result),
        "items": items,
    }


class Pieces:
    """A long text in pieces, made one after the other while they are sent, and its length beforehand."""

    def __init__(self, length: int, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.length = length
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()

    @staticmethod
    def of(body: bytes) -> Pieces:
        """A text that is there already."""
        return Pieces(
            len(body), lambda: (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
        )


def list_bytes(served: Served, result: ListResult) -> bytes:
    """The list as JSON, from the bytes of its items."""
    return b"".join(list_pieces(served, result))


def list_pieces(served: Served, result: ListResult) -> Pieces:
    """The list as JSON in pieces: a long one is never held as a whole, which also spares copying it twice."""
    head = orjson.dumps(
        {"kind": served.type.list_kind, "apiVersion": served.api_version, "metadata": list_metadata(result)}
    )[:-1] + b',"items":['  # fmt: skip
    # Stored objects are written kind and apiVersion first (writes.in_wire_order); a list of built-in ones cuts these
    # off. The brace that goes with them is put back by what stands between two items.
    prefix = b"" if served.type.custom else item_prefix(served)
    raws = [stored.raw for stored in result.items]
    if not all(raw.startswith(prefix) for raw in raws):
        raws = [s.raw if s.raw.startswith(prefix) else prefix + _without_type(s) for s in result.items]
    skip = len(prefix)
    between, tail = (b",", b"]}\n") if served.type.custom else (b",{", b"]}\n")
    opening = b"" if served.type.custom or not raws else b"{"
    length = len(head) + len(opening) + sum(map(len, raws)) - skip * len(raws) + len(tail)
    length += len(between) * max(len(raws) - 1, 0)

    def pieces() -> Iterator[bytes]:
        yield head + opening
        per_piece = max(1, PIECE_BYTES * len(raws) // length) if raws else 1
        for start in range(0, len(raws), per_piece):
            part = raws[start : start + per_piece]
            text = between.join([raw[skip:] for raw in part] if skip else part)
            yield text if start == 0 else between + text
        yield tail

    return Pieces(length, pieces)


def item_prefix(served: Served) -> bytes:
    return orjson.dumps({"kind": served.kind, "apiVersion": served.api_version})[:-1] + b","


def _without_type(stored: Stored) -> bytes:
    bare = {k: v for k, v in stored.obj.items() if k not in ("kind", "apiVersion")}
    return orjson.dumps(bare)[1:]
