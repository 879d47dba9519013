"""How many nodes for which pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.scale_up.estimator import Estimate, estimate
from holokube.cluster_autoscaler.scale_up.node_budget import NodeBudget
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.cluster_autoscaler.scale_up.objects import JsonObject, node, pod, pods_of, snapshot, template

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


@dataclass
class Group:
    pods: list[JsonObject]


def packed(
    *groups: list[JsonObject], on: NodeInfo | None = None, limit: int = 0, fastpath: bool = False,
    among: ClusterSnapshot | None = None, count: bool = True,
) -> Estimate:
    return estimate(
        [Group(pods) for pods in groups], on or template("a"), among or snapshot(), NodeBudget(limit),
        fastpath=fastpath, count=count,
    )


def names(found: Estimate) -> list[str]:
    return [one["metadata"]["name"] for one in found.pods]


def spread(app: str, key: str, skew: int = 1) -> list[JsonObject]:
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": app}}}]


def apart(app: str, key: str = HOSTNAME) -> JsonObject:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_fill_nodes_one_after_the_other() -> None:
    found = packed(pods_of("x", 10, cpu="1500m"), on=template("a", "4"))
    assert (found.node_count, len(found.pods), found.refusal) == (5, 10, "")


def test_the_measured_six_pods_of_900m_need_three_nodes_of_two_cores() -> None:
    assert packed(pods_of("x", 6, cpu="900m"), on=template("a", "2")).node_count == 3


def test_the_number_of_pods_per_node_counts_too() -> None:
    assert packed(pods_of("x", 9, cpu="1m", memory="1"), on=template("a", pods="4")).node_count == 3


def test_daemons_of_the_template_take_their_room() -> None:
    bare = template("a", "4")
    daemon = pod("daemon", "1", nodeName=bare.node["metadata"]["name"])
    assert packed(pods_of("x", 4), on=NodeInfo(bare.node, (daemon,))).node_count == 2


def test_larger_pods_come_first_and_smaller_ones_fill_the_gaps() -> None:
    found = packed(pods_of("small", 4, cpu="1"), pods_of("large", 4, cpu="3"), on=template("a", "4"))
    assert found.node_count == 4
    assert [kind.exemplar["metadata"]["name"] for kind in found.kinds] == ["large-0", "small-0"]


def test_the_gaps_are_filled_in_turn() -> None:
    # One small pod goes to each node, although one node could take two: every gap then still has room for a middling
    # one. Filling the first gap first would take a fourth node.
    found = packed(
        pods_of("large", 3, cpu="2", memory="8300Mi"), pods_of("small", 3, cpu="500m", memory="3891Mi"),
        pods_of("middling", 3, cpu="1400m", memory="1Mi"), on=template("a", "4"),
    )
    assert (found.node_count, len(found.pods)) == (3, 9)


def test_within_a_group_only_the_last_node_is_tried() -> None:
    # The pods that hinder each other on a node open a node each; no pod looks back.
    found = packed(pods_of("x", 3, cpu="1", affinity=apart("x")), on=template("a", "4"))
    assert found.node_count == 3


def test_pods_that_others_keep_away_do_not_fill_their_gaps() -> None:
    hostile = pods_of("hostile", 2, cpu="3", affinity=apart("small"))
    for count in (True, False):
        found = packed(hostile, pods_of("small", 3, cpu="500m"), on=template("a", "4"), count=count)
        assert (found.node_count, len(found.pods)) == (3, 5)


def test_pods_that_the_daemons_of_a_group_keep_away_get_no_nodes() -> None:
    bare = template("a")
    daemon = pod("daemon", "100m", affinity=apart("x"), nodeName=bare.node["metadata"]["name"])
    for count in (True, False):
        found = packed(pods_of("x", 3), pods_of("y", 1, cpu="500m"), on=NodeInfo(bare.node, (daemon,)), count=count)
        assert (found.node_count, names(found)) == (1, ["y-0"])


def test_no_more_nodes_than_the_budget_has() -> None:
    found = packed(pods_of("x", 10, cpu="4"), pods_of("y", 3, cpu="100m"), limit=2)
    assert (found.node_count, names(found), found.refusal) == (2, ["x-0", "x-1"], "limited to 2 nodes")


def test_once_nodes_run_out_later_pods_still_fill_the_gaps() -> None:
    found = packed(pods_of("x", 10, cpu="3"), pods_of("y", 9, cpu="500m"), limit=2)
    assert (found.node_count, Counter(name[0] for name in names(found))) == (2, {"x": 2, "y": 4})


def test_a_budget_that_allows_nothing_gives_nothing() -> None:
    found = packed(pods_of("x", 1), limit=-1)
    assert (found.node_count, found.pods) == (0, [])


def test_a_node_that_turned_out_to_be_of_no_use_is_not_counted_but_used_by_others() -> None:
    # The pods of zone spread fit nowhere on new nodes once the zone has its share; a node was added for them.
    zones = snapshot(node("n1", labels={ZONE: "z1"}), node("n2", labels={ZONE: "z2"}))
    inside = template("a", "4", labels={ZONE: "z1"})
    stuck = pods_of("stuck", 4, cpu="3", topologySpreadConstraints=spread("stuck", ZONE))
    found = packed(stuck, pods_of("y", 1, cpu="100m"), on=inside, among=zones)
    assert names(found) == ["stuck-0", "y-0"]
    assert found.node_count == 1


def test_pods_spread_over_hosts_may_go_to_nodes_that_exist() -> None:
    # Upstream counts these nodes in, so that two pods "need" two nodes although one is there already.
    old = snapshot(node("old", "4"))
    found = packed(
        pods_of("x", 2, cpu="1", topologySpreadConstraints=spread("x", HOSTNAME)), on=template("a"), among=old
    )
    assert (found.node_count, len(found.pods)) == (2, 2)


def test_the_snapshot_is_left_as_it_was() -> None:
    cluster = snapshot(node("n", "4"))
    packed(pods_of("x", 3, affinity=apart("x")), pods_of("y", 9), among=cluster)
    assert list(cluster.node_names) == ["n"]
    assert cluster.pods_on("n") == []


def test_pods_that_do_not_fit_at_all_cost_no_node() -> None:
    found = packed(pods_of("huge", 3, cpu="64"), pods_of("x", 2, cpu="1"))
    assert (found.node_count, len(found.pods)) == (1, 2)


def test_the_shortcut_fills_one_node_and_multiplies() -> None:
    found = packed(pods_of("x", 10, cpu="1500m"), on=template("a", "4"), fastpath=True)
    assert (found.node_count, len(found.pods)) == (5, 10)


def test_the_shortcut_takes_the_group_that_gains_the_most_last() -> None:
    # It begins with a new node of its own, so the gap on the small pod's node stays.
    found = packed(pods_of("x", 20, cpu="3"), pods_of("y", 1, cpu="500m"), on=template("a", "4"), fastpath=True)
    assert [kind.exemplar["metadata"]["name"] for kind in found.kinds] == ["y-0", "x-0"]
    assert found.node_count == 20


def test_the_shortcut_keeps_to_the_budget() -> None:
    kinds: tuple[JsonObject, ...] = ({}, {"affinity": apart("x")})
    for kind in kinds:
        found = packed(pods_of("x", 10, cpu="3", **kind), limit=4, fastpath=True)
        assert (found.node_count, len(found.pods), found.refusal) == (4, 4, "limited to 4 nodes")


def test_the_shortcut_is_not_for_pods_that_spread() -> None:
    found = packed(
        pods_of("x", 4, cpu="1", topologySpreadConstraints=spread("x", HOSTNAME)), on=template("a"), fastpath=True
    )
    assert (found.node_count, len(found.pods)) == (1, 4)


SPECIALS: dict[str, Any] = {
    "plain": lambda app: {},
    "plain too": lambda app: {"tolerations": [{"operator": "Exists"}]},
    "apart": lambda app: {"affinity": apart(app)},
    "apart from g0": lambda app: {"affinity": apart("g0")},
    "apart from g1 in the zone": lambda app: {"affinity": apart("g1", ZONE)},
    "spread": lambda app: {"topologySpreadConstraints": spread(app, HOSTNAME)},
    "spread over zones": lambda app: {"topologySpreadConstraints": spread(app, ZONE, 2)},
    "elsewhere": lambda app: {"nodeSelector": {"tier": "none"}},
    "by name": lambda app: {"nodeSelector": {HOSTNAME: "template-node-for-a-1-e-0"}},
}


@st.composite
def groups_of_pods(draw: st.DrawFn) -> list[list[JsonObject]]:
    groups = []
    for i in range(draw(st.integers(1, 6))):
        special = SPECIALS[draw(st.sampled_from(["plain"] * 4 + list(SPECIALS)))](f"g{i}")
        cpu, memory = draw(st.sampled_from((1, 3, 5, 7, 11, 20, 41))), draw(st.sampled_from((1, 2, 5, 9, 13)))
        groups.append(pods_of(f"g{i}", draw(st.integers(1, 25)), f"{cpu}00m", f"{memory}00Mi", **special))
    return groups


@settings(max_examples=120, deadline=None)
@given(
    groups=groups_of_pods(), limit=st.sampled_from((0, 0, 1, 3, 8)), pods=st.sampled_from(("3", "7", "110")),
    fastpath=st.booleans(), daemon=st.booleans(), last_index=st.integers(0, 12), zone=st.booleans(),
)
def test_counting_comes_to_the_same_as_placing_every_pod(
    groups: list[list[JsonObject]], limit: int, pods: str, fastpath: bool, daemon: bool, last_index: int, zone: bool,
) -> None:
    labels = {ZONE: "z1"} if zone else {}
    base = template("a", "4", "4Gi", pods=pods, labels=labels)
    daemons = (pod("d", "300m", "100Mi", nodeName=base.node["metadata"]["name"]),) if daemon else ()
    on = NodeInfo(base.node, daemons)
    results = []
    for count in (True, False):
        cluster = snapshot(node("n1", "1", "1Gi", labels={ZONE: "z1"}), node("n2", "2", "2Gi", labels={ZONE: "z2"}))
        cluster.last_index = last_index
        found = packed(*groups, on=on, limit=limit, fastpath=fastpath, among=cluster, count=count)
        results.append((found.node_count, names(found), found.refusal, [kind.pods for kind in found.kinds],
                        cluster.last_index))
    assert results[0] == results[1]
