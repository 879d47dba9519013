"""Which pods count for the lower bound of a run's cost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holokube.lab.run.bound import there_throughout
from holokube.lab.run.node_meter import NodeRecord
from holokube.lab.run.pod_meter import PodRecord

TIMES = st.integers(0, 100)


def made_node(group: str, removed_ms: int | None) -> NodeRecord:
    return NodeRecord(0, "n", "uid", group, "c-8x", "a", "on-demand", 0, 8000, 1 << 34, 0, removed_ms=removed_ms)


def made_pod(shape: int, node: NodeRecord | None, bound_ms: int | None, ended_ms: int | None) -> PodRecord:
    return PodRecord("default/p", "w", 100, 1 << 20, 0, shape, node=node, bound_ms=bound_ms, ended_ms=ended_ms)


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[PodRecord], list[int]]:
    nodes: list[NodeRecord] = [
        made_node(group=draw(st.sampled_from(["", "workers"])), removed_ms=draw(st.none() | TIMES)) for _ in range(3)
    ]
    pods = [
        made_pod(
            shape=draw(st.integers(-1, 2)), node=draw(st.none() | st.sampled_from(nodes)),
            bound_ms=draw(st.none() | TIMES), ended_ms=draw(st.none() | TIMES),
        )
        for _ in range(draw(st.integers(0, 8)))
    ]  # fmt: skip
    end_ms, count = draw(st.integers(1, 100)), draw(st.integers(1, 7))
    return pods, [end_ms * number // count for number in range(count + 1)]


@given(lives())
def test_a_pod_counts_in_an_interval_that_it_spends_on_a_bought_node_from_end_to_end(
    life: tuple[list[PodRecord], list[int]]
) -> None:
    pods, borders_ms = life
    counted = []
    for begin_ms, until_ms in pairwise(borders_ms):
        mixture: Counter[int] = Counter()
        for pod in pods:
            if pod.shape < 0 or pod.node is None or not pod.node.group or pod.bound_ms is None:
                continue
            is_gone = any(at_ms is not None and at_ms < until_ms for at_ms in (pod.ended_ms, pod.node.removed_ms))
            mixture[pod.shape] += pod.bound_ms <= begin_ms and not is_gone
        counted.append(+mixture)
    assert there_throughout(pods, borders_ms) == counted
