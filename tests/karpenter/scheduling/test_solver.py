"""Existing nodes, limits, reserved capacity, time-outs and what is said about pods without a place."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.karpenter.scheduling.solver import Solver
from holokube.kube.requirements import Requirement
from holokube.kube.resources import parse_resources
from holokube.pricing.instance_types import RESERVATION_ID_LABEL, Offering
from tests.karpenter.scheduling.builders import (
    CAPACITY,
    HOST,
    TYPE,
    ZONE,
    failed,
    instance_type,
    need,
    placed,
    pod,
    pods,
    pool,
    preferred_nodes,
    problem,
    required_nodes,
    required_pods,
    solve,
    state_node,
)


def _on(results: Any) -> dict[str, list[str]]:
    return {name: [one["metadata"]["name"] for one in found] for name, found in results.existing.items()}


def test_nodes_that_are_there_are_filled_first_in_order_of_their_names() -> None:
    nodes = [state_node("b", cpu="2"), state_node("a", cpu="1"), state_node("c", cpu="8", is_marked=True)]
    results = solve(pods(4, cpu="1"), state_nodes=nodes)
    assert _on(results) == {"a": ["p0"], "b": ["p1", "p2"]}
    assert placed(results) == [["p3"]]


def test_nodes_that_have_come_up_are_filled_before_those_on_their_way() -> None:
    nodes = [state_node("a", is_initialized=False), state_node("b")]
    assert _on(solve(pods(1), state_nodes=nodes)) == {"b": ["p0"]}


def test_a_node_on_its_way_takes_pods_in_spite_of_its_startup_taints() -> None:
    keys = ("starting", "node.kubernetes.io/not-ready")
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    coming = state_node("a", is_initialized=False, taints=taints, startup_taints=taints[:1])
    assert _on(solve(pods(1), state_nodes=[coming])) == {"a": ["p0"]}
    assert not _on(solve(pods(1), state_nodes=[state_node("a", taints=taints, startup_taints=taints)]))


def test_room_for_daemons_that_have_not_come_yet_is_kept() -> None:
    daemon = pod("d", "1500m")
    there = pod("d-x", "1500m")
    there["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}]
    wanted = pods(1, cpu="2")
    assert _on(solve(wanted, state_nodes=[state_node("n", cpu="3")])) == {"n": ["p0"]}
    assert not _on(solve(wanted, state_nodes=[state_node("n", cpu="3")], daemon_pods=[daemon]))
    served = state_node("n", cpu="3500m", bound=[there])
    assert _on(solve(wanted, state_nodes=[served], daemon_pods=[daemon])) == {"n": ["p0"]}


def test_ports_and_labels_of_nodes_are_respected() -> None:
    nodes = [state_node("a", bound=[pod("x", "100m", ports=[80])]), state_node("b", labels={"disk": "fast"})]
    assert _on(solve(pods(1, ports=[80]), state_nodes=nodes)) == {"b": ["p0"]}
    assert _on(solve(pods(1, nodeSelector={"disk": "fast"}), state_nodes=nodes)) == {"b": ["p0"]}
    # A node must have the label: that it could have one does not help.
    assert not _on(solve(pods(1, nodeSelector={TYPE: "m-4"}), state_nodes=nodes))


def test_a_node_with_less_than_nothing_left_takes_nothing() -> None:
    crowded = state_node("n", cpu="4", memory="1Gi", bound=[pod("x", "100m", "2Gi")])
    assert not _on(solve([pod("p", "100m", "0")], state_nodes=[crowded]))


def test_a_pod_that_names_a_node_is_never_put_on_a_new_one() -> None:
    on_a = required_nodes([need(HOST, "In", "a")])
    assert _on(solve([pod("p", affinity=on_a)], state_nodes=[state_node("a")])) == {"a": ["p"]}
    assert failed(solve([pod("p", affinity=on_a)])) == {"p"}
    assert not failed(solve([pod("p", affinity=required_nodes([need(HOST, "NotIn", "a")]))]))


def test_what_nodes_have_counts_against_the_limits_of_their_pool() -> None:
    wanted = pods(1, cpu="3")
    full = state_node("n", cpu="6", bound=[pod("x", "5")])
    assert not failed(solve(wanted, pools=[pool(limits={"cpu": "10"})], state_nodes=[full]))
    assert failed(solve(wanted, pools=[pool(limits={"cpu": "9"})], state_nodes=[full])) == {"p0"}
    assert not failed(solve(wanted, pools=[pool(limits={"cpu": "9"}), pool("other")], state_nodes=[full]))


def test_a_limit_on_nodes_holds_only_for_those_that_are_there() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    wanted = pods(3, app="web", affinity=apart)
    assert len(failed(solve(wanted, pools=[pool(limits={"nodes": "0"})]))) == 3
    # Within one run new nodes are not counted, as upstream has it.
    assert not failed(solve(wanted, pools=[pool(limits={"nodes": "1"})]))
    there = state_node("n", cpu="100m")
    assert len(failed(solve(wanted, pools=[pool(limits={"nodes": "1"})], state_nodes=[there]))) == 3


def test_options_are_ordered_by_price_and_the_cheapest_is_what_would_be_launched() -> None:
    cheap = instance_type("cheap", 4, price=1.0, spot=True)
    types = [instance_type("dear", 4, price=9.0), cheap, instance_type("mid", 4)]
    claim = solve(pods(1), types=types).new_claims[0]
    assert [one.name for one in claim.instance_types] == ["cheap", "mid", "dear"]
    found = claim.cheapest()
    assert found is not None and (found[0].name, found[1].capacity_type) == ("cheap", "spot")
    assert claim.price_usd_per_hour == 0.5
    only = claim.narrowed(Requirement.new(CAPACITY, "In", ["on-demand"])).with_types(types[:2])
    assert only.price_usd_per_hour == 1.0


def test_no_more_types_than_a_launch_takes_are_listed_and_min_values_must_hold_among_them() -> None:
    types = [instance_type(f"t{n}", 4, price=float(n + 1), family=f"f{n}") for n in range(5)]
    options = SolveOptions(max_instance_types=2)
    assert len(solve(pods(1), types=types, options=options).new_claims[0].instance_types) == 2
    flexible = [pool(requirements=[need(TYPE, "Exists", min_values=3)])]
    results = solve(pods(1), pools=flexible, types=types, options=options)
    assert not results.new_claims and "minValues" in results.errors["default/p0"]


def _reserved(slots: int, *, also: tuple[str, ...] = ("on-demand",)) -> list[Any]:
    places = [Offering("zone-a", kind, 4.0) for kind in also]
    places.append(Offering("zone-a", "reserved", 0.01, True, "r-1", slots))
    return [instance_type("m-4", 4, offerings=places)]


def test_reserved_capacity_is_taken_first_and_no_more_than_there_is() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    wanted = pods(2, app="web", affinity=apart)
    strict = solve(wanted, types=_reserved(1))
    assert len(strict.new_claims) == 1 and len(failed(strict)) == 1
    assert strict.new_claims[0].requirements[CAPACITY].values == {"reserved"}
    assert strict.new_claims[0].requirements[RESERVATION_ID_LABEL].values == {"r-1"}
    assert all(error.is_reserved for error in strict.failed.values())
    fallback = solve(wanted, types=_reserved(1), options=SolveOptions(reserved_mode="fallback"))
    assert len(fallback.new_claims) == 2
    assert sorted(CAPACITY in claim.requirements for claim in fallback.new_claims) == [False, True]


def test_a_full_reservation_neither_blocks_nor_prices() -> None:
    claim = solve(pods(1), types=_reserved(0)).new_claims[0]
    assert claim.price_usd_per_hour == 4.0 and CAPACITY not in claim.requirements


def test_where_only_a_full_reservation_is_left_pods_wait_or_another_pool_is_tried() -> None:
    pools = [pool("first", weight=9), pool("second")]
    types = {"first": _reserved(0, also=()), "second": [instance_type("m-4", 4)]}
    strict = solve(pods(1), pools=pools, types=types)
    assert [error.is_reserved for error in strict.failed.values()] == [True]
    fallback = solve(pods(1), pools=pools, types=types, options=SolveOptions(reserved_mode="fallback"))
    assert [claim.pool.name for claim in fallback.new_claims] == ["second"]


def test_a_pod_that_waits_for_reserved_capacity_keeps_its_wishes() -> None:
    wish = preferred_nodes((1, need(CAPACITY, "In", "reserved")))
    apart = required_pods("podAntiAffinity", HOST, "web")
    results = solve(pods(2, app="web", affinity={**wish, **apart}), types=_reserved(1))
    assert len(results.new_claims) == 1 and len(results.failed) == 1


def test_reserved_capacity_that_a_node_about_to_go_frees_can_be_credited() -> None:
    options = SolveOptions(reservation_credit={"r-1": 1})
    results = solve(pods(1), types=_reserved(0, also=()), options=options)
    assert [claim.requirements[CAPACITY].values for claim in results.new_claims] == [{"reserved"}]


def test_with_the_gate_off_reservations_are_offerings_like_others() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    options = SolveOptions(reserved_capacity=False)
    results = solve(pods(2, app="web", affinity=apart), types=_reserved(1), options=options)
    assert len(results.new_claims) == 2 and CAPACITY not in results.new_claims[0].requirements


def test_what_was_placed_before_it_got_late_stays_and_the_rest_is_not_blamed() -> None:
    calls = iter([False, False, True])
    results = Solver(problem(pods(5, cpu="7"))).solve(is_late=lambda: next(calls))
    assert len(results.new_claims) == 2 and not results.failed and results.timed_out


def test_only_some_pods_can_be_asked_for() -> None:
    given = pods(3)
    solver = Solver(problem(given))
    assert placed(solver.solve(given[:1])) == [["p0"]]
    assert placed(solver.solve()) == [["p0", "p1", "p2"]] == placed(solver.solve())


def test_pods_with_resource_claims_are_refused() -> None:
    results = solve([pod("p", resourceClaims=[{"name": "gpu"}]), pod("q")])
    assert results.failed["default/p"].is_dra and placed(results) == [["q"]]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"nodeSelector": {"team": "x"}}, 'label "team" does not have known values'),
        ({"nodeSelector": {ZONE: "nowhere"}}, "required offering"),
        ({"cpu": "99"}, "enough resources"),
        ({"cpu": "6", "nodeSelector": {TYPE: "m-4"}}, "has enough resources"),
        ({"affinity": required_pods("podAffinity", ZONE, "missing")}, "topology constraint"),
    ],
)  # fmt: skip
def test_why_a_pod_has_no_place_is_said_for_each_pool(more: dict[str, Any], words: str) -> None:
    results = solve([pod("p", **more)], pools=[pool("one"), pool("two")])
    (reason,) = results.errors.values()
    assert reason.count(words) == 2 and "NodePool one: " in reason and "NodePool two: " in reason


def test_why_taints_limits_and_missing_pools_stand_in_the_way_is_said() -> None:
    tainted = pool("tainted", taints=[{"key": "x", "effect": "NoSchedule"}])
    assert "did not tolerate taint x:NoSchedule" in solve(pods(1), pools=[tainted]).errors["default/p0"]
    assert "limits" in solve(pods(1), pools=[pool(limits={"cpu": "0"})]).errors["default/p0"]
    assert solve(pods(1), pools=[]).errors == {"default/p0": "no NodePool found"}
    assert "instance types" in solve(pods(1), types=()).errors["default/p0"]


def test_pods_without_requests_count_as_pods() -> None:
    tiny = [instance_type("tiny", 1, pods=2)]
    bare = [{**pod(f"p{n}"), "spec": {"containers": [{"name": "c"}]}} for n in range(3)]
    results = solve(bare, types=tiny)
    assert sorted(map(len, placed(results))) == [1, 2]
    assert results.new_claims[0].requests in (parse_resources({"pods": "1"}), parse_resources({"pods": "2"}))
