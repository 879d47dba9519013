"""The catalogue of built-in types: upstream's structure, compiled on first use.

The data files beside this module hold one API package each (``io.k8s.api.core.v1.json`` and so on). A server that
is only asked for pods never reads the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

import orjson

from holokube.kube.protobuf.fields import META_PACKAGE as META_PACKAGE
from holokube.kube.protobuf.fields import package_of as package_of
from holokube.kube.schema import ANYTHING, Schema, Shape

OBJECT_META = f"{META_PACKAGE}.ObjectMeta"
LIST_META = f"{META_PACKAGE}.ListMeta"
STATUS = f"{META_PACKAGE}.Status"
DELETE_OPTIONS = f"{META_PACKAGE}.DeleteOptions"

_REF_PREFIX = "#/components/schemas/"
# These carry meaning of their own that plain JSON schema cannot tell.
_SPECIAL_SHAPES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Shape.QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": Shape.INT_OR_STRING,
    f"{META_PACKAGE}.FieldsV1": Shape.ANY,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Shape.ANY,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": Shape.ANY,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": Shape.ANY,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": Shape.ANY,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": Shape.ANY,
}
_SCALAR_SHAPES = {
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}


def compile_schema(
    source: Mapping[str, Any], lookup: Callable[[str], Schema], *, name: str = ""
) -> Schema:
    """Turn a JSON schema into a ``Schema``; ``lookup`` finds the types that ``$ref`` names."""
    reference = source.get("$ref")
    if reference is not None:
        return _field_view(source, lookup(str(reference).removeprefix(_REF_PREFIX)))
    shape = _SPECIAL_SHAPES.get(name) or _shape_of(source)
    schema = Schema(
        shape,
        name=name,
        format=str(source.get("format", "")),
        required=tuple(source.get("required", ())),
        enum=tuple(source.get("enum", ())),
        source=source,
        preserves_unknown=shape is Shape.ANY,
    )
    _take_field_attributes(schema, source)
    if shape is Shape.OBJECT:
        properties: Mapping[str, Any] = source["properties"]
        schema.resolve_fields = lambda: {
            field: compile_schema(part, lookup) for field, part in properties.items()
        }
    elif shape is Shape.MAP and isinstance(source.get("additionalProperties"), Mapping):
        schema.resolve_items = partial(compile_schema, source["additionalProperties"], lookup)
    elif shape is Shape.LIST and "items" in source:
        schema.resolve_items = partial(compile_schema, source["items"], lookup)
    return schema


def _shape_of(source: Mapping[str, Any]) -> Shape:
    kind = source.get("type")
    if source.get("x-kubernetes-int-or-string") or source.get("format") == "int-or-string":
        return Shape.INT_OR_STRING
    if kind == "object":
        if "properties" in source:
            return Shape.OBJECT
        return Shape.MAP if "additionalProperties" in source else Shape.ANY
    if kind == "array":
        return Shape.LIST
    return _SCALAR_SHAPES.get(str(kind), Shape.ANY)


def _take_field_attributes(schema: Schema, source: Mapping[str, Any]) -> None:
    """Attributes that belong to a field rather than to the type it refers to."""
    if "default" in source:
        schema.default = source["default"]
        schema.has_default = True
    schema.nullable = bool(source.get("nullable", schema.nullable))
    schema.list_type = source.get("x-kubernetes-list-type", schema.list_type)
    schema.list_keys = tuple(source.get("x-kubernetes-list-map-keys", schema.list_keys))
    schema.map_type = source.get("x-kubernetes-map-type", schema.map_type)
    strategies = source.get("x-kubernetes-patch-strategy")
    if strategies:
        schema.patch_strategies = tuple(str(strategies).split(","))
    schema.patch_merge_key = source.get("x-kubernetes-patch-merge-key", schema.patch_merge_key)


def _field_view(source: Mapping[str, Any], target: Schema) -> Schema:
    """A field of a named type: the type's structure with the field's own attributes."""
    view = Schema(
        target.shape,
        name=target.name,
        format=target.format,
        resolve_fields=lambda: target.fields,
        resolve_items=lambda: target.items,
        required=target.required,
        enum=target.enum,
        source=target.source,
        preserves_unknown=target.preserves_unknown,
        list_type=target.list_type,
        list_keys=target.list_keys,
        map_type=target.map_type,
        nullable=target.nullable,
    )
    _take_field_attributes(view, source)
    return view


class TypeCatalog:
    """Built-in definitions by name, loaded and compiled lazily."""

    def __init__(self) -> None:
        self._packages: dict[str, dict[str, Any]] = {}
        self._compiled: dict[str, Schema] = {}

    def package(self, package: str) -> Mapping[str, Any]:
        """All definitions of one package as JSON schemas; empty if there is no such package."""
        found = self._packages.get(package)
        if found is None:
            path = resources.files("holokube.apiserver").joinpath("schemas", f"{package}.json")
            found = orjson.loads(path.read_bytes()) if path.is_file() else {}
            self._packages[package] = found
        return found

    def definition(self, name: str) -> Mapping[str, Any] | None:
        """One definition as JSON schema."""
        package, _, kind = name.rpartition(".")
        found: Mapping[str, Any] | None = self.package(package).get(kind)
        return found

    def schema(self, name: str) -> Schema:
        """One definition, compiled; anything goes for a name that is not known."""
        compiled = self._compiled.get(name)
        if compiled is None:
            source = self.definition(name)
            compiled = ANYTHING if source is None else compile_schema(source, self.schema, name=name)
            self._compiled[name] = compiled
        return compiled

    def schema_of_kind(self, group: str, version: str, kind: str) -> Schema | None:
        """The type behind a group, version and kind, or nothing if it is not built in."""
        name = f"{package_of(group, version)}.{kind}"
        return self.schema(name) if self.definition(name) is not None else None
