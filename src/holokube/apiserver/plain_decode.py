"""Decodes bodies in which nothing is odd, which are nearly all, without keeping a record of where it is.

The rules are those of ``decode``, compiled once per type. Whatever a complaint would need a path for, an unknown field
or a value of the wrong type, raises ``Odd``: the body is then decoded again, by the one that can say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import orjson

from holokube.kube import quantity, timeformat
from holokube.kube.schema import Schema, Shape
from holokube.kube.types import JsonObject

MAX_DEPTH: Final = 200
INT_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}

Decode = Callable[[Any, int], Any]
"""Called with a value and its depth; the result shares nothing with the value."""


class Odd(Exception):
    """Something is not as it should be; somebody else has to find out what."""


def plain_object(value: Any, schema: Schema, depth: int = 0) -> JsonObject:
    """An object of a type; raises ``Odd``."""
    decode: Decode = schema.decoding
    if decode is None:
        decode = schema.decoding = _object(schema)
    try:
        obj: JsonObject = decode(value, depth)
    except (ValueError, TypeError) as problem:
        raise Odd from problem
    return obj


def _compile(schema: Schema) -> Decode:
    shape = schema.shape
    if shape is Shape.OBJECT:
        if schema.decoding is None:
            schema.decoding = _object(schema)
        found: Decode = schema.decoding
        return found
    if shape is Shape.LIST:
        return _list(schema)
    if shape is Shape.MAP:
        return _map(schema)
    if shape is Shape.STRING:
        return _string(schema)
    if shape is Shape.INTEGER:
        return _integer(schema)
    return _SCALARS[shape]


def _object(schema: Schema) -> Decode:
    # Fields are compiled when they are first met, because types may contain themselves. None is a plain string.
    plans: dict[str, tuple[Decode | None, type | None]] = {}
    keeps_unknown = schema.preserves_unknown

    def plan(key: str) -> tuple[Decode | None, type | None]:
        field = schema.fields.get(key)
        if field is None:
            if not keeps_unknown:
                raise Odd
            return _copy, None
        if field.shape is Shape.STRING and not field.format:
            found: tuple[Decode | None, type | None] = (None, None)
        else:
            # Go leaves empty lists and maps out when it writes an object.
            vanishing = None if key in schema.required else _VANISHING.get(field.shape)
            found = (_compile(field), vanishing)
        plans[key] = found
        return found

    def decode(value: Any, depth: int) -> JsonObject:
        if type(value) is not dict or depth > MAX_DEPTH:
            raise Odd
        out: JsonObject = {}
        for key, part in value.items():
            inner, vanishing = plans.get(key) or plan(key)
            if part is None:
                if inner is _copy and keeps_unknown and key not in schema.fields:
                    out[key] = None
                continue
            if inner is None:
                if type(part) is not str:
                    raise Odd
                out[key] = part
            elif part or type(part) is not vanishing:
                out[key] = inner(part, depth + 1)
        return out

    return decode


_VANISHING: Final = {Shape.LIST: list, Shape.MAP: dict, Shape.ANY: list}


def _list(schema: Schema) -> Decode:
    items = schema.items
    if items.shape is Shape.STRING and not items.format:
        return _strings
    inner: list[Decode] = []

    def decode(value: Any, depth: int) -> list[Any]:
        if type(value) is not list or None in value:
            raise Odd
        if not inner:
            inner.append(_compile(items))
        each = inner[0]
        return [each(item, depth + 1) for item in value]

    return decode


def _strings(value: Any, _depth: int) -> list[str]:
    if type(value) is not list:
        raise Odd
    for item in value:
        if type(item) is not str:
            raise Odd
    return value[:]


def _map(schema: Schema) -> Decode:
    items = schema.items
    inner: list[Decode] = []
    is_plain = items.shape is Shape.STRING and not items.format

    def decode(value: Any, depth: int) -> JsonObject:
        if type(value) is not dict:
            raise Odd
        if is_plain:
            for part in value.values():
                if type(part) is not str:
                    raise Odd
            return value.copy()
        if not inner:
            inner.append(_compile(items))
        each = inner[0]
        out = {}
        for key, part in value.items():
            if part is None:
                raise Odd
            out[key] = each(part, depth + 1)
        return out

    return decode


def _string(schema: Schema) -> Decode:
    if schema.format == "date-time":
        return _micro_time if schema.name.endswith("MicroTime") else _time
    if schema.format == "byte":
        return _odd
    return _text


def _text(value: Any, _depth: int) -> str:
    if type(value) is not str:
        raise Odd
    return value


def _odd(_value: Any, _depth: int) -> Any:
    raise Odd


# A fleet writes the same few times into everything.
is_canonical_time: Final = lru_cache(maxsize=4096)(
    re.compile(
        r"[12]\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
        r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ",
        re.ASCII,
    ).fullmatch
)
"""Whether a text is a time in the form in which they are written, on a day that every year has; others may be, too."""


@lru_cache(maxsize=4096)
def _canonical_time(value: str) -> str:
    if is_canonical_time(value):
        return value
    return timeformat.format_time(timeformat.parse_time(value))


@lru_cache(maxsize=16_384)
def _canonical_quantity(value: str) -> str:
    return quantity.canonical(value)


@lru_cache(maxsize=4096)
def _canonical_micro_time(value: str) -> str:
    return timeformat.format_micro_time(timeformat.parse_micro_time(value))


def _time(value: Any, _depth: int) -> str:
    if type(value) is not str:
        raise Odd
    return _canonical_time(value)


def _micro_time(value: Any, _depth: int) -> str:
    if type(value) is not str:
        raise Odd
    return _canonical_micro_time(value)


def _integer(schema: Schema) -> Decode:
    low, high = INT_RANGES.get(schema.format, INT_RANGES["int64"])

    def decode(value: Any, _depth: int) -> int:
        if type(value) is not int or not low <= value <= high:
            raise Odd
        return value

    return decode


def _number(value: Any, _depth: int) -> Any:
    if type(value) is not int and type(value) is not float:
        raise Odd
    return value


def _boolean(value: Any, _depth: int) -> bool:
    if type(value) is not bool:
        raise Odd
    return value


def _int_or_string(value: Any, _depth: int) -> Any:
    if type(value) is int:
        if not -(2**31) <= value < 2**31:
            raise Odd
    elif type(value) is not str:
        raise Odd
    return value


def _quantity(value: Any, _depth: int) -> str:
    if type(value) is not str:
        raise Odd
    return _canonical_quantity(value)


def _copy(value: Any, _depth: int) -> Any:
    if isinstance(value, dict | list):
        return orjson.loads(orjson.dumps(value))
    return value


_SCALARS: Final[dict[Shape, Decode]] = {
    Shape.NUMBER: _number,
    Shape.BOOLEAN: _boolean,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.QUANTITY: _quantity,
    Shape.ANY: _copy,
}
