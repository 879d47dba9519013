"""The object of a write as a webhook sees it: in the version it wants, or as the kind of the subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes
from holokube.apiserver.bodies import read_body
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.bodies import read_typed
from holokube.apiserver.subresources.scale import ScalePaths
from holokube.kube.jsonpath import compile_path
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_LENIENT = WriteOptions(field_validation="Ignore")
_SCALE_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class KindName(NamedTuple):
    """Group, version and kind."""

    group: str
    version: str
    kind: str


def kind_seen(served: Served, subresource: str) -> KindName:
    """What kind of object a webhook is sent."""
    below = served.info.subresources.get(subresource) if subresource else None
    if below is None or below.kind == served.kind:
        return KindName(served.group, served.version, served.kind)
    return KindName(below.group, below.version, below.kind)


class Views:
    """Turns stored objects into what webhooks see, and what they made of them back again."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def show(self, served: Served, attributes: Attributes, obj: JsonObject | None) -> JsonObject | None:
        """An object (new or old) of a write."""
        if obj is None:
            return None
        kind = kind_seen(served, attributes.subresource)
        api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        if kind.kind == served.kind:
            shown = conversion.to_served(served, Stored(obj, 0)).obj
        elif kind.kind == "Scale":
            shown = self._scale(served, obj)
        else:
            shown = obj
        named = {"kind": kind.kind, "apiVersion": api_version}
        return {**named, **shown, **named}

    def read_back(self, served: Served, attributes: Attributes, patched: JsonObject) -> JsonObject:
        """What a webhook left, decoded and defaulted, in the storage version."""
        kind = kind_seen(served, attributes.subresource)
        if kind.kind == served.kind:
            return read_body(self._registry, served, patched, _LENIENT)[0]
        obj, _ = read_typed(self._registry, patched, *kind, _LENIENT)
        if kind.kind != "Scale" or attributes.obj is None:
            return obj
        return _with_replicas(
            attributes.obj, self._paths(served).spec, (obj.get("spec") or {}).get("replicas", 0)
        )

    def _paths(self, served: Served) -> ScalePaths:
        return self._registry.custom_resources.scale_paths(served) if served.type.custom else ScalePaths()

    def _scale(self, served: Served, obj: JsonObject) -> JsonObject:
        paths, meta = self._paths(served), obj["metadata"]
        wanted, there = compile_path(paths.spec)(obj), compile_path(paths.status)(obj)
        return {
            "metadata": {key: meta[key] for key in _SCALE_META if key in meta},
            "spec": {"replicas": wanted[0]} if wanted and wanted[0] else {},
            "status": {"replicas": there[0] if there else 0},
        }


def _with_replicas(obj: JsonObject, path: str, replicas: int) -> JsonObject:
    """A copy along the path; the rest is shared."""
    first, _, rest = path.strip(".").partition(".")
    return {**obj, first: _with_replicas(obj.get(first) or {}, rest, replicas) if rest else replicas}
