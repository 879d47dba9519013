"""Marks nodes and claims as being disrupted, and takes the marks away again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.karpenter.api.labels import DISRUPTED_TAINT, DISRUPTION_REASON
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.writes import patch_object, patch_status
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.taints import Taint
from holokube.kube.types import JsonObject

_TRIES: Final = 5
_RETRY_S: Final = 0.01


class Marker:
    """Writes the taint on Nodes and the condition on claims; each write is made from what the server has."""

    def __init__(self, clock: Clock, client: Client) -> None:
        self._clock = clock
        self._client = client

    async def mark(self, nodes: Iterable[StateNode], reason: str) -> tuple[set[str], list[HolokubeError]]:
        """Names of the nodes that were marked, and what went wrong with others."""
        marked: set[str] = set()
        errors: list[HolokubeError] = []

        async def mark_one(node: StateNode) -> None:
            try:
                await self._write(node, tainted, lambda claim: self._with_reason(claim, reason))
            except HolokubeError as error:
                errors.append(error)
            else:
                marked.add(node.name)

        await asyncio.gather(*map(mark_one, nodes))
        return marked, errors

    async def unmark(self, nodes: Iterable[StateNode]) -> None:
        """Takes both marks away; nodes that are being deleted keep their taint."""
        await asyncio.gather(*(self._write(node, untainted, _without_reason) for node in nodes))

    async def _write(
        self, node: StateNode, change_node: Callable[[JsonObject], JsonObject],
        change_claim: Callable[[JsonObject], JsonObject],
    ) -> None:  # fmt: skip
        if node.node is None or node.node_claim is None:
            return
        node_name, claim_name = node.node_name, node.claim_name

        async def write_node() -> None:
            found = await self._client.get(NODES, node_name)
            await patch_object(self._client, NODES, found, change_node(found))

        async def write_claim() -> None:
            found = await self._client.get(NODE_CLAIMS, claim_name)
            await patch_status(self._client, NODE_CLAIMS, found, change_claim(found))

        await self._retried(write_node)
        await self._retried(write_claim)

    async def _retried(self, write: Callable[[], Awaitable[None]]) -> None:
        """Somebody else may write at the same time; what is gone needs no mark."""
        for tries_left in reversed(range(_TRIES)):
            try:
                await write()
            except NotFound:
                return
            except Conflict:
                if not tries_left:
                    raise
                await self._clock.sleep(_RETRY_S)
            else:
                return

    def _with_reason(self, claim: JsonObject, reason: str) -> JsonObject:
        return CLAIM_CONDITIONS.with_true(
            claim, DISRUPTION_REASON, self._clock.time(), reason=reason, message=reason
        )


def tainted(node: JsonObject) -> JsonObject:
    """The Node with the taint; the same if it has it."""
    taints = (node.get("spec") or {}).get("taints") or []
    if any(_is_ours(taint) for taint in taints):
        return node
    return {**node, "spec": {**(node.get("spec") or {}), "taints": [*taints, DISRUPTED_TAINT.to_json()]}}


def untainted(node: JsonObject) -> JsonObject:
    """The Node without the taint, unless it is being deleted: then the taint is its termination's."""
    taints = (node.get("spec") or {}).get("taints") or []
    kept = [taint for taint in taints if not _is_ours(taint)]
    if len(kept) == len(taints) or node["metadata"].get("deletionTimestamp"):
        return node
    return {**node, "spec": {**node["spec"], "taints": kept}}


def _without_reason(claim: JsonObject) -> JsonObject:
    return CLAIM_CONDITIONS.without(claim, DISRUPTION_REASON)


def _is_ours(taint: JsonObject) -> bool:
    return Taint.from_json(taint).is_same(DISRUPTED_TAINT)
