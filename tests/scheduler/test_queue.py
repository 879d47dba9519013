from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.packing import PodClass
from holokube.packing.podclass import compile_class
from holokube.scheduler.cluster_events import Change, ClusterEvent
from holokube.scheduler.hints import HINTS
from holokube.scheduler.queue import Place, QueuedPod, SchedulingQueue
from tests.scheduler.objects import make_node, waiting

FIT = frozenset({"NodeResourcesFit"})
POD_LEFT = ClusterEvent(Change.POD_DELETED, waiting("gone", node="n"), None)


def names(queue: SchedulingQueue, now_s: float) -> list[str]:
    found = []
    while (queued := queue.pop(now_s)) is not None:
        found.append(queued.pod["metadata"]["name"])
        queue.done(queued)
    return found


def popped(queue: SchedulingQueue, now_s: float) -> QueuedPod:
    queued = queue.pop(now_s)
    assert queued is not None
    return queued


def refuse(queue: SchedulingQueue, now_s: float, plugins: frozenset[str] = FIT) -> QueuedPod:
    queued = popped(queue, now_s)
    queue.refused(queued, plugins, compile_class(queued.pod), now_s)
    return queued


def four_refused(queue: SchedulingQueue, template: PodClass) -> None:
    for number in range(4):
        queue.add(waiting(f"p{number}"), 0)
    for _ in range(4):
        queue.refused(popped(queue, 0), FIT, template, 0, words="0/3 nodes")


def test_of_pods_that_fare_alike_the_next_is_tried_only_if_the_first_finds_a_place() -> None:
    queue = SchedulingQueue()
    template = compile_class(waiting("any"))
    four_refused(queue, template)
    assert queue.move(POD_LEFT, 20) == 1
    first = popped(queue, 20)
    assert queue.pop(20) is None, "one is tried for all"
    queue.assumed(first, 20)
    second = popped(queue, 20)
    queue.refused(second, FIT, template, 20, words="0/3 nodes")
    assert queue.pop(20) is None, "refused as before, and so would be the others"
    queue.move(POD_LEFT, 40)
    queue.refused(popped(queue, 40), FIT, template, 40, words="0/4 nodes")
    assert queue.pop(40) is None, "refused in other words, which is no place either"
    queue.move(POD_LEFT, 60)
    leader = popped(queue, 60)
    queue.remove(leader.key)
    assert queue.pop(60) is not None, "if it is deleted, the next takes its place"


def test_what_refuses_one_pod_refuses_its_like() -> None:
    queue = SchedulingQueue()
    template = compile_class(waiting("any"))
    four_refused(queue, template)
    queue.move(POD_LEFT, 20)
    queue.refused(popped(queue, 20), FIT | {"NodePorts"}, template, 20)
    tainted = make_node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    queue.move(POD_LEFT, 40)
    queue.refused(popped(queue, 40), frozenset({"TaintToleration"}), template, 40)
    assert queue.move(POD_LEFT, 60) == 0, "room is not the trouble any more, of none of them"
    assert queue.move(ClusterEvent(Change.NODE_TAINTS, tainted, make_node("n")), 60) == 1
    tried = []
    while (queued := queue.pop(60)) is not None:
        tried.append(queued.key)
        queue.assumed(queued, 60)
    assert len(tried) == 4, "all of them find a place, one after the other"


def test_all_hear_the_present_words_when_there_is_nothing_new_for_a_while() -> None:
    queue = SchedulingQueue()
    template = compile_class(waiting("any"))
    four_refused(queue, template)
    for now_s in (20.0, 26.0):
        queue.move(POD_LEFT, now_s)
        queue.refused(popped(queue, now_s), FIT, template, now_s, words=f"0/{now_s} nodes")
    assert queue.flush(30) == 0 and queue.next_due_s(30) == 36, "the second news came before the first was told"
    assert queue.flush(36) == 1
    tried = []
    while (queued := queue.pop(36)) is not None:
        tried.append(queued.key)
        queue.refused(queued, FIT, template, 36, words="0/26.0 nodes")
    assert tried == ["default/p2", "default/p3", "default/p0"], "all but the one that was refused in these words"
    assert queue.flush(60) == 0, "nothing new to say"


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), max_size=20))
def test_pods_leave_by_priority_then_age(pods: list[tuple[int, int]]) -> None:
    queue = SchedulingQueue()
    given = [(-priority, float(at), number) for number, (priority, at) in enumerate(pods)]
    for priority, at, number in given:
        queue.add(waiting(f"p{number}", priority=-priority), at)
    assert names(queue, 10) == [f"p{number}" for _, _, number in sorted(given)]


