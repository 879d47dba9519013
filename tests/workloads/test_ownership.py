"""Who holds, adopts and releases what."""

from __future__ import annotations

from typing import Any

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import (
    controller_index,
    controller_of,
    controller_reference,
    decide_claims,
    is_controlled_by,
)
from tests.builders import pod

OWNER: JsonObject = {
    "apiVersion": "apps/v1", "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
}  # fmt: skip
LEAVING = {**OWNER, "metadata": {**OWNER["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
SELECTOR = LabelSelector.parse("app=web")


def child(name: str, *, app: str = "web", owner: str = "", **meta: Any) -> JsonObject:
    body = pod(name)
    body["metadata"].update(labels={"app": app}, **meta)
    if owner:
        body["metadata"]["ownerReferences"] = [{**controller_reference(OWNER), "uid": owner}]
    return body


CHILDREN = [
    child("held", owner="u1"), child("strayed", owner="u1", app="x"), child("foreign", owner="u2"),
    child("orphan"), child("stranger", app="x"), child("dying", deletionTimestamp="2026-01-01T00:00:00Z"),
    child("elsewhere", namespace="other"),
]  # fmt: skip


def names(objects: list[JsonObject]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_matching_orphans_are_adopted_and_own_strays_released() -> None:
    claims = decide_claims(OWNER, SELECTOR, CHILDREN)
    assert names(claims.held) == ["held"]
    assert names(claims.adopt) == ["orphan"]
    assert names(claims.release) == ["strayed"]


def test_an_owner_that_is_being_deleted_only_keeps() -> None:
    claims = decide_claims(LEAVING, SELECTOR, CHILDREN)
    assert (names(claims.held), claims.adopt, claims.release) == (["held"], [], [])


def test_only_the_controlling_reference_counts() -> None:
    plain = {**controller_reference(OWNER), "controller": False}
    loose = child("loose", ownerReferences=[plain])
    assert controller_of(loose) is None and not is_controlled_by(loose, OWNER)
    assert controller_index(loose) == ["orphans/default"]
    assert controller_index(child("held", owner="u1")) == ["u1"]
