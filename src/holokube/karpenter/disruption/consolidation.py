"""The heart of consolidation: can these nodes go, or be replaced by one that is cheaper?

One node never becomes several, and several never become more than one. A replacement must be strictly cheaper than all
of them together, even if it launches at the worst of the prices open to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holokube.karpenter.api.labels import CONSOLIDATABLE
from holokube.karpenter.api.node_pool import WHEN_EMPTY, NodePool
from holokube.karpenter.disruption.balanced import total_price
from holokube.karpenter.disruption.prospects import not_cheaper, pods_do_not_fit, several
from holokube.karpenter.disruption.simulating import failures
from holokube.karpenter.disruption.types import Blocker, Candidate, Command, Method, Notice, NoticeKind, Obstruction
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.min_values import needed_types, unmet_min_values
from holokube.karpenter.scheduling.results import PlannedClaim, Results
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, Requirement, Requirements
from holokube.pricing.instance_types import ON_DEMAND, SPOT, InstanceType

SPOT_TO_SPOT_TYPES_MIN: Final = 15
"""So many cheaper types a single spot node needs, and so many are sent: fewer would make it go from one to the next."""
_SPOT_ONLY: Final = Requirement.new(CAPACITY_TYPE_LABEL, "In", (SPOT,))
_UNCONSOLIDATABLE: Final = NoticeKind.UNCONSOLIDATABLE
"""Told again and again of many nodes; members of an enumeration take several times as long to be found."""
_EMPTY: Final = Obstruction(Blocker.EMPTY, "Node is empty, which is another reason for it to go")


def consolidation_obstruction(candidate: Candidate) -> Obstruction | None:
    """Why multi-node and single-node consolidation leave a candidate alone."""
    pool, labels = candidate.pool, candidate.node.labels
    if pool.is_static:
        return Obstruction(Blocker.STATIC_POOL, f'NodePool "{pool.name}" has a fixed number of nodes')
    if candidate.instance_type is None:
        name = labels.get(INSTANCE_TYPE_LABEL, "")
        return Obstruction(Blocker.UNKNOWN_INSTANCE_TYPE, f'Instance Type "{name}" not found')
    if CAPACITY_TYPE_LABEL not in labels:
        return Obstruction(Blocker.NO_CAPACITY_TYPE, f'Node does not have label "{CAPACITY_TYPE_LABEL}"')
    if ZONE_LABEL not in labels:
        return Obstruction(Blocker.NO_ZONE, f'Node does not have label "{ZONE_LABEL}"')
    if pool.consolidate_after_s is None:
        return disabled(candidate)
    if candidate.is_empty:
        return _EMPTY
    if pool.consolidation_policy == WHEN_EMPTY:
        message = f'NodePool "{pool.name}" has consolidation policy WhenEmpty, but node is not empty'
        return Obstruction(Blocker.POLICY_WHEN_EMPTY, message)
    return not_consolidatable(candidate)


def disabled(candidate: Candidate) -> Obstruction:
    """The pool says never."""
    return Obstruction(
        Blocker.CONSOLIDATION_DISABLED, f'NodePool "{candidate.pool.name}" has consolidation disabled'
    )


def not_consolidatable(candidate: Candidate) -> Obstruction | None:
    """Pods came or went too recently."""
    if CONSOLIDATABLE in candidate.node.claim_states:
        return None
    after_s = candidate.pool.consolidate_after_s or 0
    return Obstruction(
        Blocker.NOT_CONSOLIDATABLE,
        f"Node is not consolidatable until no pod has come or gone for {after_s:g} s (consolidateAfter)",
    )


def is_too_early(node: StateNode, pool: NodePool) -> bool:
    """Whether a node of a pool that consolidates is left alone for now, as nodes are most of the time."""
    if pool.is_static or pool.consolidate_after_s is None or pool.consolidation_policy == WHEN_EMPTY:
        return False
    labels = node.labels
    if CAPACITY_TYPE_LABEL not in labels or ZONE_LABEL not in labels:
        return False
    return CONSOLIDATABLE not in node.claim_states


def eligibility_notices(view: DisruptionView, method: Method) -> tuple[Notice, ...]:
    """A word about candidates that a consolidation method cannot take for good."""
    ruled_out = view.ruled_out(method)
    return tuple([unconsolidatable(*one) for one in ruled_out]) if ruled_out else ()


def unconsolidatable(candidate: Candidate, obstruction: Obstruction) -> Notice:
    """The event that says why."""
    return Notice(_UNCONSOLIDATABLE, obstruction.message, candidate.node, None, obstruction)


def approval_notices(command: Command) -> tuple[Notice, ...]:
    """A word about what was decided: the nodes to be replaced, and scores where a policy asks for them."""
    notices: list[Notice] = []
    if command.replacements:
        for candidate in command.candidates:
            text = command.as_seen_by(candidate)
            message = f"Consolidation candidate: {text} (savings: ${command.savings:.2f})"
            notices.append(Notice(NoticeKind.CANDIDATE, message, node=candidate.node, dedupe=(text,)))
    for name, score in command.scores.items():
        if len(command.candidates) == 1:
            notices.append(Notice(NoticeKind.APPROVED, str(score), node=command.candidates[0].node))
        else:
            pool = next(candidate.pool for candidate in command.candidates if candidate.pool.name == name)
            notices.append(Notice(NoticeKind.APPROVED, str(score), pool=pool))
    return tuple(notices)


def by_ratio(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The most money for the least disruption first."""
    return sorted(candidates, key=lambda candidate: candidate.rank)


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """A claim with the types it may still be, cheapest first as they were before anything was taken away."""

    claim: PlannedClaim
    options: tuple[InstanceType, ...]
    requirements: Requirements

    def planned(self) -> PlannedClaim:
        """The claim to create."""
        return replace(self.claim, candidate_types=self.options, requirements=self.requirements)


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Nodes that can go, and what would have to come first."""

    candidates: tuple[Candidate, ...]
    results: Results
    replacement: Replacement | None = None

    def command(self, view: DisruptionView, method: Method) -> Command:
        """The move as something to carry out."""
        price = total_price(self.candidates)
        planned: tuple[PlannedClaim, ...] = ()
        if self.replacement is not None:
            price = view.prices.savings(price, self.replacement.options, self.replacement.requirements)
            planned = (self.replacement.planned(),)
        return Command(
            method.name, method.reason, method.consolidation_type, self.candidates, planned, self.results, price
        )


def consolidate(view: DisruptionView, candidates: Sequence[Candidate]) -> Move | Obstruction:
    """How these nodes can go together, or why they cannot."""
    gone = tuple(candidates)
    results = view.simulator.simulate(
        [candidate.name for candidate in gone],
        [pod for candidate in gone for pod in candidate.movable_pods],
        is_consolidation=True,
    )
    failed = failures(results)
    if failed:
        return pods_do_not_fit(failed)
    if not results.new_claims:
        return Move(gone, results)
    if len(results.new_claims) > 1:
        return several(len(results.new_claims))
    replacement = replacement_by(view, gone, results.new_claims[0])
    return replacement if isinstance(replacement, Obstruction) else Move(gone, results, replacement)


def replacement_by(
    view: DisruptionView, gone: Sequence[Candidate], claim: PlannedClaim
) -> Replacement | Obstruction:
    """What a new node may be that takes the place of nodes, or why it is not worth while."""
    price = total_price(gone)
    capacity_types = claim.requirements.of(CAPACITY_TYPE_LABEL)
    if capacity_types.has(SPOT) and all(candidate.capacity_type == SPOT for candidate in gone):
        return _spot_to_spot(view, gone, claim, price)
    if not view.prices.cheaper(claim.candidate_types, claim.requirements, price):
        # It is not worth while to put the types in order.
        return not_cheaper()
    options = view.prices.cheaper(view.prices.ordered(claim), claim.requirements, price)
    obstruction = _unmet(options, claim.requirements) or (None if options else not_cheaper())
    if obstruction is not None:
        return obstruction
    requirements = claim.requirements
    if capacity_types.has(SPOT) and capacity_types.has(ON_DEMAND):
        # Prices were compared on the assumption that spot launches. If it cannot, the launch had better fail than
        # put a dearer node in the place of this one.
        requirements = requirements.adding(_SPOT_ONLY)
    return Replacement(claim, tuple(options), requirements)


def _spot_to_spot(
    view: DisruptionView, gone: Sequence[Candidate], claim: PlannedClaim, price: float
) -> Replacement | Obstruction:
    """Spot nodes for a spot node, which only a feature gate allows.

    A launch on spot does not always get the cheapest type, so a single node is replaced only if there is a choice of
    types among the cheapest, and by one of just those.
    """
    if not view.options.spot_to_spot:
        return Obstruction(
            Blocker.SPOT_TO_SPOT_DISABLED,
            "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
        )
    requirements = claim.requirements.adding(_SPOT_ONLY)
    options = view.prices.cheaper(view.prices.ordered(claim), requirements, price)
    obstruction = _unmet(options, requirements) or (None if options else not_cheaper())
    if obstruction is not None:
        return obstruction
    if len(gone) == 1:
        if len(options) < SPOT_TO_SPOT_TYPES_MIN:
            return Obstruction(
                Blocker.SPOT_TO_SPOT_INFLEXIBLE,
                f"SpotToSpotConsolidation requires {SPOT_TO_SPOT_TYPES_MIN} cheaper instance type options than the"
                f" current candidate to consolidate, got {len(options)}",
            )
        needed, _ = needed_types(options, requirements)
        options = options[: max(SPOT_TO_SPOT_TYPES_MIN, needed)]
    return Replacement(claim, tuple(options), requirements)


def _unmet(options: Sequence[InstanceType], requirements: Requirements) -> Obstruction | None:
    unmet = unmet_min_values(options, requirements)
    if not unmet:
        return None
    return Obstruction(
        Blocker.MIN_VALUES,
        f"Filtering by price: minValues requirement is not met for label(s) (label(s)=[{' '.join(sorted(unmet))}])",
    )
