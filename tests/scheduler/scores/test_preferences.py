"""Scores by what pods and nodes would rather have."""

from __future__ import annotations

from typing import Any

from holokube.kube.selectors import LabelSelector
from holokube.scheduler.scores import ScoreProfile, spread_selector
from tests.builders import JsonObject
from tests.packing.filters.tables import state_of
from tests.packing.objects import affinity_term, make_node, make_pod, pod_affinity
from tests.scheduler.scores.questions import points, totals

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def discouraged(name: str, *keys: str) -> JsonObject:
    return make_node(name, taints=[{"key": key, "effect": "PreferNoSchedule"} for key in keys])


def liking(weight: int, term: JsonObject, kind: str = "podAffinity") -> JsonObject:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def anyway(key: str, app: str, **more: Any) -> JsonObject:
    selector = {"matchLabels": {"app": app}}
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector, **more}


def web(name: str, node: str, **more: Any) -> JsonObject:
    return make_pod(name, labels={"app": "web"}, node=node, **more)


def test_taints_that_discourage_count_by_number_and_threefold() -> None:
    state = state_of(make_node("a"), discouraged("b", "x"), discouraged("c", "x", "y", "z"))
    assert points(state, make_pod(), "TaintToleration") == {"a": 300, "b": 201, "c": 0}
    tolerant = make_pod(tolerations=[{"operator": "Exists"}])
    assert points(state, tolerant, "TaintToleration") == {"a": 300, "b": 300, "c": 300}
    elsewhere = make_pod(tolerations=[{"key": "x", "operator": "Exists", "effect": "NoSchedule"}])
    assert points(state, elsewhere, "TaintToleration") == {"a": 300, "b": 201, "c": 0}


def test_a_taint_set_seen_later_is_counted_too() -> None:
    state = state_of(make_node("a"))
    assert points(state, make_pod(), "TaintToleration") == {"a": 300}
    state.add_node(discouraged("b", "x"))
    assert points(state, make_pod(), "TaintToleration") == {"a": 300, "b": 0}


