from __future__ import annotations

from holokube.base.clock import VirtualClock
from holokube.cluster_autoscaler.actuation.results import NodeDeleteOutcome, NodeDeleteResult
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from tests.cluster_autoscaler.actuation.world import pod


def test_deletions_in_flight_are_counted_by_kind_and_group() -> None:
    tracker = NodeDeletionTracker(VirtualClock())
    tracker.start("g", "a", drain=False)
    tracker.start("g", "b", drain=True)
    tracker.start("h", "c", drain=True)
    assert tracker.in_flight() == (["a"], ["b", "c"])
    assert tracker.deletions_in_group("g") == 2
    assert tracker.deletions_per_group() == {"g": 2, "h": 1}
    assert tracker.group_of("c") == "h"
    tracker.end("g", "a", NodeDeleteResult())
    tracker.end("g", "b", NodeDeleteResult())
    assert tracker.in_flight() == ([], ["c"])
    assert tracker.deletions_in_group("g") == 0
    assert not tracker.is_in_flight("a")


def test_the_end_of_an_unknown_deletion_does_not_spoil_the_count() -> None:
    tracker = NodeDeletionTracker(VirtualClock())
    tracker.start("g", "a", drain=False)
    tracker.end("g", "stranger", NodeDeleteResult())
    assert tracker.deletions_in_group("g") == 1


def test_results_are_kept_until_they_are_cleared() -> None:
    clock = VirtualClock()
    tracker = NodeDeletionTracker(clock)
    assert tracker.results() == ({}, clock.time())
    failed = NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_DELETE)
    tracker.start("g", "a", drain=False)
    tracker.end("g", "a", failed)
    first_s = clock.time()
    clock.advance(5)
    tracker.start("g", "b", drain=False)
    tracker.end("g", "b", NodeDeleteResult())
    assert tracker.results() == ({"a": failed, "b": NodeDeleteResult()}, clock.time())
    tracker.clear_results_not_newer_than(first_s)
    assert tracker.results() == ({"b": NodeDeleteResult()}, clock.time())


def test_evictions_are_recent_only_for_a_while() -> None:
    clock = VirtualClock()
    tracker = NodeDeletionTracker(clock, evictions_ttl_s=60)
    first, second = pod("p", "a"), pod("q", "a")
    tracker.evicted(first)
    clock.advance(40)
    tracker.evicted(second)
    assert tracker.recent_evictions() == [first, second]
    clock.advance(20)
    assert tracker.recent_evictions() == [second]
    clock.advance(60)
    assert tracker.recent_evictions() == []


def test_as_upstream_no_eviction_is_recent_unless_asked_for() -> None:
    tracker = NodeDeletionTracker(VirtualClock())
    tracker.evicted(pod("p", "a"))
    assert tracker.recent_evictions() == []
