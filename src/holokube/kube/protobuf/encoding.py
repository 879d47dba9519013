"""JSON becomes the message that Go would read as the same struct.

Fields are written in the order of their numbers, and only if the JSON has them: what Go leaves at zero and what is not
sent are the same to it. JSON fields that the table does not know are left out.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import orjson

from holokube.kube import quantity, timeformat
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
from holokube.kube.protobuf.wire import BYTES, key, varint

Write: TypeAlias = Callable[[Any], bytes]
"""A value with what goes before it on the wire, all but the key of its field."""


class CannotEncode(ValueError):
    """An object does not have the shape of its type; the message begins with the field."""


class Encoder:
    """Writes the messages of one table."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._plans: dict[str, tuple[tuple[str, Write], ...]] = {}

    def encode(self, obj: Mapping[str, Any], message: str) -> bytes:
        """The message of an object; CannotEncode if the object is of another shape."""
        plan = self._plans.get(message)
        if plan is None:
            plan = self._plans[message] = self._plan(message)
        parts: list[bytes] = []
        for name, write in plan:
            if not name:
                parts.append(write(obj))
                continue
            value = obj.get(name)
            if value is None:
                continue
            try:
                parts.append(write(value))
            except CannotEncode as problem:
                raise CannotEncode(f"{name}.{problem}") from None
            except (TypeError, ValueError, AttributeError, struct.error, OverflowError) as problem:
                raise CannotEncode(f"{name}: {problem}") from None
        return b"".join(parts)

    def _plan(self, message: str) -> tuple[tuple[str, Write], ...]:
        fields = self._lookup(message)
        if fields is None:
            raise CannotEncode(f"the type {message} is not known")
        return tuple((field.name, self._writer(field)) for _, field in sorted(fields.items()))

    def _writer(self, field: Field) -> Write:
        if not field.name:
            return self._inline(field)
        if field.keyed:
            return self._map(field)
        before, value_of = key(field.number, field.wire_type), self._value_writer(field)
        if not field.repeated:
            return lambda value: before + value_of(value)

        def write_all(values: Any) -> bytes:
            if not isinstance(values, (list, tuple)):
                raise TypeError(f"{type(values).__name__} is not a list")
            return b"".join([before + value_of(value) for value in values])

        return write_all

    def _inline(self, field: Field) -> Write:
        """The fields of a part that stand in the whole."""
        before, part = key(field.number, BYTES), field.type

        def write(obj: Any) -> bytes:
            raw = self.encode(obj, part)
            return before + varint(len(raw)) + raw if raw else b""

        return write

    def _map(self, field: Field) -> Write:
        """A list of messages with the key in field 1 and the value in field 2, in the order of the keys."""
        before, value_of = key(field.number, BYTES), self._value_writer(field)
        before_value = key(2, field.value_wire_type)

        def write(values: Any) -> bytes:
            parts = []
            for name, value in sorted(values.items()):
                if value is None:
                    continue
                entry = b"\x0a" + _text(name) + before_value + value_of(value)
                parts.append(before + varint(len(entry)) + entry)
            return b"".join(parts)

        return write

    def _value_writer(self, field: Field) -> Write:
        if field.name == "-":
            return _raw
        scalar = _SCALARS.get(field.type)
        if scalar is not None:
            return scalar
        type_, shape = field.type, _SPECIAL.get(field.type)

        def write(value: Any) -> bytes:
            if shape is not None:
                value = shape(value)
            elif not isinstance(value, Mapping):
                raise TypeError(f"{type(value).__name__} is not an object")
            raw = self.encode(value, type_)
            return varint(len(raw)) + raw

        return write


def _raw(value: bytes) -> bytes:
    return varint(len(value)) + value


def _text(value: str) -> bytes:
    raw = value.encode()
    return varint(len(raw)) + raw


def _base64(value: str) -> bytes:
    try:
        return _raw(base64.b64decode(value, validate=True))
    except binascii.Error as problem:
        raise ValueError(f"not base64: {problem}") from None


def _bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return b"\x01" if value else b"\x00"


def _integer(bits: int) -> Write:
    limit = 2 ** (bits - 1)

    def write(value: Any) -> bytes:
        # JSON knows one kind of number, so 3.0 is a whole one.
        whole = int(value)
        if whole != value or isinstance(value, bool) or not -limit <= whole < limit:
            raise ValueError(f"{value!r} is not a whole number of {bits} bits")
        return varint(whole)

    return write


def _double(value: Any) -> bytes:
    return struct.pack("<d", value)


def _quantity(value: Any) -> Mapping[str, Any]:
    return {"string": value if isinstance(value, str) else str(quantity.parse(value))}


def _int_or_string(value: Any) -> Mapping[str, Any]:
    return {"type": 1, "strVal": value} if isinstance(value, str) else {"type": 0, "intVal": value}


def _time(value: Any) -> Mapping[str, Any]:
    return {"seconds": _whole_seconds(value), "nanos": 0}


def _whole_seconds(value: str) -> int:
    # Cut off, not rounded towards 1970, which is what int() does.
    return int(timeformat.parse_time(value).replace(microsecond=0).timestamp())


def _micro_time(value: Any) -> Mapping[str, Any]:
    return {"seconds": _whole_seconds(value), "nanos": timeformat.parse_time(value).microsecond * 1000}


def _json(value: Any) -> Mapping[str, Any]:
    return {"-": orjson.dumps(value)}


def _items(value: Any) -> Mapping[str, Any]:
    return {"items": value}


def _schema_or_bool(value: Any) -> Mapping[str, Any]:
    return {"allows": value} if isinstance(value, bool) else {"allows": True, "schema": value}


def _schema_or_schemas(value: Any) -> Mapping[str, Any]:
    return {"jSONSchemas": value} if isinstance(value, list) else {"schema": value}


def _schema_or_names(value: Any) -> Mapping[str, Any]:
    return {"property": value} if isinstance(value, list) else {"schema": value}


_SCALARS: Mapping[str, Write] = {
    "string": _text,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "double": _double,
    "bytes": _base64,
    "raw": _raw,
}
_SPECIAL: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    QUANTITY: _quantity,
    INT_OR_STRING: _int_or_string,
    f"{META_PACKAGE}.Time": _time,
    f"{META_PACKAGE}.MicroTime": _micro_time,
    f"{META_PACKAGE}.FieldsV1": _json,
    f"{META_PACKAGE}.Verbs": _items,
    f"{RUNTIME_PACKAGE}.RawExtension": _json,
    f"{EXTENSIONS_PACKAGE}.JSON": _json,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrArray": _schema_or_schemas,
    f"{EXTENSIONS_PACKAGE}.JSONSchemaPropsOrStringArray": _schema_or_names,
    **dict.fromkeys(EXTRA_VALUES, _items),
}
