"""What a status has in common with the one that is stored: that was read when it was written, and is not read again.

A patch names the parts that change and shares the others with the stored object. A list that is a map (conditions,
nearly always) is named as a whole though only one element or two have changed; those that stand there as they stood are
taken from the stored list.
"""

from __future__ import annotations

from typing import Any

import orjson

from holokube.apiserver.crds.structural import ABSENT, Structural
from holokube.kube.types import JsonObject


class KeptParts:
    """The parts of ``value`` that are in ``known`` as well."""

    def __init__(self, value: JsonObject, known: JsonObject, node: Structural) -> None:
        self._value = value
        self._lists: dict[str, list[Any]] = {}
        """Lists of which elements are kept: for each element the stored one, or ABSENT."""
        self.others: JsonObject = {}
        """What is left to be read: fields, and in lists the elements that are not kept."""
        for key, part in value.items():
            before = known.get(key, ABSENT)
            if before is part:
                continue
            if type(part) is list and type(before) is list:
                within = node.properties.get(key)
                if within is not None and within.list_type == "map":
                    kept = self._lists[key] = kept_items(part, before, within.list_keys)
                    part = [item for item, old in zip(part, kept, strict=True) if old is ABSENT]
            self.others[key] = part

    def with_others(self, read: JsonObject) -> JsonObject:
        """The whole value, now that the others were read. Fields that went by that are not in it."""
        found: JsonObject = {}
        for key, part in self._value.items():
            if key not in self.others:
                found[key] = part
            elif key in self._lists:
                items = iter(read[key])
                found[key] = [next(items) if old is ABSENT else old for old in self._lists[key]]
            elif key in read:
                found[key] = read[key]
        return found


def kept_items(items: list[Any], known: list[Any], keys: tuple[str, ...]) -> list[Any]:
    """For every element of a list that is a map, the very same one of the stored list, or ABSENT."""
    first = keys[0] if keys else ""
    by_key: dict[str, Any] = {}
    for item in known:
        key = item.get(first) if type(item) is dict else None
        if type(key) is str:
            by_key.setdefault(key, item)
    found = []
    for item in items:
        key = item.get(first) if type(item) is dict else None
        before = by_key.get(key, ABSENT) if type(key) is str else ABSENT
        found.append(before if before is not ABSENT and _is_the_same(before, item) else ABSENT)
    return found


def _is_the_same(left: JsonObject, right: JsonObject) -> bool:
    """Whether both would be written as the same text: the order of fields counts, and true is not 1."""
    if left is right:
        return True
    if left != right:
        return False
    try:
        return orjson.dumps(left) == orjson.dumps(right)
    except TypeError:
        # Numbers beyond what the store keeps are read as others are.
        return False
