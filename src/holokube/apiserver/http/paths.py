"""Reads a request path the way upstream does: group, version, namespace, resource, name, subresource."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

# Below a namespace these name the namespace's own subresources, not resources in it.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path below /api/v1 or /apis/GROUP/VERSION."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows a proxy subresource."""
    watch: bool = False
    """The deprecated /watch/ prefix was used."""
    namespaced: bool = False
    """The path has a namespaces/NAME part before the resource."""


def parse_path(raw_path: str) -> ResourcePath | None:
    """The resource that a path names; None if it is not a path of that form."""
    parts = raw_path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    rest = [unquote(part) for part in rest]
    watch = bool(rest) and rest[0] == "watch"
    if watch:
        rest = rest[1:]
    if not rest:
        return ResourcePath(group, version)
    namespace, namespaced = "", False
    is_namespace_itself = len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES
    if rest[0] == "namespaces" and len(rest) > 2 and not is_namespace_itself:
        namespace, namespaced, rest = rest[1], True, rest[2:]
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    tail = "/".join(rest[3:])
    if len(rest) > 1 and not name:
        return None
    return ResourcePath(group, version, plural, namespace, name, subresource, tail, watch, namespaced)
