"""The whole dry run: provisioning, disruption, reasons, the price, and how far that is from the cheapest possible."""

from __future__ import annotations

from typing import Any, Final

from holokube.base.clock import Clock
from holokube.karpenter.disruption.costs import offering_price
from holokube.karpenter.plan.answer import solve_values
from holokube.karpenter.plan.disrupting import disrupt
from holokube.karpenter.plan.given import Given
from holokube.karpenter.plan.lower_bound import bound_values
from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.karpenter.scheduling.solver import Solver
from holokube.karpenter.settings import Settings
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL

HOURS_PER_MONTH: Final = 730


def plan_karpenter(given: Given, settings: Settings, clock: Clock, *, is_bounded: bool = True) -> dict[str, Any]:
    """What Karpenter would do; ``solveMs`` is the time of the solve alone.

    ``is_bounded``: whether to tell, where the extra ``optimal`` is installed, what any plan costs at least.
    """
    options = solve_options(settings)
    problem = given.problem(options)
    solver = Solver(problem)
    started_s = clock.monotonic()
    results = solver.solve(problem.pods)
    solve_s = clock.monotonic() - started_s
    values = {
        **solve_values(given, results),
        "solveMs": round(solve_s * 1000, 3),
    }
    if is_bounded:
        values |= bound_values(problem, results.price_usd_per_hour, results.errors)
    if not given.wants_disruption:
        return {**values, **cluster_values(given, values, 0.0)}
    gate = settings.feature_gates.spot_to_spot_consolidation
    disruption = disrupt(given, options, spot_to_spot=gate if given.spot_to_spot is None else given.spot_to_spot)
    values |= disruption.values(given.listed_types)
    values["nodes"] = disruption.nodes()
    saved = disruption.commands[0].savings if disruption.commands else 0.0
    return {**values, **cluster_values(given, values, saved)}


def solve_options(settings: Settings) -> SolveOptions:
    """The settings that a solve looks at."""
    return SolveOptions(
        preference_policy="Respect" if settings.respects_preferences else "Ignore",
        min_values_policy="Strict" if settings.min_values_policy == "Strict" else "BestEffort",
        reserved_capacity=settings.feature_gates.reserved_capacity,
        ignore_dra_requests=settings.ignore_dra_requests,
        default_spread_constraints=settings.default_spread_constraints,
    )


def cluster_values(given: Given, values: dict[str, Any], saved: float) -> dict[str, Any]:
    """What is told of a cluster, and would be noise beside a problem by itself."""
    if given.is_case:
        return {}
    before = 0.0
    for node in given.nodes:
        labels = node.labels
        one = given.catalog.by_name.get(labels.get(INSTANCE_TYPE_LABEL, ""))
        before += offering_price(one, labels.get(ZONE_LABEL, ""), labels.get(CAPACITY_TYPE_LABEL, ""))
    after = before + values["totalPrice"] - saved
    price = {
        "perHourBefore": before, "perHourAfter": after,
        "perMonthBefore": before * HOURS_PER_MONTH, "perMonthAfter": after * HOURS_PER_MONTH,
    }  # fmt: skip
    return {"price": price, "notes": list(given.notes)}
