"""The dry run of policy ``optimal``: the cheapest plan found, and how far it can be from the cheapest possible."""

from __future__ import annotations

from typing import Any

from holokube.base.clock import Clock
from holokube.karpenter.disruption.consolidation import consolidation_obstruction
from holokube.karpenter.disruption.types import Candidate, DisruptionClass, Reason
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.optimal.global_consolidation import GlobalMove, consolidate_globally
from holokube.karpenter.optimal.planning import plan
from holokube.karpenter.plan.answer import candidate_values, claim_values, solve_values
from holokube.karpenter.plan.disrupting import view_of
from holokube.karpenter.plan.given import Given
from holokube.karpenter.plan.planner import cluster_values, solve_options
from holokube.karpenter.scheduling.problem import pod_key
from holokube.karpenter.scheduling.results import PodError, Results
from holokube.karpenter.settings import Settings


def plan_optimal(given: Given, settings: Settings, clock: Clock, *, limit_s: float | None = None) -> dict[str, Any]:
    """The keys of Karpenter's own plan, with ``lowerBound`` and ``gap``; ``limit_s`` bounds either search."""
    problem = given.problem(solve_options(settings))
    started_s = clock.monotonic()
    found = plan(problem, limit_s=limit_s, monotonic=clock.monotonic)
    solve_s = clock.monotonic() - started_s
    pods = {pod_key(pod): pod for pod in problem.pods}
    failed = {key: PodError(pods[key], why) for key, why in found.errors.items()}
    values = {
        **solve_values(given, Results(found.claims, found.existing, failed)),
        "solveMs": round(solve_s * 1000, 3),
        "lowerBound": found.bound.price_usd_per_hour,
        "gap": found.gap,
        "boundBy": found.bound.how,
        "status": found.status,
        "foundBy": found.found_by,
    }
    if not given.wants_disruption:
        return {**values, **cluster_values(given, values, 0.0)}
    gate = settings.feature_gates.spot_to_spot_consolidation
    spot_to_spot = gate if given.spot_to_spot is None else given.spot_to_spot
    view = view_of(given, solve_options(settings), spot_to_spot=spot_to_spot)
    candidates = removable(view)
    ends_s = clock.monotonic() + limit_s if limit_s is not None else float("inf")
    move = consolidate_globally(
        given.disruption_problem(solve_options(settings)), candidates, global_budget(view),
        spot_to_spot=spot_to_spot, seconds_left=lambda: ends_s - clock.monotonic())
    values |= {
        "candidates": {one.name: candidate_values(one) for one in candidates},
        "budgets": {"global": global_budget(view)},
        "commands": [_command(move, given.listed_types)] if move.removed else [],
        "consolidation": {
            "perHourBefore": move.price_before, "perHourAfter": move.price_after,
            "lowerBound": move.bound, "gap": move.gap,
        },
    }  # fmt: skip
    return {**values, **cluster_values(given, values, move.savings)}


def removable(view: DisruptionView) -> list[Candidate]:
    """Nodes that Karpenter could consolidate: empty ones too, as here both are one question."""
    found = view.scan(DisruptionClass.GRACEFUL).candidates
    return [one for one in found if one.is_empty or consolidation_obstruction(one) is None]


def global_budget(view: DisruptionView) -> dict[str, int]:
    """How many nodes of each pool may go: what both reasons allow, as nodes go for either."""
    empty, idle = view.budget_left(Reason.EMPTY), view.budget_left(Reason.UNDERUTILIZED)
    return {pool: min(count, idle.get(pool, 0)) for pool, count in empty.items()}


def _command(move: GlobalMove, listed: int | None) -> dict[str, Any]:
    return {
        "method": "global",
        "reason": str(Reason.UNDERUTILIZED),
        "decision": "replace" if move.claims else "delete",
        "candidates": list(move.removed),
        "replacements": [claim_values(claim, listed) for claim in move.claims],
        "existingNodes": {name: [pod_key(pod) for pod in pods] for name, pods in move.existing.items()},
        "estimatedSavings": move.savings,
    }
