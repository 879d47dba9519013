"""Global consolidation as a method: commands keep budgets and blockers, and are held against the cluster again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.types import Command
from holokube.karpenter.disruption.validation import Rejection, RejectionKind, validate
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.optimal.global_consolidation import GlobalMove, MoveLimits, MovingReading
from holokube.karpenter.optimal.global_method import (
    LARGE,
    MOST_ROUNDS,
    MOST_WORK,
    REHEARSED,
    GlobalConsolidation,
    limits_for,
    peace_s,
)
from holokube.karpenter.optimal.global_method import LIMITS as USUAL
from holokube.karpenter.optimal.kept_plan import PlanBook, PlanKeeper, with_waiting
from holokube.karpenter.pausing import Steps
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.disruption import clusters
from tests.karpenter.optimal import batches

LIMITS = MoveLimits(rounds=20, work=20_000_000, least_saving=0.02, slack=0.02)


def cluster_of(shape: clusters.Shape, nodes: int = 24, **changes: object) -> clusters.Cluster:
    return clusters.build(5, replace(shape, nodes=nodes, types=60, **changes))  # type: ignore[arg-type] # any field


def view_of(given: clusters.Cluster, book: PlanBook, nodes: tuple[StateNode, ...] | None = None) -> DisruptionView:
    there = given.nodes if nodes is None else nodes
    problem = Problem(given.pools, given.types_of_pool, state_nodes=there, now_s=clusters.NOW_S)
    return DisruptionView(
        clusters.NOW_S, there, {pool.name: pool for pool in given.pools}, given.types_of_pool,
        PlanKeeper(problem, book), problem=lambda: problem,
    )  # fmt: skip


def decided(given: clusters.Cluster, limits: MoveLimits = LIMITS) -> tuple[Command, GlobalConsolidation, PlanBook]:
    book = PlanBook()
    method = GlobalConsolidation(book, limits)
    view = view_of(given, book)
    command = method.compute(view, Memory()).command
    assert command is not None and command.results is not None and view.problem is not None
    problem, gone = view.problem(), set(command.names)
    after = replace(
        problem,
        state_nodes=[replace(node, is_marked=True) if node.name in gone else node for node in problem.state_nodes],
        pods=[pod for one in command.candidates for pod in one.movable_pods],
    )
    assert check_placements(after, list(command.replacements), command.results.existing) == []
    new = sum(claim.price_usd_per_hour for claim in command.replacements)
    assert command.savings == pytest.approx(sum(one.price for one in command.candidates) - new)
    assert command.savings > 0
    return command, method, book


@pytest.mark.parametrize("limits", [LIMITS, REHEARSED], ids=["planned", "rehearsed"])
@pytest.mark.parametrize("shape", [clusters.PLAIN, clusters.CONSTRAINED])
def test_a_command_saves_money_keeps_every_rule_and_stands_a_second_look(
    shape: clusters.Shape, limits: MoveLimits
) -> None:
    given = cluster_of(shape)
    command, method, book = decided(given, limits)
    assert len(command.candidates) > 1
    assert validate(command, method, view_of(given, book)) is command


def test_the_same_cluster_leads_to_the_same_command() -> None:
    one, two = (decided(cluster_of(clusters.PLAIN))[0] for _ in range(2))
    assert one.names == two.names
    assert [sorted(map(pod_key, claim.pods)) for claim in one.replacements] == [
        sorted(map(pod_key, claim.pods)) for claim in two.replacements
    ]


def test_budgets_and_the_size_of_a_command_are_kept() -> None:
    command, _, _ = decided(cluster_of(clusters.PLAIN, budgets=({"nodes": "3"},)))
    assert len(command.candidates) <= 3
    command, _, _ = decided(cluster_of(clusters.PLAIN), replace(LIMITS, most_removed=5))
    assert len(command.candidates) <= 5


def test_a_command_that_saves_too_little_of_the_whole_is_none() -> None:
    given, book = cluster_of(clusters.PLAIN), PlanBook()
    outcome = GlobalConsolidation(book, replace(LIMITS, least_share=0.99)).compute(view_of(given, book), Memory())
    assert outcome.command is None


def test_a_budget_of_nothing_lets_nothing_go() -> None:
    given, book = cluster_of(clusters.PLAIN, budgets=({"nodes": "0"},)), PlanBook()
    outcome = GlobalConsolidation(book, LIMITS).compute(view_of(given, book), Memory())
    assert outcome.command is None
    assert outcome.memory.settled_at is None, "a budget may change without anything else"


def test_a_pod_that_must_not_be_disrupted_keeps_its_node() -> None:
    given = cluster_of(clusters.PLAIN)
    kept = next(node for node in given.nodes if node.pods)
    annotated = {**kept.pods[0], "metadata": {
        **kept.pods[0]["metadata"], "annotations": {"karpenter.sh/do-not-disrupt": "true"}}}  # fmt: skip
    nodes = tuple(
        replace(node, pods=(annotated, *node.pods[1:])) if node is kept else node for node in given.nodes
    )
    book = PlanBook()
    command = GlobalConsolidation(book, LIMITS).compute(view_of(given, book, nodes), Memory()).command
    assert command is not None
    assert kept.name not in command.names


def test_a_settled_method_does_not_search_again() -> None:
    given = clusters.build(1, replace(clusters.SNUG, nodes=3, types=20, pools=1, constrained=False, fill=0.97))
    book = PlanBook()
    view = view_of(given, book)
    method = GlobalConsolidation(book, replace(LIMITS, least_saving=0.5))
    memory = method.compute(view, Memory()).memory
    assert memory.is_settled(view.mark)
    assert method.compute(replace(view, problem=None), memory).command is None


def test_a_larger_cluster_is_searched_for_longer_within_bounds() -> None:
    assert limits_for(10) == USUAL
    larger, largest = limits_for(120), limits_for(100_000)
    assert USUAL.work < larger.work <= MOST_WORK
    assert USUAL.rounds < larger.rounds <= MOST_ROUNDS
    assert not larger.is_rehearsed
    assert limits_for(LARGE).is_rehearsed
    assert limits_for(400).most_removed == 80
    assert largest.work == limits_for(400).work


def test_after_a_search_pods_have_peace_for_a_while() -> None:
    given, book = cluster_of(clusters.PLAIN), PlanBook()
    method = GlobalConsolidation(book, LIMITS)
    view = view_of(given, book)
    assert method.compute(view, Memory()).command is not None
    assert method.compute(replace(view, now_s=view.now_s + 299), Memory()).command is None
    assert method.compute(replace(view, now_s=view.now_s + 300), Memory()).command is not None


def test_a_cluster_in_which_nothing_is_found_is_searched_with_other_draws_for_longer_and_then_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, book = cluster_of(clusters.PLAIN), PlanBook()
    searched: list[tuple[int, int]] = []

    def in_vain(self: MovingReading, budgets: object, limits: MoveLimits, **_: object) -> Steps[GlobalMove]:
        searched.append((limits.rounds, limits.seed))
        yield
        return GlobalMove((), [], {}, 1.0, 1.0, 1.0)

    monkeypatch.setattr(MovingReading, "best_move", in_vain)
    method = GlobalConsolidation(book, LIMITS)
    view = view_of(given, book)
    for look in range(8):
        method.compute(replace(view, now_s=view.now_s + 300 * look), Memory())
    assert searched == [(LIMITS.rounds * 2**look, look) for look in range(4)]


def test_a_large_cluster_has_peace_for_longer() -> None:
    assert peace_s(LARGE - 1) == 300.0
    assert peace_s(LARGE) == 1800.0


def test_a_plan_whose_room_was_taken_meanwhile_is_rejected() -> None:
    given = cluster_of(clusters.PLAIN)
    command, method, book = decided(given, replace(LIMITS, rounds=0, most_removed=1))
    assert command.results is not None
    receiver = next(iter(command.results.existing), None)
    assert receiver is not None, "the first step moves pods to room that is there"

    def crowded(node: StateNode) -> StateNode:
        if node.name != receiver:
            return node
        late = batches.pod("late", node.allocatable["cpu"], 1, nodeName=receiver)
        return replace(node, pods=(*node.pods, {**late, "status": {"phase": "Running"}}))

    nodes = tuple(crowded(node) for node in given.nodes)
    found = validate(command, method, view_of(given, book, nodes))
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.SCHEDULING


def test_a_plan_for_other_pods_is_rejected() -> None:
    given = cluster_of(clusters.PLAIN)
    command, method, book = decided(given, replace(LIMITS, most_removed=4))
    changed = command.candidates[0].name

    def grown(node: StateNode) -> StateNode:
        if node.name != changed:
            return node
        more = {**node.pods[0], "metadata": {**node.pods[0]["metadata"], "name": "newcomer", "uid": "newcomer"}}
        return replace(node, pods=(*node.pods, more))

    found = validate(command, method, view_of(given, book, tuple(grown(node) for node in given.nodes)))
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.SCHEDULING
    assert "newcomer" in found.message


def test_pods_that_wait_take_the_room_that_is_meant_for_them() -> None:
    given = cluster_of(clusters.PLAIN)
    pod = batches.pod("waiting", 100, 100)
    problem = Problem(given.pools, given.types_of_pool, state_nodes=given.nodes, pods=[pod], now_s=clusters.NOW_S)
    after = with_waiting(problem)
    holders = [node for node in after.state_nodes if any(pod_key(one) == "default/waiting" for one in node.pods)]
    assert len(holders) == 1
    assert not after.pods
    assert with_waiting(after) is after


def test_a_view_without_the_whole_problem_is_refused() -> None:
    given, book = cluster_of(clusters.PLAIN), PlanBook()
    with pytest.raises(ValueError, match="whole problem"):
        GlobalConsolidation(book, LIMITS).compute(replace(view_of(given, book), problem=None), Memory())


def test_pods_that_a_plan_provides_for_are_known_until_they_have_left_their_node() -> None:
    command, _, book = decided(cluster_of(clusters.PLAIN), replace(LIMITS, most_removed=4))
    pod = command.candidates[0].movable_pods[0]
    assert book.provides_for(pod)
    assert not book.provides_for({**pod, "spec": {**pod["spec"], "nodeName": ""}}), "it is pending by then"
    assert not book.provides_for(batches.pod("other", 1, 1, nodeName="somewhere"))
