"""Nodes that are looked at again only where they have changed are taken for what a first look takes them for."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.cluster_state.readiness import LookedAt, Measured, measure_nodes
from holokube.cluster_autoscaler.loop.node_book import NodeBook
from holokube.cluster_autoscaler.node_facts import NodeReadings
from holokube.cluster_autoscaler.objects import cores_and_memory, is_ready_and_schedulable, without_unready_gpus
from holokube.cluster_autoscaler.taints import TaintConfig, count_taints, to_be_deleted, without_starting_nodes
from holokube.kube.timeformat import format_time
from tests.cluster_autoscaler.scale_down.world import NOW_S, make_node

GPU = "gpu"
STARTING = {"key": "startup-taint.cluster-autoscaler.kubernetes.io/x", "effect": "NoSchedule"}
CANDIDATE = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}
STEPS = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=3), min_size=2, max_size=12)


def some_node(name: str, kind: int) -> Any:
    taints = {3: [STARTING], 4: [to_be_deleted(NOW_S)], 5: [CANDIDATE]}.get(kind, [])
    node = make_node(
        name, taints=taints, ready=kind != 2, cpu="8" if kind == 6 else "4", labels={GPU: "x"} if kind == 7 else None)
    node["metadata"]["creationTimestamp"] = format_time(NOW_S)
    return node


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_lists_and_measurements_are_those_of_a_first_look(steps: list[list[tuple[int, int]]]) -> None:
    config, readings = TaintConfig(), NodeReadings()
    book = NodeBook(readings, config, GPU)
    nodes = {f"n{i}": some_node(f"n{i}", 1) for i in range(6)}
    groups = {f"n{i}": "g" if i % 2 else "h" for i in range(5)}
    options = {"g": GroupOptions(max_node_startup_time_s=40.0)}
    measured: Measured | None = None
    now_s = NOW_S
    for changes in steps:
        now_s += 10.0
        for i, kind in changes:
            name = f"n{i}"
            if kind == 0:
                nodes.pop(name, None)
            else:
                nodes[name] = some_node(name, kind)
        raw = list(nodes.values())
        listed = book.look(tuple(raw))
        ready = [node for node in raw if is_ready_and_schedulable(node)]
        expected, ready = without_unready_gpus(raw, ready, GPU)
        expected, ready = without_starting_nodes(expected, ready, config)
        assert list(listed.nodes) == expected
        assert (listed.ready, dict(listed.taints)) == (len(ready), count_taints(raw, config))
        sizes = [cores_and_memory(node) for node in raw]
        assert listed.cores_and_memory == (sum(one for one, _ in sizes), sum(one for _, one in sizes))
        assert [one.node for one in listed.facts] == expected
        assert [one.name for one in listed.marked] == [one.name for one in listed.facts if one.is_to_be_deleted]
        assert [one.node for one in listed.candidates] == [one.node for one in listed.facts if one.is_candidate]
        looked_at = LookedAt(listed.nodes, groups, options, frozenset({"n3"}))
        known = measured.renewed(looked_at, now_s, readings) if measured is not None else None
        fresh = measure_nodes(looked_at, now_s, NodeReadings())
        measured = known if known is not None else fresh
        assert (measured.by_group, measured.total) == (fresh.by_group, fresh.total)
