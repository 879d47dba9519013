"""Notices of the disruption methods, as events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from holokube.karpenter.disruption.types import Notice, NoticeKind
from holokube.karpenter.events import DEDUPE_S, UNCONSOLIDATABLE_DEDUPE_S, Publisher
from holokube.karpenter.scheduling.state_node import StateNode

_POOL_DEDUPE_S: Final = 60.0
_UNCONSOLIDATABLE: Final = NoticeKind.UNCONSOLIDATABLE.value
_REASONS: Final = {
    kind: (kind.value, UNCONSOLIDATABLE_DEDUPE_S if kind is NoticeKind.UNCONSOLIDATABLE else DEDUPE_S)
    for kind in NoticeKind
}
"""By kind: the reason of its events, and how long the same is not told again of a node."""


def tell(notices: Sequence[Notice], publisher: Publisher) -> None:
    """Events on the Node and its claim, or on the pool."""
    if len(notices) > 1 and _are_alike(notices):
        reason, dedupe_s = _REASONS[notices[0].kind]
        publisher.normal_of_all([(one.node.objects, one.message) for one in notices if one.node], reason, dedupe_s)
        return
    for kind, message, node, pool, _, dedupe in notices:
        reason, dedupe_s = _REASONS[kind]
        if node is not None and not dedupe:
            publisher.normal_of(node.objects, reason, message, dedupe_s)
        elif node is not None:
            for obj, uid in node.objects:
                publisher.normal(obj, reason, message, uid, *dedupe, dedupe_s=dedupe_s)
        if pool is not None:
            publisher.normal(pool.object, reason, message, pool.uid, *dedupe, dedupe_s=_POOL_DEDUPE_S)


def _are_alike(notices: Sequence[Notice]) -> bool:
    """Whether all are of the same kind about nodes, as those are of which there are many."""
    first = notices[0].kind
    for kind, _, node, pool, _, dedupe in notices:
        if kind is not first or node is None or pool is not None or dedupe:
            return False
    return True


def stay_told_until_s(nodes: Iterable[StateNode], publisher: Publisher) -> list[float]:
    """Until when nobody has to be told again that nodes cannot be consolidated, one by one."""
    quiet_until_s = publisher.quiet_until_s_by(_UNCONSOLIDATABLE)
    found: list[float] = []
    for node in nodes:
        until_s = math.inf
        for _, uid in node.objects:
            of_object_s = quiet_until_s(uid, 0.0)
            if of_object_s < until_s:
                until_s = of_object_s
        found.append(until_s)
    return found
