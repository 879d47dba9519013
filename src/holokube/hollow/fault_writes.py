"""Faults of hollow nodes as writes: the annotation that fleets look for, set and taken away again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.node_life import FAULT, KWOK_NOT_READY, REBOOT, REBOOT_WORD, Fault
from holokube.kube.errors import Conflict
from holokube.kube.types import JsonObject

KINDS = (*(fault.value for fault in Fault), REBOOT_WORD)
_TRIES = 5


async def break_node(client: Client, name: str, kinds: Sequence[str], now: str) -> None:
    """Adds faults to those that the node has; a reboot is a new token each time."""
    kept = [kind for kind in kinds if kind != REBOOT_WORD]

    def change(node: JsonObject) -> Mapping[str, Any]:
        annotations: dict[str, str | None] = {}
        if kept:
            annotations[FAULT] = ",".join(dict.fromkeys([*_annotated(node), *kept]))
        if REBOOT_WORD in kinds:
            annotations[REBOOT] = now
        return {"annotations": annotations}

    await _patch(client, name, change)


async def heal_node(client: Client, name: str, kinds: Sequence[str]) -> bool:
    """Takes these faults away, without any all of them; False if the node has none of them."""
    healed = False

    def change(node: JsonObject) -> Mapping[str, Any] | None:
        nonlocal healed
        meta = node["metadata"]
        labels = meta.get("labels") or {}
        before = _annotated(node)
        after = [word for word in before if kinds and word not in kinds]
        gone: dict[str, None] = {}
        if FAULT in labels and (not kinds or labels[FAULT] in kinds):
            gone[FAULT] = None
        if labels.get(KWOK_NOT_READY) == "true" and (not kinds or Fault.NOT_READY.value in kinds):
            gone[KWOK_NOT_READY] = None
        healed = bool(gone) or after != before
        if not healed:
            return None
        return {"annotations": {FAULT: ",".join(after) or None}, **({"labels": gone} if gone else {})}

    await _patch(client, name, change)
    return healed


def _annotated(node: Mapping[str, Any]) -> list[str]:
    text = str((node["metadata"].get("annotations") or {}).get(FAULT, ""))
    return [word.strip() for word in text.split(",") if word.strip()]


async def _patch(client: Client, name: str, change: Callable[[JsonObject], Mapping[str, Any] | None]) -> None:
    """Reads, changes, writes; again when somebody else wrote meanwhile."""
    for attempt in range(_TRIES):
        node = await client.get(NODES, name)
        metadata = change(node)
        if metadata is None:
            return
        guard = {"uid": node["metadata"]["uid"], "resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            await client.patch(NODES, name, {"metadata": {**metadata, **guard}})
            return
        except Conflict:
            if attempt == _TRIES - 1:
                raise
