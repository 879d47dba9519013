"""An informer that gets events as the store has them tells and keeps what one does that gets them from a watch."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.client.audience import (
    EVERYTHING,
    FINALIZERS,
    LABELS,
    PHASE,
    STATUS,
    EventType,
    aspects_changed,
    aspects_of_status,
)
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import PODS
from holokube.client.transport import WatchEvent
from holokube.store.store import Store
from holokube.store.values import StoreEvent
from tests.apiserver.worlds import World

JsonObject = dict[str, Any]
STATUSES = st.sampled_from([{}, {"phase": "Pending"}, {"phase": "Running"}, {"phase": "Failed"}, {"x": 1}, None])
STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["status", "labels", "spec", "uid", "end", "delete", "delete"]),
        STATUSES,
        # How often its event comes, and whether others come together with it.
        st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]),
        st.booleans(),
    ),
    max_size=25,
)


def changed(old: JsonObject, how: str, status: JsonObject | None, number: int) -> JsonObject:
    meta = old["metadata"].copy()
    new = {**old, "metadata": meta}
    if how == "status":
        new["status"] = status
    elif how == "labels":
        meta["labels"] = {"n": str(number % 3)}
    elif how == "spec":
        new["spec"] = {"n": number}
    elif how == "uid":
        meta["uid"] = f"uid-{number}"
    else:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return new


def events_of(steps: list[Any]) -> list[list[StoreEvent]]:
    """What a watch of a store shows, except for what gets lost or comes twice."""
    store = Store()
    watch = store.watch("pods", since=store.revision)
    batches: list[list[StoreEvent]] = [[]]
    for number, (name, how, status, times, is_last) in enumerate(steps):
        key = f"default/{name}"
        stored = store.get("pods", key)
        if stored is None:
            meta = {"name": name, "namespace": "default", "uid": f"uid-{number}"}
            store.create("pods", key, {"metadata": meta, "spec": {}, "status": status})
        elif how == "delete":
            store.delete("pods", key)
        else:
            made = store.update("pods", key, changed(stored.obj, how, status, number), owned=True)
            made.only_status = how == "status"
        batches[-1].extend(watch.pop_all() * times)
        watch.pop_all()
        if is_last:
            batches.append([])
    return [batch for batch in batches if batch]


def told_of(batches: list[list[StoreEvent]], *, as_stored: bool) -> tuple[list[Any], list[Any], str]:
    clock = VirtualClock()
    informer = Informer(clock, Client(InProcessTransport(World(clock).registry)), PODS)
    informer.add_index("labels", lambda obj: (obj["metadata"].get("labels") or {}).values(), heeds=LABELS)
    informer._version = "1"
    told: list[Any] = []
    for heeds in (EVERYTHING, STATUS, PHASE, LABELS, FINALIZERS):

        def on_event(type: EventType, old: JsonObject | None, new: JsonObject | None, heeds: int = heeds) -> None:
            told.append((heeds, type, old, new))

        informer.listen(on_event, heeds=heeds)
    for batch in batches:
        if as_stored:
            informer._on_stored(batch)
        else:
            informer._on_events([WatchEvent(event.type, event.stored.obj) for event in batch])
    kept = [(key, informer.lister.by_key(key)) for key in informer.lister.all_keys()]
    indexed = [(value, informer.lister.by_index("labels", value)) for value in informer.lister.index_values("labels")]
    return told, [kept, indexed, informer._seen], informer.resource_version


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_events_of_the_store_are_told_as_those_of_a_watch_are(steps: list[Any]) -> None:
    batches = events_of(steps)
    assert told_of(batches, as_stored=True) == told_of(batches, as_stored=False)


@given(STATUSES, STATUSES, st.booleans())
def test_a_change_of_nothing_but_the_status_is_found_at_less_cost(
    before: JsonObject | None, after: JsonObject | None, is_there: bool
) -> None:
    old: JsonObject = {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {}}
    new = {**old, "metadata": {**old["metadata"], "resourceVersion": "2"}, "status": after}
    if is_there:
        old["status"] = before
    assert aspects_of_status(old, new) == aspects_changed(old, new)
    assert aspects_of_status(new, {**new}) == aspects_changed(new, {**new})
