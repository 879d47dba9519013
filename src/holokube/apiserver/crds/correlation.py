"""Which part of an old object a part of the new one stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

UNCORRELATED: Final[Any] = object()
"""There is no old value, or nobody can say which one it is."""

OldItems = Callable[[Sequence[Any], Any], list[Any]]
"""For every element of a list the old element it replaces."""


def old_items_of(source: Mapping[str, Any]) -> OldItems:
    """Finds old elements of lists of one schema. Only lists of type map have such a thing."""
    if source.get("x-kubernetes-list-type") != "map":
        return _none
    keys = source.get("x-kubernetes-list-map-keys") or ()
    properties = (source.get("items") or {}).get("properties") or {}
    defaults = {key: (properties.get(key) or {}).get("default") for key in keys}

    def old_items(new: Sequence[Any], old: Any) -> list[Any]:
        if not isinstance(old, list) or not old:
            return [UNCORRELATED] * len(new)
        known: dict[str | bytes, Any] = {}
        for item in old:
            if isinstance(item, dict):
                known.setdefault(_key(item, defaults), item)
        return [
            known.get(_key(item, defaults), UNCORRELATED) if isinstance(item, dict) else UNCORRELATED for item in new
        ]

    return old_items


def _none(new: Sequence[Any], _old: Any) -> list[Any]:
    return [UNCORRELATED] * len(new)


def _key(item: Mapping[str, Any], defaults: Mapping[str, Any]) -> str | bytes:
    if len(defaults) == 1:
        # One key that is a text, as most are, needs no writing down; texts and bytes are never equal.
        for key, default in defaults.items():
            value = item.get(key, default)
            if type(value) is str:
                return value
    return orjson.dumps([item.get(key, default) for key, default in defaults.items()])
