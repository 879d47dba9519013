"""A cache that forgets what was not asked for longest, and what a flood of new keys does to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A dict that forgets what was not asked for longest."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.find = self._entries.get
        """What there is for a key; that it was asked for does not count."""
        self.renew = self._entries.move_to_end

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self.find(key)
        if value is not None:
            self.renew(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self.renew(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def is_flooded_by(self, keys: Sequence[K]) -> bool:
        """Whether ``keys``, no two of them the same, are all new if one after the other is asked for and put, and none
        of what there is now is left then."""
        return is_flood(self._entries, self._capacity, keys)

    def flood(self, keys: Sequence[K], value: V) -> None:
        """Put ``keys``, by which it ``is_flooded``, one after the other."""
        self._entries.clear()
        self._entries.update(dict.fromkeys(keys[-self._capacity :], value))


def is_flood(remembered: Collection[Hashable], capacity: int, keys: Sequence[Hashable]) -> bool:
    """Whether a cache that forgets what was not asked for longest knows none of ``keys`` when it is asked for them, one
    after the other, and knows of nothing else afterwards. ``remembered`` is what it knows, that to be forgotten next
    first; no two keys are the same.

    It is enough to look at as many as it can remember: those are all it knows then, and none comes twice.
    """
    if len(keys) < capacity:
        return False
    places = {key: place for place, key in enumerate(remembered)}
    # Each new key takes a free place, or that of the one to be forgotten next.
    gone = len(places) - capacity
    for key in keys[:capacity]:
        if places.get(key, -1) >= max(gone, 0):
            return False
        gone += 1
    return True
