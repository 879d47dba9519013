"""The fields of messages: Kubernetes' own from data files, read on first use, and anybody else's from rows like theirs.

A row is ``[number, JSON name, type, left out when zero]``. A type with ``[]`` in front is repeated, one with ``{}`` is
a map of texts; ``raw`` are bytes that JSON would not show as base64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from holokube.kube.protobuf.wire import BYTES, WIRE_TYPES

META_PACKAGE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
RUNTIME_PACKAGE: Final = "io.k8s.apimachinery.pkg.runtime"
EXTENSIONS_PACKAGE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
EXTRA_VALUES: Final = tuple(
    f"io.k8s.api.{group}.v1.ExtraValue" for group in ("authentication", "authorization", "certificates")
)

_PACKAGES_BY_GROUP: Final = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "metrics.k8s.io": "io.k8s.metrics.pkg.apis.metrics",
}


class Field(NamedTuple):
    """One field of a message; an empty name means that its fields belong to the message around it."""

    number: int
    name: str
    type: str
    repeated: bool
    keyed: bool
    omits_zero: bool
    wire_type: int

    @property
    def value_wire_type(self) -> int:
        """Of the values of a map; the map itself is a list of messages."""
        return WIRE_TYPES.get(self.type, BYTES)


Fields: TypeAlias = Mapping[int, Field]
Lookup: TypeAlias = Callable[[str], Fields | None]
"""Finds the fields of a message by its full name."""


def package_of(group: str, version: str) -> str:
    """The Go package, in OpenAPI spelling, that defines the types of a built-in group."""
    base = _PACKAGES_BY_GROUP.get(group) or f"io.k8s.api.{group.partition('.')[0]}"
    return f"{base}.{version}"


def read_rows(rows: Iterable[Sequence[Any]]) -> dict[int, Field]:
    """The fields of one message by their numbers."""
    fields: dict[int, Field] = {}
    for number, name, spelled, omits_zero in rows:
        repeated, keyed = spelled.startswith("[]"), spelled.startswith("{}")
        plain = spelled[2:] if repeated or keyed else spelled
        wire_type = BYTES if keyed else WIRE_TYPES.get(plain, BYTES)
        fields[number] = Field(number, name, plain, repeated, keyed, omits_zero, wire_type)
    return fields


@lru_cache(maxsize=64)
def _package(package: str) -> Mapping[str, Any]:
    if not package.replace(".", "").replace("-", "").isalnum():
        return {}
    path = resources.files("holokube.kube.protobuf").joinpath("messages", f"{package}.json")
    found: Mapping[str, Any] = orjson.loads(path.read_bytes()) if path.is_file() else {}
    return found


@lru_cache(maxsize=2048)
def kubernetes_fields(message: str) -> Fields | None:
    """The fields of one of Kubernetes' messages, such as ``io.k8s.api.core.v1.Pod``."""
    package, _, name = message.rpartition(".")
    rows = _package(package).get(name)
    return None if rows is None else read_rows(rows)
