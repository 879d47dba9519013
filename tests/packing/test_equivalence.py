"""The engine against the naive reference, on random clusters and random histories."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.packing import ClusterState
from tests.packing.naive import NaiveCluster
from tests.packing.objects import make_node, make_pod

JsonObject = dict[str, Any]
KEYS = ("zone", "rack", "kubernetes.io/hostname")
APPS = ("a", "b")
TAINTS: list[JsonObject] = [
    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
    {"key": "gone", "value": "", "effect": "NoExecute"},
    {"key": "soft", "value": "", "effect": "PreferNoSchedule"},
]
TOLERATIONS: list[JsonObject] = [
    {"operator": "Exists"},
    {"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
    {"key": "gone", "operator": "Exists", "tolerationSeconds": 30},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
]
app = st.sampled_from(APPS)
key = st.sampled_from(KEYS)


def optional(strategy: st.SearchStrategy[Any], empty: Any = None) -> st.SearchStrategy[Any]:
    """Mostly nothing, so that a pod is not refused for five reasons at once."""
    return st.one_of(st.just(empty), st.just(empty), strategy)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> JsonObject:
    labels = {}
    for label, values in (("zone", "123"), ("rack", "12"), ("size", ("5", "50", "x"))):
        value = draw(st.sampled_from([None, *values, *values]))
        if value is not None:
            labels[label] = value
    more = draw(st.sampled_from([{}, {"example.com/gpu": "2"}]))
    return make_node(
        name, labels, cpu=draw(st.sampled_from(["1", "2", "1500m"])), pods=draw(st.sampled_from(["2", "8"])),
        taints=draw(optional(st.lists(st.sampled_from(TAINTS), max_size=2, unique_by=lambda t: t["key"]), [])),
        unschedulable=draw(st.sampled_from([False, False, False, True])), **more,
    )  # fmt: skip


expression = st.sampled_from([
    {"key": "zone", "operator": "In", "values": ["1", "2"]}, {"key": "zone", "operator": "NotIn", "values": ["1"]},
    {"key": "rack", "operator": "Exists"}, {"key": "rack", "operator": "DoesNotExist"},
    {"key": "size", "operator": "Gt", "values": ["10"]}, {"key": "size", "operator": "Lt", "values": ["10"]},
])  # fmt: skip
field = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "NotIn"]), st.sampled_from(["n0", "n1", "n2", "other"]),
)  # fmt: skip
node_term = st.builds(
    lambda expressions, fields: {"matchExpressions": expressions, "matchFields": fields},
    st.lists(expression, max_size=2), optional(st.lists(field, max_size=1), []),
)  # fmt: skip


@st.composite
def affinity_terms(draw: st.DrawFn) -> JsonObject:
    term: JsonObject = {"topologyKey": draw(key)}
    selector = draw(st.sampled_from(["app", "app", "expression", "all", "none"]))
    if selector == "app":
        term["labelSelector"] = {"matchLabels": {"app": draw(app)}}
    elif selector == "expression":
        term["labelSelector"] = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    elif selector == "all":
        term["labelSelector"] = {}
    if draw(st.booleans()):
        term["namespaces"] = draw(st.sampled_from([["default"], ["other"], ["default", "other"]]))
    by_labels = [{}, {"matchLabels": {"team": "x"}}, {"matchExpressions": [{"key": "y", "operator": "DoesNotExist"}]}]
    if draw(st.sampled_from([False, False, True])):
        term["namespaceSelector"] = draw(st.sampled_from(by_labels))
    return term


@st.composite
def spreads(draw: st.DrawFn) -> JsonObject:
    constraint: JsonObject = {
        "topologyKey": draw(key), "maxSkew": draw(st.integers(1, 2)),
        "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        "labelSelector": draw(st.sampled_from([{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}, {}])),
    }  # fmt: skip
    for name, values in (
        ("minDomains", [1, 2, 4]), ("nodeAffinityPolicy", ["Honor", "Ignore"]),
        ("nodeTaintsPolicy", ["Honor", "Ignore"]), ("matchLabelKeys", [["rev"]]),
    ):  # fmt: skip
        value = draw(optional(st.sampled_from(values)))
        if value is not None:
            constraint[name] = value
    return constraint


@st.composite
def pods(draw: st.DrawFn, name: str) -> JsonObject:
    labels = {"ordinal": name}
    for label, values in (("app", APPS), ("tier", ("web",)), ("rev", ("1", "2"))):
        value = draw(st.sampled_from([None, *values]))
        if value is not None:
            labels[label] = value
    affinity: JsonObject = {}
    terms = draw(optional(st.lists(node_term, min_size=1, max_size=2)))
    if terms:
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    for kind in ("podAffinity", "podAntiAffinity"):
        wanted = draw(optional(st.lists(affinity_terms(), min_size=1, max_size=2)))
        if wanted:
            affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": wanted}
    port = st.fixed_dictionaries(
        {"hostPort": st.sampled_from([80, 81])},
        optional={"hostIP": st.sampled_from(["127.0.0.1", "0.0.0.0"]), "protocol": st.just("UDP")},
    )
    spec: JsonObject = {"affinity": affinity} if affinity else {}
    selector = draw(optional(st.just({"zone": "1"})))
    if selector:
        spec["nodeSelector"] = selector
    return make_pod(
        name, namespace=draw(st.sampled_from(["default", "default", "other"])), labels=labels,
        requests=draw(st.sampled_from([{}, {"cpu": "500m"}, {"cpu": "0.7"}, {"example.com/gpu": "1"}])),
        ports=draw(optional(st.lists(port, max_size=2), [])),
        tolerations=draw(optional(st.lists(st.sampled_from(TOLERATIONS), max_size=2), [])),
        topologySpreadConstraints=draw(optional(st.lists(spreads(), max_size=2), [])),
        deleted=draw(st.sampled_from([False, False, False, True])), **spec,
    )  # fmt: skip


def bound(pod: JsonObject, node: str) -> JsonObject:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}}


def names_of(state: ClusterState, mask: np.ndarray[Any, Any]) -> set[str]:
    return {state.name_of(row) for row in np.flatnonzero(mask).tolist()}


def assert_alike(state: ClusterState, naive: NaiveCluster, questions: list[JsonObject]) -> None:
    for pod, cls in zip(questions, state.classify(questions), strict=True):
        expected = naive.feasible(pod)
        assert names_of(state, state.feasible(cls)) == expected
        assert names_of(state, state.recompute(cls)) == expected
        for name, row in state.node_names.items():
            assert bool(state.why(cls, row)) == (name not in expected)
        diagnosis = state.diagnose(cls)
        assert sum(diagnosis.reasons.values()) >= len(naive.nodes) - len(expected)
        assert bool(diagnosis.reasons) == (len(expected) < len(naive.nodes))


class Run:
    """The engine and the reference living through the same history."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.state = ClusterState(remember=data.draw(st.sampled_from([1, 3, 100])))
        self.naive = NaiveCluster()
        self.saved: list[tuple[dict[str, JsonObject], dict[str, JsonObject], dict[str, dict[str, str]]]] = []

    def step(self) -> None:
        actions = ["node", "node", "pod", "pod", "pod", "drop_node", "drop_pod", "fork", "rollback", "commit", "ns"]
        getattr(self, self.data.draw(st.sampled_from(actions)))()

    def node(self) -> None:
        node = self.data.draw(st.integers(0, 5).flatmap(lambda i: nodes(f"n{i}")))
        self.state.add_node(node)
        self.naive.nodes[node["metadata"]["name"]] = node

    def pod(self) -> None:
        pod = self.data.draw(st.integers(0, 9).flatmap(lambda i: pods(f"p{i}")))
        pod = bound(pod, self.data.draw(st.sampled_from([f"n{i}" for i in range(6)])))
        self.state.add_pod(pod)
        self.naive.pods[f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = pod

    def drop_node(self) -> None:
        if self.naive.nodes:
            name = self.data.draw(st.sampled_from(sorted(self.naive.nodes)))
            self.state.remove_node(name)
            del self.naive.nodes[name]

    def drop_pod(self) -> None:
        if self.naive.pods:
            name = self.data.draw(st.sampled_from(sorted(self.naive.pods)))
            self.state.remove_pod(name)
            del self.naive.pods[name]

    def ns(self) -> None:
        name = self.data.draw(st.sampled_from(["default", "other"]))
        labels = self.data.draw(st.sampled_from([{}, {"team": "x"}, {"y": "1"}]))
        self.state.set_namespace(name, labels)
        self.naive.namespaces[name] = labels

    def fork(self) -> None:
        self.state.fork()
        naive = self.naive
        self.saved.append(copy.deepcopy((naive.nodes, naive.pods, naive.namespaces)))

    def rollback(self) -> None:
        if self.saved:
            self.state.rollback()
            self.naive.nodes, self.naive.pods, self.naive.namespaces = self.saved.pop()

    def commit(self) -> None:
        if self.saved:
            self.state.commit()
            self.saved.pop()


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_feasible_nodes_equal_the_naive_reference_through_any_history(data: st.DataObject) -> None:
    run = Run(data)
    for _ in range(2):
        run.node()
    questions = [data.draw(pods(f"q{i}")) for i in range(3)]
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 5))):
            run.step()
        assert_alike(run.state, run.naive, questions)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_rolled_back_state_is_the_state_before(data: st.DataObject) -> None:
    run = Run(data)
    for _ in range(6):
        run.step()
    while run.saved:
        run.commit()
    state = run.state
    before = snapshot(state)
    state.fork()
    for _ in range(data.draw(st.integers(1, 10))):
        run.step()
    while run.saved:
        run.rollback()
    state.rollback()
    assert snapshot(state) == before


def snapshot(state: ClusterState) -> dict[str, Any]:
    """Everything a caller can see, in plain values."""
    return {
        "rows": dict(state.node_names),
        "free": {
            name: {k: v for k, v in state.free(row).items() if v or k == "cpu"}
            for name, row in state.node_names.items()
        },
        "nonzero": {name: state.nodes.used_nonzero[row].tolist() for name, row in state.node_names.items()},
        "pods": {name: [p.key for p in state.pods_on(row)] for name, row in state.node_names.items()},
        "all": sorted(state.pods),
        "namespaces": dict(state.counters.namespaces),
    }
