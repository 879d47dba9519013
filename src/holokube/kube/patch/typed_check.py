"""Whether an applied configuration fits its type; apply refuses the rest before it merges anything."""

from __future__ import annotations

from typing import Any

from holokube.kube.patch import PatchTypeError
from holokube.kube.patch.fieldset import format_path
from holokube.kube.patch.typed import node_of
from holokube.kube.patch.typed_lists import KeyedListNode, SetNode
from holokube.kube.schema import Schema, Shape

_NUMBERS = frozenset({Shape.INTEGER, Shape.NUMBER})
_TYPED_STRING_FORMATS = frozenset({"", "byte"})


def type_errors(value: Any, schema: Schema) -> list[str]:
    """Everything that does not fit, each worded like ``.spec.replicas: expected numeric ...``."""
    found: list[str] = []
    _check(value, schema, "", found)
    return found


def join_errors(errors: list[str]) -> str:
    """One error stands alone, several are listed line by line."""
    return errors[0] if len(errors) == 1 else "\n  ".join(["errors:", *errors])


def _check(value: Any, schema: Schema, path: str, found: list[str]) -> None:
    shape = schema.shape
    if value is None or shape is Shape.ANY:
        return
    if shape is Shape.OBJECT or shape is Shape.MAP:
        if not isinstance(value, dict):
            _report(found, path, f"expected map, got &{{{_go(value)}}}")
        else:
            _check_object(value, schema, path, found)
    elif shape is Shape.LIST:
        if not isinstance(value, list):
            _report(found, path, f"expected list, got &{{{_go(value)}}}")
        else:
            _check_list(value, schema, path, found)
    else:
        complaint = _scalar_complaint(value, schema)
        if complaint:
            _report(found, path, complaint)


def _check_object(value: dict[str, Any], schema: Schema, path: str, found: list[str]) -> None:
    fields = schema.fields
    for field, inner in value.items():
        below = f"{path}.{field}"
        if field in fields:
            _check(inner, fields[field], below, found)
        elif schema.shape is Shape.MAP:
            _check(inner, schema.items, below, found)
        elif not schema.preserves_unknown:
            _report(found, below, "field not declared in schema")


def _check_list(value: list[Any], schema: Schema, path: str, found: list[str]) -> None:
    node = node_of(schema)
    seen: set[str] = set()
    for position, item in enumerate(value):
        below = f"{path}[{position}]"
        if isinstance(node, KeyedListNode | SetNode):
            try:
                element = node.element(item)
            except PatchTypeError as error:
                _report(found, path, f"element {position}: {error}")
                return
            spelled = format_path((element,))
            if element in seen:
                _report(found, path, f"duplicate entries for key {spelled}")
            seen.add(element)
            below = path + spelled
        _check(item, schema.items, below, found)


def _scalar_complaint(value: Any, schema: Schema) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if schema.shape in _NUMBERS:
        return "" if is_number else f"expected numeric (int or float), got {_go_type(value)}"
    if schema.shape is Shape.BOOLEAN:
        return "" if isinstance(value, bool) else f"expected boolean, got &{{{_go(value)}}}"
    if schema.shape is Shape.STRING and schema.format in _TYPED_STRING_FORMATS:
        return (
            "" if isinstance(value, str)
            else f"expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"
        )  # fmt: skip
    return f"expected any scalar, got &{{{_go(value)}}}" if isinstance(value, dict | list) else ""


def _report(found: list[str], path: str, message: str) -> None:
    found.append(f"{path}: {message}" if path else message)


def _go(value: Any) -> str:
    """A value as Go prints it with %v."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go(inner)}' for key, inner in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go, value))}]"
    return "<nil>" if value is None else str(value)


def _go_type(value: Any) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", bool: "bool", str: "string"}
    return names.get(type(value), "float64")
