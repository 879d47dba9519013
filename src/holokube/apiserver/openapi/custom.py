"""Types of custom resources, from the schemas of their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.openapi.operations import REF_PREFIX, definition_name
from holokube.apiserver.resources import Served
from holokube.apiserver.types import LIST_META, OBJECT_META
from holokube.kube.types import JsonObject

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_API_VERSION = {"type": "string", "description": "Group and version of this object, such as apps/v1."}
_KIND = {"type": "string", "description": "Kind of this object, such as Deployment."}
_METADATA = {"$ref": f"{REF_PREFIX}{OBJECT_META}", "description": "Name, labels, owners and the like."}
_OF_EVERY_OBJECT = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _METADATA}


def custom_definitions(served: Served) -> dict[str, JsonObject]:
    """The type of a custom resource and of its list, by name."""
    version = served.version
    name = definition_name(served.group, version, served.kind, custom=True)
    list_kind = served.type.list_kind
    body = _expanded(served.schema.source or {"type": "object", _PRESERVE: True})
    body["type"] = "object"
    body["properties"] = dict(sorted({**body.get("properties", {}), **_OF_EVERY_OBJECT}.items()))
    body["x-kubernetes-group-version-kind"] = [_gvk(served, served.kind)]
    items = {
        "type": "array",
        "description": f"Objects of kind {served.kind}.",
        "items": {"$ref": REF_PREFIX + name},
    }
    listed: JsonObject = {
        "description": f"Objects of kind {served.kind}, with the revision they were read at.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "items": items,
            "kind": _KIND,
            "metadata": {
                "$ref": f"{REF_PREFIX}{LIST_META}",
                "description": "Revision of the list, and how to get the next page.",
            },
        },
        "x-kubernetes-group-version-kind": [_gvk(served, list_kind)],
    }
    return {name: body, definition_name(served.group, version, list_kind, custom=True): listed}


def _gvk(served: Served, kind: str) -> JsonObject:
    return {"group": served.group, "kind": kind, "version": served.version}


def _expanded(source: Mapping[str, Any]) -> JsonObject:
    """A schema in which embedded objects show the fields that every object has."""
    out: JsonObject = dict(source)
    if isinstance(out.get("properties"), Mapping):
        out["properties"] = {name: _expanded(part) for name, part in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = _expanded(out[key])
    if out.get(_EMBEDDED):
        out["properties"] = {**out.get("properties", {}), **_OF_EVERY_OBJECT}
        out["required"] = sorted({*out.get("required", ()), "kind", "apiVersion"}, reverse=True)
    return out
