"""Which changes of claims are found to matter to nobody, compared with a look at all there is."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.api.labels import REGISTERED
from holokube.karpenter.lifecycle.hydration import _looks_alike
from holokube.karpenter.lifecycle.sources import basis_of
from holokube.karpenter.provider.machines import Machines, is_settled
from holokube.kube.types import JsonObject
from tests.karpenter.objects import claim, condition

FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "generation", "labels", "annotations", "finalizers")
_parts = st.fixed_dictionaries({}, optional={
    "labels": st.sampled_from([{}, {"a": "b"}]),
    "spec": st.sampled_from([{}, {"nodeClassRef": {"name": "c"}}]),
    "providerID": st.sampled_from(["", "kwok://1"]),
    "conditions": st.sampled_from(
        [[], [condition(REGISTERED)], [condition(REGISTERED, "False")], [condition("Other")]]
    ),
    "deletionTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
    "lastPodEventTime": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"]),
})  # fmt: skip


def changed(old: JsonObject, parts: dict[str, Any]) -> JsonObject:
    """As a write in process leaves it: only what was written is another object."""
    metadata, status = {**old["metadata"]}, {**(old.get("status") or {})}
    new: JsonObject = {**old, "metadata": metadata, "status": status}
    for name, value in parts.items():
        place = new if name == "spec" else metadata if name in ("labels", "deletionTimestamp") else status
        place[name] = deepcopy(value)
    return new


_changes = st.lists(_parts, min_size=1, max_size=6)


@settings(max_examples=300, deadline=None)
@given(_changes)
def test_a_claim_concerns_machines_unless_it_was_settled_and_still_is(changes: list[dict[str, Any]]) -> None:
    machines = object.__new__(Machines)
    queue = SimpleNamespace(has_due=False)
    machines._controller = SimpleNamespace(queue=queue)  # type: ignore[assignment]
    old: JsonObject | None = None
    for parts in changes:
        new = changed(old or claim(), parts)
        for before, after in ((old, new), (new, new), (new, None)):
            is_left_alone = after is not None and is_settled(before) and is_settled(after)
            queue.has_due = False
            assert machines._concerns(before, after) == (not is_left_alone)
            queue.has_due = True
            assert machines._concerns(before, after)
        old = new


def _looked_at(found: JsonObject) -> tuple[object, ...]:
    return found.get("spec"), found["metadata"].get("labels"), (found.get("status") or {}).get("providerID") or ""


@settings(max_examples=300, deadline=None)
@given(_changes)
def test_claims_look_alike_if_class_labels_and_instance_do(changes: list[dict[str, Any]]) -> None:
    old = claim()
    for parts in changes:
        for known in (old, deepcopy(old)):
            new = changed(known, parts)
            assert _looks_alike(old, new) == (_looked_at(old) == _looked_at(new))
        old = new


@settings(max_examples=200, deadline=None)
@given(_changes, st.lists(st.integers(0, 6), max_size=20))
def test_the_basis_of_a_claim_is_its_own_whoever_was_asked_about_before(
    changes: list[dict[str, Any]], asked: list[int]
) -> None:
    states = [claim()]
    for parts in changes:
        states.append(changed(states[-1], parts))
    for number in asked:
        one = states[number % len(states)]
        status = one.get("status") or {}
        expected = *(one["metadata"].get(name) for name in FIELDS), one.get("spec"), status.get("conditions")
        assert basis_of(one) == expected
