from __future__ import annotations

from holokube.scheduler.cluster_events import (
    Change,
    ClusterEvent,
    assigned_pod_events,
    may_request_other,
    node_events,
    own_events,
)
from tests.builders import JsonObject
from tests.scheduler.objects import make_node, waiting


def changes(events: list[ClusterEvent]) -> list[Change]:
    return [event.change for event in events]


def test_each_change_of_a_node_is_an_event_of_its_own() -> None:
    old = make_node("n")
    new = make_node("n", {"a": "b"}, cpu="8", unschedulable=True)
    assert changes(node_events(old, new)) == [Change.NODE_ALLOCATABLE, Change.NODE_LABELS, Change.NODE_TAINTS]


def test_the_order_of_taints_is_not_lost_on_anybody_but_their_times_are() -> None:
    taint = {"key": "k", "effect": "NoExecute"}
    old, new = make_node("n", taints=[taint]), make_node("n", taints=[{**taint, "timeAdded": "2026-01-01T00:00:00Z"}])
    assert node_events(old, new) == []


def test_a_pod_that_only_reports_is_no_event() -> None:
    old = waiting("p", node="n", cpu="1")
    new: JsonObject = {**old, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    assert assigned_pod_events(old, new) == [] and not may_request_other(old, new)


def test_a_resize_in_place_is_noticed_when_the_kubelet_has_done_it() -> None:
    def resized(cpu: str, has: str) -> JsonObject:
        status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": has}}}]}
        return {**waiting("p", node="n", cpu=cpu), "status": status}

    assert changes(assigned_pod_events(resized("2", "2"), resized("1", "2"))) == []
    assert changes(assigned_pod_events(resized("1", "2"), resized("1", "1"))) == [Change.POD_SCALED_DOWN]


def test_own_changes_are_told_apart() -> None:
    old = waiting("p", cpu="2", schedulingGates=[{"name": "g"}])
    new = waiting("p", cpu="1", labels={"a": "b"}, tolerations=[{"operator": "Exists"}])
    assert changes(own_events(old, new)) == [
        Change.OWN_LABELS, Change.OWN_SCALED_DOWN, Change.OWN_GATES, Change.OWN_TOLERATIONS,
    ]  # fmt: skip
    assert own_events(old, old) == []
