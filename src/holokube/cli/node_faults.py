"""Faults of hollow nodes by command: the annotation that fleets look for, written and taken away again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holokube.base.errors import UsageError
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.node_life import FAULT, KWOK_NOT_READY, REBOOT, REBOOT_WORD, Fault
from holokube.kube.errors import Conflict
from holokube.kube.types import JsonObject

KINDS = (*(fault.value for fault in Fault), REBOOT_WORD)
_TRIES = 5


async def chosen_nodes(client: Client, names: Sequence[str], selector: str) -> list[str]:
    """The nodes that are named, or that a label selector picks; none at all is an error."""
    if bool(names) == bool(selector):
        raise UsageError(
            "name nodes or give --selector" + (", not both" if names else ""),
            hint="For example: node-0 node-1, or --selector topology.kubernetes.io/zone=a.",
        )
    if names:
        return list(dict.fromkeys(names))
    found = (await client.list_all(NODES, label_selector=selector)).items
    if not found:
        raise UsageError(f"no node matches {selector!r}", hint="See `kubectl get nodes --show-labels`.")
    return [node["metadata"]["name"] for node in found]


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


def node_count(count: int) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count} node" if count == 1 else f"{count} nodes"
