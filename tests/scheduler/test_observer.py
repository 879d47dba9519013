from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.packing.counters import SpreadMatcher
from holokube.scheduler.observer import Observer
from holokube.scheduler.queue import Place, SchedulingQueue
from tests.builders import JsonObject
from tests.scheduler.objects import make_node, waiting


class World:
    """An observer with a state and a queue; ``see`` is what an informer of pods would tell."""

    def __init__(self) -> None:
        self.state, self.queue, self.wakes = ClusterState(), SchedulingQueue(), 0
        self.observer = Observer(
            self.state, self.queue, {"default-scheduler"}, now_s=lambda: 0.0, wake=self._woken
        )
        self.observer.on_node("ADDED", None, make_node("n"))
        self.pods: dict[str, JsonObject] = {}

    def _woken(self) -> None:
        self.wakes += 1

    def see(self, name: str, new: JsonObject | None) -> None:
        old = self.pods.pop(name, None)
        if new is not None:
            self.pods[name] = new
        if old is not None or new is not None:
            self.observer.on_pod("MODIFIED", old, new)

    @property
    def used(self) -> int:
        return int(self.state.used("cpu")[0])


def test_a_pod_goes_from_the_queue_to_its_node_and_away() -> None:
    world = World()
    world.see("p", waiting("p", cpu="1"))
    assert len(world.queue) == 1 and world.used == 0 and world.wakes
    world.see("p", waiting("p", cpu="1", node="n"))
    assert len(world.queue) == 0 and world.used == 1000
    done = {**waiting("p", cpu="1", node="n"), "status": {"phase": "Succeeded"}}
    world.see("p", done)
    assert world.used == 0
    world.see("p", None)
    assert world.used == 0


def test_another_pod_of_the_same_name_needs_a_place_of_its_own() -> None:
    world = World()
    missed, other = waiting("p", cpu="1"), waiting("p", cpu="2")
    other = {**other, "metadata": {**other["metadata"], "uid": "another"}}
    world.see("p", missed)
    assert world.queue.pop(0) is not None
    world.observer.assume(missed, 0)
    # That the first one went was not told, as after a watch that was cut off.
    world.see("p", other)
    assert world.used == 0
    assert not world.observer.forget(missed)
    queued = world.queue.pop(0)
    assert queued is not None and queued.pod is other
    world.observer.assume(other, 0)
    assert world.used == 2000


def test_an_assumption_is_confirmed_by_the_server() -> None:
    world = World()
    pod = waiting("p", cpu="1")
    world.see("p", pod)
    queued = world.queue.pop(0)
    assert queued is not None
    world.observer.assume(pod, 0)
    world.see("p", waiting("p", cpu="1", labels={"late": "update"}))
    assert queued.place is Place.IN_FLIGHT and world.used == 1000
    bound = waiting("p", cpu="1", node="n")
    world.see("p", bound)
    placed = world.state.pod("default/p")
    assert placed is not None and placed.pod is bound and world.used == 1000
    assert not world.observer.is_assumed(pod) and not world.observer.forget(pod)


def test_a_forgotten_assumption_makes_room_for_others() -> None:
    world = World()
    pod = waiting("p", cpu="1")
    world.see("p", pod)
    queued = world.queue.pop(0)
    assert queued is not None
    world.observer.assume(pod, 0)
    other = waiting("other")
    world.see("other", other)
    refused = world.queue.pop(0)
    assert refused is not None
    world.queue.refused(refused, frozenset({"NodeResourcesFit"}), world.state.class_of(other), 0)
    assert world.observer.forget(pod) and world.used == 0
    assert refused.place is Place.BACKOFF


def test_a_pod_deleted_while_it_is_being_bound_is_forgotten() -> None:
    for end in (None, waiting("p", cpu="1", deleted=True)):
        world = World()
        pod = waiting("p", cpu="1")
        world.see("p", pod)
        world.queue.pop(0)
        world.observer.assume(pod, 0)
        world.see("p", end)
        assert world.used == 0 and len(world.queue) == 0


def test_pods_of_other_schedulers_count_only_once_they_have_a_node() -> None:
    world = World()
    world.see("p", waiting("p", cpu="1", schedulerName="other"))
    assert len(world.queue) == 0
    world.see("p", waiting("p", cpu="1", schedulerName="other", node="n"))
    assert world.used == 1000


