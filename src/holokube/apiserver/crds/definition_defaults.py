"""What a CustomResourceDefinition looks like after Go has read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.types import TypeCatalog
from holokube.kube.errors import BadRequest
from holokube.kube.schema import Schema
from holokube.kube.types import JsonObject

_SCHEMA_PROPS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_ZEROS: Final = frozenset(
    {
        "id", "description", "type", "format", "title", "pattern", "exclusiveMaximum", "exclusiveMinimum",
        "uniqueItems", "nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    }
)  # fmt: skip
_RULE_ZEROS: Final = frozenset({"message", "messageExpression", "fieldPath"})
_SCHEMA_MAPS: Final = ("properties", "patternProperties", "definitions")
_SCHEMA_LISTS: Final = ("allOf", "oneOf", "anyOf")


@cache
def _props_schema() -> Schema:
    return TypeCatalog().schema(_SCHEMA_PROPS)


def default_definition(crd: JsonObject) -> None:
    """Fill in what upstream fills in, and write schemas the way Go writes them."""
    spec: JsonObject = crd.setdefault("spec", {})
    names: JsonObject = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion: JsonObject = spec.setdefault("conversion", {"strategy": "None"})
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    _drop_zeros(spec, frozenset({"preserveUnknownFields"}))
    for version in spec.get("versions") or []:
        version.setdefault("served", False)
        version.setdefault("storage", False)
        _drop_zeros(version, frozenset({"deprecated"}))
        for column in version.get("additionalPrinterColumns") or []:
            _drop_zeros(column, frozenset({"description", "format", "priority"}))
        status = (version.get("subresources") or {}).get("status")
        if status is not None and not isinstance(status, Mapping):
            raise _unreadable("json: spec.versions.subresources.status must be an object")
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            _normalize(schema, 0)


def _normalize(schema: JsonObject, depth: int) -> None:
    """Read the parts that may be a schema or something else, and drop what Go would not write."""
    if depth > 100:
        raise BadRequest("spec.versions[*].schema.openAPIV3Schema is nested too deeply")
    for key in ("items", "additionalProperties", "additionalItems"):
        part = schema.get(key)
        if isinstance(part, Mapping):
            schema[key] = _decode(part)
            _normalize(schema[key], depth + 1)
        elif isinstance(part, list) and key == "items":
            schema[key] = [_decode(item) for item in part]
        elif key == "items" and part is not None:
            # Upstream reads anything else as no schema at all.
            del schema[key]
        elif part is not None and not isinstance(part, bool):
            raise _unreadable("boolean or JSON schema expected")
    for key in _SCHEMA_MAPS:
        for part in (schema.get(key) or {}).values():
            _normalize(part, depth + 1)
    for key in _SCHEMA_LISTS:
        for part in schema.get(key) or []:
            _normalize(part, depth + 1)
    if schema.get("not") is not None:
        _normalize(schema["not"], depth + 1)
    for rule in schema.get("x-kubernetes-validations") or []:
        _drop_zeros(rule, _RULE_ZEROS)
        rule.setdefault("rule", "")
    _drop_zeros(schema, _ZEROS)


def _drop_zeros(obj: JsonObject, fields: frozenset[str]) -> None:
    """Go does not write these fields when they are false, 0 or empty."""
    for key in [key for key, value in obj.items() if not value and key in fields]:
        del obj[key]


def _decode(part: Any) -> JsonObject:
    try:
        return Decoder().decode(part, _props_schema())
    except DecodeError as problem:
        raise _unreadable(str(problem)) from None


def _unreadable(why: str) -> BadRequest:
    kind = "CustomResourceDefinition"
    return BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')
