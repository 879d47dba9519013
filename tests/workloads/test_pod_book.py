"""A book that is kept change by change says what counting from scratch says."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of
from holokube.workloads.pod_book import PodBook
from holokube.workloads.replica_set_decisions import add_up, call_roll
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
            book.on_event("MODIFIED", old, new)
        for uid in OWNERS[:2]:
            for selected in ({"app": "a"}, {}):
                selector, template = LabelSelector.from_labels(selected), LABELS[0]
                roll = call_roll(controlled(list(pods.values()), uid), selector, template)
                wanted = None if roll is None else roll.numbers(0, NOW)
                assert add_up(book.of(uid), selector, template) == wanted
    for number, pod in list(pods.items()):
        book.on_event("DELETED", pod, None)
        del pods[number]
    assert book == PodBook(), "nothing is kept of owners that have no pods"
