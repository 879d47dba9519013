"""Nodes that are only counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.scale_up.new_nodes import NewNodes, _deal, is_countable
from tests.cluster_autoscaler.scale_up.objects import node, pod, pods_of, snapshot, template


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 80))
def test_dealing_in_bulk_is_dealing_one_by_one(rooms: list[int], pods: int) -> None:
    pods = min(pods, sum(rooms))
    if not pods:
        return
    left, counts, at = list(rooms), [0] * len(rooms), -1
    for _ in range(pods):
        at = (at + 1) % len(rooms)
        while not left[at]:
            at = (at + 1) % len(rooms)
        left[at] -= 1
        counts[at] += 1
    found, last = _deal(np.array(rooms, dtype=np.int64), pods)
    assert (found.tolist(), last) == (counts, at)


def test_only_pods_that_ask_for_nothing_but_room_are_counted() -> None:
    cluster = snapshot(node("n"))

    def countable(**spec: Any) -> bool:
        return is_countable(cluster.state, cluster.class_of(pod("p", labels={"app": "x"}, **spec)))

    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert countable()
    assert countable(nodeSelector={"tier": "a"})
    assert not countable(nodeSelector={"kubernetes.io/hostname": "n"})
    assert not countable(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [field]}}})
    assert not countable(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert not countable(containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}])
    assert not countable(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])


def test_pods_that_others_keep_away_are_not_counted() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    shy = pod("shy", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
              nodeName="n")
    cluster = snapshot(node("n"), pods=[shy])
    assert not is_countable(cluster.state, cluster.class_of(pod("p", labels={"app": "x"})))
    assert is_countable(cluster.state, cluster.class_of(pod("q", labels={"app": "y"})))


def test_entering_the_snapshot_brings_every_pod_along() -> None:
    cluster = snapshot(node("n"))
    cls = cluster.class_of(pods_of("x", 1)[0])
    with cluster.trial():
        nodes = NewNodes(cluster, template("a", "4"), [cls])
        nodes.add(3)
        nodes.put_each(cls, 0, 2)
        assert nodes.spread(cls, 10) == 6
        assert len(cluster) == 1
        nodes.enter_snapshot()
        assert len(cluster) == 4
        assert [cluster.state.free(cluster.row(name))["cpu"] for name in nodes.names] == [0, 0, 0]
        assert cluster.last_index == 3


def test_a_search_for_any_node_passes_over_cordoned_ones() -> None:
    cordoned = template("a")
    cordoned.node["spec"]["unschedulable"] = True
    cluster = snapshot()
    cls = cluster.class_of(pod("p", tolerations=[{"operator": "Exists"}]))
    with cluster.trial():
        nodes = NewNodes(cluster, cordoned, [cls])
        nodes.add()
        assert nodes.room_last(cls) == 4
        assert nodes.spread(cls, 1) == 0
