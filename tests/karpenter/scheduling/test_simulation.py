from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.pricing.instance_types import Offering
from tests.karpenter.scheduling.builders import (
    HOST,
    ZONE,
    failed,
    instance_type,
    placed,
    pod,
    pods,
    pool,
    problem,
    required_pods,
    solve,
    spread,
    state_node,
)

INITIALIZED = {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
NEW_YEAR_S = 1_767_225_600.0


def _on(results: Any) -> dict[str, list[str]]:
    return {name: [one["metadata"]["name"] for one in found] for name, found in results.existing.items()}


def test_pods_of_a_node_that_goes_move_to_others_or_to_a_new_one() -> None:
    nodes = [state_node("a", bound=pods(2, "a", cpu="1")), state_node("b", cpu="3", bound=[pod("b", "1")])]
    simulation = Simulation(problem([], state_nodes=nodes))
    assert _on(simulation.simulate(["a"], nodes[0].pods)) == {"b": ["a0", "a1"]}
    both = simulation.simulate(["a", "b"], [*nodes[0].pods, *nodes[1].pods])
    assert placed(both) == [["a0", "a1", "b"]]
    assert not simulation.simulate(["b"]).new_claims


def test_pods_that_look_for_a_place_anyway_are_placed_too() -> None:
    nodes = [state_node("a", bound=[pod("a", "1")]), state_node("b", cpu="1")]
    going = state_node("gone", bound=[pod("leaving", "500m")], is_marked=True)
    given = problem([pod("pending", "500m"), *going.pods], state_nodes=[*nodes, going])
    results = Simulation(given).simulate(["a"], nodes[0].pods)
    # The larger pod takes what is left of b, and the others share a new node.
    assert _on(results) == {"b": ["a"]} and placed(results) == [["leaving", "pending"]]


def test_a_node_that_is_unknown_or_going_already_cannot_be_left_out() -> None:
    simulation = Simulation(problem([], state_nodes=[state_node("a", is_marked=True)]))
    for name in ("a", "b"):
        with pytest.raises(ValueError, match=f"node {name} cannot be left out"):
            simulation.simulate([name])


def test_pods_that_move_do_not_count_where_they_were() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    web = [pod(f"w{n}", "100m", app="web", affinity=apart) for n in range(2)]
    nodes = [state_node("a", bound=web[:1]), state_node("b", bound=web[1:]), state_node("c")]
    simulation = Simulation(problem([], state_nodes=nodes))
    assert _on(simulation.simulate(["a"], nodes[0].pods)) == {"c": ["w0"]}
    assert placed(simulation.simulate(["a", "c"], nodes[0].pods)) == [["w0"]]
    assert _on(simulation.simulate(["a"], nodes[0].pods)) == {"c": ["w0"]}


def test_a_zone_that_only_a_node_that_goes_knew_of_is_forgotten() -> None:
    constraint = spread(ZONE, "web", minDomains=4)
    moving = pod("w", "100m", app="web", topologySpreadConstraints=[constraint])
    other = pod("x", "100m", app="web")
    far = state_node("far", zone="zone-far", bound=[moving])
    near = state_node("near", zone="zone-a", bound=[other])
    simulation = Simulation(problem([], state_nodes=[far, near]))
    results = simulation.simulate(["far"], far.pods)
    # Three zones are left, fewer than asked for, so that a zone counts as empty and zone-a may not get a second pod.
    assert not _on(results)
    assert [claim.requirements[ZONE].values for claim in results.new_claims] == [{"zone-b"}]


def test_what_nodes_that_go_had_is_given_back_to_the_limit_of_their_pool() -> None:
    node = state_node("a", cpu="8", bound=[pod("a", "7")])
    simulation = Simulation(problem([], pools=[pool(limits={"cpu": "8"})], state_nodes=[node]))
    assert placed(simulation.simulate(["a"], node.pods)) == [["a"]]


def test_a_place_on_a_node_that_has_not_come_up_does_not_count_except_for_pods_on_their_way() -> None:
    nodes = [state_node("a", bound=[pod("a", "1")]), state_node("coming", is_initialized=False)]
    going = state_node("gone", bound=[pod("leaving", "1")], is_marked=True)
    results = Simulation(problem(list(going.pods), state_nodes=[*nodes, going])).simulate(["a"], nodes[0].pods)
    assert _on(results) == {"coming": ["a", "leaving"]}
    assert failed(results) == {"a"}
    assert "uninitialized nodeclaim/claim-coming, node/coming" in results.errors["default/a"]


def test_consolidation_does_not_move_pods_to_a_node_that_changed_just_now() -> None:
    status = {"conditions": [INITIALIZED], "lastPodEventTime": "2026-01-01T00:00:00Z"}
    nodes = [state_node("a", bound=[pod("a", "1")]), state_node("b", claim_status=status)]
    pools = [pool(consolidate_after="60s")]

    def moved_at(seconds: float, **more: Any) -> bool:
        given = problem([], pools=pools, state_nodes=nodes, now_s=NEW_YEAR_S + seconds)
        return bool(Simulation(given).simulate(["a"], nodes[0].pods, **more).existing)

    assert not moved_at(59.0)
    assert moved_at(60.0)
    assert moved_at(59.0, is_consolidation=False)


def test_pending_pods_may_use_a_node_that_changed_just_now() -> None:
    status = {"conditions": [INITIALIZED]}
    node = state_node("b", claim_status=status)
    pending = {**pod("p"), "status": {"phase": "Pending"}}
    given = problem([pending], pools=[pool(consolidate_after="60s")], state_nodes=[node], now_s=NEW_YEAR_S)
    assert _on(Simulation(given).simulate([])) == {"b": ["p"]}


def test_a_pod_that_may_not_move_there_does_not_speak_for_a_pending_one_like_it() -> None:
    nodes = [state_node("a", bound=[pod("a", uid="1")]), state_node("b", claim_status={"conditions": [INITIALIZED]})]
    pending = {**pod("p", uid="2"), "status": {"phase": "Pending"}}
    pools = [pool(consolidate_after="60s", limits={"cpu": "0"})]
    given = problem([pending], pools=pools, state_nodes=nodes, now_s=NEW_YEAR_S)
    results = Simulation(given).simulate(["a"], nodes[0].pods)
    assert _on(results) == {"b": ["p"]} and failed(results) == {"a"}


def test_a_simulation_does_not_wait_for_reserved_capacity() -> None:
    given = problem([], options=SolveOptions(reserved_mode="strict"))
    assert Simulation(given).problem.options.reserved_mode == "fallback"
    assert Simulation(replace(given, options=SolveOptions(preference_policy="Ignore"))).problem.options == SolveOptions(
        preference_policy="Ignore", reserved_mode="fallback", timeout_s=None
    )


def test_pods_that_move_take_something_else_where_reserved_capacity_runs_out() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    web = [pod(f"w{n}", "1", app="web", affinity=apart) for n in range(2)]
    nodes = [state_node(name, bound=[one]) for name, one in zip("ab", web, strict=True)]
    places = [Offering("zone-a", "on-demand", 4.0), Offering("zone-a", "reserved", 0.01, True, "r-1", 1)]
    types = [instance_type("m-4", 4, offerings=places)]
    given = problem([], types=types, state_nodes=nodes, options=SolveOptions(reserved_mode="strict"))
    results = Simulation(given).simulate(["a", "b"], web)
    assert len(results.new_claims) == 2 and not results.failed
    assert [one.is_reserved for one in solve(web, types=types).failed.values()] == [True]
