"""Something worked out from all objects of one kind, and kept until one of them changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holokube.kube.types import JsonObject
from holokube.store.store import Store
from holokube.store.watch import Watch

T = TypeVar("T")

# Only whether anything happened matters: one event waiting unread says as much as a thousand.
_BUFFER_EVENTS = 1


class BucketCache(Generic[T]):
    """``build`` of all objects in a bucket. Reading it again costs a look at an empty buffer."""

    __slots__ = ("_bucket", "_build", "_store", "_value", "_watch")

    def __init__(self, store: Store, bucket: str, build: Callable[[Sequence[JsonObject]], T]) -> None:
        self._store = store
        self._bucket = bucket
        self._build = build
        self._watch: Watch | None = None
        self._value: T | None = None

    def get(self) -> T:
        watch, value = self._watch, self._value
        if watch is None or watch.pending or watch.closed or value is None:
            return self._rebuild()
        return value

    def _rebuild(self) -> T:
        store = self._store
        if self._watch is not None:
            self._watch.close()
        # The list shows also what is not durable yet and is announced only later: start from there.
        self._watch = store.watch(self._bucket, since=store.revision, buffer=_BUFFER_EVENTS)
        value = self._value = self._build([stored.obj for _, stored in store.list(self._bucket).items])
        return value

    def close(self) -> None:
        """Stop watching; a later read starts again."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
