"""Making strategic merge patches, as clients do."""

from __future__ import annotations

from typing import Any

from holokube.kube.patch import PatchNotApplicable
from holokube.kube.patch.json_patch import same_json
from holokube.kube.patch.strategic import (
    DELETE_FROM_LIST,
    DIRECTIVE,
    RETAIN_KEYS,
    SET_ELEMENT_ORDER,
    element_type,
    field_schema,
    go_text,
    key_of,
    same_scalar,
    strategy_of,
)
from holokube.kube.schema import Schema


def create_two_way(old: dict[str, Any], new: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """The patch that turns ``old`` into ``new``; empty if they are equal."""
    return _diff_objects(old, new, schema, retain_keys=False)


def _diff_objects(
    old: dict[str, Any], new: dict[str, Any], schema: Schema, *, retain_keys: bool
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
            continue
        before = old[key]
        if before is value:
            continue
        inner = field_schema(schema, key)
        if isinstance(before, dict) and isinstance(value, dict):
            if strategy_of(inner) == "replace":
                patch[key] = value
            else:
                retains = "retainKeys" in inner.patch_strategies
                below = _diff_objects(before, value, inner, retain_keys=retains)
                if below:
                    patch[key] = below
        elif isinstance(before, list) and isinstance(value, list) and strategy_of(inner) == "merge":
            _diff_list(patch, key, before, value, inner)
        elif not same_json(before, value):
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    kept = sorted(key for key, value in new.items() if value is not None)
    lost = any(value is not None and key not in new for key, value in old.items())
    if retain_keys and kept and (patch or lost):
        patch[RETAIN_KEYS] = kept
    return patch


def _diff_list(patch: dict[str, Any], key: str, old: list[Any], new: list[Any], schema: Schema) -> None:
    if not old:
        if new:
            patch[key] = new
        return
    if element_type(old, new) is dict:
        changes = _diff_elements(old, new, schema)
        names = [{schema.patch_merge_key: key_of(item, schema.patch_merge_key)} for item in new]
        is_moved = [key_of(item, schema.patch_merge_key) for item in old] != [
            item[schema.patch_merge_key] for item in names
        ]
        if changes:
            patch[key] = changes
        if names and (changes or is_moved):
            patch[f"{SET_ELEMENT_ORDER}/{key}"] = names
        return
    added = [item for item in new if not _has(old, item)]
    gone = [item for item in old if not _has(new, item)]
    if added:
        patch[key] = added
    if gone:
        patch[f"{DELETE_FROM_LIST}/{key}"] = sorted(gone, key=go_text)
    if new and not same_json(old, new):
        patch[f"{SET_ELEMENT_ORDER}/{key}"] = new


def _diff_elements(old: list[Any], new: list[Any], schema: Schema) -> list[Any]:
    """Changed and new elements in the new order, then the deletions."""
    merge_key = schema.patch_merge_key
    if not merge_key:
        raise PatchNotApplicable(f"cannot merge lists without merge key for {schema.items.name or 'struct'}")
    retain_keys = "retainKeys" in schema.patch_strategies
    changes: list[Any] = []
    for item in new:
        name = key_of(item, merge_key)
        before = next((each for each in old if same_scalar(key_of(each, merge_key), name)), None)
        if before is None:
            changes.append(item)
            continue
        below = _diff_objects(before, item, schema.items, retain_keys=retain_keys)
        if below:
            changes.append({**below, merge_key: name})
    new_names = [item[merge_key] for item in new]
    gone = [item[merge_key] for item in old if not _has(new_names, item[merge_key])]
    return changes + [{merge_key: name, DIRECTIVE: "delete"} for name in sorted(gone, key=go_text)]


def _has(values: list[Any], wanted: Any) -> bool:
    return any(same_scalar(value, wanted) for value in values)
