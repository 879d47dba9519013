"""Whether Kubernetes objects in scenarios are of their types: a misspelt field would be dropped without a word.

The server has the last word on values. What is looked at here is what it would not tell, or not with the place: fields
that a type does not have, values of another type, and kinds that are not built in although their group is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.types import TypeCatalog, compile_schema
from holokube.karpenter.api.install import definitions
from holokube.karpenter.api.resources import ALL
from holokube.kube.protobuf.fields import package_of
from holokube.kube.schema import ANYTHING, Schema
from holokube.kube.types import JsonObject
from holokube.lab.scenario.errors import Wrong, choose_among, meant

_STEP: Final = re.compile(r"\[\d+\]|[^.\[\]]+")
_COPY: Final = "$(copy)"
_OWN_GROUPS: Final = frozenset(resource.group for resource in ALL)
_KINDS: Final = "x-kubernetes-group-version-kind"


def type_problems(obj: JsonObject) -> list[Wrong]:
    """What of an object does not fit its type; nothing is said about types that are not known here."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = obj["kind"]
    if group in _OWN_GROUPS:
        own = _own_types()
        schema = own.get((group, version, kind))
        if schema is None:
            known_types = {f"{one[2]} in {one[0]}/{one[1]}" for one in own}
            return [Wrong(f"there is no {kind} in {obj['apiVersion']}", choose_among(kind, known_types), "kind")]
        # Their values are checked by rules that the server knows better.
        return list(_unknown_fields({"spec": obj.get("spec") or {}}, schema, tells_values=False))
    built_in = _built_in(group, version, kind)
    if built_in is not None:
        return list(_unknown_fields(_first_copy(obj), built_in))
    if "." in group:
        # Somebody's own, defined by another object.
        return []
    kinds = [name for name, one in _catalog().package(package_of(group, version)).items() if _KINDS in one]
    near = meant(kind, kinds)
    if kinds and not near:
        # The server will tell; nobody wants to see all kinds that there are.
        return []
    remedy = f"Did you mean {near}?" if near else "`kubectl api-resources` lists kinds with their versions."
    return [Wrong(f"there is no {kind} in {obj['apiVersion']}", remedy, "kind")]


def _built_in(group: str, version: str, kind: str) -> Schema | None:
    found = _catalog().schema_of_kind(group, version, kind)
    told = [] if found is None else found.source.get(_KINDS, [])
    # Packages are named after the first word of a group, and others may have a group of the same first word.
    return found if any(one["group"] == group for one in told) else None


@cache
def _catalog() -> TypeCatalog:
    return TypeCatalog()


@cache
def _own_types() -> Mapping[tuple[str, str, str], Schema]:
    """The types that policies bring along, by group, version and kind."""
    return {
        (one["spec"]["group"], version["name"], one["spec"]["names"]["kind"]): compile_schema(
            version["schema"]["openAPIV3Schema"], lambda _name: ANYTHING
        )
        for one in definitions()
        for version in one["spec"]["versions"]
    }


def _unknown_fields(obj: JsonObject, schema: Schema, *, tells_values: bool = True) -> Iterator[Wrong]:
    decoder = Decoder()
    try:
        decoder.decode(obj, schema)
    except DecodeError as error:
        if tells_values:
            remedy = "Correct it; the message is the API server's."
            yield Wrong(f"cannot be read: {error}", remedy, _culprit(obj, schema, str(error)))
    for path in decoder.unknown_fields:
        holder = schema
        for step in _STEP.findall(path)[:-1]:
            holder = holder.items if step.startswith("[") else holder.fields.get(step, ANYTHING)
        yield Wrong("there is no such field", _nearest(path.rpartition(".")[2], holder.fields), path)


def _nearest(name: str, known: Mapping[str, Schema]) -> str:
    near = meant(name, known)
    return f"Did you mean {near}?" if near else "Leave it out; `kubectl explain` lists fields."


def _culprit(obj: JsonObject, schema: Schema, message: str) -> str:
    """The path of the value that cannot be read: without it, the decoder has something else to say, or nothing."""
    for path, steps in _leaves(obj, "", ()):
        try:
            Decoder().decode(_without(obj, steps), schema)
        except DecodeError as error:
            if str(error) == message:
                continue
        return path
    return ""


def _leaves(value: Any, path: str, steps: tuple[str | int, ...]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """All values from the inside out, with their paths."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key), (*steps, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _leaves(part, f"{path}[{index}]", (*steps, index))
    if steps:
        yield path, steps


def _without(value: Any, steps: tuple[str | int, ...]) -> Any:
    """The same value, with null in one place: it stands for nothing, and keeps the others where they are."""
    if not steps:
        return None
    if isinstance(value, dict):
        return {key: _without(part, steps[1:]) if key == steps[0] else part for key, part in value.items()}
    return [_without(part, steps[1:]) if index == steps[0] else part for index, part in enumerate(value)]


def _first_copy(value: Any) -> Any:
    """With a number where that of a copy will be."""
    if isinstance(value, str):
        return value.replace(_COPY, "0")
    if isinstance(value, dict):
        return {key: _first_copy(part) for key, part in value.items()}
    return [_first_copy(part) for part in value] if isinstance(value, list) else value
