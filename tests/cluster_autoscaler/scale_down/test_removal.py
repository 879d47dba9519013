from collections.abc import Collection

import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import NodeToRemove, Unremovable, UnremovableReason
from holokube.cluster_autoscaler.scale_down.drain_rules import rules_for
from holokube.cluster_autoscaler.scale_down.removal import NO_DESTINATION, RemovalSimulator
from tests.cluster_autoscaler.scale_down.world import World, make_context, make_node, make_pod

CONTEXT = make_context()


def simulate(
    world: World, name: str, destinations: Collection[str] | None = None, simulator: RemovalSimulator | None = None
) -> NodeToRemove | Unremovable:
    simulator = simulator or RemovalSimulator(rules_for(AutoscalerOptions()))
    everywhere = world.nodes if destinations is None else destinations
    return simulator.simulate(name, world.snapshot, everywhere, CONTEXT)


def test_a_node_whose_pods_find_room_elsewhere_may_go_and_stays_gone() -> None:
    pods = [make_pod("p", "a"), make_pod("d", "a", owner=("DaemonSet", "d"))]
    world = World([make_node("a"), make_node("b")], pods)
    world.look()
    found = simulate(world, "a")
    assert isinstance(found, NodeToRemove)
    assert found.pods_to_reschedule == (pods[0],)
    assert found.daemon_set_pods == (pods[1],)
    assert list(world.snapshot.node_names) == ["b"]
    assert world.snapshot.pods_on("b") == [pods[0]]


def test_an_empty_node_may_go_even_if_it_is_the_last() -> None:
    world = World([make_node("a")])
    world.look()
    found = simulate(world, "a")
    assert isinstance(found, NodeToRemove) and found.is_empty
    assert not world.snapshot.has_node("a")


def test_pods_without_a_place_keep_their_node_and_say_why() -> None:
    pods = [make_pod("small", "a"), make_pod("large", "a", cpu="3", priority=10)]
    world = World([make_node("a"), make_node("b"), make_node("c")], [*pods, make_pod("b", "b", cpu="2")])
    world.look()
    world.snapshot.add_node(world.snapshot.node_info("c").__class__(make_node("upcoming")))
    before = world.snapshot.node("a"), world.snapshot.pods_on("a")
    stays = simulate(world, "a", {"a", "b"})
    assert isinstance(stays, Unremovable)
    assert stays.reason is UnremovableReason.NO_PLACE_TO_MOVE_PODS
    assert stays.homeless_pod is not None
    assert stays.homeless_pod.pod is pods[1]
    assert stays.homeless_pod.reasons == {"Insufficient cpu": 1, NO_DESTINATION: 2}
    assert (world.snapshot.node("a"), world.snapshot.pods_on("a")) == before
    assert world.snapshot.pods_on("b") == [world.pods[2]]


def test_tpus_are_not_asked_of_other_nodes() -> None:
    pods = [make_pod("p", "a", extra={"cloud-tpus.google.com/v2": "8"})]
    world = World([make_node("a"), make_node("b")], pods)
    world.look()
    found = simulate(world, "a")
    assert isinstance(found, NodeToRemove) and found.pods_to_reschedule == (pods[0],)


def test_a_blocking_pod_is_named() -> None:
    bare = make_pod("bare", "a", owner=None)
    world = World([make_node("a"), make_node("b")], [bare])
    world.look()
    stays = simulate(world, "a")
    assert isinstance(stays, Unremovable)
    assert stays.blocking_pod is not None and stays.blocking_pod.pod is bare
    assert stays.blocking_reason == "NotReplicated"


def test_an_unknown_node_is_reported() -> None:
    world = World([make_node("a")])
    world.look()
    stays = simulate(world, "b")
    assert isinstance(stays, Unremovable) and stays.reason is UnremovableReason.NO_NODE_INFO


@pytest.mark.parametrize("policy", [None, "Ignore", "Honor"])
def test_a_node_that_is_drained_is_still_a_domain(policy: str | None) -> None:
    """Without the ghost the pods could be moved, be short of a domain in reality, and bring the node back."""
    spread = {
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }  # fmt: skip
    if policy:
        spread["nodeTaintsPolicy"] = policy
    pods = [make_pod(name, name, topologySpreadConstraints=[spread]) for name in ("a", "b")]
    world = World([make_node("a"), make_node("b")], pods)
    world.look()
    assert isinstance(simulate(world, "a"), NodeToRemove if policy == "Honor" else Unremovable)


def test_pods_go_where_they_went_before() -> None:
    pods = [make_pod("p", "a")]
    world = World([make_node(name) for name in "abcd"], pods)
    simulator = RemovalSimulator(rules_for(AutoscalerOptions()))
    world.look()
    assert isinstance(simulate(world, "a", simulator=simulator), NodeToRemove)
    (first,) = (name for name in "bcd" if world.snapshot.pods_on(name))
    simulator.drop_old_hints()
    world.look()
    assert isinstance(simulate(world, "a", simulator=simulator), NodeToRemove)
    assert world.snapshot.pods_on(first) == pods
    simulator.drop_old_hints()
    simulator.drop_old_hints()
    world.look()
    assert isinstance(simulate(world, "a", simulator=simulator), NodeToRemove)
    assert world.snapshot.pods_on(first) == []
