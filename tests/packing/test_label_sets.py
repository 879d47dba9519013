"""Pods remember by which labels they are counted: whatever happens, that is where they are counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.affinity import PodAffinity
from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.packing.counters import AffinityMatcher, PodMatcher, SpreadMatcher
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity

JsonObject = dict[str, Any]
NODES = ("n0", "n1")
NAMES = ("p0", "p1", "p2", "p3")
LABELS = ({}, {"app": "a"}, {"app": "a", "zone": "x"})
STEPS = ("add", "add", "end", "remove", "assume", "many", "node", "no node", "fork", "rollback", "commit", "ask")
QUESTIONS: tuple[PodMatcher, ...] = (
    SpreadMatcher("default", LabelSelector.from_labels({"app": "a"})),
    SpreadMatcher("default", LabelSelector.from_labels({"zone": "x"})),
    SpreadMatcher(
        "default", LabelSelector.from_json({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]})
    ),
    AffinityMatcher(
        PodAffinity.of_pod(make_pod("q", affinity=pod_anti_affinity(affinity_term("a", "zone")))).anti_required
    ),
)


def counted(state: ClusterState) -> list[dict[Any, int]]:
    """By labels, end and row, as the table has it and as the pods that are there say."""
    table: Counter[Any] = Counter()
    for key, label_set in state.counters._label_sets.items():
        assert label_set.rows or label_set.terminating_rows
        for ends, rows in ((False, label_set.rows), (True, label_set.terminating_rows)):
            for row, pods in rows.items():
                table[key, ends, row] += pods
    by_hand: Counter[Any] = Counter()
    for placed in state.pods.values():
        row = state.node_names.get(placed.node_name)
        if row is not None:
            key = (placed.namespace, tuple(placed.labels.get(name) for name in state.counters._asked))
            by_hand[key, placed.is_terminating, row] += placed.count
            assert placed.label_set is None or state.counters._label_sets[key] is placed.label_set
        else:
            assert placed.label_set is None
    return [dict(table), dict(by_hand)]


def meant(state: ClusterState, matcher: PodMatcher) -> dict[int, int]:
    """The pods that a matcher means by row, each asked for itself."""
    found: Counter[int] = Counter()
    for placed in state.pods.values():
        row = state.node_names.get(placed.node_name)
        counts = matcher.counts_terminating or not placed.is_terminating
        if row is not None and counts and matcher.matches(placed.namespace, placed.labels, {}):
            found[row] += placed.count
    return dict(found)


def a_pod(data: st.DataObject, name: str, **more: Any) -> JsonObject:
    pod = make_pod(name, labels=data.draw(st.sampled_from(LABELS)), requests={"cpu": "1"}, **more)
    pod["metadata"]["uid"] = name
    return pod


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_label_sets_count_what_is_there_whatever_happens(data: st.DataObject) -> None:
    state, forks = ClusterState(), 0
    asked: set[PodMatcher] = set()
    asker = state.class_of(make_pod("asker"))
    for name in NODES:
        state.add_node(make_node(name))
    for number in range(data.draw(st.integers(1, 30))):
        name, node = data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(NODES))
        key, row = f"default/{name}", state.node_names.get(node)
        match data.draw(st.sampled_from(STEPS)):
            case "add":
                state.add_pod(a_pod(data, name, node=node))
            case "end" if (placed := state.pod(key)) is not None and placed.pod is not None:
                spec = {**placed.pod["spec"], "nodeName": placed.node_name}
                metadata = {**placed.pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
                state.add_pod({**placed.pod, "metadata": metadata, "spec": spec})
            case "remove" if state.pods:
                state.remove_pod(data.draw(st.sampled_from(sorted(state.pods))))
            case "assume" if row is not None and state.pod(key) is None:
                state.assume_pod(a_pod(data, name), row)
            case "many" if row is not None:
                pod = a_pod(data, "many")
                rows = [row, next(iter(state.node_names.values()))]
                state.assume_pods(state.class_of(pod), rows, [pod, pod], [f"many-{number}-{i}" for i in range(2)])
            case "node" if row is None:
                state.add_node(make_node(node))
            case "no node" if row is not None:
                state.remove_node(node)
            case "fork":
                state.fork()
                forks += 1
            case "rollback" if forks:
                state.rollback()
                forks -= 1
            case "commit" if forks:
                state.commit()
                forks -= 1
            case "ask":
                asked.add(data.draw(st.sampled_from(QUESTIONS)))
        for matcher in sorted(asked, key=QUESTIONS.index):
            answer = state.pods_per_row(asker, matcher).tolist()
            assert {row: pods for row, pods in enumerate(answer) if pods} == meant(state, matcher)
        table, by_hand = counted(state)
        assert table == by_hand


def test_pods_that_differ_in_what_nobody_asks_for_are_counted_together_until_somebody_does() -> None:
    state, cls = ClusterState(), ClusterState().class_of(make_pod("asker"))
    state.add_node(make_node("n0"))
    for name in NAMES:
        state.assume_pod(make_pod(name, labels={"job": name}), 0)
    first = state.pod("default/p0")
    assert first is not None and first.pod is not None and len(state.counters._label_sets) == 1
    bound = {**first.pod, "metadata": {**first.pod["metadata"], "labels": {"job": "p0", "zone": "x"}},
             "spec": {**first.pod["spec"], "nodeName": "n0"}}  # fmt: skip
    assert state.renew_pod(first, bound) and len(state.counters._label_sets) == 1
    own = SpreadMatcher("default", LabelSelector.from_labels({"job": "p0"}))
    assert state.pods_per_row(cls, own)[0] == 1
    assert len(state.counters._label_sets) == len(NAMES)
    for name in NAMES:
        state.remove_pod(f"default/{name}")
    assert state.pods_per_row(cls, own)[0] == 0 and not state.counters._label_sets
