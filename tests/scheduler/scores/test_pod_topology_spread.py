"""What is looked up in tables, and what is beyond them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.scheduler.scores import ScoreProfile, plugin_scores
from tests.packing.objects import make_node
from tests.scheduler.objects import waiting

ZONE = "topology.kubernetes.io/zone"
PODS = st.one_of(st.integers(0, 3), st.integers(500, 520), st.integers(0, 3000))


def by_hand(pods: list[int], zones: list[str]) -> list[int]:
    """Upstream's rule for the default constraints, one node after the other."""
    per_zone = {zone: sum(n for n, other in zip(pods, zones, strict=True) if other == zone) for zone in zones}
    of_host, of_zone = math.log(len(pods) + 2), math.log(len(per_zone) + 2)
    crowds = [n * of_host + 2.0 + (per_zone[zone] * of_zone + 4.0) for n, zone in zip(pods, zones, strict=True)]
    rounded = [math.floor(crowd + 0.5) for crowd in crowds]
    return [100 * (max(rounded) + min(rounded) - crowd) // max(rounded) for crowd in rounded]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(PODS, st.sampled_from("abc")), min_size=1, max_size=6))
def test_many_pods_count_by_the_same_rule_as_few(nodes: list[tuple[int, Any]]) -> None:
    state = ClusterState()
    pod = waiting("new", labels={"app": "x"})
    cls = state.class_of(pod)
    for number, (pods, zone) in enumerate(nodes):
        row = state.add_node(make_node(f"n{number}", {ZONE: zone}))
        if pods:
            state.place_many(cls, row, pods)
    memory: dict[Any, Any] = {}
    found = plugin_scores(
        state, cls, pod, np.arange(len(nodes)), ScoreProfile(pod_topology_spread=1),
        default_selector=LabelSelector.from_labels({"app": "x"}), memory=memory,
    )["PodTopologySpread"]  # fmt: skip
    assert found.tolist() == by_hand([pods for pods, _ in nodes], [zone for _, zone in nodes])
