"""The checker sees the same in the solver's own objects as in files."""

from __future__ import annotations

from typing import Any

from holokube.karpenter.plan.case import read_case
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.karpenter.scheduling.results import PlannedClaim, PodError, Results
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, ZONE_LABEL, Requirement
from holokube.kube.resources import total_of
from holokube.pricing.catalog_files import catalog_from_json
from tests.karpenter.checker_inputs import check_placements, check_results
from tests.karpenter.plan.clusters import CATALOG, node, node_pool, pod

Json = dict[str, Any]


def _problem(pods: list[Json], *, existing: list[Json] | None = None, **pool: Any) -> Problem:
    case = {"nodePools": [node_pool(**pool)], "pods": pods, "existingNodes": existing or []}
    return read_case(case, "case", catalog_from_json(CATALOG)).problem(SolveOptions())


def _claim(problem: Problem, pods: list[Json], *types: str, zone: str = "zone-a") -> PlannedClaim:
    pool = problem.pools[0]
    offered = [one for one in problem.types_of_pool[pool.name] if one.name in types]
    wanted = pool.template_requirements.adding(
        Requirement.new(ZONE_LABEL, "In", (zone,)), Requirement.new(CAPACITY_TYPE_LABEL, "In", ("on-demand",)))
    return PlannedClaim(pool, wanted, offered, tuple(pods), total_of(()), problem.well_known)


def _rules(problem: Problem, *claims: PlannedClaim, **existing: list[Json]) -> set[str]:
    return {violation.rule for violation in check_placements(problem, claims, existing)}


def test_a_good_plan_has_no_violations() -> None:
    pods = [pod("x"), pod("y")]
    made, claim = node("a")
    problem = _problem(pods, existing=[{"node": made, "nodeClaim": claim}])
    planned = _claim(problem, pods[:1], "small", "large")
    assert check_placements(problem, [planned], {"a": pods[1:]}) == []
    assert check_results(problem, Results([planned], {"a": pods[1:]}, {})) == []


def test_a_pod_with_a_place_and_an_error_is_found() -> None:
    pods = [pod("x")]
    problem = _problem(pods)
    failed = {"default/x": PodError(pods[0], "no")}
    found = check_results(problem, Results([_claim(problem, pods, "small")], {}, failed))
    assert [violation.rule for violation in found] == ["pods"]


def test_too_much_is_found_on_new_and_on_old_nodes() -> None:
    pods = [pod("x", cpu="1950m")]
    made, claim = node("a", cpu="2")
    problem = _problem(pods, existing=[{"node": made, "nodeClaim": claim, "pods": [pod("there", "a", cpu="100m")]}])
    assert _rules(problem, _claim(problem, pods, "small")) == {"resources"}
    assert _rules(problem, _claim(problem, pods, "medium")) == set()
    assert _rules(problem, a=pods) == {"resources"}


def test_the_pod_counts_as_it_was_given_and_not_as_it_was_relaxed() -> None:
    pods = [pod("x", nodeSelector={ZONE_LABEL: "zone-b"})]
    problem = _problem(pods)
    relaxed = {**pods[0], "spec": {"containers": pods[0]["spec"]["containers"]}}
    assert _rules(problem, _claim(problem, [relaxed], "small", zone="zone-b")) == set()
    assert _rules(problem, _claim(problem, [relaxed], "small", zone="zone-a")) == {"node-affinity"}


def test_a_pod_that_moves_does_not_count_where_it_was() -> None:
    there = pod("x", "a", cpu="1900m")
    made, claim = node("a", cpu="2")
    problem = _problem([there], existing=[{"node": made, "nodeClaim": claim, "pods": [there]}])
    assert _rules(problem, a=[there]) == set()


def test_limits_and_minimums_are_those_of_the_pool() -> None:
    pods = [pod("x")]
    limited = _problem(pods, limits={"cpu": "3"})
    assert _rules(limited, _claim(limited, pods, "small", "medium")) == {"limits"}
    wish = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}
    flexible = _problem(pods, requirements=[wish])
    assert _rules(flexible, _claim(flexible, pods, "small")) == {"min-values"}
    assert _rules(flexible, _claim(flexible, pods, "small", "medium")) == set()
