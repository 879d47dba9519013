"""Nodes that may be disrupted, and every reason why another may not.

Reasons come in a fixed order, cheap ones first, and the first is the one that users are told. Whoever wants to know
what else would stand in the way asks for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from holokube.karpenter.api.durations import duration_s
from holokube.karpenter.api.labels import DO_NOT_DISRUPT
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption import costs, pods
from holokube.karpenter.disruption.eviction_limits import EvictionLimits, Obstacle
from holokube.karpenter.disruption.types import Blocker, Candidate, DisruptionClass, Notice, NoticeKind, Obstruction
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType


@dataclass(frozen=True, slots=True, eq=False)
class CandidateRules:
    """What decides whether a node is a candidate, besides the node itself."""

    now_s: float
    pools: Mapping[str, NodePool]
    types_of_pool: Mapping[str, Mapping[str, InstanceType]]
    """By pool and name; a pool without types is unknown."""
    limits: EvictionLimits
    queued: frozenset[str]
    """Provider ids of the nodes that a command is being carried out for."""
    reads_deletion_cost: bool = True

    def without_queued(self) -> CandidateRules:
        """The same for nodes as if nothing were being done about them."""
        return CandidateRules(
            self.now_s, self.pools, self.types_of_pool, self.limits, frozenset(), self.reads_deletion_cost
        )


def obstructions(
    node: StateNode, rules: CandidateRules, disruption_class: DisruptionClass
) -> Iterator[Obstruction]:
    """Every reason why a node is no candidate, the first one first."""
    if node.provider_id in rules.queued:
        yield Obstruction(Blocker.QUEUED, "Candidate is already being disrupted")
    if node.node_claim is None:
        yield Obstruction(Blocker.NOT_MANAGED, "Node isn't managed by karpenter")
        return
    if node.node is None:
        yield Obstruction(Blocker.NO_NODE, "Nodeclaim does not have an associated node")
        return
    yield from _node_obstructions(node, rules.now_s)
    pool = node.labels.get(NODEPOOL_LABEL)
    if pool is None:
        yield Obstruction(Blocker.NO_POOL_LABEL, f"Node doesn't have required label (label={NODEPOOL_LABEL})")
    elif pool not in rules.pools or pool not in rules.types_of_pool:
        yield Obstruction(Blocker.UNKNOWN_POOL, f"NodePool not found (NodePool={pool})")
    if disruption_class is DisruptionClass.GRACEFUL or not has_bounded_drain(node.node_claim):
        yield from pod_obstructions(node, rules)


def is_unobstructed(node: StateNode, rules: CandidateRules) -> bool:
    """Whether nothing stands against a node that nobody disrupts already, nominations aside, as is usual.

    A quick look: False if that takes a longer one.
    """
    if node.node is None or node.node_claim is None or node.is_marked_for_deletion or not node.is_initialized:
        return False
    if node.guards or rules.limits.essence or node.is_rebooting or node.annotations.get(DO_NOT_DISRUPT) == "true":
        return False
    pool = node.labels.get(NODEPOOL_LABEL)
    return pool in rules.pools and pool in rules.types_of_pool


def _node_obstructions(node: StateNode, now_s: float) -> Iterator[Obstruction]:
    if node.is_rebooting:
        yield Obstruction(Blocker.REBOOTING, "Node is rebooting")
    if node.is_marked_for_deletion:
        yield Obstruction(Blocker.DELETING, "Node is deleting or marked for deletion")
    if not node.is_initialized:
        if node.is_registered:
            yield Obstruction(Blocker.NOT_INITIALIZED, "Node isn't initialized")
        else:
            yield Obstruction(Blocker.NOT_REGISTERED, "Node isn't initialized nor registered")
    if node.is_nominated(now_s):
        yield Obstruction(Blocker.NOMINATED, "Node is nominated for a pending pod")
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        yield Obstruction(
            Blocker.NODE_DO_NOT_DISRUPT, f'Disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'
        )


def pod_obstructions(node: StateNode, rules: CandidateRules) -> Iterator[Obstruction]:
    """Every pod that keeps its node: protected ones first, then those that disruption budgets hold."""
    for facts in node.facts if node.guards else ():
        pod = facts.pod
        if facts.guard is not None and pods.is_protected(pod, rules.now_s) and pods.is_active(pod):
            key = pods.key_of(pod)
            yield Obstruction(
                Blocker.POD_DO_NOT_DISRUPT, f'Pod has "{DO_NOT_DISRUPT}" annotation (Pod={key})', pods=(key,)
            )
    for pod in node.pods if rules.limits.essence else ():
        budgets = rules.limits.obstacles(pod, rules.now_s, Obstacle.NONE_ALLOWED_NOW)
        if not budgets:
            continue
        named = f"[{' '.join(budgets)}]"
        if len(budgets) > 1:
            blocker = Blocker.SEVERAL_PDBS
            message = f"Eviction does not support multiple PDBs (PodDisruptionBudget(s)={named})"
        else:
            blocker = Blocker.PDB
            message = f"Pdb prevents pod evictions (PodDisruptionBudget={named})"
        yield Obstruction(blocker, message, pods=(pods.key_of(pod),), pdbs=budgets)


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """All nodes of a cluster, sorted out for one class of disruption."""

    candidates: tuple[Candidate, ...]
    blocked: tuple[tuple[StateNode, Obstruction], ...]
    """The others, each with the first reason against it."""

    def notices(self) -> tuple[Notice, ...]:
        """A word about every managed node that is no candidate; nothing about those being disrupted."""
        return tuple(
            Notice(NoticeKind.BLOCKED, obstruction.message, node=node, obstruction=obstruction)
            for node, obstruction in self.blocked
            if node.node_claim is not None and obstruction.blocker is not Blocker.QUEUED
        )


def scan(nodes: Iterable[StateNode], rules: CandidateRules, disruption_class: DisruptionClass) -> Scan:
    """Look at every node."""
    candidates: list[Candidate] = []
    blocked: list[tuple[StateNode, Obstruction]] = []
    for node in nodes:
        obstruction = next(obstructions(node, rules, disruption_class), None)
        if obstruction is None:
            candidates.append(candidate_of(node, rules))
        else:
            blocked.append((node, obstruction))
    return Scan(tuple(candidates), tuple(blocked))


def candidate_of(node: StateNode, rules: CandidateRules) -> Candidate:
    """A node that nothing stands against, with its costs."""
    assert node.node_claim is not None
    labels = node.labels
    pool = rules.pools[labels[NODEPOOL_LABEL]]
    instance_type = rules.types_of_pool[pool.name].get(labels.get(INSTANCE_TYPE_LABEL, ""))
    zone, capacity_type = labels.get(ZONE_LABEL, ""), labels.get(CAPACITY_TYPE_LABEL, "")
    # All pods count for the one cost, even such as lower it; only those that have to move for the other.
    disruption_cost, reschedule_cost = 0.0, costs.NODE_BASE_COST
    reads_deletion_cost, limits = rules.reads_deletion_cost, rules.limits
    found: list[JsonObject] = []
    for facts in node.facts:
        cost = facts.cost if reads_deletion_cost else costs.eviction_cost(facts.pod, reads_deletion_cost=False)
        disruption_cost += cost
        if facts.is_reschedulable:
            found.append(facts.pod)
            if cost > 0.0:
                reschedule_cost += cost
    reschedulable = movable = tuple(found)
    if node.guards or limits.essence:
        # Otherwise, without a word of their own and without budgets, all of them leave.
        movable = tuple([pod for pod in reschedulable if limits.will_leave(pod, rules.now_s)])
    expire_after_s = duration_s(node.node_claim.get("spec") or {}, "expireAfter")
    if expire_after_s is not None:
        disruption_cost *= costs.lifetime_remaining(_created_s(node.node_claim), expire_after_s, rules.now_s)
    return Candidate(
        node=node,
        pool=pool,
        instance_type=instance_type,
        zone=zone,
        capacity_type=capacity_type,
        price=costs.offering_price(instance_type, zone, capacity_type),
        disruption_cost=disruption_cost,
        reschedule_cost=reschedule_cost,
        reschedulable_pods=reschedulable,
        movable_pods=movable,
    )


def has_bounded_drain(claim: JsonObject) -> bool:
    """Whether the time that a node takes to be emptied has an end, whatever its pods say."""
    return (claim.get("spec") or {}).get("terminationGracePeriod") is not None


def _created_s(claim: JsonObject) -> float:
    return seconds_of(claim["metadata"].get("creationTimestamp")) or 0.0
