"""Which part of an old object a part of the new one stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

UNCORRELATED: Final[Any] = object()
"""There is no old value, or nobody can say which one it is."""


def old_items(source: Mapping[str, Any], new: Sequence[Any], old: Any) -> list[Any]:
    """For every element of a list the old element it replaces. Only lists of type map have such a thing."""
    if source.get("x-kubernetes-list-type") != "map" or not isinstance(old, list) or not old:
        return [UNCORRELATED] * len(new)
    keys = source.get("x-kubernetes-list-map-keys") or ()
    properties = (source.get("items") or {}).get("properties") or {}
    defaults = {key: (properties.get(key) or {}).get("default") for key in keys}
    known: dict[bytes, Any] = {}
    for item in old:
        if isinstance(item, dict):
            known.setdefault(_key(item, defaults), item)
    return [
        known.get(_key(item, defaults), UNCORRELATED) if isinstance(item, dict) else UNCORRELATED
        for item in new
    ]


def _key(item: Mapping[str, Any], defaults: Mapping[str, Any]) -> bytes:
    return orjson.dumps([item.get(key, default) for key, default in defaults.items()])
