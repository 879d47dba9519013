"""A book that is kept change by change says what counting from scratch says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.client.audience import EXISTENCE, Audience, Concern, Handler, Listener, aspects_changed
from holokube.client.resources import REPLICA_SETS
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of
from holokube.workloads.pod_book import HEEDED, PodBook, counts_anew
from holokube.workloads.pod_sources import CountedPodSource, selector_of
from holokube.workloads.replica_set_decisions import Numbers, add_up, call_roll, judged_numbers, selects_alike
from tests.workloads.objects import NOW, a_pod, ago

LABELS: tuple[dict[str, str], ...] = (
    {"app": "a", "tier": "x"}, {"app": "a"}, {"tier": "x", "app": "a"}, {"app": "b"}, {},
)  # fmt: skip
OWNERS = ("u1", "u2", "")
STATES = st.tuples(
    st.sampled_from(OWNERS), st.integers(0, len(LABELS) - 1), st.sampled_from(["Pending", "Running", "Failed"]),
    st.booleans(), st.booleans(),
)  # fmt: skip
STEPS = st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), STATES)), max_size=60)


def pod_of(number: int, state: tuple[str, int, str, bool, bool]) -> JsonObject:
    owner, labels, phase, is_ready, is_leaving = state
    pod = a_pod(f"p{number}", phase, ready_s=5 if is_ready else None, labels=dict(LABELS[labels]))
    pod["metadata"].pop("ownerReferences", None)
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        pod["metadata"]["ownerReferences"] = [reference]
    if is_leaving:
        pod["metadata"]["deletionTimestamp"] = ago(0)
    return pod


def controlled(pods: Sequence[JsonObject], uid: str) -> list[JsonObject]:
    return [pod for pod in pods if (controller_of(pod) or {}).get("uid") == uid]


# A busy machine is no reason to fail.
@settings(deadline=None)
@given(STEPS)
def test_the_book_says_what_a_roll_call_says(steps: list[tuple[int, tuple[str, int, str, bool, bool] | None]]) -> None:
    book, pods = PodBook(), dict[int, JsonObject]()
    for number, state in steps:
        old = pods.pop(number, None)
        new = pod_of(number, state) if state is not None else None
        if new is not None:
            pods[number] = new
        if old is not None or new is not None:
            before = [judged_numbers(book.of(uid)) for uid in OWNERS[:2]]
            is_told = book.takes_note(old, new)
            assert not is_told or counts_anew(old, new)
            if not is_told and counts_anew(old, new):
                assert new is not None and (uid := (controller_of(new) or {})["uid"])
                assert [judged_numbers(book.of(uid)) for uid in OWNERS[:2]] == before, "labels that count the same"
                assert judged_numbers(book.of(uid)) is not None, "the owner has looked at them"
        for uid, selected in zip(OWNERS, ({"app": "a"}, {}), strict=False):
            selector, template = LabelSelector.from_labels(selected), LABELS[0]
            roll = call_roll(controlled(list(pods.values()), uid), selector, template)
            wanted = None if roll is None else roll.numbers(0, NOW)
            # Who has judged the labels need not do it again.
            assert judged_numbers(book.of(uid)) in (None, wanted)
            assert add_up(book.of(uid), selector, template) == wanted
    for number, pod in list(pods.items()):
        book.takes_note(pod, None)
        del pods[number]
    assert book == PodBook(), "nothing is kept of owners that have no pods"


def test_pods_of_many_different_labels_are_counted_by_them() -> None:
    book = PodBook()
    for number in range(40):
        pod = pod_of(number, ("u1", 0, "Running", True, False))
        pod["metadata"]["labels"]["shard"] = str(number % 20)
        book.takes_note(None, pod)
    assert [alike.labels["shard"] for alike in book.of("u1")] == [str(shard) for shard in range(20)]
    assert {sum(alike.numbers) for alike in book.of("u1")} == {2}


def tallied(book: PodBook, uid: str) -> list[tuple[Mapping[str, str], list[int]]]:
    """What the book has of an owner's pods, by their labels."""
    return [(alike.labels, list(alike.numbers)) for alike in book.of(uid)]


def spec_of(selected: dict[str, str], template: dict[str, str]) -> JsonObject:
    return {"selector": {"matchLabels": selected}, "template": {"metadata": {"labels": template}}}


