"""Reads a request body into an object of a built-in type, the way upstream's typed decoding does.

Unknown fields are dropped (and reported, for ``fieldValidation``), nulls vanish, quantities and times get their
canonical form, and a value of the wrong type is refused with the path at which it stands. The result shares nothing
with the input, so later stages may change it in place.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import orjson

from holokube.apiserver.plain_decode import INT_RANGES, MAX_DEPTH, Odd, plain_object
from holokube.kube import quantity, timeformat
from holokube.kube.errors import BadRequest
from holokube.kube.schema import Schema, Shape
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import YamlError, load_documents

_BLANKS = b" \t\r\n"
_METADATA = "metadata"
_ENTRIES = "managedFields"


class DecodeError(ValueError):
    """A value that does not fit its type; the message says where and how, in the words of Go's decoder."""



class Decoder:
    """Decodes one body; collects what a strict reader would complain about."""

    def __init__(self) -> None:
        self.unknown_fields: list[str] = []

    def decode(
        self, value: Any, schema: Schema, known: JsonObject | None = None, shared: Container[str] = ()
    ) -> JsonObject:
        """The object that ``value`` stands for. What it shares with ``known``, which has been decoded before, is
        only copied: a patch leaves most of an object as it was. What is in ``shared`` is not even copied."""
        if not isinstance(value, dict):
            raise _mismatch("", "", value, schema)
        if not known:
            return self._whole(value, schema)
        same = {key: None for key, part in value.items() if isinstance(part, dict) and part is known.get(key)}
        rest = {key: part for key, part in value.items() if key not in same}
        entries = _same_entries(rest.get(_METADATA), known.get(_METADATA))
        if entries is not None:
            rest[_METADATA] = {key: part for key, part in rest[_METADATA].items() if key != _ENTRIES}
        decoded = self._whole(rest, schema)
        if entries is not None:
            decoded[_METADATA][_ENTRIES] = entries
        if not same:
            return decoded
        out: JsonObject = {}
        for key, part in value.items():
            if key in same:
                out[key] = part if key in shared else _copy_metadata(part) if key == _METADATA else fresh(part)
            elif key in decoded:
                out[key] = decoded[key]
        return out

    def _whole(self, value: JsonObject, schema: Schema) -> JsonObject:
        try:
            return plain_object(value, schema)
        except Odd:
            return self._object(value, schema, "", 0)

    def _object(self, value: JsonObject, schema: Schema, path: str, depth: int) -> JsonObject:
        if depth > MAX_DEPTH:
            raise DecodeError(f"json: exceeded max depth at {path}")
        fields = schema.fields
        out: JsonObject = {}
        for key, part in value.items():
            field = fields.get(key)
            if field is None:
                if schema.preserves_unknown:
                    out[key] = fresh(part)
                else:
                    self.unknown_fields.append(f"{path}.{key}" if path else key)
                continue
            if part is None:
                continue
            shape = field.shape
            if shape is Shape.STRING and not field.format:
                if type(part) is not str:
                    raise _mismatch(schema.name, f"{path}.{key}" if path else key, part, field)
                out[key] = part
                continue
            if (part == [] or (part == {} and shape is Shape.MAP)) and key not in schema.required:
                # Go leaves empty lists and maps out when it writes an object.
                if shape is not Shape.ANY and (shape is Shape.LIST) is not isinstance(part, list):
                    raise _mismatch(schema.name, f"{path}.{key}" if path else key, part, field)
                continue
            out[key] = self._value(part, field, schema.name, f"{path}.{key}" if path else key, depth + 1)
        return out

    def _value(self, value: Any, schema: Schema, owner: str, path: str, depth: int) -> Any:
        shape = schema.shape
        if shape is Shape.OBJECT:
            if not isinstance(value, dict):
                raise _mismatch(owner, path, value, schema)
            return self._object(value, schema, path, depth)
        if shape is Shape.LIST:
            return self._list(value, schema, owner, path, depth)
        if shape is Shape.MAP:
            return self._map(value, schema, owner, path, depth)
        return _SCALARS[shape](value, schema, owner, path)

    def _list(self, value: Any, schema: Schema, owner: str, path: str, depth: int) -> list[Any]:
        if not isinstance(value, list):
            raise _mismatch(owner, path, value, schema)
        items = schema.items
        if items.shape is Shape.STRING and not items.format and all(type(item) is str for item in value):
            return list(value)
        # Go turns a null element into the zero value of its type.
        return [
            _zero(items) if item is None else self._value(item, items, owner, f"{path}[{index}]", depth + 1)
            for index, item in enumerate(value)
        ]

    def _map(self, value: Any, schema: Schema, owner: str, path: str, depth: int) -> JsonObject:
        if not isinstance(value, dict):
            raise _mismatch(owner, path, value, schema)
        items = schema.items
        return {
            key: _zero(items) if part is None else self._value(part, items, owner, path, depth + 1)
            for key, part in value.items()
        }


