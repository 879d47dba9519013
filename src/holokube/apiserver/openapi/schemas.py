"""Components of a document: the types that its operations name, and all types that these name in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holokube.apiserver.descriptions import describe_field, describe_type
from holokube.apiserver.openapi.operations import REF_PREFIX
from holokube.apiserver.types import DELETE_OPTIONS, META_PACKAGE
from holokube.kube.types import JsonObject

Find = Callable[[str], Mapping[str, Any] | None]
# These belong to every group and version; a document shows them under its own.
OF_EVERY_GROUP = frozenset({DELETE_OPTIONS, f"{META_PACKAGE}.WatchEvent"})
_GVK = "x-kubernetes-group-version-kind"
_INNER = ("items", "additionalProperties")


def components(
    roots: Iterable[str],
    find: Find,
    custom: Mapping[str, Mapping[str, Any]],
    group_versions: Iterable[tuple[str, str]],
) -> dict[str, JsonObject]:
    """Schemas by name. Built-in types, which ``find`` gives, are described here; custom ones are not."""
    found: dict[str, JsonObject] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name in custom:
            found[name] = _with_references(custom[name])
        else:
            source = find(name)
            if source is None:
                # A default or example of a custom resource may look like a reference without being one.
                continue
            found[name] = _described(name, source)
        if name in OF_EVERY_GROUP:
            kind = name.rpartition(".")[2]
            found[name][_GVK] = [
                {"group": group, "kind": kind, "version": version} for group, version in group_versions
            ]
        waiting.extend(references(found[name]))
    return dict(sorted(found.items()))


def references(value: Any) -> set[str]:
    """Names of all types that a piece of a document refers to."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            target = current.get("$ref")
            if isinstance(target, str):
                found.add(target.removeprefix(REF_PREFIX))
            waiting.extend(v for v in current.values() if isinstance(v, dict | list))
        elif isinstance(current, list):
            waiting.extend(v for v in current if isinstance(v, dict | list))
    return found


def _described(name: str, source: Mapping[str, Any]) -> JsonObject:
    """A built-in type with descriptions of itself and its fields."""
    out: JsonObject = {"description": describe_type(name), **source}
    if "properties" in source:
        out["properties"] = {
            field: _with_references({"description": describe_field(name, field, part), **part})
            for field, part in source["properties"].items()
        }
    for key in _INNER:
        if key in source:
            out[key] = _with_references(source[key])
    return out


def _with_references(schema: Any) -> Any:
    """OpenAPI 3.0 ignores whatever stands beside a ``$ref``, so such a ref moves into an ``allOf``."""
    if not isinstance(schema, Mapping):
        return schema
    out: JsonObject = dict(schema)
    if isinstance(out.get("properties"), Mapping):
        out["properties"] = {name: _with_references(part) for name, part in out["properties"].items()}
    for key in _INNER:
        if key in out:
            out[key] = _with_references(out[key])
    if len(out) > 1 and isinstance(out.get("$ref"), str):
        out["allOf"] = [{"$ref": out.pop("$ref")}]
    return out
