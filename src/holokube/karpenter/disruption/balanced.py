"""The Balanced policy: a move must save a share of its pool's cost that is worth the share it disturbs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.karpenter.disruption.costs import node_cost, offering_price
from holokube.karpenter.disruption.types import Candidate, Score, is_balanced
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL
from holokube.pricing.instance_types import InstanceType

K: Final = 2
THRESHOLD: Final = 1.0 / K


@dataclass(frozen=True, slots=True)
class PoolTotals:
    """What all nodes of a pool cost, in money and in disruption."""

    cost: float
    disruption_cost: float


def pool_costs(
    nodes: Iterable[StateNode], types_of_pool: Mapping[str, Mapping[str, InstanceType]]
) -> dict[str, float]:
    """What all claims of each pool cost, candidates or not; those that nobody knows the price of are left out."""
    found: dict[str, float] = {}
    for node in nodes:
        if node.node_claim is None:
            continue
        labels = node.node_claim["metadata"].get("labels") or {}
        pool = labels.get(NODEPOOL_LABEL, "")
        one = types_of_pool.get(pool, {}).get(labels.get(INSTANCE_TYPE_LABEL, ""))
        price = offering_price(one, labels.get(ZONE_LABEL, ""), labels.get(CAPACITY_TYPE_LABEL, ""))
        found[pool] = found.get(pool, 0.0) + price
    return found


def pool_totals(
    candidates: Iterable[Candidate],
    nodes: Iterable[StateNode],
    costs: Mapping[str, float],
    *,
    reads_deletion_cost: bool = True,
) -> dict[str, PoolTotals]:
    """Totals of every pool with candidates; nodes that are none count as well.

    ``costs`` are what the pools cost by the books; where they say nothing, the candidates' prices are added up.
    """
    by_name: dict[str, Candidate] = {}
    prices: dict[str, float] = {}
    for candidate in candidates:
        by_name[candidate.name] = candidate
        prices[candidate.pool.name] = prices.get(candidate.pool.name, 0.0) + candidate.price
    disruption: dict[str, float] = {}
    for node in nodes:
        pool = node.labels.get(NODEPOOL_LABEL)
        if pool not in prices:
            continue
        known = by_name.get(node.name)
        cost = node_cost(node.pods, reads_deletion_cost=reads_deletion_cost) if known is None else known.reschedule_cost
        disruption[pool] = disruption.get(pool, 0.0) + cost
    return {
        pool: PoolTotals(booked if (booked := costs.get(pool, 0.0)) > 0 else price, disruption.get(pool, 0.0))
        for pool, price in prices.items()
    }


def score_move(savings: float, disruption_cost: float, totals: PoolTotals) -> Score:
    """The score of a move in one pool; nothing where there is nothing to compare with."""
    if totals.cost <= 0 or totals.disruption_cost <= 0:
        return Score(threshold=THRESHOLD)
    return Score(savings / totals.cost, disruption_cost / totals.disruption_cost, THRESHOLD)


def scores_of(
    candidates: Sequence[Candidate], savings: float, totals: Mapping[str, PoolTotals]
) -> dict[str, Score]:
    """The scores in each Balanced pool a move takes nodes from; savings are split by what its nodes cost."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    source_cost = total_price(candidates)
    scores: dict[str, Score] = {}
    for pool, members in by_pool.items():
        if not is_balanced(members[0].pool):
            continue
        share = savings
        if source_cost > 0 and len(by_pool) > 1:
            share = savings * (total_price(members) / source_cost)
        disruption_cost = 0.0
        for candidate in members:
            disruption_cost += candidate.reschedule_cost
        scores[pool] = score_move(share, disruption_cost, totals.get(pool, PoolTotals(0.0, 0.0)))
    return scores


def can_pass(candidate: Candidate, totals: Mapping[str, PoolTotals]) -> bool:
    """Whether the best that can happen to a candidate, its removal without replacement, would be approved."""
    if not is_balanced(candidate.pool):
        return True
    of_pool = totals.get(candidate.pool.name)
    if of_pool is None or of_pool.cost <= 0:
        return True
    return score_move(candidate.price, candidate.reschedule_cost, of_pool).is_approved


def total_price(candidates: Iterable[Candidate]) -> float:
    """The sum of their prices, from the first to the last."""
    total = 0.0
    for candidate in candidates:
        total += candidate.price
    return total
