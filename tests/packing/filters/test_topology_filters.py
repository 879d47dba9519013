"""PodTopologySpread and InterPodAffinity, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from tests.packing.filters.tables import feasible, state_of, why
from tests.packing.objects import affinity_term, make_node, make_pod, pod_affinity, pod_anti_affinity, spread

JsonObject = dict[str, Any]
SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = SKEWED + " (missing required label)"
HOST = "kubernetes.io/hostname"


def three_zones() -> list[JsonObject]:
    return [make_node("a", {"zone": "1"}), make_node("b", {"zone": "2"}), make_node("c", {"zone": "3"})]


def web(name: str, node: str = "", **more: Any) -> JsonObject:
    return make_pod(name, node=node, labels={"app": "web", **more.pop("labels", {})}, **more)


@pytest.mark.parametrize(
    ("there", "skew", "names"),
    [
        ((), 1, {"a", "b", "c"}),
        (("a",), 1, {"b", "c"}),
        (("a", "b"), 1, {"c"}),
        (("a", "b", "c"), 1, {"a", "b", "c"}),
        (("a",), 2, {"a", "b", "c"}),
        (("a", "a"), 2, {"b", "c"}),
    ],
)
def test_no_zone_gets_too_far_ahead(there: tuple[str, ...], skew: int, names: set[str]) -> None:
    state = state_of(*three_zones(), pods=tuple(web(f"p{i}", node) for i, node in enumerate(there)))
    pod = web("new", topologySpreadConstraints=[spread("zone", "web", skew=skew)])
    assert feasible(state, pod) == names
    for name in {"a", "b", "c"} - names:
        assert why(state, pod, name) == (SKEWED,)


def test_a_node_without_the_key_is_refused_for_that() -> None:
    state = state_of(*three_zones(), make_node("bare"))
    assert why(state, web("new", topologySpreadConstraints=[spread("zone", "web")]), "bare") == (UNLABELLED,)


def test_a_pod_that_does_not_match_its_own_constraint_adds_nothing() -> None:
    state = state_of(*three_zones(), pods=(web("p", "a"),))
    constraint = [spread("zone", "web")]
    assert feasible(state, make_pod(topologySpreadConstraints=constraint)) == {"a", "b", "c"}


def test_too_few_domains_count_the_minimum_as_zero() -> None:
    pods = tuple(web(f"p{name}", name) for name in "abc")
    state = state_of(*three_zones(), pods=pods)
    assert feasible(state, web("n", topologySpreadConstraints=[spread("zone", "web", minDomains=3)])) == {"a", "b", "c"}
    assert feasible(state, web("n", topologySpreadConstraints=[spread("zone", "web", minDomains=4)])) == set()


def test_nodes_that_the_pod_does_not_select_are_left_out_unless_told() -> None:
    state = state_of(*three_zones(), pods=(web("p1", "a"), web("p2", "b")))
    selector = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1", "2"]}]}]}}}}  # fmt: skip
    honoring = web("n", topologySpreadConstraints=[spread("zone", "web")], **selector)
    ignoring = web("n", topologySpreadConstraints=[spread("zone", "web", nodeAffinityPolicy="Ignore")], **selector)
    assert feasible(state, honoring) == {"a", "b"}
    assert feasible(state, ignoring) == set()


def test_tainted_nodes_count_unless_told_otherwise() -> None:
    nodes = [*three_zones()[:2], make_node("c", {"zone": "3"}, taints=[{"key": "t", "effect": "NoSchedule"}])]
    state = state_of(*nodes, pods=(web("p1", "a"), web("p2", "b")))
    ignoring = web("n", topologySpreadConstraints=[spread("zone", "web")])
    honoring = web("n", topologySpreadConstraints=[spread("zone", "web", nodeTaintsPolicy="Honor")])
    assert feasible(state, ignoring) == set()
    assert feasible(state, honoring) == {"a", "b"}


def test_match_label_keys_spread_each_revision_on_its_own() -> None:
    state = state_of(*three_zones(), pods=(web("old", "a", labels={"rev": "1"}),))
    constraint = [spread("zone", "web", matchLabelKeys=["rev"])]
    assert feasible(state, web("n", topologySpreadConstraints=constraint)) == {"b", "c"}
    assert feasible(state, web("n", labels={"rev": "1"}, topologySpreadConstraints=constraint)) == {"b", "c"}
    assert feasible(state, web("n", labels={"rev": "2"}, topologySpreadConstraints=constraint)) == {"a", "b", "c"}


def test_pods_of_other_namespaces_and_pods_on_their_way_out_do_not_count() -> None:
    there = (web("p1", "a", namespace="other"), web("p2", "a", deleted=True))
    state = state_of(*three_zones(), pods=there)
    assert feasible(state, web("n", topologySpreadConstraints=[spread("zone", "web")])) == {"a", "b", "c"}


def test_soft_constraints_forbid_nothing() -> None:
    state = state_of(*three_zones(), pods=(web("p", "a"),))
    soft = {**spread("zone", "web"), "whenUnsatisfiable": "ScheduleAnyway"}
    assert feasible(state, web("n", topologySpreadConstraints=[soft])) == {"a", "b", "c"}


def test_affinity_follows_the_pods_it_means() -> None:
    state = state_of(*three_zones(), make_node("bare"), pods=(web("p", "b"),))
    pod = make_pod(affinity=pod_affinity(affinity_term("web", "zone")))
    assert feasible(state, pod) == {"b"}
    assert why(state, pod, "a") == ("node(s) didn't match pod affinity rules",)
    assert why(state, pod, "bare") == ("node(s) didn't match pod affinity rules",)


def test_the_first_pod_of_a_group_may_start_anywhere_with_the_key() -> None:
    state = state_of(*three_zones(), make_node("bare"))
    pod = web("first", affinity=pod_affinity(affinity_term("web", "zone")))
    assert feasible(state, pod) == {"a", "b", "c"}
    state.add_pod(web("first", "b", affinity=pod_affinity(affinity_term("web", "zone"))))
    assert feasible(state, pod) == {"b"}
    assert feasible(state, make_pod(affinity=pod_affinity(affinity_term("db", "zone")))) == set()


def test_anti_affinity_avoids_the_pods_it_means() -> None:
    state = state_of(*three_zones(), make_node("bare"), pods=(web("p", "b"),))
    pod = make_pod(affinity=pod_anti_affinity(affinity_term("web", "zone")))
    assert feasible(state, pod) == {"a", "c", "bare"}
    assert why(state, pod, "b") == ("node(s) didn't match pod anti-affinity rules",)


def test_anti_affinity_of_pods_that_are_there_holds_against_newcomers() -> None:
    hermit = make_pod("hermit", node="b", affinity=pod_anti_affinity(affinity_term("web", "zone")))
    state = state_of(*three_zones(), make_node("b2", {"zone": "2"}), pods=(hermit,))
    assert feasible(state, web("n")) == {"a", "c"}
    assert why(state, web("n"), "b2") == ("node(s) didn't satisfy existing pods anti-affinity rules",)
    state.remove_pod("default/hermit")
    assert feasible(state, web("n")) == {"a", "b", "c", "b2"}


@pytest.mark.parametrize(
    ("term", "counts"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespace_selector": {}}, True),
        ({"namespace_selector": {"matchLabels": {"team": "x"}}}, True),
        ({"namespace_selector": {"matchLabels": {"team": "y"}}}, False),
        # Upstream asks a second time as if the namespace had no labels, so what only excludes picks all.
        ({"namespace_selector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}}, True),
        ({"namespace_selector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}, True),
    ],
)
def test_terms_look_into_the_namespaces_they_name(term: JsonObject, counts: bool) -> None:
    state = state_of(*three_zones(), pods=(web("p", "b", namespace="other"),))
    state.set_namespace("other", {"team": "x"})
    pod = make_pod(affinity=pod_anti_affinity(affinity_term("web", HOST, **term)))
    assert feasible(state, pod) == ({"a", "c"} if counts else {"a", "b", "c"})


def test_a_namespace_that_changes_its_labels_changes_who_is_meant() -> None:
    state = state_of(*three_zones(), pods=(web("p", "b", namespace="other"),))
    by_team = affinity_term("web", HOST, namespace_selector={"matchLabels": {"team": "x"}})
    pod = make_pod(affinity=pod_anti_affinity(by_team))
    assert feasible(state, pod) == {"a", "b", "c"}
    with state.trial():
        state.set_namespace("other", {"team": "x"})
        assert feasible(state, pod) == {"a", "c"}
    assert feasible(state, pod) == {"a", "b", "c"}


def test_a_malformed_selector_refuses_the_pod_as_a_whole() -> None:
    state = state_of(make_node("n"))
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    cls = state.class_of(make_pod(affinity=pod_affinity(term)))
    assert not state.feasible(cls).any()
    assert state.diagnose(cls).refusal.startswith("parsing pod: ")