def test_a_refused_pod_waits_for_an_event_that_may_help() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    queued = refuse(queue, 0)
    assert queue.pop(50) is None
    tainted = ClusterEvent(Change.NODE_TAINTS, make_node("n"), make_node("n", taints=[]))
    assert queue.move(tainted, 50) == 0 and queued.place is Place.UNSCHEDULABLE
    assert queue.move(POD_LEFT, 50) == 1
    assert names(queue, 50) == ["p"]


def test_a_pod_in_backoff_is_tried_early_only_if_no_other_pod_waits() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("refused", priority=9), 0)
    queued = refuse(queue, 0)
    queue.move(POD_LEFT, 0.5)
    assert queued.place is Place.BACKOFF
    queue.add(waiting("fresh"), 0.5)
    assert names(queue, 0.5) == ["fresh", "refused"]


def test_backoff_doubles_from_one_second_to_ten() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    now_s, waits = 0.0, []
    for _ in range(6):
        queue.failed(popped(queue, now_s), now_s)
        due = queue.next_due_s(now_s)
        assert due is not None
        assert queue.pop(due - 0.001) is None
        waits.append(due - now_s)
        now_s = due
    # Backoffs end at whole seconds, and the pod is tried in the second after.
    assert waits == [2, 3, 5, 9, 11, 11]


def test_errors_are_waited_for_and_forgotten_after_a_refusal() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    queued = popped(queue, 0)
    queue.failed(queued, 0)
    assert queue.move(POD_LEFT, 0) == 0 and queue.pop(0.9) is None
    queued = popped(queue, 2)
    queue.refused(queued, FIT, compile_class(queued.pod), 2)
    assert (queued.errors, queued.refusals, queued.attempts) == (0, 1, 2)


def test_a_refusal_by_nobody_counts_as_an_error() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    assert refuse(queue, 0, frozenset()).place is Place.ERROR_BACKOFF


def test_after_five_minutes_a_pod_is_tried_anyway() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    refuse(queue, 10)
    assert queue.next_due_s(10) == 310
    assert queue.flush(309) == 0
    assert queue.flush(310) == 1 and names(queue, 310) == ["p"]


@given(st.floats(0, 1e9), st.booleans())
def test_what_is_due_is_done_when_it_is_due(now_s: float, fails: bool) -> None:
    """Otherwise whoever sleeps until then would wake up again and again, and time would stand still."""
    queue = SchedulingQueue()
    queue.add(waiting("p"), now_s)
    if fails:
        queue.failed(popped(queue, now_s), now_s)
    else:
        refuse(queue, now_s)
    due = queue.next_due_s(now_s)
    assert due is not None and due > now_s
    queue.flush(due)
    assert queue.pop(due) is not None


def test_gated_pods_wait_for_their_gates_and_for_nothing_else() -> None:
    queue = SchedulingQueue()
    gated = waiting("p", schedulingGates=[{"name": "g"}])
    queue.add(gated, 0)
    assert queue.pop(0) is None and queue.next_due_s(0) is None
    assert queue.move(POD_LEFT, 0) == 0 and queue.flush(1000) == 0
    labelled = waiting("p", schedulingGates=[{"name": "g"}], labels={"a": "b"})
    queue.update(gated, labelled, 1)
    assert queue.pop(1) is None
    queue.update(labelled, waiting("p"), 2)
    assert names(queue, 2) == ["p"]


def test_a_pod_that_tolerates_more_is_tried_again_if_taints_were_the_trouble() -> None:
    queue = SchedulingQueue()
    before, after = waiting("p"), waiting("p", tolerations=[{"operator": "Exists"}])
    queue.add(before, 0)
    refuse(queue, 0, frozenset({"NodeAffinity"}))
    queue.update(before, after, 5)
    assert queue.pop(5) is None
    queue.remove("default/p")
    queue.add(before, 10)
    refuse(queue, 10, frozenset({"TaintToleration"}))
    queue.update(before, after, 15)
    assert names(queue, 15) == ["p"]


