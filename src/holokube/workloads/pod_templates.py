"""Pod templates compared and hashed, and limits of rollouts resolved."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

from holokube.base.rng import NAME_ALPHABET
from holokube.kube.types import JsonObject

POD_TEMPLATE_HASH = "pod-template-hash"


_compared: OrderedDict[tuple[int, int], tuple[Mapping[str, Any], Mapping[str, Any], bool]] = OrderedDict()
"""Templates by their identity, which holds for as long as they are in here, and whether they are the same."""
_COMPARED_MAX = 4096


def same_template(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether two templates mean the same, the hash label aside.

    Objects are never changed, and a Deployment asks the same of the same two templates at each change of a status.
    """
    key = (id(left), id(right))
    known = _compared.get(key)
    if known is not None:
        return known[2]
    same = _same_at_sight(left, right) or _plain(left) == _plain(right)
    _compared[key] = (left, right, same)
    if len(_compared) > _COMPARED_MAX:
        _compared.popitem(last=False)
    return same


def _same_at_sight(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether the same is written in both, word for word but for the hash label: so it is as a rule."""
    meta, other = left.get("metadata") or {}, right.get("metadata") or {}
    return (
        {**left, "metadata": None} == {**right, "metadata": None}
        and {**meta, "labels": None} == {**other, "labels": None}
        and _labels_but_hash(meta) == _labels_but_hash(other)
    )


def _labels_but_hash(meta: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in (meta.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}


def template_hash(template: Mapping[str, Any], collisions: int | None) -> str:
    """The hash in names and labels: FNV-1a, written with the letters of generated names.

    Upstream hashes Go's memory dump of the template, so the digits differ; nobody may rely on them. Templates
    are always compared in full.
    """
    data = orjson.dumps(_plain(template), option=orjson.OPT_SORT_KEYS)
    return hash_bytes(data, collisions)


def hash_bytes(data: bytes, collisions: int | None) -> str:
    if collisions is not None:
        data += str(collisions).encode()
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join(NAME_ALPHABET[ord(digit) % len(NAME_ALPHABET)] for digit in str(value))


def _plain(template: Mapping[str, Any]) -> JsonObject:
    """Without the hash label, and without the nulls and empty lists that Go leaves out or puts in."""
    plain: JsonObject = without_nothing(template)
    meta = dict(plain.get("metadata") or {})
    meta["labels"] = _labels_but_hash(meta)
    plain["metadata"] = {key: value for key, value in meta.items() if value}
    return plain


def without_nothing(value: Any) -> Any:
    """A value without the nulls and empty lists in it."""
    if isinstance(value, Mapping):
        return {key: without_nothing(item) for key, item in value.items() if item is not None and item != []}
    if isinstance(value, list):
        return [without_nothing(item) for item in value]
    return value


def scaled_value(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of ``total``; nothing is zero."""
    if value is None:
        return 0
    if isinstance(value, str) and value.endswith("%"):
        product = int(value[:-1]) * total
        return -(-product // 100) if round_up else product // 100
    return int(value)
