"""JSON patch (RFC 6902), with the habits of the library inside kube-apiserver (evanphx/json-patch v4).

Where that library departs from the RFC, so does this module, because clients see it: ``replace`` of a missing
object key adds it, ``copy`` of a missing object key writes null, negative array indices count from the end,
and ``test`` of a missing key against null succeeds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from holokube.kube.patch import (
    PatchError,
    PatchNotApplicable,
    PatchPathMissing,
    PatchTestFailed,
    PatchTooLarge,
)

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024

_INTEGER = re.compile(r"[+-]?[0-9]+")
_Container: TypeAlias = "dict[str, Any] | list[Any]"


def apply_json_patch(doc: Any, operations: Any) -> Any:
    """The document after all operations; the input is left alone and shared where nothing changed."""
    if not isinstance(operations, list):
        raise PatchError(
            f"a JSON patch must be an array of operations, got {_kind(operations)}: "
            'send [{"op": ..., "path": ...}], or use another patch content type'
        )
    for position, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise PatchError(
                f"operation {position} of the JSON patch must be an object, got {_kind(operation)}"
            )
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    patcher = _Patcher(doc)
    for operation in operations:
        kind = operation.get("op")
        run = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if run is None:
            raise PatchNotApplicable(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        run(patcher, operation)
    return patcher.root


class _Patcher:
    """One run over a document; containers are copied the first time they are written to."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0
        # Holding the containers themselves keeps their ids from being given to others.
        self._own: dict[int, _Container] = {}

    def add(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "add")
        parent, key = self._parent(path, f'add operation does not apply: doc is missing path: "{path}"')
        _insert(parent, key, operation.get("value"), f"error in add for path: '{path}'")

    def remove(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "remove")
        parent, key = self._parent(path, f'remove operation does not apply: doc is missing path: "{path}"')
        _delete(parent, key, f"error in remove for path: '{path}'")

    def replace(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "replace")
        if path == "":
            value = operation.get("value")
            if not isinstance(value, dict | list):
                raise PatchNotApplicable("replace operation value must be object or array")
            self.root = value
            return
        parent, key = self._parent(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(parent, dict):
            parent[key] = operation.get("value")
            return
        index = _index(parent, key, f"replace operation does not apply: doc is missing key: {path}")
        parent[index] = operation.get("value")

    def move(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "move")
        parent, key = self._parent(
            source, f"move operation does not apply: doc is missing from path: {source}"
        )
        value = _get(parent, key, f"error in move for path: '{key}'")
        _delete(parent, key, f"error in move for path: '{key}'")
        path = _pointer(operation, "path", "move")
        parent, key = self._parent(
            path, f"move operation does not apply: doc is missing destination path: {path}"
        )
        _insert(parent, key, value, f"error in move for path: '{path}'")

    def copy(self, operation: dict[str, Any]) -> None:
        source = _pointer(operation, "from", "copy")
        parent, key = self._parent(
            source, f"copy operation does not apply: doc is missing from path: {source}"
        )
        value = _get(parent, key, f"error in copy for from: '{source}'")
        # From here on the value hangs in two places, maybe one inside the other: write to copies only.
        self._own.clear()
        path = _pointer(operation, "path", "copy")
        parent, key = self._parent(
            path, f"copy operation does not apply: doc is missing destination path: {path}"
        )
        if value is not None:
            self.copied_bytes += len(orjson.dumps(value))
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise PatchTooLarge(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self.copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )
        _insert(parent, key, value, "error while adding value during copy")

    def test(self, operation: dict[str, Any]) -> None:
        path = _pointer(operation, "path", "test")
        expected = operation.get("value")
        if path == "":
            found = self.root
        else:
            parent, key = self._parent(path, f"test operation does not apply: is missing path: {path}")
            found = _get(parent, key, f"error in test for path: '{path}'")
        if not same_json(found, expected):
            raise PatchTestFailed(f"testing value {path} failed: test failed")

    def _parent(self, path: str, complaint: str) -> tuple[_Container, str]:
        """The container, safe to write to, that holds the last step of a pointer, and that step."""
        steps = path.split("/")
        if len(steps) < 2 or not isinstance(self.root, dict | list):
            raise PatchPathMissing(f"{complaint}: missing value")
        here: _Container = self._writable(self.root)
        self.root = here
        for step in steps[1:-1]:
            place: Any = _unescape(step)
            if isinstance(here, list):
                place = _index(here, place, complaint, suffix=": missing value")
                child = here[place]
            else:
                child = here.get(place)
            if not isinstance(child, dict | list):
                raise PatchPathMissing(f"{complaint}: missing value")
            writable = self._writable(child)
            here[place] = writable
            here = writable
        return here, _unescape(steps[-1])

    def _writable(self, container: _Container) -> _Container:
        if id(container) in self._own:
            return container
        fresh: _Container = dict(container) if isinstance(container, dict) else list(container)
        self._own[id(fresh)] = fresh
        return fresh


_OPERATIONS: dict[str, Callable[[_Patcher, dict[str, Any]], None]] = {
    "add": _Patcher.add,
    "remove": _Patcher.remove,
    "replace": _Patcher.replace,
    "move": _Patcher.move,
    "copy": _Patcher.copy,
    "test": _Patcher.test,
}


def same_json(left: Any, right: Any) -> bool:
    """Equality of JSON values; unlike Python's own it tells ``true`` from 1 and 1 from 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def _pointer(operation: dict[str, Any], member: str, kind: str) -> str:
    pointer = operation.get(member)
    if not isinstance(pointer, str):
        raise PatchNotApplicable(f"{kind} operation failed to decode {member}: missing value")
    return pointer


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~") if "~" in step else step


def _index(array: list[Any], key: str, complaint: str, *, extra: int = 0, suffix: str = "") -> int:
    """The position a step names in an array; ``extra`` is 1 where the place behind the end counts too."""
    if not _INTEGER.fullmatch(key):
        raise PatchPathMissing(complaint + (suffix or f': strconv.Atoi: parsing "{key}": invalid syntax'))
    index, size = int(key), len(array) + extra
    if not -size <= index < size:
        raise PatchPathMissing(
            f"{complaint}{suffix or f': Unable to access invalid index: {index}: invalid index referenced'}"
        )
    return index + size if index < 0 else index


def _get(parent: _Container, key: str, complaint: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(key)
    return parent[_index(parent, key, complaint)]


def _insert(parent: _Container, key: str, value: Any, complaint: str) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, key, complaint, extra=1), value)


def _delete(parent: _Container, key: str, complaint: str) -> None:
    if isinstance(parent, list):
        del parent[_index(parent, key, complaint)]
    elif key in parent:
        del parent[key]
    else:
        raise PatchPathMissing(f"{complaint}: Unable to remove nonexistent key: {key}: missing value")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
