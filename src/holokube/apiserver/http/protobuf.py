"""Reads bodies in Kubernetes' protobuf, which current Go clients (kubectl among them) send for built-in types.

A message becomes the JSON that Go would have written for the same struct, so that everything behind this module
sees one kind of body. Field numbers and names are data (``apiserver/schemas/protobuf``), read on first use. Answers
are always JSON: clients that speak protobuf accept it as well.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import orjson

from holokube.apiserver.types import DELETE_OPTIONS, META_PACKAGE, package_of
from holokube.kube import timeformat
from holokube.kube.errors import BadRequest
from holokube.kube.types import JsonObject

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_MAX_DEPTH = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RUNTIME = "io.k8s.apimachinery.pkg.runtime"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {"int32": _VARINT, "int64": _VARINT, "bool": _VARINT, "double": _FIXED64}


class _Malformed(ValueError):
    """The bytes are no message of the type they are said to be."""


class _Field(NamedTuple):
    """One field of a message; an empty name means that its fields belong to the message around it."""

    name: str
    type: str
    repeated: bool
    keyed: bool
    omits_zero: bool
    wire_type: int


def decode_body(body: bytes) -> JsonObject:
    """The object in an envelope of runtime.Unknown, as JSON with apiVersion and kind."""
    try:
        if not body.startswith(_MAGIC):
            raise _Malformed("the body does not start with the four bytes that mark Kubernetes' protobuf")
        envelope = _decode(body[len(_MAGIC) :], f"{_RUNTIME}.Unknown", 0)
        api_version, kind = envelope.get("apiVersion", ""), envelope.get("kind", "")
        message = _message_for(api_version, kind)
        if message is None:
            raise _Malformed(f'no kind "{kind}" is registered for version "{api_version}" that can be sent as protobuf')
        raw: bytes = envelope.get("-", b"")
        obj = _decode(raw, message, 0)
    except (_Malformed, RecursionError) as problem:
        raise BadRequest(
            f"couldn't get version/kind; protobuf parse error: {problem}",
            hint="send application/json if the client cannot be mended",
        ) from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_for(api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return DELETE_OPTIONS
    name = f"{package_of(group, version)}.{kind}"
    return name if kind and _fields(name) is not None else None


@lru_cache(maxsize=64)
def _package(package: str) -> Mapping[str, Any]:
    if not package.replace(".", "").replace("-", "").isalnum():
        return {}
    path = resources.files("holokube.apiserver").joinpath("schemas", "protobuf", f"{package}.json")
    found: Mapping[str, Any] = orjson.loads(path.read_bytes()) if path.is_file() else {}
    return found


@lru_cache(maxsize=2048)
def _fields(message: str) -> Mapping[int, _Field] | None:
    package, _, name = message.rpartition(".")
    rows = _package(package).get(name)
    if rows is None:
        return None
    fields: dict[int, _Field] = {}
    for number, json_name, spelled, omits_zero in rows:
        repeated, keyed = spelled.startswith("[]"), spelled.startswith("{}")
        plain = spelled[2:] if repeated or keyed else spelled
        wire_type = _BYTES if keyed else _WIRE_TYPES.get(plain, _BYTES)
        fields[number] = _Field(json_name, plain, repeated, keyed, omits_zero, wire_type)
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Malformed("a number is cut off or too long")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _next(data: bytes, at: int) -> tuple[int, int, Any, int]:
    """Number, wire type and value of the field at ``at``, and where the next one starts."""
    key, at = _varint(data, at)
    number, wire_type = key >> 3, key & 7
    if wire_type == _VARINT:
        value, at = _varint(data, at)
        return number, wire_type, value, at
    if wire_type == _BYTES:
        length, at = _varint(data, at)
    elif wire_type in (_FIXED64, _FIXED32):
        length = 8 if wire_type == _FIXED64 else 4
    else:
        raise _Malformed(f"wire type {wire_type} is not used by Kubernetes")
    if at + length > len(data):
        raise _Malformed("a field is longer than what holds it")
    return number, wire_type, data[at : at + length], at + length


def _decode(data: bytes, message: str, depth: int) -> JsonObject:
    if depth > _MAX_DEPTH:
        raise _Malformed("messages are nested too deeply")
    fields = _fields(message)
    if fields is None:
        raise _Malformed(f"the type {message} is not known")
    out: JsonObject = {}
    at = 0
    while at < len(data):
        number, wire_type, value, at = _next(data, at)
        field = fields.get(number)
        if field is None:
            # From a newer client; Go skips it, too.
            continue
        if field.repeated:
            items: list[Any] = out.setdefault(field.name, [])
            if wire_type == _BYTES and field.wire_type == _VARINT:
                items.extend(_packed(value, field.type))
            else:
                items.append(_value(value, wire_type, field, depth))
        elif field.keyed:
            key, item = _entry(value, wire_type, field, depth)
            out.setdefault(field.name, {})[key] = item
        else:
            found = _value(value, wire_type, field, depth)
            if not field.name:
                out.update(found)
            elif found or not field.omits_zero or isinstance(found, dict):
                out[field.name] = found
    return out


def _value(value: Any, wire_type: int, field: _Field, depth: int) -> Any:
    if wire_type != field.wire_type:
        raise _Malformed(f"field {field.name or field.type} has wire type {wire_type}")
    if field.name == "-":
        # Bytes that hold JSON or a message, which JSON would not show as base64.
        return value
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        return scalar(value)
    special = _SPECIAL.get(field.type)
    if special is not None:
        return special(_decode(value, field.type, depth + 1))
    return _decode(value, field.type, depth + 1)


def _entry(value: Any, wire_type: int, field: _Field, depth: int) -> tuple[str, Any]:
    """A map is a list of messages with the key in field 1 and the value in field 2."""
    if wire_type != _BYTES:
        raise _Malformed(f"map {field.name} has wire type {wire_type}")
    item_wire_type = _WIRE_TYPES.get(field.type, _BYTES)
    item = field._replace(keyed=False, wire_type=item_wire_type)
    key = ""
    found: Any = None
    at = 0
    while at < len(value):
        number, part_type, part, at = _next(value, at)
        if number == 1 and part_type == _BYTES:
            key = _text(part)
        elif number == 2:
            found = _value(part, part_type, item, depth)
    if found is None and item_wire_type == _BYTES:
        found = _value(b"", _BYTES, item, depth)
    return key, found


def _packed(data: bytes, kind: str) -> list[Any]:
    out: list[Any] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        out.append(_SCALARS[kind](value))
    return out


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _Malformed("a string is not UTF-8") from None


def _signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def _int32(value: int) -> int:
    # Go cuts a longer number off, and so must whoever wants to read what Go reads.
    value &= 2**32 - 1
    return value - 2**32 if value >= 2**31 else value


def _double(value: bytes) -> float:
    number: float = struct.unpack("<d", value)[0]
    if number != number or number in (float("inf"), float("-inf")):
        raise _Malformed("a number is not finite")
    return number


def _time(parts: JsonObject) -> str | None:
    moment = _moment(parts)
    return None if moment is None else timeformat.format_time(moment)


def _micro_time(parts: JsonObject) -> str | None:
    moment = _moment(parts)
    return None if moment is None else timeformat.format_micro_time(moment)


def _moment(parts: JsonObject) -> datetime | None:
    """An empty message is Go's zero time, which its JSON shows as null."""
    if not parts:
        return None
    try:
        return _EPOCH + timedelta(seconds=parts.get("seconds", 0), microseconds=parts.get("nanos", 0) // 1000)
    except OverflowError:
        raise _Malformed("a time is out of range") from None


def _json(parts: JsonObject) -> Any:
    """Raw JSON, or another envelope: what webhooks and templates carry."""
    raw: bytes = parts.get("-", b"")
    if not raw:
        return None
    try:
        return decode_body(raw) if raw.startswith(_MAGIC) else orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise _Malformed("a raw extension is not JSON") from None
    except BadRequest as problem:
        raise _Malformed(str(problem)) from None


def _int_or_string(parts: JsonObject) -> int | str:
    found: int | str = parts.get("strVal", "") if parts.get("type", 0) == 1 else parts.get("intVal", 0)
    return found


def _schema_or_bool(parts: JsonObject) -> Any:
    return parts.get("schema") if parts.get("schema") is not None else parts.get("allows", False)


def _schema_or_list(parts: JsonObject) -> Any:
    return parts.get("schema") or parts.get("jSONSchemas") or parts.get("property") or []


def _raw(value: bytes) -> str:
    return base64.b64encode(value).decode()


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": _text,
    "bool": bool,
    "int32": _int32,
    "int64": _signed,
    "double": _double,
    "bytes": _raw,
}
_SPECIAL: Mapping[str, Callable[[JsonObject], Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": lambda parts: parts.get("string", "0") or "0",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{META_PACKAGE}.Time": _time,
    f"{META_PACKAGE}.MicroTime": _micro_time,
    f"{META_PACKAGE}.FieldsV1": _json,
    f"{META_PACKAGE}.Verbs": lambda parts: parts.get("items", []),
    f"{_RUNTIME}.RawExtension": _json,
    f"{_EXTENSIONS}.JSON": _json,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _schema_or_list,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _schema_or_list,
    "io.k8s.api.authentication.v1.ExtraValue": lambda parts: parts.get("items", []),
    "io.k8s.api.authorization.v1.ExtraValue": lambda parts: parts.get("items", []),
    "io.k8s.api.certificates.v1.ExtraValue": lambda parts: parts.get("items", []),
}
