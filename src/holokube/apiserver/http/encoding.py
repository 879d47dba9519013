"""Bytes for the wire. Stored objects carry their own JSON, so a LIST joins bytes instead of encoding anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import yaml

from holokube.apiserver.answers import ListResult
from holokube.apiserver.resources import Served
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

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
    meta: JsonObject = {"resourceVersion": str(result.revision)}
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


def list_bytes(served: Served, result: ListResult) -> bytes:
    """The list as JSON, from the bytes of its items."""
    head = orjson.dumps(
        {"kind": served.type.list_kind, "apiVersion": served.api_version, "metadata": list_metadata(result)}
    )
    if served.type.custom:
        body = b",".join([stored.raw for stored in result.items])
        return b"".join((head[:-1], b',"items":[', body, b"]}\n"))
    prefix = item_prefix(served)
    skip = len(prefix)
    # Stored objects are written kind and apiVersion first (writes.in_wire_order); a list cuts these off.
    parts = [
        raw[skip:] if raw.startswith(prefix) else _without_type(stored)
        for stored in result.items
        for raw in (stored.raw,)
    ]
    body = b",{".join(parts)
    return b"".join((head[:-1], b',"items":[', b"{" if parts else b"", body, b"]}\n"))


def item_prefix(served: Served) -> bytes:
    return orjson.dumps({"kind": served.kind, "apiVersion": served.api_version})[:-1] + b","


def _without_type(stored: Stored) -> bytes:
    bare = {k: v for k, v in stored.obj.items() if k not in ("kind", "apiVersion")}
    return orjson.dumps(bare)[1:]
