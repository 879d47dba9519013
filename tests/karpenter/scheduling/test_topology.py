"""What topology groups do beyond the conformance points."""

from __future__ import annotations

from typing import Any

from holokube.karpenter.scheduling.problem import SolveOptions
from tests.karpenter.scheduling.builders import (
    ARCH,
    CAPACITY,
    HOST,
    ZONE,
    failed,
    instance_type,
    need,
    placed,
    pod,
    pods,
    pool,
    preferred_pods,
    required_nodes,
    required_pods,
    selects,
    solve,
    spread,
    state_node,
    zone_counts,
)


def _zones(results: Any) -> list[set[str]]:
    return [set(claim.requirements.of(ZONE).values) for claim in results.new_claims]


def test_pods_that_are_there_count_for_spreading() -> None:
    nodes = [state_node("a", zone="zone-a", cpu="1", bound=pods(2, "there", app="web", cpu="100m"))]
    wanted = pods(2, app="web", cpu="2", topologySpreadConstraints=[spread(ZONE, "web")])
    assert sorted(map(min, _zones(solve(wanted, state_nodes=nodes)))) == ["zone-b", "zone-c"]


def test_pods_that_are_moving_ended_or_ending_do_not_count() -> None:
    there = state_node("a", zone="zone-a", cpu="2", bound=pods(3, "there", app="web", cpu="100m"))
    ended, ending, moving = there.pods
    ended = {**ended, "status": {"phase": "Failed"}}
    ending = {**ending, "metadata": {**ending["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    node = there.with_pods((ended, ending, moving))
    moved = {**moving, "spec": {**moving["spec"], "topologySpreadConstraints": [spread(ZONE, "web")]}}
    fresh = pods(2, app="web", cpu="100m", topologySpreadConstraints=[spread(ZONE, "web")])
    results = solve([moved, *fresh], state_nodes=[node])
    assert [len(found) for found in results.existing.values()] == [1]
    assert zone_counts(results) == [1, 1]


def test_skew_is_measured_over_the_zones_that_a_pod_may_use() -> None:
    only = required_nodes([need(ZONE, "In", "zone-a", "zone-b")])
    wanted = pods(4, app="web", affinity=only, topologySpreadConstraints=[spread(ZONE, "web")])
    assert zone_counts(solve(wanted)) == [2, 2]


def test_fewer_domains_than_asked_for_count_as_an_empty_one() -> None:
    wanted = pods(4, app="web", topologySpreadConstraints=[spread(ZONE, "web", minDomains=5)])
    results = solve(wanted)
    assert zone_counts(results) == [1, 1, 1] and len(failed(results)) == 1


def test_as_many_domains_as_asked_for_are_enough() -> None:
    wanted = pods(4, app="web", topologySpreadConstraints=[spread(ZONE, "web", minDomains=3)])
    assert zone_counts(solve(wanted)) == [2, 1, 1]


def test_a_claim_of_which_a_filter_knows_nothing_does_not_count_even_if_the_key_is_well_known() -> None:
    plain = pod("plain", "2", app="web")
    constraints = [spread(HOST, "web")]
    choosy = pod("choosy", "1", app="web", nodeSelector={ARCH: "amd64"}, topologySpreadConstraints=constraints)
    assert placed(solve([plain, choosy])) == [["plain", "choosy"]]


def test_a_spread_over_capacity_types_narrows_them() -> None:
    types = [instance_type("m", 4, spot=True)]
    wanted = pods(2, app="web", cpu="3", topologySpreadConstraints=[spread(CAPACITY, "web")])
    found = {min(claim.requirements[CAPACITY].values) for claim in solve(wanted, types=types).new_claims}
    assert found == {"on-demand", "spot"}


def test_two_spreads_that_choose_different_zones_leave_none() -> None:
    taken = [
        state_node("a", zone="zone-a", cpu="1", bound=[pod("x", "100m", app="one")]),
        state_node("b", zone="zone-b", cpu="1", bound=[pod("y", "100m", app="one"), pod("z", "100m", app="two")]),
        state_node("c", zone="zone-c", cpu="1", bound=[pod("v", "100m", app="two")]),
    ]
    constraints = [spread(ZONE, "one", skew=5), spread(ZONE, "two", skew=5)]
    # The first would like zone-c best, the second zone-a; each is asked without the other.
    assert failed(solve([pod("p", "2", topologySpreadConstraints=constraints)], state_nodes=taken)) == {"p"}


def test_affinity_follows_pods_that_are_there() -> None:
    nodes = [state_node("b", zone="zone-b", cpu="1", bound=[pod("x", "900m", app="db")])]
    results = solve(pods(2, cpu="3", affinity=required_pods("podAffinity", ZONE, "db")), state_nodes=nodes)
    assert _zones(results) == [{"zone-b"}]


def test_affinity_on_hostnames_stays_on_one_node() -> None:
    wanted = pods(5, cpu="2", app="web", affinity=required_pods("podAffinity", HOST, "web"))
    results = solve(wanted)
    assert [len(names) for names in placed(results)] == [4] and len(failed(results)) == 1


def test_affinity_on_hostnames_stays_on_one_node_for_pods_that_avoid_another_too() -> None:
    elsewhere = required_nodes([need(HOST, "NotIn", "some-node")])
    affinity = {**elsewhere, **required_pods("podAffinity", HOST, "web")}
    results = solve(pods(5, cpu="2", app="web", affinity=affinity))
    assert [len(names) for names in placed(results)] == [4] and len(failed(results)) == 1


def test_a_pod_waits_for_the_one_it_wants_to_be_near() -> None:
    follower = pod("follower", "3", affinity=required_pods("podAffinity", ZONE, "leader"))
    leader = pod("leader", "1", app="leader", nodeSelector={ZONE: "zone-c"})
    results = solve([follower, leader])
    assert not failed(results) and _zones(results) == [{"zone-c"}]


def test_zonal_anti_affinity_blocks_every_zone_that_a_node_may_end_up_in() -> None:
    wanted = pods(2, app="web", cpu="5", affinity=required_pods("podAntiAffinity", ZONE, "web"))
    # The first pod's node may be in any zone, so that the second has to wait until it is known.
    results = solve(wanted)
    assert len(placed(results)) == 1 and len(failed(results)) == 1


def test_anti_affinity_of_a_pod_that_is_there_keeps_others_out() -> None:
    angry = pod("angry", "100m", affinity=required_pods("podAntiAffinity", ZONE, "web"))
    nodes = [state_node("a", zone="zone-a", bound=[angry])]
    results = solve(pods(1, app="web"), state_nodes=nodes)
    assert not results.existing and _zones(results) == [{"zone-b", "zone-c"}]


def test_a_preferred_anti_affinity_holds_as_long_as_it_can() -> None:
    wish = preferred_pods("podAntiAffinity", ZONE, "web")
    results = solve(pods(4, app="web", cpu="1", affinity=wish))
    assert not failed(results)


def test_terms_reach_into_other_namespaces_only_if_they_say_so() -> None:
    there = pod("x", "900m", app="db")
    there["metadata"]["namespace"] = "other"
    nodes = [state_node("b", zone="zone-b", cpu="1", bound=[there])]
    term: dict[str, Any] = {"topologyKey": ZONE, "labelSelector": selects("db")}

    def fails(**more: Any) -> bool:
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **more}]}}
        namespaces = {"default": {}, "other": {"team": "x"}}
        return bool(failed(solve([pod("p", affinity=affinity)], state_nodes=nodes, namespaces=namespaces)))

    assert fails()
    assert not fails(namespaces=["other"])
    assert not fails(namespaceSelector={"matchLabels": {"team": "x"}})
    assert fails(namespaceSelector={"matchLabels": {"team": "y"}})


