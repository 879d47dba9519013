"""Lists that are sets or maps: no element may stand in them twice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import orjson

from holokube.apiserver.crds.structural import Structural
from holokube.apiserver.field_errors import FieldErrors


def check_lists(value: Any, node: Structural | None, errors: FieldErrors, path: str = "") -> None:
    """Report duplicates in all lists of type set and map."""
    if node is None or not node.has_lists:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(part, dict | list):
                continue
            known = node.properties.get(key)
            if known is not None:
                check_lists(part, known, errors, f"{path}.{key}" if path else key)
            elif node.additional is not None:
                check_lists(part, node.additional, errors, f"{path}[{key}]")
    elif isinstance(value, list):
        if node.list_type == "set":
            for index in _repeated(value):
                errors.duplicate(f"{path}[{index}]", value[index])
        elif node.list_type == "map":
            _check_map(value, node, errors, path)
        if node.items is not None and node.items.has_lists:
            for index, item in enumerate(value):
                check_lists(item, node.items, errors, f"{path}[{index}]")


def _check_map(value: list[Any], node: Structural, errors: FieldErrors, path: str) -> None:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            errors.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    if _is_told_apart(value, node.list_keys):
        return
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in value]
    for index in _repeated(keys):
        errors.duplicate(f"{path}[{index}]", keys[index])


def _is_told_apart(value: list[Any], keys: tuple[str, ...]) -> bool:
    """Whether there is one key, as a rule, and each element has a text of its own there."""
    if len(keys) != 1:
        return False
    texts = [item.get(keys[0]) if item else None for item in value]
    return all(type(text) is str for text in texts) and len(set(texts)) == len(texts)


def _repeated(value: Sequence[Any]) -> list[int]:
    """Where a value stands for the second time; a third time is not reported again."""
    seen: dict[Hashable, int] = {}
    found: list[int] = []
    for index, item in enumerate(value):
        key: Hashable = (
            orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
            if isinstance(item, dict | list)
            else (type(item) is bool, item)
        )
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found
