"""The encoding below all messages: numbers as varints, texts and messages by length."""

from __future__ import annotations

from typing import Any, Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
WIRE_TYPES: Final = {"int32": VARINT, "int64": VARINT, "bool": VARINT, "double": FIXED64}


class Malformed(ValueError):
    """The bytes are no message of the type they are said to be."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where the next thing starts."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("a number is cut off or too long")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def read_field(data: bytes, at: int) -> tuple[int, int, Any, int]:
    """Number, wire type and value of the field at ``at``, and where the next one starts."""
    key, at = read_varint(data, at)
    number, wire_type = key >> 3, key & 7
    if wire_type == VARINT:
        value, at = read_varint(data, at)
        return number, wire_type, value, at
    if wire_type == BYTES:
        length, at = read_varint(data, at)
    elif wire_type in (FIXED64, FIXED32):
        length = 8 if wire_type == FIXED64 else 4
    else:
        raise Malformed(f"wire type {wire_type} is not used by Kubernetes")
    if at + length > len(data):
        raise Malformed("a field is longer than what holds it")
    return number, wire_type, data[at : at + length], at + length


def varint(value: int) -> bytes:
    """A number; negative ones as their two's complement in 64 bits."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


def key(number: int, wire_type: int) -> bytes:
    """What stands before the value of a field."""
    return varint(number << 3 | wire_type)