def _same_entries(meta: Any, known: Any) -> Any:
    """The record of who owns what, if it is the very one that is known: it is never changed, and so not copied."""
    if type(meta) is not dict or not known:
        return None
    entries = meta.get(_ENTRIES)
    return entries if entries is not None and entries is known.get(_ENTRIES) else None


def _copy_metadata(meta: JsonObject) -> JsonObject:
    return {key: part if key == _ENTRIES else fresh(part) for key, part in meta.items()}


def _zero(schema: Schema) -> Any:
    zeros: Mapping[Shape, Any] = {
        Shape.STRING: "", Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.BOOLEAN: False, Shape.QUANTITY: "0",
        Shape.INT_OR_STRING: 0, Shape.ANY: None, Shape.LIST: [],
    }  # fmt: skip
    return zeros.get(schema.shape, {})


_INDEX = re.compile(r"\[\d+\]")
_GO_SCALARS = {
    Shape.STRING: "string", Shape.NUMBER: "float64", Shape.BOOLEAN: "bool", Shape.INT_OR_STRING: "intstr.IntOrString",
    Shape.QUANTITY: "resource.Quantity", Shape.ANY: "interface {}",
}  # fmt: skip


def _go_type(schema: Schema) -> str:
    """The Go type behind a schema, as decoding errors name it."""
    if schema.name:
        package, _, kind = schema.name.rpartition(".")
        return f"{package.rpartition('.')[2]}.{kind}"
    if schema.shape is Shape.LIST:
        return f"[]{_go_type(schema.items)}"
    if schema.shape is Shape.MAP:
        return f"map[string]{_go_type(schema.items)}"
    if schema.shape is Shape.INTEGER:
        return schema.format or "int64"
    return _GO_SCALARS.get(schema.shape, "struct {}")


def _mismatch(owner: str, path: str, value: Any, schema: Schema) -> DecodeError:
    names = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    found = names.get(type(value), "null")
    where = _INDEX.sub("", path)
    target = f"Go struct field {owner.rpartition('.')[2]}.{where}" if where else "Go value"
    return DecodeError(f"json: cannot unmarshal {found} into {target} of type {_go_type(schema)}")


def _string(value: Any, schema: Schema, owner: str, path: str) -> Any:
    if type(value) is not str:
        raise _mismatch(owner, path, value, schema)
    if schema.format == "date-time":
        try:
            if schema.name.endswith("MicroTime"):
                return timeformat.format_micro_time(timeformat.parse_micro_time(value))
            return timeformat.format_time(timeformat.parse_time(value))
        except ValueError as problem:
            raise DecodeError(f"{path}: {problem}") from None
    if schema.format == "byte":
        try:
            base64.b64decode(value.encode(), validate=True)
        except (binascii.Error, ValueError):
            raise DecodeError(f"{path}: illegal base64 data") from None
    return value


