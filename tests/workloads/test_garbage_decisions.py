from __future__ import annotations

from typing import Any

import pytest

from holokube.client.discovery import Discovered
from holokube.client.resources import EVENTS, PODS, TOKEN_REVIEWS, Resource
from holokube.workloads.garbage_decisions import (
    Delete,
    DropReferences,
    Keep,
    OwnerState,
    Verdict,
    collectable,
    judge,
    owner_state,
    unblocked,
    without_finalizer,
    without_owners,
)

SOLID, DANGLING, WAITING = OwnerState.SOLID, OwnerState.DANGLING, OwnerState.WAITING


def obj(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "uid": "u", "resourceVersion": "7", **meta}}


@pytest.mark.parametrize(
    ("states", "has_dependents", "finalizers", "verdict"),
    [
        ([], True, [], Keep()),
        ([SOLID], True, [], Keep()),
        ([SOLID, DANGLING], True, [], DropReferences(frozenset({"1"}))),
        ([WAITING, SOLID, DANGLING], True, [], DropReferences(frozenset({"0", "2"}))),
        ([DANGLING], True, [], Delete("Background")),
        ([DANGLING], True, ["orphan"], Delete("Orphan")),
        ([DANGLING], False, ["foregroundDeletion"], Delete("Foreground")),
        ([WAITING], True, [], Delete("Foreground")),
        ([WAITING], False, [], Delete("Background")),
        ([DANGLING, WAITING], True, [], Delete("Foreground")),
    ],
)
def test_the_owners_decide_what_becomes_of_an_object(
    states: list[OwnerState], has_dependents: bool, finalizers: list[str], verdict: Verdict
) -> None:
    owners = [(str(number), state) for number, state in enumerate(states)]
    found = judge(
        obj(finalizers=finalizers), owners, has_dependents=has_dependents, dependent_waits=False
    )
    assert found == verdict


def test_an_object_between_two_that_wait_stops_blocking() -> None:
    found = judge(obj(), [("0", WAITING)], has_dependents=True, dependent_waits=True)
    assert found == Delete("Foreground", unblock=True)


def test_an_owner_of_the_same_name_but_another_uid_is_not_there() -> None:
    assert owner_state(None, "u") is DANGLING
    assert owner_state(obj(), "other") is DANGLING
    assert owner_state(obj(), "u") is SOLID
    assert owner_state(obj(finalizers=["foregroundDeletion"]), "u") is SOLID
    leaving = obj(finalizers=["foregroundDeletion"], deletionTimestamp="2026-01-01T00:00:00Z")
    assert owner_state(leaving, "u") is WAITING


def test_patches_name_the_version_they_were_made_from_and_say_none_when_needless() -> None:
    held = obj(ownerReferences=[{"uid": "a", "blockOwnerDeletion": True}, {"uid": "b"}], finalizers=["f", "g"])
    guard = {"uid": "u", "resourceVersion": "7"}
    assert without_owners(held, frozenset({"a"})) == {"metadata": {**guard, "ownerReferences": [{"uid": "b"}]}}
    assert without_owners(held, frozenset({"c"})) is None
    assert without_finalizer(held, "f") == {"metadata": {**guard, "finalizers": ["g"]}}
    assert without_finalizer(held, "h") is None
    patch = unblocked(held)
    assert patch is not None and not any(o["blockOwnerDeletion"] for o in patch["metadata"]["ownerReferences"])
    assert unblocked(obj(ownerReferences=[{"uid": "b"}])) is None


def test_only_what_can_be_listed_watched_and_deleted_is_collected_and_at_one_version() -> None:
    verbs = ("list", "watch", "delete", "get")
    older = Resource("", "v0", "pods", "Pod", True)
    found = collectable([
        Discovered(PODS, verbs=verbs), Discovered(older, verbs=verbs), Discovered(EVENTS, verbs=verbs),
        Discovered(TOKEN_REVIEWS, verbs=("create",)),
    ])  # fmt: skip
    assert [item.resource for item in found] == [PODS]
