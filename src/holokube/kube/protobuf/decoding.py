"""Messages become the JSON that Go would have written for the same struct."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from holokube.kube import timeformat
from holokube.kube.protobuf.fields import (
    EXTENSIONS_PACKAGE,
    EXTRA_VALUES,
    INT_OR_STRING,
    META_PACKAGE,
    QUANTITY,
    RUNTIME_PACKAGE,
    Field,
    Lookup,
)
from holokube.kube.protobuf.wire import BYTES, VARINT, Malformed, read_field, read_varint
from holokube.kube.types import JsonObject

MAGIC = b"k8s\x00"
_MAX_DEPTH = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Decoder:
    """Reads the messages of one table; ``read_envelope`` reads those that lie as bytes within another."""

    def __init__(self, lookup: Lookup, read_envelope: Callable[[bytes], JsonObject] | None = None) -> None:
        self._lookup = lookup
        self._read_envelope = read_envelope
        self._special: Mapping[str, Callable[[JsonObject], Any]] = {
            **_SPECIAL,
            f"{META_PACKAGE}.FieldsV1": self._json,
            f"{RUNTIME_PACKAGE}.RawExtension": self._json,
            f"{EXTENSIONS_PACKAGE}.JSON": self._json,
        }

    def decode(self, data: bytes, message: str) -> JsonObject:
        """What the message says; fields that were not sent are not there. Malformed for anything else."""
        try:
            return self._decode(data, message, 0)
        except RecursionError:
            raise Malformed("messages are nested too deeply") from None

    def _decode(self, data: bytes, message: str, depth: int) -> JsonObject:
        if depth > _MAX_DEPTH:
            raise Malformed("messages are nested too deeply")
        fields = self._lookup(message)
        if fields is None:
            raise Malformed(f"the type {message} is not known")
        out: JsonObject = {}
        at = 0
        while at < len(data):
            number, wire_type, value, at = read_field(data, at)
            field = fields.get(number)
            if field is None:
                # From a newer sender; Go skips it, too.
                continue
            if field.repeated:
                items: list[Any] = out.setdefault(field.name, [])
                if wire_type == BYTES and field.wire_type == VARINT:
                    items.extend(_packed(value, field.type))
                else:
                    items.append(self._value(value, wire_type, field, depth))
            elif field.keyed:
                key, item = self._entry(value, wire_type, field, depth)
                out.setdefault(field.name, {})[key] = item
            else:
                found = self._value(value, wire_type, field, depth)
                if not field.name:
                    out.update(found)
                elif found or not field.omits_zero or isinstance(found, dict):
                    out[field.name] = found
        return out

    def _value(self, value: Any, wire_type: int, field: Field, depth: int) -> Any:
        if wire_type != field.wire_type:
            raise Malformed(f"field {field.name or field.type} has wire type {wire_type}")
        if field.name == "-":
            # Bytes that hold JSON or a message, which JSON would not show as base64.
            return value
        scalar = _SCALARS.get(field.type)
        if scalar is not None:
            return scalar(value)
        special = self._special.get(field.type)
        if special is not None:
            return special(self._decode(value, field.type, depth + 1))
        return self._decode(value, field.type, depth + 1)

    def _entry(self, value: Any, wire_type: int, field: Field, depth: int) -> tuple[str, Any]:
        """A map is a list of messages with the key in field 1 and the value in field 2."""
        if wire_type != BYTES:
            raise Malformed(f"map {field.name} has wire type {wire_type}")
        item_wire_type = field.value_wire_type
        item = field._replace(keyed=False, wire_type=item_wire_type)
        key = ""
        found: Any = None
        at = 0
        while at < len(value):
            number, part_type, part, at = read_field(value, at)
            if number == 1 and part_type == BYTES:
                key = _text(part)
            elif number == 2:
                found = self._value(part, part_type, item, depth)
        if found is None and item_wire_type == BYTES:
            found = self._value(b"", BYTES, item, depth)
        return key, found

    def _json(self, parts: JsonObject) -> Any:
        """Raw JSON, or another envelope: what webhooks and templates carry."""
        raw: bytes = parts.get("-", b"")
        if not raw:
            return None
        try:
            if raw.startswith(MAGIC) and self._read_envelope is not None:
                return self._read_envelope(raw)
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise Malformed("a raw extension is not JSON") from None


def _packed(data: bytes, kind: str) -> list[Any]:
    out: list[Any] = []
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        out.append(_SCALARS[kind](value))
    return out


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed("a string is not UTF-8") from None


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
        raise Malformed("a number is not finite")
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
        raise Malformed("a time is out of range") from None


def _int_or_string(parts: JsonObject) -> int | str:
    found: int | str = parts.get("strVal", "") if parts.get("type", 0) == 1 else parts.get("intVal", 0)
    return found


def _schema_or_bool(parts: JsonObject) -> Any:
    return parts.get("schema") if parts.get("schema") is not None else parts.get("allows", False)


def _schema_or_list(parts: JsonObject) -> Any:
    return parts.get("schema") or parts.get("jSONSchemas") or parts.get("property") or []


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _items(parts: JsonObject) -> Any:
    return parts.get("items", [])


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "string": _text,
    "bool": bool,
    "int32": _int32,
    "int64": _signed,
    "double": _double,
    "bytes": _base64,
    "raw": bytes,
}
_SPECIAL: Mapping[str, Callable[[JsonObject], Any]] = {
    QUANTITY: lambda parts: parts.get("string", "0") or "0",
    INT_OR_STRING: _int_or_string,
    f"{META_PACKAGE}.Time": _time,
    f"{META_PACKAGE}.MicroTime": _micro_time,
    f"{META_PACKAGE}.Verbs": _items,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrArray": _schema_or_list,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrStringArray": _schema_or_list,
    **dict.fromkeys(EXTRA_VALUES, _items),
}
