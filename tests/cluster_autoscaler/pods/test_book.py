"""Books kept from event to event say what counting from scratch says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.client.cache import Cache, object_key
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.book import PodBook
from holokube.cluster_autoscaler.pods.classification import split_pods
from holokube.cluster_autoscaler.pods.filters import without_expendable
from holokube.kube.types import JsonObject

OPTIONS = AutoscalerOptions(bypassed_scheduler_names=("quick",), expendable_pods_priority_cutoff=-10)
SCHEDULED = {"type": "PodScheduled", "status": "True"}
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def a_pod(name: str, number: int, state: dict[str, Any]) -> JsonObject:
    spec = {key: state[key] for key in ("nodeName", "priority", "schedulerName") if state.get(key) is not None}
    metadata = {"namespace": "default", "name": name, "uid": f"{name}-{state['life']}", "resourceVersion": str(number)}
    if state["is_going"]:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: JsonObject = {"phase": state["phase"], "conditions": state["conditions"]}
    if state.get("nominated"):
        status["nominatedNodeName"] = "n0"
    return {"metadata": metadata, "spec": spec, "status": status}


STATES = st.fixed_dictionaries({
    "nodeName": st.sampled_from([None, "n0", "n1"]), "priority": st.sampled_from([None, 0, -11]),
    "schedulerName": st.sampled_from([None, "quick"]), "life": st.integers(0, 1), "is_going": st.booleans(),
    "phase": st.sampled_from(["Pending", "Running", "Succeeded"]), "nominated": st.booleans(),
    "conditions": st.sampled_from([[], [SCHEDULED], [REFUSED]]),
})  # fmt: skip
WHAT = st.sampled_from(["put", "put", "status", "status", "remove", "turn", "turn", "failed"])
EVENTS = st.lists(st.tuples(st.integers(0, 2), WHAT, STATES), min_size=10, max_size=40)


class Feed:
    """A cache and a book that hears what an informer would tell."""

    def __init__(self, place: Callable[[JsonObject], int] | None) -> None:
        self.cache = Cache()
        self.book = PodBook(OPTIONS, place)

    def put(self, pod: JsonObject) -> None:
        key = object_key(pod)
        old = self.cache.by_key(key)
        if old is not None and old["metadata"]["uid"] != pod["metadata"]["uid"]:
            self.remove(key)
            old = None
        self.cache.put(key, pod)
        self.book.on_pod("ADDED" if old is None else "MODIFIED", old, pod)

    def remove(self, key: str) -> None:
        old = self.cache.by_key(key)
        if old is not None:
            self.cache.remove(key)
            self.book.on_pod("DELETED", old, None)


def backwards(pod: JsonObject) -> int:
    return -int(pod["metadata"]["name"][1:])


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.booleans())
def test_the_book_says_what_counting_from_scratch_says(events: list[tuple[int, str, Any]], in_order: bool) -> None:
    place = backwards if in_order else None
    feed = Feed(place)
    known: dict[str, tuple[Any, JsonObject]] = {}
    for number, (i, what, state) in enumerate([*events, (0, "turn", None)]):
        name, key = f"p{i}", f"default/p{i}"
        old = feed.cache.by_key(key)
        if what == "put":
            feed.put(a_pod(name, number, state))
        elif what == "status" and old is not None:
            feed.put({**a_pod(name, number, state), "metadata": old["metadata"], "spec": old["spec"]})
        elif what == "remove":
            feed.remove(key)
        elif what == "failed":
            feed.book.take()
        elif what == "turn":
            turn = feed.book.take()
            for changed, change in turn.changed.items():
                known.pop(changed, None)
                if change is not None:
                    known[changed] = change
            feed.book.settled()
            pods = feed.cache.list() if place is None else sorted(feed.cache.list(), key=place)
            lists = split_pods(pods, OPTIONS)
            expected = without_expendable(lists.allocated, OPTIONS.expendable_pods_priority_cutoff)
            assert [pod for _, pod in sorted(known.values(), key=lambda one: one[0])] == expected
            assert (turn.unschedulable, turn.unprocessed) == (lists.unschedulable, lists.unprocessed)
            assert turn.pending == lists.pending
            on_node = [
                pod for pod in pods if pod["spec"].get("nodeName") == "n0" and pod["status"]["phase"] != "Succeeded"]
            assert feed.book.pods_on(["n0"]) == on_node


def test_what_a_failed_turn_took_is_there_for_the_next() -> None:
    feed = Feed(None)
    state = dict.fromkeys(("nominated", "priority", "schedulerName"))
    feed.put(a_pod("p0", 1, {
        **state, "nodeName": "n0", "life": 0, "is_going": False, "phase": "Running", "conditions": []}))
    assert list(feed.book.take().changed) == ["default/p0"]
    assert list(feed.book.take().changed) == ["default/p0"]
    feed.book.settled()
    assert not feed.book.take().changed
