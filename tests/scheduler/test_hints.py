from __future__ import annotations

import pytest

from holokube.packing.filters import DEFAULT_FILTERS
from holokube.packing.podclass import compile_class
from holokube.scheduler.cluster_events import (
    Change,
    ClusterEvent,
    assigned_pod_events,
    node_events,
    own_events,
    storage_event,
)
from holokube.scheduler.hints import ANY_NODE, HINTS, may_help
from tests.builders import JsonObject
from tests.packing.objects import affinity_term, claim, pod_affinity, pod_anti_affinity, spread
from tests.scheduler.objects import make_node, waiting

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def helps(plugin: str, pod: JsonObject, *events: ClusterEvent | None) -> bool:
    return any(event is not None and may_help(event, {plugin}, compile_class(pod)) for event in events)


def came(node: JsonObject) -> ClusterEvent:
    return ClusterEvent(Change.NODE_ADDED, None, node)


def left(pod: JsonObject) -> ClusterEvent:
    return ClusterEvent(Change.POD_DELETED, pod, None)


def test_all_filters_can_be_helped_by_something() -> None:
    helped = {plugin for rules in HINTS.values() for plugin in rules}
    assert helped == {rule.name for rule in DEFAULT_FILTERS} | {ANY_NODE}


def test_a_heartbeat_helps_nobody() -> None:
    node = make_node("n")
    beat = {**node, "status": {**node["status"], "conditions": [{"type": "Ready", "status": "True"}]}}
    assert node_events(node, beat) == []


def test_nodes_help_pods_that_they_could_take() -> None:
    small, large = make_node("n", cpu="1"), make_node("n", cpu="4")
    pod = waiting(cpu="2")
    assert helps("NodeResourcesFit", pod, came(large)) and not helps("NodeResourcesFit", pod, came(small))
    assert helps("NodeResourcesFit", pod, *node_events(small, large))
    assert not helps("NodeResourcesFit", pod, *node_events(large, small))
    more_memory = make_node("n", cpu="4", memory="99Gi")
    assert not helps("NodeResourcesFit", pod, *node_events(large, more_memory)), "it asks for cpu alone"


def test_taints_and_cordons_that_go_help() -> None:
    free, tainted, cordoned = make_node("n"), make_node("n", taints=[TAINT]), make_node("n", unschedulable=True)
    pod = waiting()
    assert helps("TaintToleration", pod, *node_events(tainted, free))
    assert not helps("TaintToleration", pod, *node_events(free, tainted))
    assert not helps("TaintToleration", pod, came(tainted)) and helps("TaintToleration", pod, came(free))
    assert helps("NodeUnschedulable", pod, *node_events(cordoned, free))
    assert not helps("NodeUnschedulable", pod, came(cordoned), *node_events(free, cordoned))


def test_labels_help_pods_that_select_them() -> None:
    plain, disk = make_node("n"), make_node("n", {"disk": "ssd"})
    pod = waiting(nodeSelector={"disk": "ssd"})
    assert helps("NodeAffinity", pod, *node_events(plain, disk)) and helps("NodeAffinity", pod, came(disk))
    assert not helps("NodeAffinity", pod, *node_events(disk, plain)) and not helps("NodeAffinity", pod, came(plain))


def test_a_pod_that_leaves_helps_with_what_it_had() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    assert helps("NodePorts", waiting(ports=port), left(waiting("q", ports=port)))
    assert not helps("NodePorts", waiting(ports=port), left(waiting("q")))
    assert helps("NodeResourcesFit", waiting(), left(waiting("q")))
    assert helps("NodeVolumeLimits", waiting(claims=["c"]), left(waiting("q", claims=["d"])))
    assert not helps("VolumeRestrictions", waiting(claims=["c"]), left(waiting("q")))
    assert not helps("TaintToleration", waiting(), left(waiting("q")))


def test_affinity_is_helped_by_friends_that_come_and_foes_that_go() -> None:
    friendly = waiting(affinity=pod_affinity(affinity_term("web", "zone")))
    wary = waiting(affinity=pod_anti_affinity(affinity_term("web", "zone")), labels={"app": "me"})
    web, other = waiting("w", labels={"app": "web"}), waiting("o", labels={"app": "db"})
    assert helps("InterPodAffinity", friendly, ClusterEvent(Change.POD_ADDED, None, web))
    assert not helps("InterPodAffinity", friendly, ClusterEvent(Change.POD_ADDED, None, other))
    assert helps("InterPodAffinity", wary, left(web)) and not helps("InterPodAffinity", wary, left(other))
    hostile = waiting("h", affinity=pod_anti_affinity(affinity_term("me", "zone")))
    assert helps("InterPodAffinity", waiting(labels={"app": "me"}), left(hostile))
    assert not helps("InterPodAffinity", waiting(labels={"app": "you"}), left(hostile))
    assert helps("InterPodAffinity", friendly, *assigned_pod_events(other, {**web, "spec": other["spec"]}))
    moved = node_events(make_node("n", {"zone": "a"}), make_node("n", {"zone": "b"}))
    assert helps("InterPodAffinity", wary, *moved)
    assert not helps("InterPodAffinity", wary, *node_events(make_node("n"), make_node("n", {"rack": "1"})))


def test_spreading_is_helped_by_pods_it_counts_and_nodes_with_its_keys() -> None:
    pod = waiting(topologySpreadConstraints=[spread("zone", "web")], labels={"app": "web"})
    assert helps("PodTopologySpread", pod, left(waiting("w", labels={"app": "web"})))
    assert not helps("PodTopologySpread", pod, left(waiting("w", labels={"app": "web"}, namespace="other")))
    assert not helps("PodTopologySpread", pod, left(waiting("w", labels={"app": "db"})))
    zoned = make_node("n", {"zone": "a"})
    assert helps("PodTopologySpread", pod, came(zoned), ClusterEvent(Change.NODE_DELETED, zoned, None))
    assert not helps("PodTopologySpread", pod, came(make_node("n")))
    assert helps("PodTopologySpread", pod, *node_events(zoned, make_node("n")))


def test_a_pod_that_shrinks_helps_pods_that_want_the_same() -> None:
    events = assigned_pod_events(waiting("q", cpu="2"), waiting("q", cpu="1"))
    assert helps("NodeResourcesFit", waiting(cpu="1"), *events)
    assert not helps("NodeResourcesFit", waiting(requests={"memory": "1Gi"}), *events)
    assert own_events(waiting(cpu="2"), waiting(cpu="1"))[0].change is Change.OWN_SCALED_DOWN
    assert assigned_pod_events(waiting("q", cpu="1"), waiting("q", cpu="2")) == []


@pytest.mark.parametrize("plugin", ["VolumeBinding", "VolumeZone"])
def test_claims_help_the_pods_that_mount_them(plugin: str) -> None:
    pod = waiting(claims=["mine"])
    assert helps(plugin, pod, storage_event(None, claim("mine")), storage_event(claim("mine"), claim("mine")))
    assert not helps(plugin, pod, storage_event(None, claim("other")), storage_event(claim("mine"), None))


def test_an_attachment_helps_when_it_goes() -> None:
    attachment: JsonObject = {"kind": "VolumeAttachment", "metadata": {"name": "a"}}
    assert helps("NodeVolumeLimits", waiting(claims=["c"]), storage_event(attachment, None))
    assert storage_event(None, attachment) is None
