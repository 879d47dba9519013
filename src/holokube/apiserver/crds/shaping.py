"""Gives a custom object the shape of its schema: unknown fields go, defaults come, metadata gets its types.

The order is upstream's: prune, drop nulls that mean nothing, read metadata, and then default. All functions change
the object in place, except ``private``, which makes the copy that the others may change.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from holokube.apiserver.crds.structural import ABSENT, META_FIELDS, Structural
from holokube.apiserver.decode import DecodeError, Decoder, fresh
from holokube.apiserver.field_errors import show
from holokube.kube.schema import Schema
from holokube.kube.types import JsonObject

_MAX_DEPTH = 200
_TWO_TO_63 = 2**63


def private(value: Any, depth: int = 0) -> Any:
    """A deep copy with numbers as Go reads and writes them: 3.0 becomes 3, what is beyond int64 a float."""
    # Most of what there is are texts, and what holds them.
    if isinstance(value, dict):
        if depth > _MAX_DEPTH:
            raise DecodeError("json: exceeded max depth")
        return {key: part if type(part) is str else private(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list):
        return [part if type(part) is str else private(part, depth + 1) for part in value]
    if type(value) is float and value.is_integer() and abs(value) < _TWO_TO_63:
        return int(value)
    if type(value) is int and not -_TWO_TO_63 <= value < _TWO_TO_63:
        return float(value)
    return value


def prune(value: Any, node: Structural | None, *, root: bool = False) -> list[str]:
    """Remove fields that the schema does not know; returns their paths, sorted."""
    unknown: list[str] = []
    _prune(value, node, "", unknown, root=root)
    return sorted(unknown)


def _prune(
    value: Any,
    node: Structural | None,
    path: str,
    unknown: list[str],
    *,
    root: bool = False,
    keep: bool = False,
) -> None:
    """``keep`` stands for a list that preserves what it does not know: so do its elements, at their own level."""
    if isinstance(value, list):
        keeps = node is not None and (keep or node.preserves_unknown)
        items = node.items if node is not None else None
        if keeps and items is None:
            return
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                _prune(item, items, f"{path}[{index}]", unknown, keep=keeps)
        return
    if not isinstance(value, dict):
        return
    if node is None:
        unknown.extend(_join(path, key) for key in value)
        value.clear()
        return
    dropped = []
    for key, part in value.items():
        if key in META_FIELDS and (root or node.embedded):
            continue
        known = node.properties.get(key)
        if known is None and not node.has_additional:
            if not (keep or node.preserves_unknown):
                dropped.append(key)
        elif isinstance(part, dict | list):
            _prune(part, known or node.additional, _join(path, key), unknown)
    for key in dropped:
        unknown.append(_join(path, key))
        del value[key]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def drop_nulls(value: Any, node: Structural | None) -> None:
    """Remove nulls that the schema neither allows nor replaces by a default."""
    if node is None:
        return
    if isinstance(value, dict):
        gone = []
        for key, part in value.items():
            known = node.child(key)
            if part is None:
                if known is not None and not known.nullable and known.default is ABSENT:
                    gone.append(key)
            elif isinstance(part, dict | list):
                drop_nulls(part, known)
        for key in gone:
            del value[key]
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                drop_nulls(part, node.items)


def apply_defaults(value: Any, node: Structural | None, held: Container[str] = ()) -> None:
    """Fill in defaults, also in place of nulls that the schema does not allow. A second call changes nothing; nothing
    is looked for in the fields that are ``held``."""
    if node is None or not node.has_defaults:
        return
    if isinstance(value, dict):
        for key, part in node.properties.items():
            if part.default is ABSENT:
                continue
            if key not in value or (value[key] is None and not part.nullable):
                value[key] = fresh(part.default)
        for key, part in value.items():
            if key in held:
                continue
            known = node.properties.get(key)
            if known is not None:
                apply_defaults(part, known)
            elif node.additional is not None:
                value[key] = _replace_null(part, node.additional)
                apply_defaults(value[key], node.additional)
    elif isinstance(value, list) and node.items is not None:
        for index, part in enumerate(value):
            value[index] = _replace_null(part, node.items)
            apply_defaults(value[index], node.items)


def _replace_null(value: Any, node: Structural) -> Any:
    if value is None and not node.nullable and node.default is not ABSENT:
        return fresh(node.default)
    return value


class EmbeddedProblem(ValueError):
    """An embedded resource whose metadata cannot be read; the message is that of an ``Invalid value``."""


def coerce_embedded(
    value: Any, node: Structural | None, meta: Schema, unknown: list[str], path: str = ""
) -> None:
    """Give the metadata of embedded resources its types."""
    if node is None or not node.has_embedded:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            coerce_embedded(item, node.items, meta, unknown, f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        return
    if node.embedded:
        for key in ("apiVersion", "kind"):
            if key in value and not isinstance(value[key], str):
                raise EmbeddedProblem(
                    f"{_join(path, key)}: Invalid value: {show(value[key])}: must be a string"
                )
        if "metadata" in value:
            at = _join(path, "metadata")
            try:
                value["metadata"] = decode_metadata(value["metadata"], meta, unknown, at)
            except DecodeError as problem:
                raise EmbeddedProblem(f"{at}: Invalid value: {show(value['metadata'])}: {problem}") from None
    for key, part in value.items():
        if isinstance(part, dict | list):
            coerce_embedded(part, node.child(key), meta, unknown, _join(path, key))


def decode_metadata(value: Any, meta: Schema, unknown: list[str], path: str = "metadata") -> JsonObject:
    """ObjectMeta as Go reads it: typed, unknown fields dropped and reported."""
    if value is None:
        return {}
    decoder = Decoder()
    decoded = decoder.decode(value, meta)
    unknown.extend(f"{path}.{name}" for name in decoder.unknown_fields)
    if not decoded.get("creationTimestamp"):
        decoded.pop("creationTimestamp", None)
    return {
        key: part
        for key, part in decoded.items()
        if part not in ("", 0) or key == "deletionGracePeriodSeconds"
    }


def shape(obj: JsonObject, node: Structural, meta: Schema) -> list[str]:
    """Prune, drop nulls and read metadata of a whole object; returns the unknown fields."""
    metadata_unknown: list[str] = []
    metadata = decode_metadata(obj["metadata"], meta, metadata_unknown) if "metadata" in obj else None
    unknown = metadata_unknown + prune(obj, node, root=True)
    drop_nulls(obj, node)
    embedded_unknown: list[str] = []
    coerce_embedded(obj, node, meta, embedded_unknown)
    unknown.extend(sorted(embedded_unknown))
    if metadata is not None:
        obj["metadata"] = metadata
    return unknown
