"""One kind's objects: the current state, its keys in order, its part of the history, its watches."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import deque
from itertools import islice

from holokube.store.values import Page, Stored, StoreEvent, Tally
from holokube.store.watch import WatchIndex

# Up to this many new or gone keys are put in their place one by one. Beyond, one merge of the two
# sorted runs is cheaper; the two cost about the same here from 1,000 to 100,000 keys.
_KEYS_PLACED_ONE_BY_ONE = 128


class Bucket:
    """The objects of one kind. Keys come out in byte order, which for str is the code point order."""

    __slots__ = ("_keys", "_unplaced", "events", "items", "name", "tallies", "watches")

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: dict[str, Stored] = {}
        self.events: deque[StoreEvent] = deque()
        self.watches = WatchIndex()
        self.tallies: tuple[Tally, ...] = ()
        # Writers only note which keys came or went; whoever lists next brings the order up to date.
        self._keys: list[str] = []
        self._unplaced: set[str] = set()

    def put(self, key: str, stored: Stored) -> None:
        if key not in self.items:
            self._unplaced.add(key)
        self.items[key] = stored

    def remove(self, key: str) -> None:
        del self.items[key]
        self._unplaced.add(key)

    def undo(self, event: StoreEvent) -> None:
        """Takes back the bucket's newest event, in the state and (where still there) in the history."""
        if event.previous is None:
            self.remove(event.key)
        else:
            self.put(event.key, event.previous)
        if self.events and self.events[-1] is event:
            self.events.pop()

    def count(self, prefix: str) -> int:
        if not prefix:
            return len(self.items)
        start, end = _span(self._sorted_keys(), prefix, "")
        return end - start

    def page(self, prefix: str, start_after: str, limit: int, revision: int) -> Page:
        """A page of the current state; the caller vouches that ``revision`` is the current one."""
        keys = self._sorted_keys()
        start, end = _span(keys, prefix, start_after)
        stop = min(end, start + limit) if limit else end
        items = self.items
        return Page([(key, items[key]) for key in keys[start:stop]], revision, stop < end, end - stop)

    def page_at(self, prefix: str, start_after: str, limit: int, revision: int) -> Page:
        """A page of the state as of ``revision``, found by undoing what was written since."""
        then: dict[str, Stored | None] = {}
        for event in reversed(self.events):
            if event.revision <= revision:
                break
            if event.key.startswith(prefix) and (not start_after or event.key > start_after):
                then[event.key] = event.previous
        if not then:
            return self.page(prefix, start_after, limit, revision)
        now = self._sorted_keys()
        start, end = _span(now, prefix, start_after)
        keys = [key for key in now[start:end] if key not in then]
        keys.extend(sorted(key for key, stored in then.items() if stored is not None))
        keys.sort()
        stop = min(len(keys), limit) if limit else len(keys)
        items: list[tuple[str, Stored]] = []
        for key in islice(keys, stop):
            stored = then.get(key)
            items.append((key, self.items[key] if stored is None else stored))
        return Page(items, revision, stop < len(keys), len(keys) - stop)

    def events_between(self, after: int, until: int, prefix: str) -> list[StoreEvent]:
        """The events with ``after < revision <= until``, oldest first; older history is not looked at."""
        found: list[StoreEvent] = []
        for event in reversed(self.events):
            if event.revision <= after:
                break
            if event.revision <= until and event.key.startswith(prefix):
                found.append(event)
        found.reverse()
        return found

    def _sorted_keys(self) -> list[str]:
        unplaced = self._unplaced
        if not unplaced:
            return self._keys
        items = self.items
        keys = self._keys
        if len(unplaced) <= _KEYS_PLACED_ONE_BY_ONE:
            for key in unplaced:
                index = bisect_left(keys, key)
                placed = index < len(keys) and keys[index] == key
                if key in items:
                    if not placed:
                        keys.insert(index, key)
                elif placed:
                    del keys[index]
        else:
            # Two sorted runs one after the other are what the built-in sort merges in linear time.
            keys = [key for key in keys if key not in unplaced]
            keys.extend(sorted(key for key in unplaced if key in items))
            keys.sort()
            self._keys = keys
        unplaced.clear()
        return keys


def _span(keys: list[str], prefix: str, start_after: str) -> tuple[int, int]:
    """The slice of ``keys`` that starts with ``prefix`` and comes after ``start_after``."""
    start = bisect_left(keys, prefix) if prefix else 0
    if start_after:
        start = max(start, bisect_right(keys, start_after))
    bound = _after_all(prefix)
    end = bisect_left(keys, bound) if bound else len(keys)
    return start, max(start, end)


def _after_all(prefix: str) -> str:
    """The smallest string greater than every string that starts with ``prefix``; "" when there is none."""
    for index in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[index])
        if point < sys.maxunicode:
            return prefix[:index] + chr(point + 1)
    return ""
