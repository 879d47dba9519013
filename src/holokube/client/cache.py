"""What an informer knows: objects by key, and indexes that are kept up to date change by change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

JsonObject = dict[str, Any]
JsonObjects = list[JsonObject]  # Where a method is called `list`, the type needs another name.
Strings = list[str]
IndexFunction = Callable[[JsonObject], Iterable[str]]
"""The values under which an index lists an object; none to leave it out."""


class LabelMatcher(Protocol):
    """What ``Lister.list`` needs of a label selector."""

    def matches(self, labels: Mapping[str, str]) -> bool: ...


def object_key(obj: Mapping[str, Any]) -> str:
    """``namespace/name``, or ``name`` for what belongs to the whole cluster."""
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else str(meta["name"])


class Index:
    """Keys of objects by the values that a function finds in them."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._by_value: dict[str, dict[str, None]] = {}
        self._values: dict[str, tuple[str, ...]] = {}
        """Under which values an object is listed now; those under none are left out."""

    def replace(self, key: str, new: JsonObject | None) -> None:
        """Takes an object's change over. Its place is kept where the value is the same."""
        before = self._values.get(key, ())
        after = tuple(self._function(new)) if new is not None else ()
        # Most changes leave an object where it is, and only its key is listed.
        if before == after:
            return
        by_value = self._by_value
        for value in after:
            keys = by_value.get(value)
            if keys is None:
                keys = by_value[value] = {}
            keys[key] = None
        if after:
            self._values[key] = after
        else:
            del self._values[key]
        for value in dict.fromkeys(before):
            if value not in after:
                keys = by_value[value]
                del keys[key]
                if not keys:
                    del by_value[value]

    def get(self, value: str) -> Iterable[str]:
        """The keys under a value, in the order in which they came there."""
        return self._by_value.get(value, ())

    def has(self, value: str) -> bool:
        return value in self._by_value

    def values(self) -> list[str]:
        return list(self._by_value)


class Lister:
    """Reads a cache. Objects are shared: never change one that you got here."""

    def __init__(self, indexers: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, JsonObject] = {}
        self._namespaces = Index(_namespace_of)
        self._indexes = {name: Index(function) for name, function in (indexers or {}).items()}

    def get(self, name: str, namespace: str | None = None) -> JsonObject | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def by_key(self, key: str) -> JsonObject | None:
        """By ``namespace/name`` or ``name``, the keys that work queues carry."""
        return self._objects.get(key)

    def list(self, namespace: str | None = None, *, selector: LabelMatcher | None = None) -> JsonObjects:
        """All objects, or a namespace's, in the order in which they were first seen."""
        objects = self._objects
        found = [objects[key] for key in self._namespaces.get(namespace)] if namespace else [*objects.values()]
        if selector is None:
            return found
        return [obj for obj in found if selector.matches(obj["metadata"].get("labels") or {})]

    def has_any(self, namespace: str) -> bool:
        """Whether there is an object in a namespace."""
        return self._namespaces.has(namespace)

    def by_index(self, index: str, value: str) -> JsonObjects:
        """The objects that an index lists under a value."""
        objects = self._objects
        return [objects[key] for key in self._index(index).get(value)]

    def has_indexed(self, index: str, value: str) -> bool:
        """Whether an index lists anything under a value."""
        return self._index(index).has(value)

    def index_values(self, index: str) -> Strings:
        """The values under which an index lists anything."""
        return self._index(index).values()

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Adds an index at any time; what is there already is put in."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already; choose another name")
        index = Index(function)
        for key, obj in self._objects.items():
            index.replace(key, obj)
        self._indexes[name] = index

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[JsonObject]:
        return iter([*self._objects.values()])

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def _index(self, name: str) -> Index:
        try:
            return self._indexes[name]
        except KeyError:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise KeyError(f"no index {name!r}; there are: {known}") from None


class Cache(Lister):
    """A lister that can be written; only its informer does."""

    def put(self, key: str, obj: JsonObject) -> None:
        # Where an object lives is a part of its key.
        if key not in self._objects:
            self._namespaces.replace(key, obj)
        for index in self._indexes.values():
            index.replace(key, obj)
        self._objects[key] = obj

    def remove(self, key: str) -> None:
        self._namespaces.replace(key, None)
        for index in self._indexes.values():
            index.replace(key, None)
        del self._objects[key]

    def all_keys(self) -> Strings:
        return [*self._objects]


def _namespace_of(obj: JsonObject) -> Iterable[str]:
    namespace = obj["metadata"].get("namespace")
    return (namespace,) if namespace else ()
