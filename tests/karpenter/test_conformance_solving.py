"""The behaviours of provisioning that a Karpenter must have, one test each."""

from __future__ import annotations

from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.kube.resources import parse_resources
from tests.karpenter.scheduling.builders import (
    ARCH,
    CPU_LABEL,
    FAMILY,
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
    preferred_pods,
    required_nodes,
    required_pods,
    solve,
    spread,
    state_node,
    zone_counts,
)

ONE_SIZE = (instance_type("one", 4),)


def _types(results: object) -> list[str]:
    return [one.name for one in results.new_claims[0].candidate_types]  # type: ignore[attr-defined]  # of one claim


def test_01_pods_are_taken_by_cpu_then_memory_then_uid() -> None:
    wanted = [
        pod("small", "1", "1Gi"), pod("tall", "2", "1Gi"), pod("wide", "2", "2Gi"),
        pod("twin-b", "3", "1Gi", uid="b"), pod("twin-a", "3", "1Gi", uid="a"),
    ]  # fmt: skip
    assert placed(solve(wanted, types=(instance_type("huge", 64),))) == [["twin-a", "twin-b", "wide", "tall", "small"]]


def test_02_a_heavier_pool_wins_and_of_equal_ones_the_later_name() -> None:
    pools = [pool("a", weight=10), pool("b", weight=50), pool("c", weight=50)]
    assert [claim.pool.name for claim in solve(pods(1), pools=pools).new_claims] == ["c"]
    assert [claim.pool.name for claim in solve(pods(1), pools=pools[:2]).new_claims] == ["b"]


def test_03_a_pool_whose_requirements_exclude_all_types_is_skipped() -> None:
    pools = [pool("first", weight=9, requirements=[need(ARCH, "In", "arm64")]), pool("second")]
    assert [claim.pool.name for claim in solve(pods(1), pools=pools).new_claims] == ["second"]
    assert failed(solve(pods(1), pools=pools[:1])) == {"p0"}


def test_04_comparisons_of_integer_labels_intersect() -> None:
    def left(*requirements: dict[str, object]) -> list[str]:
        return _types(solve(pods(1), pools=[pool(requirements=requirements)]))

    assert left(need(CPU_LABEL, "Gt", "1")) == ["m-2", "m-4", "m-8"]
    assert left(need(CPU_LABEL, "Lt", "4")) == ["m-1", "m-2"]
    assert left(need(CPU_LABEL, "Gte", "4")) == ["m-4", "m-8"]
    assert left(need(CPU_LABEL, "Lte", "2")) == ["m-1", "m-2"]
    assert left(need(CPU_LABEL, "Gt", "1"), need(CPU_LABEL, "Lt", "8")) == ["m-2", "m-4"]
    asked = pod("p", affinity=required_nodes([need(CPU_LABEL, "Gt", "2")]))
    assert _types(solve([asked], pools=[pool(requirements=[need(CPU_LABEL, "Lt", "8")])])) == ["m-4"]


def test_05_undefined_keys_pass_negatively_or_when_they_are_well_known() -> None:
    custom = "example.com/team"
    for expression in (need(custom, "NotIn", "red"), need(custom, "DoesNotExist")):
        assert not failed(solve([pod("p", affinity=required_nodes([expression]))]))
    for expression in (need(custom, "In", "red"), need(custom, "Exists")):
        assert failed(solve([pod("p", affinity=required_nodes([expression]))])) == {"p"}
    claim = solve([pod("p", nodeSelector={ZONE: "zone-b"})]).new_claims[0]
    assert claim.requirements[ZONE].values == {"zone-b"}


def test_06_an_open_claim_takes_pods_until_no_type_fits() -> None:
    results = solve(pods(20, cpu="1"))
    assert [len(claim.pods) for claim in results.new_claims] == [4, 8, 8]
    assert [claim.cheapest()[0].name for claim in results.new_claims] == ["m-4", "m-8", "m-8"]  # type: ignore[index]  # launchable


