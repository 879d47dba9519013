"""Reads Kubernetes objects from a file: a snapshot, what ``kubectl get -o yaml`` printed, or plain manifests.

JSON or YAML, gzipped or not, is told from the content. Lists are taken apart. Where an object stands is
found out only when somebody asks, because that takes a second and much slower look at the text.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import yaml

from holokube.base.errors import UsageError
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import YamlError, compose_documents, load_documents

_GZIP_MAGIC = b"\x1f\x8b"
_LOCATE_MAX_BYTES = 20_000_000
_HINT = "Give a file made by `holokube snapshot` or `kubectl get ... -o json`, or plain manifests."


class Manifests:
    """The objects of one file, in order."""

    def __init__(self, name: str, objects: list[Any], text: bytes = b"") -> None:
        self.name = name
        self.objects = objects
        self._text = text

    def where(self, index: int) -> str:
        """Where an object stands, for messages: ``cluster.yaml, line 120``."""
        if index < len(self._lines):
            return f"{self.name}, line {self._lines[index]}"
        return f"{self.name}, object {index + 1}"

    @cached_property
    def _lines(self) -> list[int]:
        return _lines(self._text) if len(self._text) <= _LOCATE_MAX_BYTES else []


def read_manifests(path: str) -> Manifests:
    """All objects of a file, ``-`` for standard input. UsageError when it cannot be read."""
    name = "standard input" if path == "-" else path
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {name}: {error.strerror}", hint="Check the name of the file."
        ) from error
    if raw.startswith(_GZIP_MAGIC):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{name} is damaged: {error}", hint="Copy or make the file again.") from error
    return parse_manifests(raw, name)


def parse_manifests(text: bytes, name: str = "manifests") -> Manifests:
    """All objects of a text."""
    objects = [obj for document in _documents(text, name) for obj in _flatten(document)]
    if not objects:
        raise UsageError(f"{name} holds no Kubernetes objects", hint=_HINT)
    return Manifests(name, objects, text)


def _documents(text: bytes, name: str) -> list[Any]:
    # orjson reads a snapshot some fifty times faster than the fastest YAML reader.
    if text.lstrip()[:1] in (b"{", b"["):
        try:
            return [orjson.loads(text)]
        except orjson.JSONDecodeError as error:
            problem: Exception = error
        try:
            return _yaml_documents(text)
        except YamlError:
            # It looked like JSON, so the JSON reader's complaint is the one that helps.
            raise _unreadable(name, problem) from problem
    try:
        return _yaml_documents(text)
    except YamlError as error:
        raise _unreadable(name, error) from error


def _yaml_documents(text: bytes) -> list[Any]:
    return [document for document in load_documents(text) if document is not None]


def _unreadable(name: str, error: Exception) -> UsageError:
    why = " ".join(str(error).split())
    return UsageError(f"{name} is neither JSON nor YAML: {why}", hint=_HINT)


def _flatten(document: Any) -> Iterator[Any]:
    """The objects of a document: itself, or the items of a list of any kind."""
    if isinstance(document, list):
        for part in document:
            yield from _flatten(part)
        return
    if not isinstance(document, dict):
        yield document
        return
    kind, items = document.get("kind"), document.get("items")
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield document
        return
    for item in items:
        yield from _flatten(_typed_item(document, kind, item))


def _typed_item(document: JsonObject, kind: str, item: Any) -> Any:
    """Lists straight from the API (``PodList``) say once, for all items, what these are."""
    if kind == "List" or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List"), **item}


def _lines(text: bytes) -> list[int]:
    """The line at which each object starts, counted from 1; empty if that cannot be told."""
    try:
        roots = compose_documents(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    return [node.start_mark.line + 1 for root in roots if root is not None for node in _object_nodes(root)]


def _object_nodes(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _object_nodes(part)
        return
    if isinstance(node, yaml.MappingNode):
        fields = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        kind, items = fields.get("kind"), fields.get("items")
        named_list = isinstance(kind, yaml.ScalarNode) and str(kind.value).endswith("List")
        if named_list and isinstance(items, yaml.SequenceNode):
            for part in items.value:
                yield from _object_nodes(part)
            return
    elif isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return
    yield node
