"""Pods remember by which labels they are counted: whatever happens, that is where they are counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.packing import ClusterState
from tests.packing.objects import make_node, make_pod

JsonObject = dict[str, Any]
NODES = ("n0", "n1")
NAMES = ("p0", "p1", "p2", "p3")
LABELS = ({}, {"app": "a"}, {"app": "a", "zone": "x"})
STEPS = ("add", "add", "end", "remove", "assume", "many", "node", "no node", "fork", "rollback", "commit")


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
            key = (placed.namespace, tuple(placed.labels.items()))
            by_hand[key, placed.is_terminating, row] += placed.count
            assert placed.label_set is None or state.counters._label_sets[key] is placed.label_set
        else:
            assert placed.label_set is None
    return [dict(table), dict(by_hand)]


def a_pod(data: st.DataObject, name: str, **more: Any) -> JsonObject:
    pod = make_pod(name, labels=data.draw(st.sampled_from(LABELS)), requests={"cpu": "1"}, **more)
    pod["metadata"]["uid"] = name
    return pod


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_label_sets_count_what_is_there_whatever_happens(data: st.DataObject) -> None:
    state, forks = ClusterState(), 0
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
        table, by_hand = counted(state)
        assert table == by_hand
