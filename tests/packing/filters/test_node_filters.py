"""NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from tests.packing.filters.tables import feasible, state_of, why
from tests.packing.objects import make_node, make_pod

JsonObject = dict[str, Any]
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
PORTS = "node(s) didn't have free ports for the requested pod ports"


def node_affinity(*terms: JsonObject) -> JsonObject:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    state = state_of(make_node("n", unschedulable=True))
    assert why(state, make_pod(), "n") == ("node(s) were unschedulable",)
    assert feasible(state, make_pod(tolerations=[{"operator": "Exists"}])) == {"n"}
    exact = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert feasible(state, make_pod(tolerations=[exact])) == {"n"}


def test_a_pod_that_names_its_node_goes_nowhere_else() -> None:
    state = state_of(make_node("n"), make_node("m"))
    assert feasible(state, make_pod(node="m")) == {"m"}
    assert why(state, make_pod(node="m"), "n") == ("node(s) didn't match the requested node name",)


@pytest.mark.parametrize(
    ("taint", "toleration", "comes"),
    [
        ({"key": "a", "value": "1", "effect": "NoSchedule"}, None, False),
        ({"key": "a", "value": "1", "effect": "NoExecute"}, None, False),
        ({"key": "a", "value": "1", "effect": "PreferNoSchedule"}, None, True),
        ({"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "a", "value": "1"}, True),
        ({"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "a", "value": "2"}, False),
        ({"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "value": "1", "effect": "NoSchedule"},
         {"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)  # fmt: skip
def test_taints_keep_pods_away_that_do_not_tolerate_them(
    taint: JsonObject, toleration: JsonObject | None, comes: bool
) -> None:
    state = state_of(make_node("n", taints=[taint]))
    pod = make_pod(tolerations=[toleration] if toleration else [])
    assert why(state, pod, "n") == (() if comes else ("node(s) had untolerated taint(s)",))


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"nodeSelector": {"zone": "1"}}, {"a"}),
        ({"nodeSelector": {"zone": "3"}}, set()),
        ({"affinity": node_affinity({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})}, {"a", "b"}),
        ({"affinity": node_affinity({"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["6"]}]})}, {"b"}),
        ({"affinity": node_affinity({"matchExpressions": [{"key": "gen", "operator": "Lt", "values": ["6"]}]})}, {"a"}),
        ({"affinity": node_affinity({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["1"]}]})},
         {"b", "c"}),
        ({"affinity": node_affinity({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]})},
         {"b", "c"}),
        ({"affinity": node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
                                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]})},
         {"a", "b"}),
        ({"affinity": node_affinity()}, set()),
        ({"affinity": node_affinity({})}, set()),
    ],
)  # fmt: skip
def test_node_selectors_and_affinity_terms(spec: JsonObject, names: set[str]) -> None:
    a, b = make_node("a", {"zone": "1", "gen": "5"}), make_node("b", {"zone": "2", "gen": "7"})
    state = state_of(a, b, make_node("c"))
    assert feasible(state, make_pod(**spec)) == names
    for name in {"a", "b", "c"} - names:
        assert why(state, make_pod(**spec), name) == (SELECTOR,)


def test_nodes_that_a_pod_does_not_name_are_not_looked_at_closer() -> None:
    state = state_of(make_node("a", unschedulable=True), make_node("b", unschedulable=True))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    pod = make_pod(affinity=node_affinity(term))
    assert state.explain(state.class_of(pod)) == {
        "node(s) were unschedulable": 1,
        "node(s) didn't satisfy plugin(s) [NodeAffinity]": 1,
    }


def test_an_empty_term_beside_a_named_node_narrows_nothing() -> None:
    state = state_of(make_node("a", unschedulable=True), make_node("b", unschedulable=True))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    pod = make_pod(affinity=node_affinity({}, term))
    assert state.explain(state.class_of(pod)) == {"node(s) were unschedulable": 2}


def test_terms_that_name_two_nodes_at_once_conflict() -> None:
    state = state_of(make_node("a"), make_node("b"))
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]
    cls = state.class_of(make_pod(affinity=node_affinity({"matchFields": fields})))
    assert not state.feasible(cls).any()
    assert state.diagnose(cls).refusal == "pod affinity terms conflict"


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80}, {"containerPort": 80}, True),
    ],
)
def test_host_ports_are_taken_once_per_address(taken: JsonObject, wanted: JsonObject, free: bool) -> None:
    state = state_of(make_node("n"), pods=(make_pod("other", ports=[taken], node="n"),))
    assert why(state, make_pod(ports=[wanted]), "n") == (() if free else (PORTS,))
    state.remove_pod("default/other")
    assert feasible(state, make_pod(ports=[wanted])) == {"n"}


def test_ports_of_sidecars_count_and_those_of_init_containers_do_not() -> None:
    port = [{"hostPort": 80}]
    sidecar = [{"name": "s", "restartPolicy": "Always", "ports": port}]
    state = state_of(make_node("n"), pods=(make_pod("other", node="n", initContainers=sidecar),))
    assert why(state, make_pod(ports=port), "n") == (PORTS,)
    assert feasible(state, make_pod(initContainers=[{"name": "i", "ports": port}])) == {"n"}


@pytest.mark.parametrize(
    ("requests", "reasons"),
    [
        ({"cpu": "1"}, ()),
        ({"cpu": "1001m"}, ("Insufficient cpu",)),
        ({"cpu": "2", "memory": "2Gi"}, ("Insufficient cpu", "Insufficient memory")),
        ({"ephemeral-storage": "1"}, ("Insufficient ephemeral-storage",)),
        ({"example.com/gpu": "1"}, ()),
        ({"example.com/gpu": "2"}, ("Insufficient example.com/gpu",)),
        ({"example.com/fpga": "1"}, ("Insufficient example.com/fpga",)),
        ({"example.com/fpga": "0"}, ()),
        ({"hugepages-2Mi": "2Mi"}, ("Insufficient hugepages-2Mi",)),
        ({"storage": "5Gi"}, ()),
    ],
)
def test_requests_must_fit_into_what_is_left(requests: dict[str, str], reasons: tuple[str, ...]) -> None:
    node = make_node("n", cpu="2", memory="2Gi", **{"example.com/gpu": "2"})
    other = make_pod("other", node="n", requests={"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"})
    assert why(state_of(node, pods=(other,)), make_pod(requests=requests), "n") == reasons


def test_a_node_takes_only_so_many_pods() -> None:
    state = state_of(make_node("n", pods="1"), pods=(make_pod("other", node="n"),))
    assert why(state, make_pod(), "n") == ("Too many pods",)


def test_memory_is_counted_in_whole_bytes() -> None:
    state = state_of(make_node("n", memory="3"), pods=(make_pod("other", node="n", requests={"memory": "1100m"}),))
    assert feasible(state, make_pod(requests={"memory": "1"})) == {"n"}
    assert feasible(state, make_pod(requests={"memory": "1001m"})) == set()


def test_preemption_can_help_only_where_the_node_is_large_enough() -> None:
    busy = make_pod("other", node="large", requests={"cpu": "4"})
    state = state_of(make_node("large"), make_node("small", cpu="1"), make_node("tainted", taints=[
        {"key": "a", "effect": "NoSchedule"}]), pods=(busy,))  # fmt: skip
    diagnosis = state.diagnose(state.class_of(make_pod(requests={"cpu": "3"})))
    assert [state.name_of(row) for row in diagnosis.resolvable.nonzero()[0]] == ["large"]
    assert diagnosis.reasons == {"Insufficient cpu": 2, "node(s) had untolerated taint(s)": 1}
    assert diagnosis.plugins == {"NodeResourcesFit", "TaintToleration"}


def test_a_running_pod_in_the_middle_of_a_resize_takes_what_it_still_has() -> None:
    shrinking = make_pod("other", node="n", requests={"cpu": "1"})
    actual = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    state = state_of(make_node("n"), pods=({**shrinking, "status": {"containerStatuses": [actual]}},))
    assert why(state, make_pod(requests={"cpu": "2"}), "n") == ("Insufficient cpu",)
