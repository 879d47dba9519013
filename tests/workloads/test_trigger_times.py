from __future__ import annotations

from holokube.workloads.trigger_times import LAST_CHANGE, TriggerTimes, with_trigger_time
from tests.workloads.objects import a_pod, ago, an_owner

SERVICE = an_owner("Service", "web")


def test_a_new_service_counts_from_its_creation() -> None:
    assert TriggerTimes().look(SERVICE, [a_pod(ready_s=5)]) == ago(200)


def test_the_earliest_of_the_pods_that_changed_counts() -> None:
    times = TriggerTimes()
    times.look(SERVICE, [a_pod("old", ready_s=90)])
    pods = [a_pod("old", ready_s=90), a_pod("one", ready_s=20), a_pod("two", ready_s=10), a_pod("not-ready")]
    assert times.look(SERVICE, pods) == ago(20)
    assert times.look(SERVICE, pods) == ""


def test_a_pod_that_went_changes_no_time_and_one_that_flapped_does() -> None:
    times = TriggerTimes()
    times.look(SERVICE, [a_pod("one", ready_s=20), a_pod("two", ready_s=10)])
    assert times.look(SERVICE, [a_pod("one", ready_s=20)]) == ""
    assert times.look(SERVICE, [a_pod("one", ready_s=3)]) == ago(3)


def test_a_service_that_is_forgotten_is_new_again() -> None:
    times = TriggerTimes()
    times.look(SERVICE, [])
    assert times.look(SERVICE, []) == ""
    times.forget("default/web")
    assert times.look(SERVICE, []) == ago(200)


def test_the_annotation_is_set_and_taken_away_and_others_stay() -> None:
    marked = with_trigger_time({"metadata": {"name": "s", "annotations": {"a": "b"}}}, ago(1))
    assert marked["metadata"]["annotations"] == {"a": "b", LAST_CHANGE: ago(1)}
    assert with_trigger_time(marked, "")["metadata"]["annotations"] == {"a": "b"}
    bare = with_trigger_time({"metadata": {"name": "s", "annotations": {LAST_CHANGE: ago(9)}}}, "")
    assert bare == {"metadata": {"name": "s"}}
