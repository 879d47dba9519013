"""Who controls which object: owner references, and the claims that controllers make with their selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holokube.client.audience import OWNERS
from holokube.client.client import Client, PatchType
from holokube.client.informer import Informer
from holokube.client.resources import Resource
from holokube.kube.errors import ApiError, Conflict, Invalid, NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

CONTROLLER_INDEX = "controller"
"""Name of the index by ``controller_index`` that every informer of controlled objects carries."""


def controller_of(obj: Mapping[str, Any]) -> JsonObject | None:
    """The owner reference that controls the object; not a copy."""
    references = obj["metadata"].get("ownerReferences")
    if references:
        reference: JsonObject
        for reference in references:
            if reference.get("controller"):
                return reference
    return None


def is_controlled_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def controller_reference(owner: Mapping[str, Any]) -> JsonObject:
    """The reference by which ``owner`` controls what it makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_index(obj: JsonObject) -> list[str]:
    """Lists an object under its controller's uid, or under its namespace's orphans."""
    reference = controller_of(obj)
    return [str(reference["uid"]) if reference else orphans_of(obj["metadata"].get("namespace") or "")]


def orphans_of(namespace: str) -> str:
    """The value under which ``controller_index`` lists what nobody controls."""
    return f"orphans/{namespace}"


def by_controller(informers: InformerSet, resource: Resource) -> Informer:
    """The informer of a resource, with the index by controlling owner."""
    return informers.indexed(resource, CONTROLLER_INDEX, controller_index, heeds=OWNERS)


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


@dataclass(slots=True)
class Claims:
    """What an owner has, wants and lets go."""

    held: list[JsonObject] = field(default_factory=list)
    adopt: list[JsonObject] = field(default_factory=list)
    release: list[JsonObject] = field(default_factory=list)


def decide_claims(
    owner: Mapping[str, Any], selector: LabelSelector, candidates: Iterable[JsonObject]
) -> Claims:
    """Sorts candidates by the rules of upstream's ``ControllerRefManager``.

    An owner that is being deleted keeps what matches but neither adopts nor releases; what is being deleted
    itself is not adopted; what somebody else controls is left alone.
    """
    claims = Claims()
    leaving = bool(owner["metadata"].get("deletionTimestamp"))
    for obj in candidates:
        meta = obj["metadata"]
        matches = selector.matches(meta.get("labels") or {})
        reference = controller_of(obj)
        if reference is not None:
            if reference["uid"] != owner["metadata"]["uid"]:
                continue
            if matches:
                claims.held.append(obj)
            elif not leaving:
                claims.release.append(obj)
        elif (
            matches
            and not leaving
            and not meta.get("deletionTimestamp")
            and owner["metadata"].get("namespace") == meta.get("namespace")
        ):
            claims.adopt.append(obj)
    return claims


async def claim(
    client: Client,
    owner_resource: Resource,
    owner: JsonObject,
    resource: Resource,
    selector: LabelSelector,
    candidates: Iterable[JsonObject],
    *,
    finalizers: tuple[str, ...] = (),
) -> list[JsonObject]:
    """The candidates that are the owner's, after adopting and releasing what must be.

    The first failure is raised, but only after all others were tried.
    """
    claims = decide_claims(owner, selector, candidates)
    failures: list[ApiError] = []
    if claims.adopt:
        await _recheck_owner(client, owner_resource, owner)
    held = claims.held
    for obj in claims.adopt:
        try:
            held.append(await _adopt(client, owner, resource, obj, finalizers))
        except NotFound:
            continue
        except ApiError as error:
            failures.append(error)
    for obj in claims.release:
        try:
            await release(client, owner, resource, obj, finalizers=finalizers)
        except ApiError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return held


async def _recheck_owner(client: Client, resource: Resource, owner: JsonObject) -> None:
    """Asks the server, not the cache, before adopting: a deleted owner would take orphans along."""
    meta = owner["metadata"]
    fresh = await client.get(resource, meta["name"], meta.get("namespace"))
    if fresh["metadata"]["uid"] != meta["uid"]:
        raise Conflict(f"{resource.kind} {meta['name']} is another one by now: it cannot adopt anything")
    if fresh["metadata"].get("deletionTimestamp"):
        raise Conflict(f"{resource.kind} {meta['name']} is being deleted: it cannot adopt anything")


async def _adopt(
    client: Client, owner: JsonObject, resource: Resource, obj: JsonObject, finalizers: tuple[str, ...]
) -> JsonObject:
    meta: JsonObject = {"uid": obj["metadata"]["uid"], "ownerReferences": [controller_reference(owner)]}
    if finalizers:
        meta["finalizers"] = list(finalizers)
    return await client.patch(
        resource, obj["metadata"]["name"], {"metadata": meta},
        namespace=obj["metadata"].get("namespace"), type=PatchType.STRATEGIC,
    )  # fmt: skip


async def release(
    client: Client,
    owner: JsonObject,
    resource: Resource,
    obj: JsonObject,
    *,
    finalizers: tuple[str, ...] = (),
) -> None:
    """Takes the owner out of the object's references; nothing to do if it, or the reference, is gone."""
    meta: JsonObject = {
        "uid": obj["metadata"]["uid"],
        "ownerReferences": [{"$patch": "delete", "uid": owner["metadata"]["uid"]}],
    }
    if finalizers:
        meta["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    try:
        await client.patch(
            resource, obj["metadata"]["name"], {"metadata": meta},
            namespace=obj["metadata"].get("namespace"), type=PatchType.STRATEGIC,
        )  # fmt: skip
    except (NotFound, Invalid, Conflict):
        # Gone, or another object of the same name: the uid in the patch does not fit.
        return
