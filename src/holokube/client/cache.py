"""What an informer knows: objects by key, and indexes that are kept up to date change by change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, Protocol

from holokube.client.audience import EVERYTHING, EXISTENCE

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

    def __init__(self, function: IndexFunction, *, heeds: int = EVERYTHING, is_kept: bool = True) -> None:
        """``heeds`` names the respects in which an object must change for its values to be others.

        One that is not kept is empty until somebody asks for something in it.
        """
        self.heeds = heeds
        self.is_kept = is_kept
        self._function = function
        self.by_value: dict[str, dict[str, None]] = {}
        """The keys of objects, in the order in which they came there."""
        self._values: dict[str, tuple[str, ...]] = {}
        """Under which values an object is listed now; those under none are left out."""

    def add(self, key: str, obj: JsonObject) -> None:
        """Takes an object in that was not there before."""
        values = tuple(self._function(obj))
        # Many indexes leave most objects out.
        if values:
            self._values[key] = values
            self._enter(key, values)

    def replace(self, key: str, new: JsonObject) -> None:
        """Takes an object's change over. Its place is kept where the value is the same."""
        before = self._values.get(key, ())
        after = tuple(self._function(new))
        # Most changes leave an object where it is, and only its key is listed.
        if before == after:
            return
        if after:
            self._values[key] = after
        else:
            del self._values[key]
        self._enter(key, [value for value in after if value not in before] if before else after)
        if before:
            self._leave(key, [value for value in before if value not in after])

    def remove(self, key: str) -> None:
        """Forgets an object."""
        values = self._values.pop(key, None)
        if values is not None:
            self._leave(key, values)

    def _enter(self, key: str, values: Iterable[str]) -> None:
        by_value = self.by_value
        for value in values:
            keys = by_value.get(value)
            if keys is None:
                by_value[value] = {key: None}
            else:
                keys[key] = None

    def _leave(self, key: str, values: Iterable[str]) -> None:
        by_value = self.by_value
        for value in values:
            keys = by_value.get(value)
            # One that is named twice has been left already.
            if keys is not None and key in keys:
                del keys[key]
                if not keys:
                    del by_value[value]

    def get(self, value: str) -> Iterable[str]:
        """The keys under a value, in the order in which they came there."""
        return self.by_value.get(value, ())

    def has(self, value: str) -> bool:
        return value in self.by_value

    def values(self) -> list[str]:
        return list(self.by_value)


class Lister:
    """Reads a cache. Objects are shared: never change one that you got here."""

    by_key: Callable[[str], JsonObject | None]
    """By ``namespace/name`` or ``name``, the keys that work queues carry."""

    def __init__(self, indexers: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, JsonObject] = {}
        # Nothing is asked for more often, so that it is the dict that answers.
        self.by_key = self._objects.get
        # Most kinds are never asked for by their namespace.
        self._namespaces = Index(_namespace_of, is_kept=False)
        self._indexes = {name: Index(function) for name, function in (indexers or {}).items()}
        self._concerned: dict[int, tuple[Index, ...]] = {}
        """Which indexes a change in some respects concerns; found when there is the first."""

    def get(self, name: str, namespace: str | None = None) -> JsonObject | None:
        return self._objects.get(f"{namespace}/{name}" if namespace else name)

    def list(self, namespace: str | None = None, *, selector: LabelMatcher | None = None) -> JsonObjects:
        """All objects, or a namespace's, in the order in which they were first seen."""
        objects = self._objects
        found = [objects[key] for key in self._by_namespace().get(namespace)] if namespace else [*objects.values()]
        if selector is None:
            return found
        return [obj for obj in found if selector.matches(obj["metadata"].get("labels") or {})]

    def has_any(self, namespace: str) -> bool:
        """Whether there is an object in a namespace."""
        return self._by_namespace().has(namespace)

    def by_index(self, index: str, value: str) -> JsonObjects:
        """The objects that an index lists under a value."""
        found = self._indexes.get(index)
        if found is None or not found.is_kept:
            found = self._index(index)
        keys = found.by_value.get(value)
        if keys is None:
            return []
        if len(keys) == 1:
            # As is most often so; to go through them costs more than to find the one.
            (key,) = keys
            return [self._objects[key]]
        return [*map(self._objects.__getitem__, keys)]

    def has_indexed(self, index: str, value: str) -> bool:
        """Whether an index lists anything under a value."""
        found = self._indexes.get(index)
        if found is None or not found.is_kept:
            found = self._index(index)
        return value in found.by_value

    def index_values(self, index: str) -> Strings:
        """The values under which an index lists anything."""
        return self._index(index).values()

    def is_indexed_within(self, index: str, values: Set[str]) -> bool:
        """Whether an index lists nothing but what is under some of these values."""
        return self._index(index).by_value.keys() <= values

    def add_index(
        self, name: str, function: IndexFunction, *, heeds: int = EVERYTHING, when_asked: bool = False
    ) -> None:
        """Adds an index at any time; what is there already is put in, or ``when_asked`` for it."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already; choose another name")
        index = self._indexes[name] = Index(function, heeds=heeds, is_kept=False)
        if not when_asked:
            self._keep(index)

    def _by_namespace(self) -> Index:
        if not self._namespaces.is_kept:
            self._keep(self._namespaces)
        return self._namespaces

    def _keep(self, index: Index) -> None:
        for key, obj in self._objects.items():
            index.add(key, obj)
        index.is_kept = True
        self._concerned.clear()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[JsonObject]:
        return iter([*self._objects.values()])

    def __contains__(self, key: str) -> bool:
        return key in self._objects

    def _index(self, name: str) -> Index:
        index = self._indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise KeyError(f"no index {name!r}; there are: {known}")
        if not index.is_kept:
            self._keep(index)
        return index


class Cache(Lister):
    """A lister that can be written; only its informer does."""

    def put(self, key: str, obj: JsonObject, aspects: int = EXISTENCE) -> None:
        """Takes an object's state over, which differs from the one before in the aspects named."""
        concerned = self._concerned.get(aspects)
        if concerned is None:
            concerned = tuple(
                one for one in self._indexes.values() if one.is_kept and (one.heeds | EXISTENCE) & aspects
            )
            self._concerned[aspects] = concerned
        if aspects & EXISTENCE and key not in self._objects:
            # Where an object lives is a part of its key.
            if self._namespaces.is_kept:
                self._namespaces.add(key, obj)
            for index in concerned:
                index.add(key, obj)
        else:
            for index in concerned:
                index.replace(key, obj)
        self._objects[key] = obj

    def remove(self, key: str) -> None:
        if self._namespaces.is_kept:
            self._namespaces.remove(key)
        for index in self._indexes.values():
            if index.is_kept:
                index.remove(key)
        del self._objects[key]

    def all_keys(self) -> Strings:
        return [*self._objects]


def _namespace_of(obj: JsonObject) -> Iterable[str]:
    namespace = obj["metadata"].get("namespace")
    return (namespace,) if namespace else ()
