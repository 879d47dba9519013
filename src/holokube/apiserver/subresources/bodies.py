"""Reads the bodies of subresources, which have types of their own (Scale, Binding, Eviction, TokenRequest)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holokube.apiserver.bodies import Body
from holokube.apiserver.decode import DecodeError, Decoder
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import BadRequest
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry


def read_typed(
    registry: Registry,
    body: Any,
    group: str,
    version: str,
    kind: str,
    options: WriteOptions,
    *,
    other_versions: tuple[str, ...] = (),
) -> tuple[JsonObject, list[str]]:
    """Decode a body of a built-in kind. Returns a private object and warnings about unknown fields."""
    value = body.value if isinstance(body, Body) else body
    api_version = f"{group}/{version}" if group else version
    if not isinstance(value, dict):
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind}): it must be an object")
    given_kind, given_version = value.get("kind") or kind, value.get("apiVersion") or api_version
    if given_kind != kind or given_version not in (api_version, *other_versions):
        raise BadRequest(f"{given_kind} in version {given_version!r} cannot be handled as a {kind}")
    schema = registry.catalog.schema_of_kind(group, version, kind)
    if schema is None:
        raise BadRequest(f"{kind} is not a kind this server knows")
    decoder = Decoder()
    try:
        obj = decoder.decode(value, schema)
    except DecodeError as problem:
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {problem}') from None
    found = [f'unknown field "{path}"' for path in decoder.unknown_fields]
    if found and options.field_validation == "Strict":
        raise BadRequest(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {", ".join(found)}'
        )
    obj["kind"], obj["apiVersion"] = kind, api_version
    warnings = found if options.field_validation == "Warn" else []
    if isinstance(body, Body):
        body.warnings.extend(warnings)
    return obj, warnings


def success() -> JsonObject:
    """What binding and eviction answer."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
