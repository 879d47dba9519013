"""The types of the Swagger 2.0 document as protobuf.

kubectl checks a ``kind: List`` against these before it sends the parts, and asks for them in no other form. It reads
the definitions only, so that paths and operations are left out. Field numbers are those of gnostic's OpenAPIv2.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import orjson

MEDIA_TYPES = frozenset(
    {
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    }
)
CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_STRINGS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_NUMBERS = {
    "exclusiveMaximum": 8, "exclusiveMinimum": 10, "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15,
    "uniqueItems": 16, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_DEFAULT, _REQUIRED, _ENUM, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 5, 19, 20, 21, 22, 23, 25, 31


def encode(swagger: bytes) -> bytes:
    """The document, given as JSON, with what clients read of it."""
    document: Mapping[str, Any] = orjson.loads(swagger)
    info = document["info"]
    definitions = b"".join(
        _bytes(1, _text(1, name) + _bytes(2, _schema(schema))) for name, schema in document["definitions"].items()
    )
    return b"".join(
        (
            _text(1, document["swagger"]),
            _bytes(2, _text(1, info["title"]) + _text(2, info["version"])),
            _bytes(8, b""),
            _bytes(9, definitions),
        )
    )


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts: list[bytes] = []
    for key, value in schema.items():
        if key in _STRINGS:
            parts.append(_text(_STRINGS[key], value))
        elif key == "properties":
            named = (_bytes(1, _text(1, name) + _bytes(2, _schema(part))) for name, part in value.items())
            parts.append(_bytes(_PROPERTIES, b"".join(named)))
        elif key == "type":
            values = value if isinstance(value, list) else [value]
            parts.append(_bytes(_TYPE, b"".join(_text(1, one) for one in values)))
        elif key == "items":
            parts.append(_bytes(_ITEMS, _bytes(1, _schema(value))))
        elif key == "additionalProperties":
            inner = _number(2, int(value)) if isinstance(value, bool) else _bytes(1, _schema(value))
            parts.append(_bytes(_ADDITIONAL, inner))
        elif key == "required":
            parts.extend(_text(_REQUIRED, name) for name in value)
        elif key == "enum":
            parts.extend(_bytes(_ENUM, _any(one)) for one in value)
        elif key == "default":
            parts.append(_bytes(_DEFAULT, _any(value)))
        elif key.startswith("x-"):
            parts.append(_bytes(_EXTENSION, _text(1, key) + _bytes(2, _any(value))))
        elif key in _DOUBLES:
            parts.append(_key(_DOUBLES[key], 1) + struct.pack("<d", value))
        elif key in _NUMBERS:
            parts.append(_number(_NUMBERS[key], int(value)))
    return b"".join(parts)


def _any(value: Any) -> bytes:
    # The field is YAML, of which JSON is a part.
    return _bytes(2, orjson.dumps(value))


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())