def test_preferred_node_terms_count_by_weight() -> None:
    state = state_of(make_node("a", {"zone": "1"}), make_node("b", {"zone": "2"}), make_node("c"))
    wishes = [
        {"weight": 30, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}},
        {"weight": 15, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}},
    ]
    pod = make_pod(affinity={"nodeAffinity": {PREFERRED: wishes}})
    assert points(state, pod, "NodeAffinity") == {"a": 200, "b": 2 * (100 * 30 // 45), "c": 0}
    assert points(state, make_pod(), "NodeAffinity") is None


def test_a_pod_goes_near_what_it_likes_and_away_from_what_it_does_not() -> None:
    nodes = [make_node(name, {ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
    state = state_of(*nodes, pods=(web("p", "a"),))
    near = make_pod(affinity=liking(10, affinity_term("web", ZONE)))
    assert points(state, near, "InterPodAffinity") == {"a": 200, "b": 200, "c": 0}
    far = make_pod(affinity=liking(10, affinity_term("web", HOST), "podAntiAffinity"))
    assert points(state, far, "InterPodAffinity") == {"a": 0, "b": 200, "c": 200}
    assert points(state, make_pod(), "InterPodAffinity") is None


def test_pods_that_are_there_pull_on_those_that_come() -> None:
    fans = (
        make_pod("wants", node="a", affinity=liking(50, affinity_term("web", HOST))),
        make_pod("needs", node="b", affinity=pod_affinity(affinity_term("web", HOST))),
        make_pod("shuns", node="c", affinity=liking(50, affinity_term("web", HOST), "podAntiAffinity")),
    )
    state = state_of(*(make_node(name) for name in "abcd"), pods=fans)
    pod = make_pod(labels={"app": "web"})
    # The sums are 50, 1, -50 and 0.
    assert points(state, pod, "InterPodAffinity") == {"a": 200, "b": 102, "c": 0, "d": 100}
    heavier = ScoreProfile(hard_pod_affinity_weight=50)
    assert points(state, pod, "InterPodAffinity", heavier) == {"a": 200, "b": 200, "c": 0, "d": 100}
    assert points(state, make_pod(labels={"app": "db"}), "InterPodAffinity") is None


def test_pulls_end_with_the_pod_and_come_back_with_a_rollback() -> None:
    fan = make_pod("fan", node="a", affinity=liking(50, affinity_term("web", HOST)))
    state = state_of(make_node("a"), make_node("b"), pods=(fan,))
    pod = make_pod(labels={"app": "web"})
    with state.trial():
        state.remove_pod("default/fan")
        assert points(state, pod, "InterPodAffinity") is None
        other_fan = state.class_of(make_pod("f", affinity=liking(9, affinity_term("web", HOST))))
        state.place(other_fan, state.node_names["b"])
        assert points(state, pod, "InterPodAffinity") == {"a": 0, "b": 200}
    assert points(state, pod, "InterPodAffinity") == {"a": 200, "b": 0}


def test_namespaces_that_change_their_labels_change_the_pull() -> None:
    term = affinity_term("web", HOST, namespace_selector={"matchLabels": {"team": "x"}})
    state = state_of(make_node("a"), make_node("b"), pods=(make_pod("fan", node="a", affinity=liking(5, term)),))
    pod = make_pod(labels={"app": "web"}, namespace="other")
    assert points(state, pod, "InterPodAffinity") is None
    state.set_namespace("other", {"team": "x"})
    assert points(state, pod, "InterPodAffinity") == {"a": 200, "b": 0}


def test_soft_spreading_prefers_the_emptier_domain() -> None:
    nodes = [make_node(name, {ZONE: zone}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))]
    state = state_of(*nodes, make_node("unzoned"), pods=(web("p1", "a"), web("p2", "b"), web("p3", "c")))
    pod = make_pod(labels={"app": "web"}, topologySpreadConstraints=[anyway(ZONE, "web")])
    # With two zones a pod weighs ln 4: 2.77 rounds to 3 and 1.39 to 1.
    worst = 2 * (100 * 1 // 3)
    assert points(state, pod, "PodTopologySpread") == {"a": worst, "b": worst, "c": 200, "unzoned": 0}


def test_host_names_are_counted_by_node_whatever_the_policies_say() -> None:
    state = state_of(make_node("a", {"disk": "ssd"}), make_node("b"), pods=(web("p", "b"),))
    constraints = [anyway(HOST, "web", nodeAffinityPolicy="Honor")]
    pod = make_pod(nodeSelector={"disk": "ssd"}, topologySpreadConstraints=constraints)
    assert points(state, pod, "PodTopologySpread") == {"a": 200, "b": 0}


def test_pods_of_a_service_are_spread_by_default_even_without_zones() -> None:
    state = state_of(make_node("a", {ZONE: "1"}), make_node("b"), pods=(web("p", "a"),))
    service = {"kind": "Service", "spec": {"selector": {"app": "web"}}}
    pod = make_pod(labels={"app": "web"})
    selector = spread_selector(pod, [service], None)
    # a: 1 x ln 4 + 2 of host names and 1 x ln 4 + 4 of zones (none counts as one) are 9; b: 2 of host names.
    assert points(state, pod, "PodTopologySpread", default=selector) == {"a": 2 * (100 * 2 // 9), "b": 200}
    assert points(state, pod, "PodTopologySpread") is None
    own = make_pod(labels={"app": "web"}, topologySpreadConstraints=[anyway(ZONE, "other")])
    assert points(state, own, "PodTopologySpread", default=selector) == {"a": 200, "b": 0}


def test_the_selector_of_services_and_owner_is_their_union_of_demands() -> None:
    pod = make_pod(labels={"app": "web", "tier": "front"})
    services = [{"spec": {"selector": {"app": "web"}}}, {"spec": {"selector": {"app": "db"}}}, {"spec": {}}]
    owner = {"kind": "ReplicaSet", "spec": {"selector": {"matchLabels": {"tier": "front"}}}}
    assert spread_selector(pod, services, owner) == LabelSelector.parse("app=web,tier=front")
    assert spread_selector(pod, services, {"kind": "Job", "spec": owner["spec"]}) == LabelSelector.parse("app=web")
    controller = {"kind": "ReplicationController", "spec": {"selector": {"tier": "front"}}}
    assert spread_selector(pod, [], controller) == LabelSelector.parse("tier=front")
    assert spread_selector(pod, [], None) is None


def test_the_total_is_the_sum_and_a_weight_of_zero_silences_a_score() -> None:
    state = state_of(make_node("a"), discouraged("b", "x"))
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})
    # Taints 3 x 100, room 75, balance 75, images 0; neither affinity nor spreading has a say.
    assert totals(state, pod) == {"a": 450, "b": 150}
    quiet = ScoreProfile(taint_toleration=0, node_resources_fit=2, node_resources_balanced_allocation=0)
    assert totals(state, pod, quiet) == {"a": 150, "b": 150}
