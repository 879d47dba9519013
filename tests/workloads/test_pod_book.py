"""A book that is kept change by change says what counting from scratch says."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.client.audience import DELETION, EXISTENCE, STATUS, Audience, Listener, aspects_changed
from holokube.client.audience import LABELS as LABELS_ASPECT
from holokube.client.audience import OWNERS as OWNERS_ASPECT
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of
from holokube.workloads.pod_book import PodBook, Tally
from holokube.workloads.replica_set_decisions import Fit, Numbers, add_up, call_roll, has_labels
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
    fits = dict[str, Fit]()
    owner: JsonObject = {"spec": {}}
    for number, state in steps:
        old = pods.pop(number, None)
        new = pod_of(number, state) if state is not None else None
        if new is not None:
            pods[number] = new
        if old is not None or new is not None:
            book.on_event("MODIFIED", old, new)
        for uid in OWNERS[:2]:
            for selected in ({"app": "a"}, {}):
                selector, template = LabelSelector.from_labels(selected), LABELS[0]
                roll = call_roll(controlled(list(pods.values()), uid), selector, template)
                wanted = None if roll is None else roll.numbers(0, NOW)
                tallies = book.of(uid)
                assert add_up(tallies, selector, template) == wanted
                # An owner that selects everything never has to look again, as long as its pods have the same labels.
                if not selected:
                    if uid in fits and fits[uid].is_of(owner, tallies):
                        assert fits[uid].numbers(tallies) == wanted
                    elif len(tallies) == 1:
                        fits[uid] = Fit(owner["spec"], tallies[0][0], has_labels(tallies[0][0], template))
    for number, pod in list(pods.items()):
        book.on_event("DELETED", pod, None)
        del pods[number]
    assert book == PodBook(), "nothing is kept of owners that have no pods"


def test_a_fit_ends_with_another_spec_or_other_labels() -> None:
    owner: JsonObject = {"spec": {"replicas": 1}}
    labels = {"app": "a"}
    fit = Fit(owner["spec"], labels, is_labelled=True)
    assert fit.is_of(owner, [(labels, Tally(1))])
    assert not fit.is_of({"spec": {"replicas": 1}}, [(labels, Tally(1))])
    assert not fit.is_of(owner, [({"app": "a"}, Tally(1))])
    assert not fit.is_of(owner, [(labels, Tally(1)), ({}, Tally(1))])
    assert not fit.is_of(owner, [])
    unfit = Fit(owner["spec"], labels, is_labelled=False)
    assert (fit.numbers([(labels, Tally(3, 2, 1))]), unfit.numbers([(labels, Tally(3, 2, 1))])) == (
        Numbers(3, 2, 2, 3, 1), Numbers(3, 2, 2, 0, 1),
    )  # fmt: skip


@settings(deadline=None)
@given(STEPS, st.lists(st.sampled_from(["ReplicaSet", "Job"]), min_size=60, max_size=60))
def test_a_book_of_one_kind_that_hears_of_no_other_counts_the_same(
    steps: list[tuple[int, tuple[str, int, str, bool, bool] | None]], kinds: list[str]
) -> None:
    whole, some, audience = PodBook(), PodBook(("apps", "ReplicaSet")), Audience()
    audience.add(Listener(some.on_event, STATUS | LABELS_ASPECT | OWNERS_ASPECT | DELETION, some.kind, False))
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
        whole.on_event("MODIFIED", old, new)
        aspects = aspects_changed(old, new) if old is not None and new is not None else EXISTENCE
        for listener in audience.of(aspects, new if new is not None else old or {}):
            listener.handler("MODIFIED", old, new)
        for uid in OWNERS[:2]:
            assert some.of(f"ReplicaSet-{uid}") == whole.of(f"ReplicaSet-{uid}")
            assert not some.of(f"Job-{uid}")