def test_07_the_open_claim_with_fewest_pods_is_tried_first() -> None:
    big = [pod("big-1", "3", uid="1"), pod("big-2", "3", uid="2")]
    small = [pod(f"small-{n}", "250m", uid=f"s{n}") for n in range(4)]
    assert [len(names) for names in placed(solve([*big, *small], types=ONE_SIZE))] == [3, 3]


def test_08_a_limit_is_charged_with_the_largest_type_that_remains() -> None:
    apart = required_pods("podAntiAffinity", HOST, "web")
    wanted = pods(3, app="web", affinity=apart)
    # Each node could turn out to have 8 cpus, so a limit of 12 allows one, and then one of the smaller types.
    results = solve(wanted, pools=[pool(limits={"cpu": "12"})])
    assert [[one.name for one in claim.candidate_types] for claim in results.new_claims] == [
        ["m-1", "m-2", "m-4", "m-8"], ["m-1", "m-2", "m-4"],
    ]  # fmt: skip
    assert len(failed(results)) == 1


def test_09_min_values_are_strict_unless_best_effort_is_asked_for() -> None:
    pools = [pool(requirements=[need(FAMILY, "Exists", min_values=3)])]
    types = [instance_type(f"{family}-2", 2, family=family) for family in ("c", "m", "r")]
    chosen = [pod("p", affinity=required_nodes([need(FAMILY, "In", "c", "m")]))]
    assert not failed(solve(pods(1), pools=pools, types=types))
    assert failed(solve(chosen, pools=pools, types=types)) == {"p"}
    relaxed = solve(chosen, pools=pools, types=types, options=SolveOptions(min_values_policy="BestEffort"))
    assert relaxed.new_claims[0].min_values_relaxed
    assert relaxed.new_claims[0].requirements[FAMILY].min_values == 2


def test_10_seven_pods_spread_over_three_zones_as_three_two_two() -> None:
    wanted = pods(7, app="web", topologySpreadConstraints=[spread(ZONE, "web")])
    assert zone_counts(solve(wanted)) == [3, 2, 2]


def test_11_hostname_spread_with_skew_one_puts_one_matching_pod_on_each_node() -> None:
    wanted = pods(4, app="web", topologySpreadConstraints=[spread(HOST, "web")])
    assert [len(names) for names in placed(solve(wanted))] == [1, 1, 1, 1]


def test_12_anti_affinity_on_hostnames_opens_a_node_per_pod_and_keeps_others_away() -> None:
    apart = pods(3, app="web", cpu="1", affinity=required_pods("podAntiAffinity", HOST, "web"))
    assert [len(names) for names in placed(solve(apart))] == [1, 1, 1]
    quiet, loud = pod("quiet", "2", app="web"), pod("loud", "1", affinity=required_pods("podAntiAffinity", HOST, "web"))
    assert placed(solve([quiet, loud])) == [["quiet"], ["loud"]]
    # The pod without the term comes last, and may not go where the one with the term is.
    quiet, loud = pod("quiet", "1", app="web"), pod("loud", "2", affinity=required_pods("podAntiAffinity", HOST, "web"))
    assert placed(solve([quiet, loud])) == [["loud"], ["quiet"]]


def test_13_self_affinity_starts_in_one_zone_and_affinity_to_nobody_fails() -> None:
    together = pods(6, app="web", cpu="5", affinity=required_pods("podAffinity", ZONE, "web"))
    assert zone_counts(solve(together)) == [6]
    lonely = pod("lonely", affinity=required_pods("podAffinity", ZONE, "missing"))
    assert failed(solve([lonely])) == {"lonely"}


