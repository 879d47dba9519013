"""JSON merge patch (RFC 7386): objects are merged, null deletes, everything else replaces."""

from __future__ import annotations

from typing import Any

from holokube.kube.patch import PatchError
from holokube.kube.patch.json_patch import same_json


def apply_merge_patch(doc: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The object after the patch; subtrees the patch does not name are shared with the input."""
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch: a merge patch of an object must be an object")
    return _merged(doc, patch)


def create_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The smallest patch that turns ``old`` into ``new``; empty if they are equal.

    A merge patch cannot set a field to null, so that nulls in ``new`` come out as absent fields.
    """
    patch: dict[str, Any] = {}
    for key, value in new.items():
        if key not in old:
            if value is not None:
                patch[key] = value
            continue
        before = old[key]
        if before is value:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            inner = create_merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif not same_json(before, value):
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    return patch


def _merged(doc: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    out = dict(doc)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
            continue
        before = out.get(key)
        if isinstance(value, dict):
            out[key] = _merged(before, value) if isinstance(before, dict) else _without_nulls(value)
        elif before is None or not isinstance(before, dict):
            # kube-apiserver also drops nulls of objects inside a list that is new, or replaces a non-object.
            out[key] = _without_nulls(value) if isinstance(value, list) else value
        else:
            out[key] = value
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        # Most of what is inside are texts, for which a call costs more than all the rest.
        return {
            key: inner if type(inner) is str else _without_nulls(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
