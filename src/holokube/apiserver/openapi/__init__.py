"""OpenAPI: what the server offers, for ``kubectl explain``, for validation by clients, for client generators.

Version 3 has one document for each group version, built when somebody asks for it and kept until a custom
resource definition changes it. Version 2 is one document with everything in it, made from the same pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from holokube import __version__
from holokube.apiserver.discovery import KUBERNETES_MINOR
from holokube.apiserver.openapi import discovery
from holokube.apiserver.openapi.custom import custom_definitions
from holokube.apiserver.openapi.operations import paths_of
from holokube.apiserver.openapi.schemas import components, references
from holokube.apiserver.openapi.swagger import swagger
from holokube.apiserver.resources import Served
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_INFO = {"title": "Kubernetes", "version": f"1.{KUBERNETES_MINOR}"}
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer token",
        "name": "authorization",
        "in": "header",
    }
}


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is sent, and a tag that changes whenever the document does."""

    raw: bytes
    etag: str


class OpenApi:
    """All documents of one server."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._etags: dict[str, str] = {}
        self._documents: dict[str, Document] = {}
        self._v2: Document | None = None

    def index(self) -> JsonObject:
        """Where the documents are. The hash in each address lets clients keep a document."""
        self._refresh()
        return {
            "paths": {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={etag}"}
                for path, etag in self._etags.items()
            }
        }

    def document(self, path: str) -> Document | None:
        """The document of a group version, such as ``apis/apps/v1``; nothing if there is none."""
        self._refresh()
        etag = self._etags.get(path)
        if etag is None:
            return None
        found = self._documents.get(path)
        if found is None or found.etag != etag:
            found = Document(orjson.dumps(self._build(path)), etag)
            self._documents[path] = found
        return found

    def v2(self) -> Document:
        """Everything in one Swagger 2.0 document."""
        self._refresh()
        if self._v2 is None:
            documents = [self._build(path) for path in self._etags]
            table = self._registry.table
            group_versions = [(g, version) for g in table.groups() for version in table.versions_of(g)]
            raw = orjson.dumps(swagger(_INFO, documents, group_versions))
            self._v2 = Document(raw, hashlib.sha512(raw).hexdigest().upper())
        return self._v2

    # -- what there is ---------------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Find out anew what documents there are, if resources came or went since the last time."""
        table = self._registry.table
        if table.generation == self._generation:
            return
        self._generation = table.generation
        self._v2 = None
        paths: dict[str, tuple[str, str]] = {"api": ("", ""), "apis": ("", ""), "version": ("", "")}
        for group in table.groups():
            if group:
                paths[f"apis/{group}"] = (group, "")
            for version in table.versions_of(group):
                paths[f"apis/{group}/{version}" if group else f"api/{version}"] = (group, version)
        self._etags = {path: self._etag(path, *paths[path]) for path in sorted(paths)}
        self._documents = {path: d for path, d in self._documents.items() if self._etags.get(path) == d.etag}

    def _etag(self, path: str, group: str, version: str) -> str:
        """A hash of what the document is made from, which is much cheaper than the document."""
        digest = hashlib.sha512(f"{__version__}\n{path}\n".encode())
        for served in self._served(group, version) if version else ():
            digest.update(f"{served.plural}\n{served.kind}\n{served.info.verbs}\n".encode())
            digest.update(f"{served.namespaced}\n{sorted(served.info.subresources)}\n".encode())
            if served.type.custom:
                digest.update(orjson.dumps(served.schema.source, option=orjson.OPT_SORT_KEYS))
        return digest.hexdigest().upper()

    def _served(self, group: str, version: str) -> list[Served]:
        return [
            Served(resource_type, version)
            for resource_type in self._registry.table
            if resource_type.group == group and version in resource_type.versions
        ]

    # -- building --------------------------------------------------------------------------------------

    def _build(self, path: str) -> JsonObject:
        parts = path.split("/")
        custom: dict[str, JsonObject] = {}
        group_versions: list[tuple[str, str]] = []
        if path == "api":
            paths = discovery.versions_path()
        elif path == "apis":
            paths = discovery.groups_path()
        elif path == "version":
            paths = discovery.version_path()
        elif parts[0] == "apis" and len(parts) == 2:
            paths = discovery.group_path(parts[1])
        else:
            group, version = (parts[1], parts[2]) if parts[0] == "apis" else ("", parts[1])
            served = self._served(group, version)
            group_versions = sorted({("", "v1"), (group, version)})
            paths = {**discovery.resources_path(group, version), **paths_of(served)}
            for one in served:
                if one.type.custom:
                    custom.update(custom_definitions(one))
        return {
            "openapi": "3.0.0",
            "info": _INFO,
            "paths": paths,
            "components": {
                "schemas": components(references(paths), self._definition, custom, group_versions),
                "securitySchemes": _SECURITY,
            },
        }

    def _definition(self, name: str) -> Mapping[str, Any] | None:
        return discovery.DEFINITIONS.get(name) or self._registry.table.catalog.definition(name)


__all__ = ["Document", "OpenApi"]