def test_a_held_pod_is_tried_when_it_is_released_if_something_happened_meanwhile() -> None:
    queue = SchedulingQueue()
    for name in ("a", "b", "c"):
        queue.add(waiting(name), 0)
    for _ in range(3):
        queue.hold(refuse(queue, 0).key)
    queue.move(POD_LEFT, 5)
    assert queue.pop(5) is None and queue.flush(1000) == 0
    queue.release("default/a", 5)
    assert names(queue, 5) == ["a"]
    queue.hold("default/b")
    queue.release("default/b", 6)
    assert queue.pop(6) is None, "nothing happened since"
    queue.hold("default/c")
    queue.release("default/c", 7, try_again=True)
    assert names(queue, 7) == ["c"]


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("p"), 0)
    first = popped(queue, 0)
    second = waiting("p", priority=3)
    second["metadata"]["uid"] = "other"
    queue.add(second, 1)
    queue.refused(first, FIT, compile_class(first.pod), 1)
    queue.failed(first, 1)
    queue.done(first)
    queued = queue.get("default/p")
    assert queued is not None and queued.pod is second and queued.place is Place.ACTIVE


def test_a_popped_pod_stays_in_flight_whatever_it_is_told() -> None:
    queue = SchedulingQueue()
    pod = waiting("p")
    queue.add(pod, 0)
    queued = popped(queue, 0)
    newer = waiting("p", labels={"a": "b"})
    queue.update(pod, newer, 1)
    queue.add(newer, 1)
    assert queue.pop(1) is None and queued.pod is newer and queue.counts()[Place.IN_FLIGHT] == 1
    assert queue.remove("default/p") is queued and len(queue) == 0


def test_only_pods_up_to_a_priority_are_woken_when_that_is_asked() -> None:
    queue = SchedulingQueue()
    queue.add(waiting("low", priority=1), 0)
    queue.add(waiting("high", priority=5), 0)
    refuse(queue, 0)
    refuse(queue, 0)
    assert queue.move(POD_LEFT, 20, priority_max=3) == 1
    assert names(queue, 20) == ["low"]


ACTIONS = ("add", "remove", "pop", "refused", "failed", "move", "flush", "hold", "free")


@given(st.data())
def test_no_pod_is_ever_lost_or_doubled(data: st.DataObject) -> None:
    queue = SchedulingQueue()
    present: set[str] = set()
    in_flight: dict[str, QueuedPod] = {}
    now_s = 0.0
    classes: dict[str, PodClass] = {}
    for _ in range(data.draw(st.integers(0, 60))):
        now_s += data.draw(st.sampled_from((0.0, 0.3, 2.0, 30.0)))
        name = f"p{data.draw(st.integers(0, 4))}"
        key = f"default/{name}"
        match data.draw(st.sampled_from(ACTIONS)):
            case "add":
                queue.add(waiting(name), now_s)
                present.add(key)
            case "remove":
                queue.remove(key)
                present.discard(key)
                in_flight.pop(key, None)
            case "pop":
                queued = queue.pop(now_s)
                if queued is not None:
                    assert queued.key in present and queued.key not in in_flight
                    in_flight[queued.key] = queued
            case "refused" if key in in_flight:
                cls = classes.setdefault(name, compile_class(waiting(name)))
                queue.refused(in_flight.pop(key), FIT, cls, now_s)
            case "failed" if key in in_flight:
                queue.failed(in_flight.pop(key), now_s)
            case "move":
                queue.move(POD_LEFT, now_s)
            case "flush":
                queue.flush(now_s)
            case "hold":
                queue.hold(key)
            case "free":
                queue.release(key, now_s)
    assert len(queue) == len(present)
    for key in present:
        queue.release(key, now_s)
    queue.flush(now_s + 1000)
    left = set(names(queue, now_s + 1000))
    assert {f"default/{name}" for name in left} == present - in_flight.keys()


def test_a_pod_waits_for_events_that_one_of_its_filters_has_a_rule_for() -> None:
    everybody = sorted({plugin for rules in HINTS.values() for plugin in rules})
    for change in Change:
        for plugin in everybody:
            queue = SchedulingQueue()
            assert not queue.waits_for(change)
            queue.add(waiting("p"), 0)
            refuse(queue, 0, frozenset({plugin}))
            assert queue.waits_for(change) == (plugin in HINTS.get(change, {}))
