"""ControllerRevisions: the remembered templates of DaemonSets and StatefulSets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holokube.client.client import Client
from holokube.client.resources import CONTROLLER_REVISIONS, Resource
from holokube.kube.errors import AlreadyExists, Conflict
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_reference
from holokube.workloads.pod_templates import without_nothing

REVISION_HASH = "controller-revision-hash"
_PREFIX_CHARS_MAX = 223


def template_patch(owner: Mapping[str, Any]) -> JsonObject:
    """What a revision remembers: a patch that puts this template back, as ``kubectl rollout undo`` does."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def is_revision_of(revision: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whether the revision remembers the owner's present template."""
    return bool(without_nothing(revision.get("data") or {}) == without_nothing(template_patch(owner)))


def number_of(revision: Mapping[str, Any]) -> int:
    return int(revision.get("revision") or 0)


def highest(revisions: Iterable[Mapping[str, Any]]) -> int:
    return max((number_of(revision) for revision in revisions), default=0)


def in_order(revisions: Iterable[JsonObject]) -> list[JsonObject]:
    """Oldest first; of two with one number, the one created first."""
    return sorted(
        revisions,
        key=lambda r: (number_of(r), r["metadata"].get("creationTimestamp") or "", r["metadata"]["name"]),
    )


def hash_of(revision: Mapping[str, Any]) -> str:
    """The hash its pods are labelled with."""
    labels = revision["metadata"].get("labels") or {}
    return str(labels.get(REVISION_HASH) or revision["metadata"]["name"])


def new_revision(owner: JsonObject, number: int, digest: str, labels: Mapping[str, str]) -> JsonObject:
    """The revision of the present template, named after its hash so that it cannot be made twice."""
    meta = owner["metadata"]
    body: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{meta['name'][:_PREFIX_CHARS_MAX]}-{digest}",
            "namespace": meta["namespace"],
            "labels": dict(labels),
            "ownerReferences": [controller_reference(owner)],
        },
        "data": template_patch(owner),
        "revision": number,
    }
    if meta.get("annotations"):
        body["metadata"]["annotations"] = dict(meta["annotations"])
    return body


async def create_revision(
    client: Client, resource: Resource, owner: JsonObject, revision: JsonObject
) -> JsonObject:
    """Creates a revision, or finds the one that is there; a foreign one of that name is a collision.

    A collision is counted in the owner's status, which changes the next hash, and ends in a conflict.
    """
    meta = owner["metadata"]
    try:
        return await client.create(CONTROLLER_REVISIONS, revision, meta["namespace"])
    except AlreadyExists:
        name = revision["metadata"]["name"]
        found = await client.get(CONTROLLER_REVISIONS, name, meta["namespace"])
        if is_revision_of(found, owner):
            return found
        fresh = await client.get(resource, meta["name"], meta["namespace"])
        status = dict(fresh.get("status") or {})
        if status.get("collisionCount") == (owner.get("status") or {}).get("collisionCount"):
            status["collisionCount"] = int(status.get("collisionCount") or 0) + 1
            await client.update_status(resource, {**fresh, "status": status}, meta["namespace"])
        raise Conflict(f"ControllerRevision {meta['namespace']}/{name} belongs to another template") from None