def test_14_preferences_go_heaviest_first_and_soft_spread_after_node_affinity() -> None:
    light, heavy = (1, need(ZONE, "In", "zone-a")), (9, need(ZONE, "In", "nowhere"))
    results = solve([pod("p", affinity=preferred_nodes(light, heavy))])
    assert results.new_claims[0].requirements[ZONE].values == {"zone-a"}
    # The spread alone could be kept, but the node preference goes first, and then both hold.
    soft = [spread(ZONE, "web", when="ScheduleAnyway")]
    wanted = pods(3, app="web", cpu="5", affinity=preferred_nodes(heavy), topologySpreadConstraints=soft)
    assert zone_counts(solve(wanted)) == [1, 1, 1]
    # Pod affinity that nobody satisfies is given up before the node preference, which is kept.
    affinity = {**preferred_nodes(light), **preferred_pods("podAffinity", ZONE, "missing")}
    assert solve([pod("p", affinity=affinity)]).new_claims[0].requirements[ZONE].values == {"zone-a"}


def test_15_prefer_no_schedule_is_tolerated_only_as_the_last_step() -> None:
    avoided = pool("avoided", weight=50, taints=[{"key": "slow", "effect": "PreferNoSchedule"}])
    assert [c.pool.name for c in solve(pods(1), pools=[avoided, pool("plain")]).new_claims] == ["plain"]
    assert [c.pool.name for c in solve(pods(1), pools=[avoided]).new_claims] == ["avoided"]
    wish = preferred_nodes((1, need(ZONE, "In", "zone-b")))
    kept = solve([pod("p", affinity=wish)], pools=[avoided])
    assert ZONE not in kept.new_claims[0].requirements


def test_16_daemons_count_by_group_of_types_and_the_least_is_added_to_requests() -> None:
    everywhere = pod("logs", "200m", "100Mi")
    on_large = pod("gpu", "500m", "100Mi", affinity=required_nodes([need(CPU_LABEL, "Gt", "4")]))
    results = solve([pod("p", "3500m", "1Gi")], daemon_pods=[everywhere, on_large])
    assert [one.name for one in results.new_claims[0].instance_types] == ["m-4", "m-8"]
    assert results.new_claims[0].requests == parse_resources({"cpu": "3700m", "memory": "1124Mi", "pods": "2"})
    tight = solve([pod("p", "3900m", "1Gi")], daemon_pods=[everywhere, on_large])
    assert [one.name for one in tight.new_claims[0].instance_types] == ["m-8"]
    assert tight.new_claims[0].requests == parse_resources({"cpu": "4600m", "memory": "1224Mi", "pods": "3"})


def test_17_a_host_port_conflict_opens_a_new_claim() -> None:
    assert [len(names) for names in placed(solve(pods(2, ports=[80])))] == [1, 1]
    assert [len(names) for names in placed(solve([pod("a", ports=[80]), pod("b", ports=[81])]))] == [2]
    assert failed(solve(pods(1, ports=[80]), daemon_pods=[pod("proxy", ports=[80])])) == {"p0"}


def test_18_startup_taints_are_ignored_and_taints_honoured() -> None:
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    assert not failed(solve(pods(1), pools=[pool(startup_taints=[taint])]))
    assert failed(solve(pods(1), pools=[pool(taints=[taint])])) == {"p0"}
    tolerant = pods(1, tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert not failed(solve(tolerant, pools=[pool(taints=[taint])]))


def test_19_pods_of_deleting_nodes_are_rescheduled_but_not_those_that_must_not_be_disturbed() -> None:
    free, held = pod("free", app="web"), pod("held", app="web")
    held["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    going = state_node("going", bound=[free, held], is_marked=True)
    limits = EvictionLimits()
    moving = [one for one in going.running_pods if limits.is_movable(one, 0.0)]
    assert [one["metadata"]["name"] for one in moving] == ["free"]
    results = solve(moving, state_nodes=[going, state_node("stays", cpu="1")])
    assert {name: [one["metadata"]["name"] for one in found] for name, found in results.existing.items()} == {
        "stays": ["free"]
    }


def test_a_pod_asks_for_a_type_by_name() -> None:
    assert _types(solve(pods(1, nodeSelector={TYPE: "m-4"}))) == ["m-4"]
