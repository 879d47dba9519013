"""A second look at a decision, some time after it was made: the cluster may have changed in between.

The caller waits, takes a new picture of the cluster and asks here. Upstream looks at candidates once more after the
simulation, since its state moves on meanwhile; a view does not, so one look is enough unless the caller lets time pass
in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from holokube.karpenter.disruption.balanced import total_price
from holokube.karpenter.disruption.simulating import describe, failures
from holokube.karpenter.disruption.types import Candidate, Command, Method, Notice, NoticeKind, Reason
from holokube.karpenter.disruption.view import DisruptionView


class RejectionKind(StrEnum):
    """What came in the way; metrics and events use the same words."""

    CHURN = "churn"
    """A candidate is none any more: pods came or went."""
    BUDGET = "budget"
    SCHEDULING = "scheduling"
    """The pods would go elsewhere now."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The command is not carried out."""

    kind: RejectionKind
    message: str
    failed: int
    """For how many candidates the failure is counted."""

    def notices(self, command: Command) -> tuple[Notice, ...]:
        """A word about each of its nodes; upstream has none about empty ones."""
        if command.reason is Reason.EMPTY:
            return ()
        return tuple(
            Notice(
                NoticeKind.REJECTED,
                f"Consolidation rejected: {command.as_seen_by(candidate)}, reason: {self.kind}"
                f" (savings: ${command.savings:.2f})",
                node=candidate.node,
                dedupe=(command.as_seen_by(candidate), self.kind),
            )
            for candidate in command.candidates
        )


def validate(command: Command, method: Method, view: DisruptionView) -> Command | Rejection:
    """The command to carry out after all, or why not.

    Of empty nodes those that still can go do. Every other command goes as a whole or not at all.
    """
    if not method.is_validated:
        return command
    current = view.named_as(method, command.candidates)
    if command.reason is Reason.EMPTY:
        return _validate_empty(command, current, view)
    missing = len(command.candidates) - len(current)
    if missing:
        return Rejection(RejectionKind.CHURN, f"{missing} candidates are no longer valid", len(command.candidates))
    left = view.budget_left(command.reason)
    for candidate in current:
        if left.get(candidate.pool.name, 0) == 0:
            message = "a candidate can no longer be disrupted without violating budgets"
            return Rejection(RejectionKind.BUDGET, message, len(command.candidates))
        left[candidate.pool.name] -= 1
    message = _why_different(command, current, view)
    return Rejection(RejectionKind.SCHEDULING, message, 0) if message else command


def _validate_empty(command: Command, current: list[Candidate], view: DisruptionView) -> Command | Rejection:
    if not current:
        count = len(command.candidates)
        return Rejection(RejectionKind.CHURN, f"{count} candidates are no longer valid", count)
    left = view.budget_left(command.reason)
    kept: list[Candidate] = []
    for candidate in current:
        if left.get(candidate.pool.name, 0) > 0:
            left[candidate.pool.name] -= 1
            kept.append(candidate)
    if not kept:
        message = f"{len(current)} candidates would violate disruption budgets"
        return Rejection(RejectionKind.BUDGET, message, len(current))
    return replace(command, candidates=tuple(kept), savings=total_price(kept))


def _why_different(command: Command, current: list[Candidate], view: DisruptionView) -> str:
    """Why the simulation does not come to the same end any more; empty if it does."""
    results = view.simulator.simulate(
        [candidate.name for candidate in current],
        [pod for candidate in current for pod in candidate.movable_pods],
        is_consolidation=True,
    )
    failed = failures(results)
    if failed:
        return describe(failed)
    if len(results.new_claims) != len(command.replacements):
        return (
            f"the pods would need {len(results.new_claims)} new nodes now, and {len(command.replacements)} when it"
            " was decided"
        )
    for planned, needed in zip(command.replacements, results.new_claims, strict=True):
        # The simulation does not look at prices, so it may allow more types than were chosen, but must allow those.
        possible = {one.name for one in needed.instance_types}
        if not all(one.name in possible for one in planned.instance_types):
            return "the new node would have to be of another instance type than when it was decided"
    return ""
