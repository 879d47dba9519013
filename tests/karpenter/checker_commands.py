"""Is a disruption command sound? Its pods all find a place by the rules, budgets hold, and a replacement is cheaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from holokube.karpenter.disruption.types import Command, Reason
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.problem import Problem
from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.checker_world import Violation, key_of

_SMALL = 1e-9


def check_command(problem: Problem, view: DisruptionView, command: Command) -> list[Violation]:
    """What is wrong with a command; ``problem`` is what its simulation started from."""
    return [*_budgets(view, command), *_price(command), *_moves(problem, command)]


def _budgets(view: DisruptionView, command: Command) -> list[Violation]:
    taken = Counter(candidate.pool.name for candidate in command.candidates)
    return [
        Violation("budgets", "", "", f"{count} nodes of pool {pool} go, {view.budget_left(command.reason)[pool]} may")
        for pool, count in taken.items() if count > view.budget_left(command.reason)[pool]
    ]  # fmt: skip


def _price(command: Command) -> list[Violation]:
    """Consolidation must save money; what is drifted is replaced whatever it costs."""
    before = sum(candidate.price for candidate in command.candidates)
    after = sum(claim.price_usd_per_hour for claim in command.replacements)
    if command.reason is Reason.DRIFTED or after < before or (not command.replacements and after <= before):
        return []
    return [Violation("price", "", "", f"replacements cost {after}, what goes {before}")]


def _moves(problem: Problem, command: Command) -> list[Violation]:
    gone = set(command.names)
    moving = [pod for candidate in command.candidates for pod in candidate.movable_pods]
    if command.results is None:
        return [Violation("pods", "", key_of(pod), "has to move, and nobody looked where to") for pod in moving]
    after = replace(
        problem, pods=[*problem.pods, *moving], state_nodes=[n for n in problem.state_nodes if n.name not in gone])
    claims = command.replacements or tuple(command.results.new_claims)
    placed = {key_of(pod) for pods in _all(command) for pod in pods}
    lost = [
        Violation("pods", "", key_of(pod), "has to move and finds no place")
        for pod in moving if key_of(pod) not in placed
    ]
    return lost + check_placements(after, claims, command.results.existing)


def _all(command: Command) -> Sequence[Sequence[dict[str, object]]]:
    assert command.results is not None
    return [*command.results.existing.values(), *(claim.pods for claim in command.results.new_claims)]
