"""Documents about discovery itself: ``api``, ``apis``, ``apis/GROUP`` and ``version``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.openapi.operations import REF_PREFIX, answers, group_word, tag
from holokube.apiserver.types import META_PACKAGE
from holokube.kube.types import JsonObject

_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
_TEXT = {"type": "string"}
_TEXT_WITH_DEFAULT = {"type": "string", "default": ""}
_ADDRESSES = {
    "type": "array",
    "items": {"default": {}, "$ref": f"{REF_PREFIX}{META_PACKAGE}.ServerAddressByClientCIDR"},
    "x-kubernetes-list-type": "atomic",
}
_GROUP_VERSION = f"{REF_PREFIX}{META_PACKAGE}.GroupVersionForDiscovery"
_REQUIRED_INFO = (
    "major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler",
    "platform",
)  # fmt: skip
_OPTIONAL_INFO = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")


def _gvk(kind: str) -> list[JsonObject]:
    return [{"group": "", "kind": kind, "version": "v1"}]


# Types that no resource uses, so that the data files do not hold them.
DEFINITIONS: Mapping[str, Mapping[str, Any]] = {
    f"{META_PACKAGE}.APIVersions": {
        "type": "object",
        "required": ["versions", "serverAddressByClientCIDRs"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "serverAddressByClientCIDRs": _ADDRESSES,
            "versions": {"type": "array", "items": _TEXT_WITH_DEFAULT, "x-kubernetes-list-type": "atomic"},
        },
        "x-kubernetes-group-version-kind": _gvk("APIVersions"),
    },
    f"{META_PACKAGE}.APIGroup": {
        "type": "object",
        "required": ["name", "versions"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "name": _TEXT_WITH_DEFAULT,
            "preferredVersion": {"default": {}, "$ref": _GROUP_VERSION},
            "serverAddressByClientCIDRs": _ADDRESSES,
            "versions": {
                "type": "array",
                "items": {"default": {}, "$ref": _GROUP_VERSION},
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-group-version-kind": _gvk("APIGroup"),
    },
    f"{META_PACKAGE}.APIGroupList": {
        "type": "object",
        "required": ["groups"],
        "properties": {
            "apiVersion": _TEXT,
            "groups": {
                "type": "array",
                "items": {"default": {}, "$ref": f"{REF_PREFIX}{META_PACKAGE}.APIGroup"},
                "x-kubernetes-list-type": "atomic",
            },
            "kind": _TEXT,
        },
        "x-kubernetes-group-version-kind": _gvk("APIGroupList"),
    },
    f"{META_PACKAGE}.GroupVersionForDiscovery": {
        "type": "object",
        "required": ["groupVersion", "version"],
        "properties": {"groupVersion": _TEXT_WITH_DEFAULT, "version": _TEXT_WITH_DEFAULT},
    },
    f"{META_PACKAGE}.ServerAddressByClientCIDR": {
        "type": "object",
        "required": ["clientCIDR", "serverAddress"],
        "properties": {"clientCIDR": _TEXT_WITH_DEFAULT, "serverAddress": _TEXT_WITH_DEFAULT},
    },
    _VERSION_INFO: {
        "type": "object",
        "required": list(_REQUIRED_INFO),
        "properties": {
            **dict.fromkeys(_REQUIRED_INFO, _TEXT_WITH_DEFAULT),
            **dict.fromkeys(_OPTIONAL_INFO, _TEXT),
        },
    },
}


def _path(
    path: str, identifier: str, tag_word: str, description: str, schema: str, **types: Any
) -> JsonObject:
    operation = {
        "tags": [tag_word],
        "description": description,
        "operationId": identifier,
        "responses": answers(("200",), {"$ref": REF_PREFIX + schema}, **types),
    }
    return {path: {"get": operation}}


def versions_path() -> JsonObject:
    name = f"{META_PACKAGE}.APIVersions"
    return _path("/api/", "getCoreAPIVersions", "core", "List the versions of the core API.", name)


def groups_path() -> JsonObject:
    return _path("/apis/", "getAPIVersions", "apis", "List the API groups.", f"{META_PACKAGE}.APIGroupList")


def group_path(group: str) -> JsonObject:
    identifier, name = f"get{group_word(group)}APIGroup", f"{META_PACKAGE}.APIGroup"
    return _path(f"/apis/{group}/", identifier, tag(group), f"List the versions of {group}.", name)


def resources_path(group: str, version: str) -> JsonObject:
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    identifier = f"get{group_word(group)}{version[:1].upper()}{version[1:]}APIResources"
    description = f"List the resources of {f'{group}/{version}' if group else version}."
    return _path(root, identifier, tag(group, version), description, f"{META_PACKAGE}.APIResourceList")


def version_path() -> JsonObject:
    description = "Version of the server."
    types = ("application/json",)
    return _path("/version/", "getCodeVersion", "version", description, _VERSION_INFO, media_types=types)
