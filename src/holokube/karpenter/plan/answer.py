"""Plans as values for ``-o json`` and ``-o yaml``: claims, placements, commands."""

from __future__ import annotations

from typing import Any, Final

from holokube.karpenter.api.labels import INITIALIZED_LABEL, REGISTERED_LABEL
from holokube.karpenter.disruption.types import Candidate, Command
from holokube.karpenter.plan.given import Given
from holokube.karpenter.scheduling.problem import pod_key
from holokube.karpenter.scheduling.results import PlannedClaim, Results
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement
from holokube.kube.resources import to_json

_SIMULATED: Final = (INITIALIZED_LABEL, REGISTERED_LABEL)
"""Every node gets them in the end, so templates are treated as if they had them."""


def solve_values(given: Given, results: Results) -> dict[str, Any]:
    """Where all pods go, and what that costs."""
    on_new = sum(len(claim.pods) for claim in results.new_claims)
    on_existing = sum(map(len, results.existing.values()))
    return {
        "newNodeClaims": [claim_values(claim, given.listed_types) for claim in results.new_claims],
        "existingNodes": {name: [pod_key(pod) for pod in pods] for name, pods in results.existing.items()},
        "podErrors": results.errors,
        "totalPrice": results.price_usd_per_hour,
        "summary": {
            "pods": len(given.pods) + len(given.leaving_pods),
            "newNodes": len(results.new_claims),
            "podsOnNew": on_new,
            "podsOnExisting": on_existing,
            "unschedulable": len(results.errors),
        },
        "timedOut": results.timed_out,
    }


def claim_values(claim: PlannedClaim, listed: int | None = None) -> dict[str, Any]:
    """A claim to be made; it would launch as its cheapest instance type."""
    names = [one.name for one in claim.instance_types]
    best = claim.cheapest()
    return {
        "nodePool": claim.pool.name,
        "instanceType": best[0].name if best else "",
        "zone": best[1].zone if best else "",
        "capacityType": best[1].capacity_type if best else "",
        "price": best[1].price_usd_per_hour if best else 0.0,
        "numInstanceTypeOptions": len(names),
        "instanceTypeOptions": names if listed is None else names[:listed],
        "requirements": _requirement_texts(claim),
        "requests": to_json(claim.requests),
        "pods": [pod_key(pod) for pod in claim.pods],
    }


def _requirement_texts(claim: PlannedClaim) -> list[str]:
    simulated = {key: Requirement.new(key, "In", ("true",)) for key in _SIMULATED}
    found = {**simulated, **claim.requirements}
    return sorted(str(one) for key, one in found.items() if key != HOSTNAME_LABEL)


def candidate_values(candidate: Candidate) -> dict[str, float]:
    """What disrupting a node costs, and saves."""
    return {
        "disruptionCost": candidate.disruption_cost,
        "price": candidate.price,
        "rescheduleCost": candidate.reschedule_cost,
        "ratio": candidate.ratio,
    }


def command_values(command: Command, listed: int | None = None) -> dict[str, Any]:
    """Nodes to delete or replace."""
    return {
        "method": command.method,
        "reason": str(command.reason),
        "decision": str(command.decision),
        "candidates": list(command.names),
        "replacements": [claim_values(claim, listed) for claim in command.replacements],
        "estimatedSavings": command.savings,
    }