def test_a_status_report_costs_nothing() -> None:
    world = World()
    world.see("p", waiting("p", cpu="1", node="n"))
    before = world.state.usage_journal.end
    resources = {"requests": {"cpu": "1"}}
    for status in (
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        {"phase": "Running", "containerStatuses": [{"name": "c", "resources": resources}]},
    ):
        world.see("p", {**waiting("p", cpu="1", node="n"), "status": status})
    assert world.state.usage_journal.end == before
    larger = {"phase": "Running", "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    world.see("p", {**waiting("p", cpu="1", node="n"), "status": larger})
    assert world.used == 2000, "a container that has not shrunk yet takes what it has"


def test_assumed_storage_gives_way_to_what_the_server_says() -> None:
    world = World()
    claim: JsonObject = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": {}}
    assumed, newer = {**claim, "spec": {"a": 1}}, {**claim, "spec": {"b": 1}}
    stored = world.state.volumes.get
    world.observer.on_storage("ADDED", None, claim)
    world.observer.assume_storage(assumed, claim)
    assert stored("PersistentVolumeClaim", "default/c") is assumed
    world.observer.forget_storage(claim)
    assert stored("PersistentVolumeClaim", "default/c") is claim
    world.observer.assume_storage(assumed, claim)
    world.observer.on_storage("MODIFIED", claim, newer)
    world.observer.forget_storage(claim)
    assert stored("PersistentVolumeClaim", "default/c") is newer


def _drawn(data: st.DataObject, name: str) -> JsonObject | None:
    kind = data.draw(st.sampled_from(("gone", "pending", "bound", "bound", "finished", "other", "leaving")))
    if kind == "gone":
        return None
    more: dict[str, Any] = {"node": "n"} if kind in ("bound", "finished", "leaving") else {}
    if kind == "other":
        more["schedulerName"] = "other"
    pod = waiting(name, cpu="1", deleted=kind == "leaving", labels={"l": data.draw(st.sampled_from("ab"))}, **more)
    if kind == "finished":
        pod["status"] = {"phase": "Failed"}
    return pod


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_state_and_queue_are_what_the_pods_seen_last_make_them(data: st.DataObject) -> None:
    world = World()
    for _ in range(data.draw(st.integers(1, 20))):
        name = f"p{data.draw(st.integers(0, 2))}"
        world.see(name, _drawn(data, name))
        queued = world.queue.pop(0) if data.draw(st.booleans()) else None
        if queued is not None:
            # Taken to be bound, which may be confirmed, undone or overtaken by what is seen next.
            world.observer.assume(queued.pod, 0)
            if data.draw(st.booleans()):
                world.observer.forget(queued.pod)
                world.queue.failed(queued, 0)
    there = [pod for pod in world.pods.values() if (pod.get("status") or {}).get("phase") != "Failed"]
    bound = [pod for pod in there if pod["spec"].get("nodeName")]
    pending = [pod for pod in there if not pod["spec"].get("nodeName") and not pod["spec"].get("schedulerName")]
    assumed = [pod for pod in pending if world.observer.is_assumed(pod)]
    assert world.used == 1000 * (len(bound) + len(assumed))
    assert all(world.queue.get(f"default/{pod['metadata']['name']}") is not None for pod in pending)
    assert len(world.queue) == len(pending)


def test_a_pod_with_the_very_same_spec_may_still_bring_news() -> None:
    """In process, what a write leaves alone is the very same object, which is the short way to see that all is well."""
    world = World()
    first = waiting("p", cpu="2", node="n", labels={"app": "x"})
    world.see("p", first)

    def placed() -> tuple[int, bool, str | None]:
        found = world.state.pod("default/p")
        assert found is not None
        assert found.pod is world.pods["p"]
        return world.used, found.is_terminating, found.labels.get("app")

    assert placed() == (2000, False, "x")
    name = first["spec"]["containers"][0]["name"]
    statuses = [{"name": name, "ready": True, "resources": {"requests": {"cpu": "2"}}}]
    running = {**first, "status": {"phase": "Running", "containerStatuses": statuses}}
    world.see("p", running)
    assert placed() == (2000, False, "x")
    resized = {**statuses[0], "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}}
    grown = {**running, "status": {**running["status"], "containerStatuses": [resized]}}
    world.see("p", grown)
    assert placed() == (3000, False, "x")
    other = {**grown, "metadata": {**grown["metadata"], "labels": {"app": "y"}}}
    world.see("p", other)
    assert placed() == (3000, False, "y")
    ending = {**other, "metadata": {**other["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    world.see("p", ending)
    assert placed() == (3000, True, "y")
    world.see("p", {**ending, "status": {"phase": "Failed"}})
    assert world.used == 0 and not world.state.pods


def test_an_eviction_takes_the_short_way() -> None:
    world = World()
    first = waiting("p", cpu="2", node="n", labels={"app": "x"})
    world.see("p", first)
    name = first["spec"]["containers"][0]["name"]
    statuses = [{"name": name, "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}]
    running = {**first, "status": {"phase": "Running", "containerStatuses": statuses}}
    world.see("p", running)
    placed = world.state.pod("default/p")
    assert placed is not None
    requests = placed.requests
    conditions = [{"type": "DisruptionTarget", "status": "True"}]
    evicted = {
        **running, "metadata": {**running["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {**running["status"], "conditions": conditions},
    }  # fmt: skip
    world.see("p", evicted)
    assert world.state.pod("default/p") is placed and placed.requests is requests
    assert placed.pod is evicted and placed.is_terminating and world.used == 2000
    world.see("p", None)
    assert world.used == 0


_CHANGES = ("status", "status", "label", "end", "end", "grow", "finish", "go")


def _changed(data: st.DataObject, pod: JsonObject) -> JsonObject | None:
    """A later state of a pod on a node, with all that did not change the very same."""
    change = data.draw(st.sampled_from(_CHANGES))
    metadata, status = pod["metadata"], pod.get("status") or {}
    if change == "go":
        return None
    if change == "label":
        return {**pod, "metadata": {**metadata, "labels": {"l": data.draw(st.sampled_from("ab"))}}}
    if change == "end":
        with_status = {"status": {**status}} if data.draw(st.booleans()) else {}
        return {**pod, "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}, **with_status}
    if change == "finish":
        return {**pod, "status": {**status, "phase": "Failed"}}
    cpu = data.draw(st.sampled_from("12")) if change == "grow" else "1"
    name = pod["spec"]["containers"][0]["name"]
    statuses = [{"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}]
    return {**pod, "status": {**status, "phase": "Running", "containerStatuses": statuses}}


def _known_of(world: World) -> list[Any]:
    state, matcher = world.state, SpreadMatcher("default", LabelSelector.from_labels({"l": "a"}))
    placed = [(one.key, one.pod, one.labels, one.is_terminating, one.requests) for one in state.pods_on(0)]
    counted = state.pods_per_row(state.class_of(waiting("any")), matcher).tolist()
    return [placed, counted, world.used, world.wakes, {key: queued.place for key, queued in world.queue._pods.items()}]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_what_is_the_very_same_object_makes_no_difference(data: st.DataObject) -> None:
    """In process most of a new state is of the old one, which opens short ways; over the wire all of it is new."""
    short, long = World(), World()
    waits = waiting("waits", cpu="100")
    for world in (short, long):
        world.see("waits", waits)
        queued = world.queue.pop(0)
        assert queued is not None
        cls = world.state.class_of(waits)
        world.queue.refused(queued, frozenset({"NodeResourcesFit", "PodTopologySpread"}), cls, 0, how="", words="")
    for _ in range(data.draw(st.integers(1, 12))):
        name = f"p{data.draw(st.integers(0, 2))}"
        old = short.pods.get(name)
        pod = waiting(name, cpu="1", labels={"l": "a"}, node="n") if old is None else _changed(data, old)
        short.see(name, pod)
        long.see(name, deepcopy(pod))
        assert _known_of(short) == _known_of(long)


class _TheLongWay(Observer):
    """Takes every binding as if nothing had been assumed of it."""

    def _is_confirmed(self, old: JsonObject, new: JsonObject) -> bool:
        return False


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_binding_that_confirms_what_was_assumed_means_the_same_on_the_short_way(data: st.DataObject) -> None:
    short, long = World(), World()
    long.observer = _TheLongWay(
        long.state, long.queue, {"default-scheduler"}, now_s=lambda: 0.0, wake=long._woken
    )
    assumed, waits = waiting("p", cpu="1", labels={"l": "b"}), waiting("waits", cpu="100")
    labels = data.draw(st.sampled_from(({"l": "b"}, {"l": "a"}, {"l": "b", "zone": "z"}, {})))
    node = data.draw(st.sampled_from(("n", "n", "elsewhere", "")))
    status = data.draw(st.sampled_from(({}, {"phase": "Running"}, {"phase": "Failed"}, {"resources": {}})))
    more = data.draw(st.sampled_from(({}, {"uid": "other"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"})))
    changed_first, cpu = data.draw(st.booleans()), data.draw(st.sampled_from("112"))
    for world in (short, long):
        if data.draw(st.booleans(), label="somebody waits") if world is short else "default/waits" in short.queue._pods:
            world.see("waits", waits)
            queued = world.queue.pop(0)
            assert queued is not None
            cls = world.state.class_of(waits)
            world.queue.refused(queued, frozenset({"PodTopologySpread", "InterPodAffinity"}), cls, 0, how="", words="")
        world.see("p", assumed)
        assert world.queue.pop(0) is not None
        world.observer.assume(assumed, 0)
        if changed_first:
            world.see("p", {**assumed, "status": {"phase": "Pending"}})
        bound = waiting("p", cpu=cpu, labels=labels, node=node) if node else waiting("p", cpu=cpu, labels=labels)
        spec = {**assumed["spec"], "nodeName": node} if cpu == "1" and node else bound["spec"]
        world.see("p", {**bound, "spec": spec, "metadata": {**bound["metadata"], **more}, "status": status})
    assert _known_of(short) == _known_of(long)
    assert short.observer._assumed.keys() == long.observer._assumed.keys()
    placed, expected = short.state.pod("default/p"), long.state.pod("default/p")
    assert (placed and placed.number) == (expected and expected.number)


_STATUSES: tuple[JsonObject, ...] = (
    {}, {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}, {"nominatedNodeName": "n"},
    {"phase": "Failed"}, {"resources": {"requests": {"cpu": "500m"}}},
    {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_news_of_a_pod_that_waits_on_mean_the_same_on_the_short_way(data: st.DataObject) -> None:
    """In process what is left alone is the very same object; over the wire all of it is new."""
    short, long = World(), World()
    filters = frozenset({"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"})
    gates = {"schedulingGates": [{"name": "g"}]} if data.draw(st.booleans()) else {}
    pod = waiting("p", cpu="1", labels={"l": "a"}, **gates)
    for _ in range(data.draw(st.integers(1, 8))):
        change = data.draw(st.sampled_from(("status", "status", "status", "label", "uid", "end", "refuse", "assume")))
        if change in ("refuse", "assume"):
            for world in (short, long):
                queued = world.queue.pop(1000)
                if queued is None or world.observer.is_assumed(queued.pod):
                    continue
                if change == "assume":
                    world.observer.assume(queued.pod, 0)
                else:
                    cls = world.state.class_of(queued.pod)
                    world.queue.refused(queued, filters, cls, 0, how="", words="")
            continue
        metadata = pod["metadata"]
        if change == "status":
            pod = {**pod, "metadata": {**metadata}, "status": data.draw(st.sampled_from(_STATUSES))}
        elif change == "label":
            pod = {**pod, "metadata": {**metadata, "labels": {"l": data.draw(st.sampled_from("ab"))}}}
        elif change == "uid":
            pod = {**pod, "metadata": {**metadata, "uid": data.draw(st.sampled_from(("u", "v")))}}
        else:
            pod = {**pod, "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        short.see("p", pod)
        long.see("p", deepcopy(pod))
        assert _known_of(short) == _known_of(long)
        for mine, other in zip(short.queue._pods.values(), long.queue._pods.values(), strict=True):
            assert (mine.pod, mine.priority, mine.number) == (other.pod, other.priority, other.number)
        assert short.queue.nominations.promised == long.queue.nominations.promised
        assert short.observer._assumed == long.observer._assumed