def _integer(value: Any, schema: Schema, owner: str, path: str) -> int:
    if type(value) is not int:
        raise _mismatch(owner, path, value, schema)
    low, high = INT_RANGES.get(schema.format, INT_RANGES["int64"])
    if not low <= value <= high:
        raise DecodeError(f"json: cannot unmarshal number {value} into Go value of type {_go_type(schema)}")
    return value


def _number(value: Any, schema: Schema, owner: str, path: str) -> Any:
    if type(value) not in (int, float):
        raise _mismatch(owner, path, value, schema)
    return value


def _boolean(value: Any, schema: Schema, owner: str, path: str) -> bool:
    if type(value) is not bool:
        raise _mismatch(owner, path, value, schema)
    return value


def _int_or_string(value: Any, schema: Schema, owner: str, path: str) -> Any:
    if type(value) is int:
        if not -(2**31) <= value < 2**31:
            raise DecodeError(f"json: cannot unmarshal number {value} into Go value of type int32")
        return value
    if type(value) is not str:
        raise _mismatch(owner, path, value, schema)
    return value


def _quantity(value: Any, schema: Schema, owner: str, path: str) -> str:
    if type(value) not in (str, int, float):
        raise _mismatch(owner, path, value, schema)
    try:
        return quantity.canonical(value)
    except ValueError as problem:
        raise DecodeError(str(problem)) from None


def _anything(value: Any, _schema: Schema, _owner: str, _path: str) -> Any:
    return fresh(value)


_SCALARS: Mapping[Shape, Callable[[Any, Schema, str, str], Any]] = {
    Shape.STRING: _string,
    Shape.INTEGER: _integer,
    Shape.NUMBER: _number,
    Shape.BOOLEAN: _boolean,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.QUANTITY: _quantity,
    Shape.ANY: _anything,
}


def fresh(value: Any) -> Any:
    """A deep copy of a JSON value that shares nothing with the original."""
    if isinstance(value, dict | list):
        try:
            return orjson.loads(orjson.dumps(value))
        except (orjson.JSONEncodeError, orjson.JSONDecodeError) as problem:
            raise DecodeError(f"json: {problem}") from None
    return value


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """The value of a JSON text and the paths of keys that stand twice in one object."""
    try:
        value = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as problem:
        raise BadRequest(f"couldn't get version/kind; json parse error: {problem}") from None
    # A second key of the same name makes the text longer than what was read from it. Comparing lengths, blanks left
    # out, spares nearly all clients the slow reader.
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError as problem:
        # orjson reads deeper than it writes, and what cannot be written again cannot be stored.
        raise BadRequest(f"couldn't get version/kind; json parse error: exceeded max depth: {problem}") from None
    if len(written) == len(body) or len(written.translate(None, b" ")) == len(body.translate(None, _BLANKS)):
        return value, []
    return value, _duplicate_keys(body)


class _Pairs(dict[str, Any]):
    """An object that remembers which of its keys stood there more than once."""

    repeated: tuple[str, ...] = ()


def _duplicate_keys(body: bytes) -> list[str]:
    found = False

    def pairs(items: list[tuple[str, Any]]) -> _Pairs:
        nonlocal found
        seen = _Pairs(items)
        if len(seen) != len(items):
            found = True
            keys = [key for key, _ in items]
            seen.repeated = tuple(key for key in seen if keys.count(key) > 1)
        return seen

    try:
        value = json.loads(body, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return list(_repeated(value, "")) if found else []


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        for key in value.repeated:
            yield f"{path}.{key}" if path else key
        for key, part in value.items():
            yield from _repeated(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _repeated(part, f"{path}[{index}]")


def parse_yaml(body: bytes) -> Any:
    """The value of a YAML text with one document."""
    try:
        documents = load_documents(body)
    except YamlError as problem:
        raise BadRequest(f"error converting YAML to JSON: {problem}") from None
    if len(documents) > 1:
        raise BadRequest("error converting YAML to JSON: yaml: expected a single document in the stream")
    return documents[0] if documents else None