def test_a_term_without_a_selector_counts_whoever_is_there() -> None:
    nodes = [state_node("b", zone="zone-b", cpu="1", bound=[pod("x", "900m")])]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ZONE}]}}
    assert _zones(solve([pod("p", affinity=affinity)], state_nodes=nodes)) == [{"zone-b"}]


def test_spreading_by_the_pods_own_label_values() -> None:
    constraint = spread(HOST, "web", matchLabelKeys=["version"])
    wanted = []
    for number in range(4):
        one = pod(f"p{number}", app="web", topologySpreadConstraints=[constraint])
        one["metadata"]["labels"]["version"] = str(number % 2)
        wanted.append(one)
    assert [len(names) for names in placed(solve(wanted))] == [2, 2]


def test_only_domains_behind_tolerated_taints_count_if_taints_are_honoured() -> None:
    pools = [
        pool("open", requirements=[need(ZONE, "In", "zone-a", "zone-b")]),
        pool("closed", requirements=[need(ZONE, "In", "zone-c")], taints=[{"key": "x", "effect": "NoSchedule"}]),
    ]

    def counts(**more: Any) -> list[int]:
        wanted = pods(4, app="web", topologySpreadConstraints=[spread(ZONE, "web", **more)])
        return zone_counts(solve(wanted, pools=pools))

    assert counts(nodeTaintsPolicy="Honor") == [2, 2]
    assert counts() == [1, 1]


