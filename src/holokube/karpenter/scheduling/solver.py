"""The solver: which nodes to make for pending pods, and which pods the nodes that are there can take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.explanations import explain
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.open_claims import OpenClaim
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PlannedClaim, PodError, Results
from holokube.karpenter.scheduling.solve_run import Failure, SolveRun, queued
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, Requirement, Requirements
from holokube.kube.resources import ResourceVector, add
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import RESERVATION_ID_LABEL, RESERVED, InstanceType


class Solver:
    """Solves one problem. ``solve`` may be called again, and gives the same answer for the same pods."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        standing = problem.standing.ground(problem) if problem.standing is not None else None
        self.ground = standing or Groundwork(problem)

    def solve(
        self, pods: Sequence[JsonObject] | None = None, *, is_late: Callable[[], bool] | None = None
    ) -> Results:
        """Place the problem's pods, or only some of them. ``is_late`` ends the search; what was placed stays."""
        return without_pauses(self.steps(pods, is_late=is_late))

    def steps(
        self, pods: Sequence[JsonObject] | None = None, *, is_late: Callable[[], bool] | None = None
    ) -> Steps[Results]:
        """The same pod by pod."""
        ground = self.ground
        wanted = ground.pods if pods is None else [ground.defaults.applied(pod) for pod in pods]
        waiting, refused = queued(ground, wanted)
        run = SolveRun(ground, waiting)
        yield from run.steps(is_late)
        return results_of(ground, run, refused)


def results_of(ground: Groundwork, run: SolveRun, refused: dict[str, tuple[JsonObject, str]]) -> Results:
    """What a finished run amounts to."""
    failed = {pod_key(pod): PodError(pod, reason) for pod, reason in refused.values()}
    reasons: dict[Failure, str] = {}
    for pod, failure in run.failures.values():
        reason = reasons.get(failure) or reasons.setdefault(failure, explain(ground, run, failure))
        failed[pod_key(pod)] = PodError(pod, reason, bool(failure.reserved), failure.is_dra)
    claims = []
    types_of: dict[int, tuple[InstanceType, ...]] = {}
    for number in run.board.order.claims.tolist():
        opened = run.board.claims[number]
        # Claims that were opened alike share the very array of their rows.
        types = types_of.get(id(opened.rows)) or types_of.setdefault(id(opened.rows), tuple(opened.types))
        claim = planned(ground, opened, types)
        if _is_flexible_enough(ground.problem, claim):
            claims.append(claim)
            continue
        reason = f"the instance types that NodePool {claim.pool.name} has left do not meet its minValues"
        failed.update((pod_key(pod), PodError(pod, reason)) for pod in claim.pods)
    existing = {ground.nodes.nodes[row].name: pods for row, pods in sorted(run.nodes.pods.items())}
    return Results(claims, existing, failed, run.timed_out)


def _is_flexible_enough(problem: Problem, claim: PlannedClaim) -> bool:
    """Whether ``minValues`` still hold with no more types than a launch takes."""
    if problem.options.min_values_policy == "BestEffort" or not claim.requirements.has_min_values:
        return True
    return not claim.unmet_min_values()


def planned(ground: Groundwork, claim: OpenClaim, types: tuple[InstanceType, ...]) -> PlannedClaim:
    """An open claim as it leaves the solver."""
    requirements = claim.state.requirements
    if claim.reserved:
        requirements = _reserved_only(requirements, claim)
    return PlannedClaim(
        pool=claim.template.pool,
        requirements=requirements,
        candidate_types=types,
        pods=tuple(claim.pods),
        requests=add(_vector(ground, claim), claim.template.least_overhead(types)),
        well_known=ground.problem.well_known,
        min_values_relaxed=claim.min_values_relaxed,
        max_instance_types=ground.problem.options.max_instance_types,
    )


def _reserved_only(requirements: Requirements, claim: OpenClaim) -> Requirements:
    ids = {offering.reservation_id for offering in claim.reserved}
    return requirements.without(CAPACITY_TYPE_LABEL).adding(
        Requirement.new(CAPACITY_TYPE_LABEL, "In", (RESERVED,)), Requirement.new(RESERVATION_ID_LABEL, "In", ids)
    )


def _vector(ground: Groundwork, claim: OpenClaim) -> ResourceVector:
    return {name: milli for name, column in ground.columns.items() if (milli := int(claim.used[column]))}