def test_labels_are_judged_once_and_only_if_all_of_them_match() -> None:
    book = PodBook()
    for number, labels in enumerate((0, 1, 1)):
        book.takes_note(None, pod_of(number, ("u1", labels, "Running", True, False)))
    alikes, template = book.of("u1"), LABELS[0]
    assert judged_numbers(alikes) is None
    assert add_up(alikes, LabelSelector.from_labels({"tier": "x"}), template) is None
    assert judged_numbers(alikes) is None, "one of them does not match"
    wanted = Numbers(3, 3, 3, 1, 0)
    assert add_up(alikes, LabelSelector.from_labels({"app": "a"}), template) == wanted == judged_numbers(alikes)
    book.takes_note(None, pod_of(3, ("u1", 3, "Running", True, False)))
    assert judged_numbers(alikes) is None, "there are others now"
    assert judged_numbers(book.of("u2")) == Numbers(0, 0, 0, 0, 0)


def test_labels_that_an_owner_found_to_count_the_same_are_no_reason_to_count() -> None:
    book, template = PodBook(), {"app": "a"}
    pods = [pod_of(number, ("u1", 1, "Pending", False, False)) for number in range(3)]
    for pod in pods:
        assert book.takes_note(None, pod)
    add_up(book.of("u1"), LabelSelector.from_labels(template), template)
    bound = [pod_of(number, ("u1", 0, "Pending", False, False)) for number in range(3)]
    assert book.takes_note(pods[0], bound[0]), "nobody has looked at these labels yet"
    wanted = add_up(book.of("u1"), LabelSelector.from_labels(template), template)
    assert not book.takes_note(pods[1], bound[1])
    assert judged_numbers(book.of("u1")) == wanted
    assert book.takes_note(pods[2], pod_of(2, ("u1", 0, "Running", True, False))), "it is ready as well"
    assert book.takes_note(bound[1], pod_of(1, ("u1", 3, "Pending", False, False))), "it may have to be let go"


def test_owners_select_alike_whatever_else_they_want() -> None:
    spec = spec_of({"app": "a"}, LABELS[0])
    assert selects_alike(spec, spec) and selects_alike(spec, {**spec_of({"app": "a"}, LABELS[0]), "replicas": 9})
    assert not selects_alike(spec, spec_of({"app": "b"}, LABELS[0]))
    assert not selects_alike(spec, spec_of({"app": "a"}, {"app": "a"}))


@settings(deadline=None)
@given(STEPS, st.lists(st.sampled_from(["ReplicaSet", "Job"]), min_size=60, max_size=60))
def test_a_book_of_one_kind_that_hears_of_no_other_counts_the_same(
    steps: list[tuple[int, tuple[str, int, str, bool, bool] | None]], kinds: list[str]
) -> None:
    whole, some, audience = PodBook(), PodBook(("apps", "ReplicaSet")), Audience()

    def on_event(_type: str, old: JsonObject | None, new: JsonObject | None) -> None:
        some.takes_note(old, new)

    audience.add(Listener(on_event, HEEDED, some.kind, False))
    pods = dict[int, JsonObject]()
    for (number, state), kind in zip(steps, kinds, strict=False):
        old = pods.pop(number, None)
        new = pod_of(number, state) if state is not None else None
        if new is not None:
            pods[number] = new
            for reference in new["metadata"].get("ownerReferences") or ():
                reference["kind"], reference["uid"] = kind, f"{kind}-{reference['uid']}"
        if old is None and new is None:
            continue
        whole.takes_note(old, new)
        aspects = aspects_changed(old, new) if old is not None and new is not None else EXISTENCE
        for listener in audience.of(aspects, new if new is not None else old or {}):
            listener.handler("MODIFIED", old, new)
        for uid in OWNERS[:2]:
            assert tallied(some, f"ReplicaSet-{uid}") == tallied(whole, f"ReplicaSet-{uid}")
            assert not some.of(f"Job-{uid}")


class Teller:
    """An informer that knows some pods, of which it tells whoever comes to listen."""

    def __init__(self, pods: Sequence[JsonObject]) -> None:
        self._pods = pods
        self.heeds = 0

    def listen(self, on_event: Handler, *, heeds: int, concerns: Concern, **_options: object) -> object:
        self.heeds = heeds
        for pod in self._pods:
            if concerns(None, pod):
                on_event("ADDED", None, pod)
        return object()

    def dismiss(self, _listener: object) -> None:
        """Nothing is told later on."""


def test_a_source_keeps_the_book_and_begins_it_anew_when_it_is_started_again() -> None:
    pods = [pod_of(number, ("u1", 0, "Running", True, False)) for number in range(3)]
    book, teller = PodBook(("apps", "ReplicaSet")), Teller(pods)
    source = CountedPodSource(cast("Any", teller), REPLICA_SETS, cast("Any", teller), selector_of, book)
    for _ in range(2):
        fed: list[str] = []
        source.start(fed.append)
        assert fed == ["default/u1"] * 3
        assert tallied(book, "u1") == [(LABELS[0], [0, 0, 0, 3])]
        source.stop()
    assert teller.heeds == HEEDED
