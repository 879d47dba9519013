"""What goes in and out of the store: stored objects, events, pages.

Stored objects and events are structs that the garbage collector does not follow (``gc=False``): JSON holds
no cycles and neither do they, but a store keeps hundreds of thousands of them alive, and visiting each at
every full collection cost more than the writes themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import orjson

from holokube.kube.types import JsonObject

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Stored(msgspec.Struct, gc=False):
    """One version of an object. Never change ``obj``: readers, history and watchers share it."""

    obj: JsonObject
    revision: int
    _raw: bytes | None = None
    checked: bool = False
    """Whoever wrote it found its metadata valid by the rules of its kind; it need not be checked again as it is."""
    settled: bool = False
    """Whoever wrote it went the whole way of a write: its spec is defaulted and valid."""
    only_status: bool = False
    """Whoever wrote it changed nothing of the state before but the status, and the notes of who owns which field: all
    other parts are the very same."""

    @property
    def raw(self) -> bytes:
        """The object as JSON, encoded at most once however many readers there are."""
        raw = self._raw
        if raw is None:
            raw = self._raw = orjson.dumps(self.obj)
        return raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stored):
            return NotImplemented
        return self.revision == other.revision and self.obj == other.obj

    def __repr__(self) -> str:
        return f"Stored(obj={self.obj!r}, revision={self.revision})"


class StoreEvent(msgspec.Struct, gc=False):
    """One write. For DELETED, ``stored`` is the last state carrying the deletion's own revision."""

    type: EventType
    key: str
    stored: Stored
    previous: Stored | None
    revision: int


class Tally:
    """How often anything was written to some buckets, so that what was worked out from them can be kept until then."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


@dataclass(slots=True)
class Page:
    """A consistent part of a listing, as of ``revision``; ``remaining`` keys follow the last item."""

    items: list[tuple[str, Stored]]
    revision: int
    more: bool
    remaining: int


_NO_METADATA: Mapping[str, Any] = {}


def stamp(obj: Mapping[str, Any], revision: int, *, owned: bool = False) -> JsonObject:
    """A copy of ``obj`` carrying ``revision``; only the two levels that change are copied.

    One that is ``owned`` by the writer alone, with its metadata, is stamped itself.
    """
    if owned and type(obj) is dict:
        obj["metadata"]["resourceVersion"] = str(revision)
        return obj
    metadata = obj.get("metadata") or _NO_METADATA
    return {**obj, "metadata": {**metadata, "resourceVersion": str(revision)}}


def decode_stored(raw: bytes, revision: int) -> Stored:
    """The object that was written as ``raw``; ValueError when it cannot have been written by a store."""
    stored = check_stored(orjson.loads(raw), revision)
    return Stored(stored.obj, revision, raw)


def check_stored(obj: object, revision: int) -> Stored:
    """``obj`` as the version ``revision``; ValueError when it does not say so itself."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(obj, dict) or not isinstance(metadata, dict):
        raise ValueError("not an object with metadata")
    found = metadata.get("resourceVersion")
    if found != str(revision):
        raise ValueError(f"metadata.resourceVersion is {found!r} where {str(revision)!r} was expected")
    return Stored(obj, revision)
