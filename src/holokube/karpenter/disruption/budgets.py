"""How many nodes of each pool may be disrupted now, less those that are on their way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from holokube.base.identity import are_same
from holokube.karpenter.api.labels import INSTANCE_TERMINATING, READY
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.types import Notice, NoticeKind, Reason
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube import conditions
from holokube.kube.requirements import NODEPOOL_LABEL


class PoolCount(NamedTuple):
    """The nodes of a pool as its budgets count them."""

    total: int = 0
    """Managed nodes that have been initialized (or reboot), and whose instances are not gone yet."""
    disrupting: int = 0
    """Those of them that are marked for deletion, reboot, or are not ready."""


@dataclass(frozen=True, slots=True)
class PoolBudget:
    """What the budgets of a pool allow for one reason."""

    count: PoolCount
    allowed: int
    """How many nodes may be disrupted at once."""

    @property
    def left(self) -> int:
        """How many more may be."""
        return max(self.allowed - self.count.disrupting, 0)


def count_nodes(nodes: Iterable[StateNode]) -> dict[str, PoolCount]:
    """The counts of all pools with nodes."""
    total: dict[str, int] = {}
    disrupting: dict[str, int] = {}
    for node in nodes:
        counted = counted_for(node)
        if counted is not None:
            pool, is_disrupting = counted
            total[pool] = total.get(pool, 0) + 1
            if is_disrupting:
                disrupting[pool] = disrupting.get(pool, 0) + 1
    return {pool: PoolCount(count, disrupting.get(pool, 0)) for pool, count in total.items()}


def counted_for(node: StateNode) -> tuple[str, bool] | None:
    """The pool that a node counts for, and whether as one that is being disrupted; None if it does not count."""
    claim = node.node_claim
    if claim is None or node.node is None or not (node.is_initialized or node.is_rebooting):
        return None
    if INSTANCE_TERMINATING in node.claim_states:
        return None
    is_disrupting = node.is_marked_for_deletion or node.is_rebooting or not conditions.is_true(node.node, READY)
    return node.labels.get(NODEPOOL_LABEL, ""), is_disrupting


def pool_budgets(
    pools: Mapping[str, NodePool], nodes: Iterable[StateNode], now_s: float, reason: Reason
) -> dict[str, PoolBudget]:
    """What every pool allows for this reason now."""
    return budgets_of(pools, count_nodes(nodes), now_s, reason)


def budgets_of(
    pools: Mapping[str, NodePool], counts: Mapping[str, PoolCount], now_s: float, reason: Reason
) -> dict[str, PoolBudget]:
    """The same for nodes that have been counted."""
    budgets: dict[str, PoolBudget] = {}
    for name, pool in pools.items():
        count = counts.get(name, PoolCount())
        budgets[name] = PoolBudget(count, pool.allowed_disruptions(now_s, count.total, reason))
    return budgets


class BudgetBook:
    """What pools allow, kept from one moment to the next."""

    def __init__(self) -> None:
        self._known: dict[Reason, tuple[list[NodePool], Mapping[str, PoolCount], dict[str, PoolBudget]]] = {}
        """By reason: the last answer, and what it goes by where time has no say."""

    def budgets(
        self, pools: Mapping[str, NodePool], counts: Mapping[str, PoolCount], now_s: float, reason: Reason
    ) -> dict[str, PoolBudget]:
        """As ``budgets_of``; the very same answer as long as pools are the same objects and as many nodes count."""
        given = list(pools.values())
        known = self._known.get(reason)
        if known is not None and are_same(known[0], given) and known[1] == counts:
            return known[2]
        found = budgets_of(pools, counts, now_s, reason)
        if any(budget.schedule is not None or budget.duration is not None for pool in given for budget in pool.budgets):
            self._known.pop(reason, None)
        else:
            self._known[reason] = given, counts, found
        return found


def budget_notices(
    pools: Mapping[str, NodePool], budgets: Mapping[str, PoolBudget], reason: Reason
) -> tuple[Notice, ...]:
    """A word about every pool that has nodes and lets none of them go."""
    return tuple([
        Notice(
            NoticeKind.BLOCKED,
            f"No allowed disruptions for disruption reason {reason} due to blocking budget",
            pool=pools[name],
            dedupe=(reason,),
        )
        for name, budget in budgets.items()
        if budget.count.total and not budget.allowed
    ])
