"""The structural schema of a custom resource, compiled for walking objects, and as a ``Schema`` for patches.

A structural schema says for every field what type it has. Everything that shapes an object (pruning, defaulting,
lists that are maps) reads this; the rest of the JSON schema only restricts values, see ``json_schema.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from holokube.apiserver.types import OBJECT_META, TypeCatalog
from holokube.kube.schema import ANYTHING, Schema, Shape

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
ABSENT: Final[Any] = object()


@dataclass(eq=False, slots=True)
class Structural:
    """One level of a structural schema."""

    type: str = ""
    properties: Mapping[str, Structural] = field(default_factory=dict)
    items: Structural | None = None
    has_additional: bool = False
    """``additionalProperties`` is there, be it as a schema or as a boolean."""
    additional: Structural | None = None
    nullable: bool = False
    default: Any = ABSENT
    preserves_unknown: bool = False
    embedded: bool = False
    """An object with apiVersion, kind and metadata of its own; the root counts as one."""
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)
    has_defaults: bool = False
    """There is a default at this level or below."""
    has_lists: bool = False
    """There is a list of type set or map at this level or below."""
    has_embedded: bool = False
    """There is an embedded resource at this level or below."""

    def child(self, key: str) -> Structural | None:
        """What is known about the value of a key; None if nothing is."""
        return self.properties.get(key) or self.additional


def structural(source: Mapping[str, Any]) -> Structural:
    """Compile an ``openAPIV3Schema``; parts of it that are no schemas are taken as unknown."""
    extra = source.get("additionalProperties")
    items = source.get("items")
    properties: Mapping[str, Any] = source.get("properties") or {}
    node = Structural(
        type=str(source.get("type", "")),
        properties={name: structural(part) for name, part in properties.items() if isinstance(part, Mapping)},
        items=structural(items) if isinstance(items, Mapping) else None,
        has_additional=extra is not None,
        additional=structural(extra) if isinstance(extra, Mapping) else None,
        nullable=bool(source.get("nullable")),
        default=source["default"] if source.get("default") is not None else ABSENT,
        preserves_unknown=bool(source.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(source.get("x-kubernetes-embedded-resource")),
        int_or_string=bool(source.get("x-kubernetes-int-or-string")),
        list_type=str(source.get("x-kubernetes-list-type") or ""),
        list_keys=tuple(source.get("x-kubernetes-list-map-keys") or ()),
        map_type=str(source.get("x-kubernetes-map-type") or ""),
        source=source,
    )
    parts = [*node.properties.values(), *(part for part in (node.items, node.additional) if part is not None)]
    node.has_defaults = node.default is not ABSENT or any(part.has_defaults for part in parts)
    node.has_lists = node.list_type in ("set", "map") or any(part.has_lists for part in parts)
    node.has_embedded = node.embedded or any(part.has_embedded for part in parts)
    return node


_SHAPES: Final = {
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}


def schema_of(node: Structural, catalog: TypeCatalog, *, root: bool = False) -> Schema:
    """The same as a ``Schema``: what server-side apply, printing and OpenAPI walk."""
    source = node.source
    shape = _shape(node, root=root)
    if shape is Shape.ANY:
        return (
            ANYTHING
            if node.map_type != "atomic"
            else Schema(shape, preserves_unknown=True, map_type="atomic")
        )
    schema = Schema(
        shape,
        format=str(source.get("format", "")),
        required=tuple(source.get("required") or ()),
        default=None if node.default is ABSENT else node.default,
        has_default=node.default is not ABSENT,
        nullable=node.nullable,
        preserves_unknown=node.preserves_unknown,
        list_type=node.list_type or "atomic",
        list_keys=node.list_keys,
        map_type=node.map_type or "granular",
        enum=tuple(source.get("enum") or ()),
        source=source,
    )
    if shape is Shape.OBJECT:
        schema.resolve_fields = partial(_fields, node, catalog, root=root)
    elif shape is Shape.MAP and node.additional is not None:
        schema.resolve_items = partial(schema_of, node.additional, catalog)
    elif shape is Shape.LIST and node.items is not None:
        schema.resolve_items = partial(schema_of, node.items, catalog)
    return schema


def _shape(node: Structural, *, root: bool) -> Shape:
    if node.int_or_string:
        return Shape.INT_OR_STRING
    if root or node.embedded:
        return Shape.OBJECT
    if node.type == "array":
        return Shape.LIST
    if node.type == "object":
        if node.has_additional and not node.properties:
            return Shape.MAP
        return Shape.OBJECT if node.properties or not node.preserves_unknown else Shape.ANY
    return _SHAPES.get(node.type, Shape.ANY)


def _fields(node: Structural, catalog: TypeCatalog, *, root: bool) -> dict[str, Schema]:
    fields = {name: schema_of(part, catalog) for name, part in node.properties.items()}
    if root or node.embedded:
        fields["apiVersion"] = fields["kind"] = Schema(Shape.STRING)
        fields["metadata"] = catalog.schema(OBJECT_META)
    return fields
