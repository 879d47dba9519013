"""Keeps the scheduler's picture true: what informers see goes into the state, and wakes the pods that it may help.

A pod for which a node was chosen is in the state at once, as *assumed*, long before the API server says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from holokube.client.informer import EventType
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PodClass
from holokube.packing.nodes import labels_of
from holokube.packing.podclass import requests_nonzero_of, requests_of
from holokube.scheduler.cluster_events import (
    Change,
    ClusterEvent,
    assigned_pod_events,
    may_request_other,
    may_status_request_other,
    node_events,
    storage_event,
)
from holokube.scheduler.pod_facts import (
    DEFAULT_SCHEDULER,
    FINISHED,
    is_being_deleted,
    key_of,
    node_of,
    nominated_node_of,
    priority_of,
    uid_of,
)
from holokube.scheduler.queue import SchedulingQueue

_EMPTY: Final[Mapping[str, Any]] = {}


_Standing = Literal["assigned", "pending", "none"]
# To look a member of an enum up in its class takes its time, and these are asked for with every pod that comes or goes.
_POD_ADDED: Final = Change.POD_ADDED
_POD_DELETED: Final = Change.POD_DELETED


class Observer:
    """``wake`` is called when there may be something to do; ``now_s`` tells the time."""

    def __init__(
        self,
        state: ClusterState,
        queue: SchedulingQueue,
        schedulers: Collection[str],
        *,
        now_s: Callable[[], float],
        wake: Callable[[], object],
        on_claim: Callable[[JsonObject], object] = lambda _claim: None,
        on_namespace: Callable[[], object] = lambda: None,
    ) -> None:
        self._state = state
        self._placed = state.pods
        self._queue = queue
        self._schedulers = frozenset(schedulers)
        self._now_s = now_s
        self._wake = wake
        self._on_claim = on_claim
        self._on_namespace = on_namespace
        self._assumed: dict[str, JsonObject] = {}
        self._assumed_storage: dict[tuple[str, str], JsonObject] = {}

    # Assumptions

    def is_assumed(self, pod: JsonObject, key: str = "") -> bool:
        """Whether a node was chosen for this very pod, and the API server has not confirmed it yet."""
        if not self._assumed:
            return False
        assumed = self._assumed.get(key or key_of(pod))
        return assumed is not None and (assumed is pod or uid_of(assumed) == uid_of(pod))

    def assume(self, pod: JsonObject, row: int, cls: PodClass | None = None, key: str = "") -> None:
        """A node was chosen for a pod, whose class and key may be known."""
        self._assumed[self._state.assume_pod(pod, row, cls, key)] = pod

    def forget(self, pod: JsonObject) -> bool:
        """The pod did not get its node after all; False if nothing was assumed of it any more."""
        if not self.is_assumed(pod):
            return False
        del self._assumed[key_of(pod)]
        self._state.remove_pod(key_of(pod))
        self._move(_POD_DELETED, pod, None)
        return True

    def assume_storage(self, will_be: JsonObject, is_: JsonObject) -> None:
        """A volume or claim is about to change; until it does, it is taken to have."""
        self._assumed_storage[(is_["kind"], key_of(is_))] = is_
        self._state.put_storage(will_be)

    def forget_storage(self, is_: JsonObject) -> None:
        """It did not change after all."""
        found = self._assumed_storage.pop((is_["kind"], key_of(is_)), None)
        if found is not None:
            self._state.put_storage(found)

    # What informers see

    def on_node(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        del type
        if new is None:
            assert old is not None, "what is deleted was there"
            self._state.remove_node(old["metadata"]["name"])
            self._move(Change.NODE_DELETED, old, None)
            return
        self._state.add_node(new)
        if not self._queue.refused_by:
            return
        if old is None:
            self._move(Change.NODE_ADDED, None, new)
            return
        for event in node_events(old, new):
            self._move(*event)

    def on_namespace(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        del type
        obj = new if new is not None else old
        assert obj is not None, "an event is about an object"
        if old is not None and new is not None and labels_of(old) == labels_of(new):
            return
        self._state.set_namespace(obj["metadata"]["name"], None if new is None else labels_of(new))
        self._on_namespace()
        if new is not None:
            self._move(Change.NAMESPACE_LABELS, old, new)

    def on_storage(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        del type
        obj = new if new is not None else old
        assert obj is not None, "an event is about an object"
        self._assumed_storage.pop((obj["kind"], key_of(obj)), None)
        if new is None:
            self._state.remove_storage(obj)
        else:
            self._state.put_storage(new)
        event = storage_event(old, new)
        if event is not None:
            self._move(*event)
        if obj["kind"] == "PersistentVolumeClaim":
            self._on_claim(obj)

    def on_pod(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        del type
        if old is not None and new is not None:
            spec, before, after = new["spec"], old.get("status") or _EMPTY, new.get("status") or _EMPTY
            if before.get("phase") in FINISHED:
                if after.get("phase") in FINISHED:
                    # It took no room, and takes none.
                    return
            elif spec is not old["spec"]:
                if self._assumed and self._is_confirmed(old, new):
                    return
            elif after.get("phase") not in FINISHED:
                goes_on = self._runs_on if spec.get("nodeName") else self._waits_on
                if goes_on(old, new, before, after):
                    return
            elif spec.get("nodeName"):
                # It has come to its end there.
                self._gone(old, "assigned")
                return
        was: _Standing = "none" if old is None else self._standing(old)
        is_: _Standing = "none" if new is None else self._standing(new)
        if is_ == "assigned":
            assert new is not None, "a pod with a node is there"
            self._assigned(old, new, was)
        elif is_ == "pending":
            assert new is not None, "a pod that waits is there"
            self._pending(old, new, was)
        elif was != "none":
            assert old is not None, "a pod that is gone was there"
            self._gone(old, was)

    def _runs_on(
        self, old: JsonObject, new: JsonObject, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> bool:
        """Take in a pod that runs on and has changed in nothing that matters to any pod; most news are like this.

        Its spec is the very same, and these are its states, both not finished. It may have been asked to end, which
        helps nobody yet. False, and nothing done, if there is more to it.
        """
        was, is_ = old["metadata"], new["metadata"]
        if was.get("labels") is not is_.get("labels") and labels_of(old) != labels_of(new):
            return False
        key = f"{is_.get('namespace', '')}/{is_['name']}"
        placed = self._placed.get(key)
        if placed is None or placed.pod is not old or may_status_request_other(new["spec"], before, after):
            return False
        ended, ends = was.get("deletionTimestamp"), is_.get("deletionTimestamp")
        if ended is ends or bool(ended) == bool(ends):
            placed.pod = new
        elif not self._state.end_pod(placed, new):
            return False
        if self._assumed:
            self._assumed.pop(key, None)
        return True

    def _waits_on(
        self, old: JsonObject, new: JsonObject, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> bool:
        """Take in a pod that waits on and has changed in nothing that could help it: it was told why it waits.

        As in ``_runs_on``; nobody was promised a node.
        """
        was, is_ = old["metadata"], new["metadata"]
        key = f"{is_.get('namespace', '')}/{is_['name']}"
        queued = self._queue.get(key)
        if queued is None or queued.pod is not old or key in self._assumed:
            return False
        if was.get("labels") is not is_.get("labels") or was.get("uid") != is_.get("uid"):
            return False
        if before.get("nominatedNodeName") or after.get("nominatedNodeName") or self._queue.nominations.promised:
            return False
        if may_status_request_other(new["spec"], before, after):
            return False
        queued.pod = new
        return True

    def _is_confirmed(self, old: JsonObject, new: JsonObject) -> bool:
        """Take in that a pod was bound where it was assumed to be, and got labels there; most bindings are like this.

        False, and nothing done, if there is more to it.
        """
        was, is_ = old["metadata"], new["metadata"]
        key = f"{is_.get('namespace', '')}/{is_['name']}"
        if self._assumed.get(key) is not old or (was.get("labels") or _EMPTY) == (is_.get("labels") or _EMPTY):
            return False
        placed = self._placed.get(key)
        if placed is None or placed.pod is not old or not self._state.renew_pod(placed, new):
            return False
        del self._assumed[key]
        self._queue.remove(key)
        self._move(_POD_ADDED, None, new)
        return True

    def _standing(self, pod: JsonObject) -> _Standing:
        if (pod.get("status") or _EMPTY).get("phase") in FINISHED:
            return "none"
        spec = pod.get("spec") or _EMPTY
        if spec.get("nodeName"):
            return "assigned"
        scheduler = spec.get("schedulerName") or DEFAULT_SCHEDULER
        return "pending" if scheduler in self._schedulers else "none"

    def _assigned(self, old: JsonObject | None, new: JsonObject, before: _Standing) -> None:
        key = key_of(new)
        self._assumed.pop(key, None)
        placed = self._placed.get(key)
        if (
            before == "assigned" and old is not None
            and placed is not None and placed.pod is old and _means_the_same(old, new)
        ):  # fmt: skip
            # Nothing to any filter, and nothing that could help another pod.
            placed.pod = new
            return
        if placed is not None and placed.pod is not None and _takes_the_same(placed.pod, placed.node_name, new):
            placed.pod = new
        elif placed is None or not self._state.renew_pod(placed, new):
            self._state.add_pod(new)
        if before == "assigned":
            assert old is not None, "a pod with a node was there"
            for event in assigned_pod_events(old, new):
                self._move(*event)
            return
        self._queue.remove(key)
        self._move(_POD_ADDED, None, new)

    def _pending(self, old: JsonObject | None, new: JsonObject, before: _Standing) -> None:
        key = key_of(new)
        if self._assumed and self.is_assumed(new, key):
            queued = self._queue.get(key)
            if queued is not None:
                # Should it come back to the queue, it must come as it is now.
                queued.pod = new
            if is_being_deleted(new):
                self._queue.remove(key)
                self.forget(new)
            return
        if (earlier := self._assumed.get(key)) is not None:
            # Its end was missed, and another has taken its name, which needs a place of its own.
            self.forget(earlier)
        if old is not None and before == "assigned":
            # Only a cluster that was set back to an older state takes a node away from a pod.
            self._gone(old, before)
        if old is None or before != "pending":
            self._queue.add(new, self._now_s(), key)
            self._wake()
            return
        if self._queue.update(old, new, self._now_s(), key):
            self._wake()
        promised = nominated_node_of(old)
        if promised and promised != nominated_node_of(new):
            self._move(_POD_DELETED, old, None, priority_max=priority_of(old))

    def _gone(self, old: JsonObject, before: _Standing) -> None:
        key = key_of(old)
        if before == "assigned":
            if key in self._placed:
                self._state.remove_pod(key)
            self._move(_POD_DELETED, old, None)
            return
        self._queue.remove(key)
        if not self.forget(old) and nominated_node_of(old):
            self._move(_POD_DELETED, old, None, priority_max=priority_of(old))

    def _move(
        self, change: Change, old: JsonObject | None, new: JsonObject | None, *, priority_max: int | None = None
    ) -> None:
        queue = self._queue
        if queue.refused_by and queue.waits_for(change) and queue.move(
            ClusterEvent(change, old, new), self._now_s(), priority_max=priority_max
        ):  # fmt: skip
            self._wake()


def _means_the_same(old: JsonObject, new: JsonObject) -> bool:
    """Whether two states of a pod on a node differ in nothing that matters to any pod."""
    was, is_ = old["metadata"], new["metadata"]
    if was.get("labels") is not is_.get("labels") and labels_of(old) != labels_of(new):
        return False
    return bool(was.get("deletionTimestamp")) == bool(is_.get("deletionTimestamp")) and not may_request_other(old, new)


def _takes_the_same(old: JsonObject, node_name: str, new: JsonObject) -> bool:
    """Whether a pod's new state means the same to all filters as the one it is in the state with."""
    was, is_ = old["metadata"], new["metadata"]
    # A pod mostly gets labels of its node when it is bound.
    if was.get("labels") is not is_.get("labels") and labels_of(old) != labels_of(new):
        return False
    if node_of(new) != node_name or bool(was.get("deletionTimestamp")) != bool(is_.get("deletionTimestamp")):
        return False
    if not node_of(old):
        old = {**old, "spec": {**old["spec"], "nodeName": node_name}}
    if not may_request_other(old, new):
        return True
    # A kubelet that reports the resources it was asked for changes nothing.
    return bool(
        old["spec"] == new["spec"]
        and requests_of(old, use_status=True) == requests_of(new, use_status=True)
        and requests_nonzero_of(old, use_status=True) == requests_nonzero_of(new, use_status=True)
    )
