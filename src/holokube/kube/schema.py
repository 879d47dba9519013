"""One description of a type, whether it comes from upstream's OpenAPI or from a CRD.

Everything that walks an object by its type walks a ``Schema``: strict decoding, strategic merge patch,
server-side apply, CRD validation, ``kubectl explain``. Children are resolved on first use, because some
types (``JSONSchemaProps``) contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any


class Shape(Enum):
    """What kind of JSON value a schema describes."""

    OBJECT = "object"  # named fields, each with its own schema
    MAP = "map"  # any keys, one schema for all values
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    ANY = "any"  # anything goes: RawExtension, JSON, preserve-unknown-fields


@dataclass(eq=False)
class Schema:
    """A type. ``resolve_*`` are called once, on first use."""

    shape: Shape
    name: str = ""
    """Upstream's definition name, such as ``io.k8s.api.core.v1.PodSpec``; empty for inline types."""
    format: str = ""
    """``int32``, ``int64``, ``date-time``, ``byte``, ``double``, ...; empty if there is none."""
    resolve_fields: Callable[[], Mapping[str, Schema]] | None = None
    resolve_items: Callable[[], Schema] | None = None
    required: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False
    nullable: bool = False
    preserves_unknown: bool = False
    """Fields that are not listed are kept (CRDs) and not complained about."""
    list_type: str = "atomic"
    """Server-side apply: ``atomic``, ``set`` or ``map`` (lists only)."""
    list_keys: tuple[str, ...] = ()
    map_type: str = "granular"
    """Server-side apply: ``granular`` or ``atomic`` (objects and maps only)."""
    patch_strategies: tuple[str, ...] = ()
    """Strategic merge patch: any of ``merge``, ``replace``, ``retainKeys`` for this field."""
    patch_merge_key: str = ""
    enum: tuple[Any, ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict)
    """The JSON schema it was compiled from; CRD validation reads further keywords there."""
    ownership: Any = field(default=None, init=False, repr=False)
    """What server-side apply compiled from this type, on first use; see ``kube.patch.typed``."""
    decoding: Any = field(default=None, init=False, repr=False)
    """The same for reading bodies; see ``apiserver.plain_decode``."""

    @cached_property
    def fields(self) -> Mapping[str, Schema]:
        """Schemas of the named fields (OBJECT; empty otherwise)."""
        return self.resolve_fields() if self.resolve_fields is not None else {}

    @cached_property
    def items(self) -> Schema:
        """Schema of list elements or map values; anything goes if it is not known."""
        return self.resolve_items() if self.resolve_items is not None else ANYTHING


ANYTHING = Schema(Shape.ANY, preserves_unknown=True)