def test_nodes_that_the_pod_may_not_use_do_not_count_unless_affinity_is_ignored() -> None:
    nodes = [state_node("a", zone="zone-a", cpu="1", labels={"disk": "slow"}, bound=[pod("x", "900m", app="web")])]
    pools = [pool(labels={"disk": "fast"})]

    def zone(**more: Any) -> set[str]:
        constraint = spread(ZONE, "web", skew=1, **more)
        wanted = [pod("p", app="web", nodeSelector={"disk": "fast"}, topologySpreadConstraints=[constraint])]
        return _zones(solve(wanted, pools=pools, state_nodes=nodes))[0]

    assert zone() == {"zone-a"}
    assert zone(nodeAffinityPolicy="Ignore") == {"zone-b"}


def test_of_a_filter_only_the_keys_tell_groups_apart_so_that_the_first_pods_values_hold_for_all() -> None:
    def choosing(name: str, disk: str, cpu: str) -> dict[str, Any]:
        constraints = [spread(ZONE, "web")]
        return pod(name, cpu, app="web", nodeSelector={"disk": disk}, topologySpreadConstraints=constraints)

    pools = [pool(requirements=[need("disk", "In", "fast", "slow")])]
    first, slow = choosing("first", "fast", "1"), [choosing(f"slow-{n}", "slow", "5") for n in range(2)]
    # Nodes with slow disks do not count for the group that the first pod asked for.
    assert _zones(solve([first, *slow], pools=pools)) == [{"zone-a"}] * 3
    assert sorted(map(min, _zones(solve(slow, pools=pools)))) == ["zone-a", "zone-b"]


def test_a_custom_key_spreads_over_the_values_of_a_pool() -> None:
    pools = [pool(requirements=[need("example.com/rack", "In", "r1", "r2")])]
    wanted = pods(4, app="web", topologySpreadConstraints=[spread("example.com/rack", "web")])
    results = solve(wanted, pools=pools)
    assert sorted(len(claim.pods) for claim in results.new_claims) == [2, 2]


def test_ignored_preferences_never_count() -> None:
    soft = [spread(HOST, "web", when="ScheduleAnyway")]
    wanted = pods(4, app="web", affinity=preferred_pods("podAntiAffinity", HOST, "web"), topologySpreadConstraints=soft)
    assert [len(n) for n in placed(solve(wanted))] == [1, 1, 1, 1]
    assert [len(n) for n in placed(solve(wanted, options=SolveOptions(preference_policy="Ignore")))] == [4]
