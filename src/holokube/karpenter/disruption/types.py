"""The words of disruption: candidates, commands, and what is to be told about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from holokube.base.lazy import lazy
from holokube.karpenter.api.node_pool import BALANCED, NodePool
from holokube.karpenter.disruption.costs import NODE_BASE_COST
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.pausing import Steps
from holokube.karpenter.scheduling.results import PlannedClaim, Results
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

if TYPE_CHECKING:
    from holokube.karpenter.disruption.view import DisruptionView

VALIDATION_DELAY_S: Final = 15.0
"""Between a decision and the second look at it; drift has none."""


class Reason(StrEnum):
    """Why nodes are disrupted; budgets and metrics use the same words."""

    EMPTY = "Empty"
    DRIFTED = "Drifted"
    UNDERUTILIZED = "Underutilized"


class DisruptionClass(StrEnum):
    """How far pods can stop a disruption."""

    GRACEFUL = "graceful"
    """A pod that may not be evicted keeps its node."""
    EVENTUAL = "eventual"
    """It does so only where nothing bounds the time of a drain."""


class Decision(StrEnum):
    """What becomes of the candidates."""

    DELETE = "delete"
    REPLACE = "replace"


class Blocker(StrEnum):
    """Why a node cannot be disrupted, or is not worth it."""

    QUEUED = "already-disrupting"
    NOT_MANAGED = "not-managed"
    NO_NODE = "no-node"
    REBOOTING = "rebooting"
    DELETING = "deleting"
    NOT_REGISTERED = "not-registered"
    NOT_INITIALIZED = "not-initialized"
    NOMINATED = "nominated"
    NODE_DO_NOT_DISRUPT = "node-do-not-disrupt"
    NO_POOL_LABEL = "no-pool-label"
    UNKNOWN_POOL = "unknown-pool"
    POD_DO_NOT_DISRUPT = "pod-do-not-disrupt"
    SEVERAL_PDBS = "several-pdbs"
    PDB = "pdb"
    STATIC_POOL = "static-pool"
    UNKNOWN_INSTANCE_TYPE = "unknown-instance-type"
    NO_CAPACITY_TYPE = "no-capacity-type"
    NO_ZONE = "no-zone"
    CONSOLIDATION_DISABLED = "consolidation-disabled"
    EMPTY = "empty"
    NOT_EMPTY = "not-empty"
    POLICY_WHEN_EMPTY = "policy-when-empty"
    NOT_CONSOLIDATABLE = "not-consolidatable-yet"
    NOT_DRIFTED = "not-drifted"
    BUDGET = "budget"
    PODS_DO_NOT_FIT = "pods-do-not-fit"
    SEVERAL_REPLACEMENTS = "several-replacements"
    NOT_CHEAPER = "not-cheaper"
    MIN_VALUES = "min-values"
    SPOT_TO_SPOT_DISABLED = "spot-to-spot-disabled"
    SPOT_TO_SPOT_INFLEXIBLE = "spot-to-spot-inflexible"
    SCORE = "balanced-score"


UNTOLD: Final = frozenset({
    Blocker.STATIC_POOL, Blocker.EMPTY, Blocker.NOT_EMPTY, Blocker.NOT_CONSOLIDATABLE, Blocker.NOT_DRIFTED,
})  # fmt: skip
"""Reasons of methods that are no news to anybody, so no event tells them."""


class Obstruction(NamedTuple):
    """One reason against disrupting a node, for machines and for people."""

    blocker: Blocker
    message: str
    pods: tuple[str, ...] = ()
    """The pods in question, ``namespace/name``."""
    pdbs: tuple[str, ...] = ()
    """The disruption budgets in question, ``namespace/name``."""

    @property
    def is_pod_blocker(self) -> bool:
        """Whether pods stand in the way, and not the node itself."""
        return self.blocker in (Blocker.POD_DO_NOT_DISRUPT, Blocker.SEVERAL_PDBS, Blocker.PDB)


class NoticeKind(StrEnum):
    """What is told about nodes; the values are the reasons of events."""

    BLOCKED = "DisruptionBlocked"
    UNCONSOLIDATABLE = "Unconsolidatable"
    CANDIDATE = "ConsolidationCandidate"
    REJECTED = "ConsolidationRejected"
    APPROVED = "ConsolidationApproved"


class Notice(NamedTuple):
    """Something to tell users, about a node and its claim, or about a pool."""

    kind: NoticeKind
    message: str
    node: StateNode | None = None
    pool: NodePool | None = None
    obstruction: Obstruction | None = None
    dedupe: tuple[str, ...] = ()
    """What else must be the same, besides the object, for two notices to be one."""


@dataclass(frozen=True, eq=False, init=False)
class Candidate:
    """A node that may be disrupted, with what a decision about it needs."""

    node: StateNode
    pool: NodePool
    instance_type: InstanceType | None
    zone: str
    capacity_type: str
    price: float
    """What it costs per hour; 0 if nobody knows."""
    disruption_cost: float
    """Over all its pods, less the nearer the node is to its end; as of when it was first looked at."""
    reschedule_cost: float
    """What moving its pods costs; at least 1."""
    reschedulable_pods: tuple[JsonObject, ...]
    """Pods that need another place."""
    movable_pods: tuple[JsonObject, ...]
    """Those of them that are expected to leave soon, and that a simulation has to place."""

    def __init__(
        self,
        node: StateNode,
        pool: NodePool,
        instance_type: InstanceType | None,
        zone: str,
        capacity_type: str,
        price: float,
        disruption_cost: float,
        reschedule_cost: float,
        reschedulable_pods: tuple[JsonObject, ...],
        movable_pods: tuple[JsonObject, ...],
    ) -> None:
        # A node that has changed is another candidate; what a dataclass generates takes several times as long.
        own = self.__dict__
        own["node"] = node
        own["pool"] = pool
        own["instance_type"] = instance_type
        own["zone"] = zone
        own["capacity_type"] = capacity_type
        own["price"] = price
        own["disruption_cost"] = disruption_cost
        own["reschedule_cost"] = reschedule_cost
        own["reschedulable_pods"] = reschedulable_pods
        own["movable_pods"] = movable_pods

    @lazy
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @lazy
    def ratio(self) -> float:
        """Price saved for each unit of disruption; candidates are looked at from the highest down."""
        return self.price / self.reschedule_cost

    @lazy
    def rank(self) -> tuple[float, str]:
        """The most money for the least disruption first.

        Among equals upstream leaves it to chance; the name decides here.
        """
        return -self.ratio, self.name

    @property
    def is_empty(self) -> bool:
        """Whether moving its pods costs nothing: it has none, or only such as nobody minds."""
        return self.reschedule_cost <= NODE_BASE_COST

    def __repr__(self) -> str:
        return f"<Candidate {self.name}>"


@dataclass(frozen=True, slots=True)
class Score:
    """How a move stands in a Balanced pool: the share of the pool's cost it saves for the share it disturbs."""

    savings_fraction: float = 0.0
    disruption_fraction: float = 0.0
    threshold: float = 0.5

    @property
    def value(self) -> float:
        """Savings by disruption; a move that saves nothing scores nothing."""
        if self.savings_fraction <= 0:
            return 0.0
        if self.disruption_fraction == 0:
            return float("inf")
        return self.savings_fraction / self.disruption_fraction

    @property
    def is_approved(self) -> bool:
        """Whether the move is worth it."""
        return self.value >= self.threshold

    def __str__(self) -> str:
        sign = ">=" if self.is_approved else "<"
        return (
            f"score {self.value:.2f} {sign} threshold {self.threshold:.2f} (k: {1 / self.threshold:.0f},"
            f" savings {self.savings_fraction * 100:.1f}%, disruption {self.disruption_fraction * 100:.1f}%)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """Nodes to disrupt together, and what takes their place first."""

    method: str
    reason: Reason
    consolidation_type: str
    candidates: tuple[Candidate, ...]
    replacements: tuple[PlannedClaim, ...] = ()
    results: Results | None = None
    """The simulation behind it: where the pods are expected to go."""
    savings: float = 0.0
    """Dollars per hour, if replacements launch at their cheapest."""
    scores: Mapping[str, Score] = field(default_factory=dict)
    """By pool, for Balanced ones."""

    @property
    def decision(self) -> Decision:
        """Delete or replace."""
        return Decision.REPLACE if self.replacements else Decision.DELETE

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its nodes."""
        return tuple(candidate.name for candidate in self.candidates)

    @property
    def pool_names(self) -> tuple[str, ...]:
        """The pools its nodes are in, each once."""
        return tuple(dict.fromkeys(candidate.pool.name for candidate in self.candidates))

    def __str__(self) -> str:
        count = len(self.replacements)
        target = f" -> [{count} replacement{'' if count == 1 else 's'}]" if count else ""
        return (
            f"{self.reason}: {self.decision}: nodepools=[{','.join(self.pool_names)}]:"
            f" [{', '.join(self.names)}]{target} (savings: ${self.savings:.2f})"
        )

    def as_seen_by(self, candidate: Candidate) -> str:
        """The command in the words for one of its nodes."""
        if len(self.candidates) == 1:
            return str(self)
        return f"{self.decision}: [{candidate.name}] (part of {len(self.candidates)}-node consolidation)"


class Outcome(NamedTuple):
    """What a method makes of a cluster."""

    command: Command | None
    memory: Memory
    notices: tuple[Notice, ...] = ()
    timed_out: bool = False
    """Whether time ran out before everything was looked at."""


class Method(Protocol):
    """A reason to disrupt nodes, and the way to choose them."""

    @property
    def name(self) -> str:
        """emptiness, drift, multi or single."""

    @property
    def reason(self) -> Reason:
        """What budgets know it by."""

    @property
    def disruption_class(self) -> DisruptionClass:
        """How far pods can stop it."""

    @property
    def consolidation_type(self) -> str:
        """empty, multi or single in metrics; drift has none."""

    @property
    def is_validated(self) -> bool:
        """Whether its commands are looked at a second time, later, before they are carried out."""

    def obstruction(self, candidate: Candidate) -> Obstruction | None:
        """Why this method leaves a candidate alone; None if it would take it."""

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """The one thing to do now, if there is one."""


@runtime_checkable
class Picky(Protocol):
    """A method that can leave a node out without looking at its pods."""

    def passes_over(self, node: StateNode, pool: NodePool) -> bool:
        """Whether it would not take a candidate of this pool, and would say nothing about it, whatever its pods are.

        Of a claim whose Node has come up it goes by no more than conditions, and whether the claim is being deleted.
        """


@runtime_checkable
class Interruptible(Protocol):
    """A method that may take long: it can be left alone after each look at some nodes."""

    def steps(self, view: DisruptionView, memory: Memory) -> Steps[Outcome]:
        """As ``compute``, step by step."""


def is_balanced(pool: NodePool) -> bool:
    """Whether moves in this pool must be worth their disruption."""
    return pool.consolidation_policy == BALANCED
