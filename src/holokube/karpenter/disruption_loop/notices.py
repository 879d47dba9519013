"""Notices of the disruption methods, as events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from holokube.karpenter.disruption.types import Notice, NoticeKind
from holokube.karpenter.events import DEDUPE_S, UNCONSOLIDATABLE_DEDUPE_S, Publisher
from holokube.karpenter.scheduling.state_node import StateNode

_POOL_DEDUPE_S: Final = 60.0
_UNCONSOLIDATABLE: Final = NoticeKind.UNCONSOLIDATABLE.value


def tell(notices: Iterable[Notice], publisher: Publisher) -> None:
    """Events on the Node and its claim, or on the pool."""
    for notice in notices:
        reason, node = notice.kind.value, notice.node
        if node is not None:
            dedupe_s = UNCONSOLIDATABLE_DEDUPE_S if reason == _UNCONSOLIDATABLE else DEDUPE_S
            for obj in (node.node, node.node_claim):
                if obj is not None:
                    uid = str(obj["metadata"].get("uid", ""))
                    publisher.normal(obj, reason, notice.message, uid, *notice.dedupe, dedupe_s=dedupe_s)
        if notice.pool is not None:
            publisher.normal(
                notice.pool.object, reason, notice.message, notice.pool.uid, *notice.dedupe,
                dedupe_s=_POOL_DEDUPE_S,
            )  # fmt: skip


def stays_told_until_s(node: StateNode, publisher: Publisher) -> float:
    """Until when nobody has to be told again that a node cannot be consolidated."""
    until_s = math.inf
    for obj in (node.node, node.node_claim):
        if obj is not None:
            quiet_until_s = publisher.quiet_until_s(_UNCONSOLIDATABLE, str(obj["metadata"].get("uid", "")))
            if quiet_until_s < until_s:
                until_s = quiet_until_s
    return until_s
