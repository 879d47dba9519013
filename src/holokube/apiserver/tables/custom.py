"""Custom resources: the columns that their definitions declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from holokube.apiserver.tables.cells import name_of
from holokube.apiserver.tables.layout import AGE, NAME, Ages, Layout, column
from holokube.kube.jsonpath import JsonPathError, compile_path
from holokube.kube.types import JsonObject

# What a definition without columns of its own gets.
DEFAULT_COLUMNS: Sequence[Mapping[str, Any]] = (
    {
        "name": "Age",
        "type": "date",
        "description": AGE["description"],
        "jsonPath": ".metadata.creationTimestamp",
    },
)

_INT64_LIMIT = 2**63
# Go writes these so that JSON can stand in HTML.
_FOR_HTML = re.compile("[<>&\u2028\u2029]")

Find = Callable[[Any], list[Any]]
_compiled_path = lru_cache(maxsize=1024)(compile_path)


def custom_layout(printer_columns: Sequence[Mapping[str, Any]]) -> Layout:
    """The layout of a custom resource. A path that cannot be read ends the list, as it does upstream."""
    columns = [NAME]
    readers: list[tuple[Find, str]] = []
    for declared in printer_columns or DEFAULT_COLUMNS:
        path = str(declared.get("jsonPath") or "")
        kind = str(declared.get("type") or "string")
        try:
            find = _compiled_path(path)
        except JsonPathError:
            break
        readers.append((find, kind))
        columns.append(
            column(
                str(declared.get("name") or ""),
                str(declared.get("description") or f"Column of the custom resource, at {path}."),
                type=kind,
                format=str(declared.get("format") or ""),
                priority=int(declared.get("priority") or 0),
            )
        )

    def cells(obj: JsonObject, ages: Ages) -> list[Any]:
        return [name_of(obj), *[_cell(find(obj), kind, ages) for find, kind in readers]]

    return Layout(columns, cells)


def _cell(found: list[Any], kind: str, ages: Ages) -> Any:
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return _as_text(value)
    if isinstance(value, bool):
        return value if kind == "boolean" else None
    if isinstance(value, int | float):
        return _as_int64(value) if kind == "integer" else float(value) if kind == "number" else None
    if kind == "date" and isinstance(value, str):
        return ages.since(value)
    return None


def _as_int64(value: float) -> int:
    """Go's conversion: what does not fit becomes the least number there is."""
    whole = int(value)
    return whole if -_INT64_LIMIT <= whole < _INT64_LIMIT else -_INT64_LIMIT


def _as_text(value: Any) -> str:
    """A value as Go's JSON path printer writes it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, dict | list):
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        return _FOR_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return str(value)


def _float_text(value: float) -> str:
    """Go's shortest form: an exponent below 1e-4 and from 1e21 on, without a trailing ``.0``."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)
