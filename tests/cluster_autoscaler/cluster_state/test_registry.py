"""What the registry makes of nodes, machines and requests."""

from __future__ import annotations

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, GroupOptions, InstanceError, InstanceState
from holokube.cluster_autoscaler.cluster_state.registry import AcceptableRange, IncorrectSize, Revert
from holokube.cluster_autoscaler.objects import RESOURCE_UNREADY
from tests.cluster_autoscaler.cluster_state.world import START_S, World, failed, group, machine, node

MINUTE_S = 60.0


def test_nodes_are_told_apart_by_what_they_are_up_to() -> None:
    world = World()
    nodes = [
        node("ready"), node("unready", ready=False), node("young", ready=False, age_s=60),
        node("leaving"), node("asleep", conditions=[{"type": "Suspended", "status": "True"}]),
        node("full", conditions=[{"type": "DiskPressure", "status": "True"}]),
        node("tainted", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
        node("no-gpu", ready=False, reason=RESOURCE_UNREADY), node("foreign", group=""),
    ]
    world.see(nodes, [group(target=8)], deleted=["leaving"])
    found = world.of("g")
    assert found.ready == ["ready"]
    assert found.unready == ["unready", "full", "tainted", "no-gpu"]
    assert found.resource_unready == ["no-gpu"]
    assert found.not_started == ["young"]
    assert found.deleted == ["leaving"]
    assert found.suspended == ["asleep"]
    assert len(found.registered) == 8
    assert world.registry.total.ready == ["ready", "foreign"]


def test_a_node_has_as_long_to_start_as_its_group_gives_it() -> None:
    world = World()
    slow = group("slow", 1, options=GroupOptions(max_node_startup_time_s=3600))
    world.see([node("a", "g", ready=False, age_s=1000), node("b", "slow", ready=False, age_s=1000)],
              [group(target=1), slow])
    assert world.of("g").unready == ["a"]
    assert world.of("slow").not_started == ["b"]


def test_a_machine_without_a_node_is_missed_from_when_it_was_first_seen() -> None:
    world = World()
    groups = [group(target=2, machines=[machine("a"), machine("b")])]
    world.see([node("a")], groups)
    assert [one.id for one in world.registry.unregistered] == ["cloud://b"]
    world.see([node("a")], groups, after_s=15 * MINUTE_S)
    assert world.of("g").unregistered == ["cloud://b"]
    world.see([node("a")], groups, after_s=1)
    assert world.of("g").long_unregistered == ["cloud://b"]
    assert world.registry.unregistered[0].since_s == START_S
    world.see([node("a"), node("b")], groups, after_s=1)
    assert not world.registry.unregistered


def test_machines_that_will_never_register_and_those_the_provider_disowns_do_not_count() -> None:
    world = World()
    gone = [machine("dying", InstanceState.DELETING), failed("bad"), machine("stale")]
    world.see([], [group(target=0, machines=gone)], disowned=["cloud://stale"])
    assert [one.id for one in world.registry.unregistered] == ["cloud://stale"]
    assert world.registry.readiness("g") is None


def test_the_acceptable_range_gives_requests_time() -> None:
    world = World()
    world.see([node("a"), node("b")], [group(target=2)])
    assert world.registry.acceptable_range("g") == AcceptableRange(2, 2, 2)
    world.registry.register_scale_up("g", 4, world.now_s)
    world.registry.recalculate({"g": 6})
    assert world.registry.acceptable_range("g") == AcceptableRange(2, 6, 6)
    world.registry.register_scale_down("g", "a", world.now_s, world.now_s + 300)
    world.registry.recalculate({"g": 5})
    assert world.registry.acceptable_range("g") == AcceptableRange(1, 6, 5)
    world.see([node("b")], [group(target=5)], after_s=300)
    assert world.registry.acceptable_range("g") == AcceptableRange(1, 5, 5), "five minutes are over"


def test_what_was_asked_for_is_upcoming_until_it_is_ready() -> None:
    world = World()
    world.see([node("a")], [group(target=1)])
    world.registry.register_scale_up("g", 3, world.now_s)
    booting = [node("a"), node("b", ready=False, age_s=0)]
    world.see(booting, [group(target=4)])
    upcoming = world.registry.upcoming(world.now_s)
    assert upcoming.counts == {"g": 3} and upcoming.registered == {"g": ["b"]}
    assert world.registry.is_scaling_up("g") and not world.registry.is_at_target_size("g")
    world.see([node(name) for name in "abcd"], [group(target=4)], after_s=30)
    assert not world.registry.upcoming(world.now_s).counts
    assert not world.registry.has_started_scale_up("g") and world.registry.is_at_target_size("g")


def test_without_a_request_nothing_is_upcoming() -> None:
    """After a restart nobody remembers the request, and what it asked for may never come."""
    world = World()
    world.see([node("a")], [group(target=4)])
    assert not world.registry.upcoming(world.now_s).counts


def test_a_second_request_gives_more_time_and_fewer_wishes_do_not() -> None:
    world = World()
    world.see([], [group()])
    world.registry.register_scale_up("g", 2, world.now_s)
    world.registry.register_scale_up("g", 1, world.now_s + 600)
    world.registry.register_scale_up("g", -1, world.now_s + 800)
    assert not world.see([], [group(target=2)], after_s=1500).events
    assert [event.reason for event in world.see([], [group(target=2)], after_s=1).events] == ["ScaleUpTimedOut"]


def test_wishing_for_nothing_more_ends_a_request() -> None:
    world = World()
    world.see([], [group()])
    world.registry.register_scale_up("g", 2, world.now_s)
    world.registry.register_scale_up("g", -2, world.now_s)
    assert not world.registry.has_started_scale_up("g")
    world.registry.register_scale_up("g", -1, world.now_s)
    assert not world.registry.has_started_scale_up("g")


def test_a_scale_up_that_takes_too_long_is_taken_back_and_the_group_left_alone() -> None:
    world = World()
    world.see([], [group()])
    world.registry.register_scale_up("g", 3, world.now_s)
    found = world.see([], [group(target=3)], after_s=910)
    assert [event.message for event in found.events] == ["Nodes added to group g failed to register within 15m10s"]
    assert found.reverts == [Revert("g", -3)]
    assert [(one.delta, one.error.code) for one in found.failures] == [(3, "timeout")]
    backoff = world.registry.backoff("g", world.now_s)
    assert backoff is not None and backoff.until_s == world.now_s + 300
    safety = world.registry.scale_up_safety("g", world.now_s)
    assert not safety.is_safe and safety.backoff == backoff
    assert not world.registry.upcoming(world.now_s).counts


def test_a_group_without_a_template_is_not_known_well_enough_to_be_left_alone() -> None:
    world = World()
    world.see([], [group()])
    world.registry.register_scale_up("g", 3, world.now_s)
    found = world.see([], [group(target=3)], after_s=901, templates=[])
    assert found.failures and world.registry.backoff("g", world.now_s) is None


def test_machines_that_fail_shrink_the_request_and_are_told_once() -> None:
    world = World()
    world.see([], [group()])
    world.registry.register_scale_up("g", 3, world.now_s)
    booting = machine("c", InstanceState.CREATING)
    groups = [group(target=3, machines=[failed("a"), failed("b", message="none at all"), booting])]
    found = world.see([], groups, after_s=5)
    assert [event.message for event in found.events] == [
        "Failed adding 2 nodes to group g due to OutOfResource.QUOTA; source errors: no quota left, none at all"]
    assert [(one.delta, one.error.message) for one in found.failures] == [(2, "no quota left, none at all")]
    assert world.registry.backoff("g", world.now_s) is not None
    assert not world.see([], groups, after_s=5).events, "the same machines are no news"
    ids = [one["metadata"]["name"] for one in world.registry.created_with_errors()["g"]]
    assert ids == ["cloud://a", "cloud://b"]


def test_failed_machines_of_a_group_that_asked_for_nothing_are_only_removed() -> None:
    world = World()
    found = world.see([], [group(target=1, machines=[failed("a")])])
    assert not found.events and not found.failures
    assert world.registry.created_with_errors()


def test_a_refused_increase_puts_the_group_into_backoff() -> None:
    world = World()
    world.see([], [group()])
    error = InstanceError(ErrorClass.OTHER, "cloudProviderError", "no")
    world.registry.register_failed_scale_up("g", error, world.now_s)
    assert world.registry.scale_up_safety("g", world.now_s).backoff is not None
    assert world.registry.scale_up_safety("g", world.now_s + 301).is_safe


def test_the_cluster_is_unhealthy_when_more_is_broken_than_can_be_an_accident() -> None:
    world = World()
    broken = [node(f"b{i}", ready=False) for i in range(3)]
    world.see(broken, [group(target=3)])
    assert world.registry.is_cluster_healthy(), "three are always all right"
    broken.append(node("b3", ready=False))
    world.see([*broken, *(node(f"a{i}") for i in range(5))], [group(target=9)])
    assert world.registry.is_cluster_healthy(), "4 of 9 are 44 percent"
    world.see([*broken, *(node(f"a{i}") for i in range(4))], [group(target=8)])
    assert not world.registry.is_cluster_healthy()


def test_a_group_is_unhealthy_when_too_many_of_its_nodes_are_missing() -> None:
    world = World()
    world.see([node("a")], [group(target=4)])
    assert world.registry.is_group_healthy("g")
    world.see([node("a")], [group(target=5)])
    assert not world.registry.is_group_healthy("g")
    assert not world.registry.is_group_healthy("unheard of")
    world.see([], [group(target=0)])
    assert world.registry.is_group_healthy("g")
    world.see([], [group(target=5)])
    assert not world.registry.is_group_healthy("g"), "nothing is there, and nobody has just asked for it"
    world.registry.register_scale_up("g", 5, world.now_s)
    world.registry.recalculate({"g": 5})
    assert world.registry.is_group_healthy("g")


def test_a_size_that_stays_wrong_keeps_its_first_moment() -> None:
    world = World()
    world.see([node("a")], [group(target=3)])
    assert world.registry.incorrect_size("g") == IncorrectSize(3, 1, START_S)
    world.see([node("a")], [group(target=3)], after_s=60)
    assert world.registry.incorrect_size("g") == IncorrectSize(3, 1, START_S)
    world.see([node("a"), node("b")], [group(target=3)], after_s=60)
    assert world.registry.incorrect_size("g") == IncorrectSize(3, 2, START_S + 120)
    missing = group(target=3, machines=[machine("a"), machine("b"), machine("c")])
    world.see([node("a"), node("b")], [missing], after_s=60)
    assert world.registry.incorrect_size("g") is None, "the third is on its way"


def test_it_counts_what_is_there_and_what_was_asked_for() -> None:
    world = World()
    world.see([node("a"), node("b", ready=False, age_s=0)], [group(target=4), group("h", 2)])
    assert world.registry.autoscaled_nodes() == (1, 6)
