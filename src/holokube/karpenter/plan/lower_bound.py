"""How far a plan is from the cheapest possible, where the library that can tell is installed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from holokube.karpenter.optimal.solver_library import is_installed
from holokube.karpenter.scheduling.problem import Problem, pod_key


def bound_values(problem: Problem, price: float, errors: Collection[str]) -> dict[str, Any]:
    """The price that no plan for the same pods can be below, and by which share this one is above it."""
    if not problem.pods or not is_installed():
        return {}
    # Imported here: whoever has not installed the extra can plan all the same.
    from holokube.karpenter.optimal.planning import lower_bound

    placed = {pod_key(pod) for pod in problem.pods} - set(errors)
    bound = lower_bound(problem, placed=placed)
    return {
        "lowerBound": bound.price_usd_per_hour,
        "gap": bound.gap(price),
        "boundBy": bound.how,
    }
