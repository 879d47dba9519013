"""Pods that wait, counted as they come and go."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from holokube.cluster_autoscaler.pods.processing import PodProcessor
from holokube.cluster_autoscaler.pods.waiting import WaitingPods, WaitingQueue, count_waiting
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.timeformat import format_time
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import NOW_S, owned_pod, waiting
from tests.packing.objects import make_node

AGES_S = st.sampled_from([0.0, 1.0, 60.0])
KINDS = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "3"]), st.sampled_from([None, 5]), AGES_S)


def a_pod(number: int, kind: tuple[str, str, int | None, float]) -> JsonObject:
    owner, cpu, priority, age_s = kind
    spec: dict[str, Any] = {} if priority is None else {"priority": priority}
    controller = "DaemonSet" if owner == "b" and cpu == "3" else "ReplicaSet"
    return waiting(
        owned_pod(f"p{number}", owner, kind=controller, requests={"cpu": cpu}, **spec),
        created=format_time(NOW_S - age_s))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), KINDS), max_size=30))
def test_a_queue_counts_as_counting_from_scratch_does(changes: list[tuple[int, Any]]) -> None:
    kinds = PodKinds()
    queue, there = WaitingQueue(kinds), dict[int, JsonObject]()
    for number, kind in changes:
        if number in there:
            queue.remove((False, 0, number))
            del there[number]
        else:
            there[number] = a_pod(number, kind)
            queue.add((False, 0, number), there[number])
        kinds.drop_old()
        pods = [pod for _, pod in sorted(there.items())]
        found, expected = queue.look(), count_waiting(kinds.facts_of_all(pods))
        assert found.pods == pods and found.facts == expected.facts
        assert found.groups == expected.groups and all(found.groups.values())
        assert found.oldest_s <= expected.oldest_s
        assert there or found.oldest_s == math.inf


@settings(deadline=None)
@given(
    st.lists(KINDS, max_size=8), st.lists(KINDS, max_size=4), st.sampled_from([0.0, 30.0]),
    st.lists(st.sampled_from(["0", "2", "4"]), max_size=3),
)
def test_counted_pods_are_processed_as_a_list_of_them_is(
    first: list[Any], later: list[Any], delay_s: float, sizes: list[str]
) -> None:
    """Turn after turn: first with some, then with more, on a processor that remembers."""
    options = AutoscalerOptions(new_pod_scale_up_delay_s=delay_s)
    nodes = [make_node(f"n{i}", cpu=size) for i, size in enumerate(sizes)]
    snapshots, processors = [ClusterSnapshot(), ClusterSnapshot()], [PodProcessor(), PodProcessor()]
    pods = [a_pod(i, kind) for i, kind in enumerate([*first, *later])]
    queue = WaitingQueue(snapshots[1].kinds)
    for i, pod in enumerate(pods[: len(first)]):
        queue.add((False, 0, i), pod)
    for turn in range(3):
        if turn == 1:
            for i, pod in enumerate(pods[len(first):], len(first)):
                queue.add((False, 0, i), pod)
        for snapshot in snapshots:
            snapshot.set_cluster_state(nodes, ())
        pending = pods[: len(first)] if not turn else pods
        plain = processors[0].process(snapshots[0], pending, options, NOW_S)
        counted = processors[1].process(snapshots[1], queue.look(), options, NOW_S)
        assert counted == plain
        for name in snapshots[0].node_names:
            assert snapshots[1].pods_on(name) == snapshots[0].pods_on(name)


def test_pods_that_fit_nowhere_cost_no_search_for_each(monkeypatch: Any) -> None:
    snapshot, processor = ClusterSnapshot(), PodProcessor()
    pods = [waiting(owned_pod(f"p{i}", "rs", requests={"cpu": "9"}), created=format_time(NOW_S)) for i in range(3)]
    facts = snapshot.kinds.facts_of_all(pods)
    snapshot.set_cluster_state([make_node("n")], ())
    assert processor.process(snapshot, count_waiting(facts), AutoscalerOptions(), NOW_S).young == pods
    monkeypatch.setattr("holokube.cluster_autoscaler.hinting.HintingSimulator.schedule_known", None)
    assert processor.process(snapshot, count_waiting(facts), AutoscalerOptions(), NOW_S).young == pods


def test_pods_behind_others_are_counted_with_them() -> None:
    kinds = PodKinds()
    facts = kinds.facts_of_all([a_pod(i, ("a", "1", None, float(i))) for i in range(3)])
    both = count_waiting(facts[:2]) + count_waiting(facts[2:])
    assert both == count_waiting(facts)
    assert both + count_waiting(()) is both
    assert isinstance(both, WaitingPods) and len(both) == 3
