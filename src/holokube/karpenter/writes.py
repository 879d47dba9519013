"""Writing changed objects: as the smallest patch, and only if nobody else has written meanwhile where that matters.

A merge patch replaces whole lists: conditions, taints, finalizers. A patch that touches one carries the version it was
made from, so that a list somebody else has added to is not overwritten; the conflict is tried again.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from holokube.client.client import Client
from holokube.client.resources import Resource
from holokube.kube.errors import Conflict, Invalid, NotFound
from holokube.kube.patch.merge_patch import create_merge_patch
from holokube.kube.types import JsonObject

Written = Coroutine[Any, Any, JsonObject | None]


def patch_object(client: Client, resource: Resource, old: JsonObject, new: JsonObject) -> Written:
    """Writes what changed outside of the status. The object as it is now; None when it is gone."""
    if new is old:
        return _as_it_is(new)
    patch = create_merge_patch(_without_status(old), _without_status(new))
    if not patch:
        return _as_it_is(new)
    return _send(client, resource, old, patch, "")


def patch_status(client: Client, resource: Resource, old: JsonObject, new: JsonObject) -> Written:
    """Writes what changed in the status. The object as it is now; None when it is gone."""
    before, after = old.get("status") or {}, new.get("status") or {}
    if before is after:
        return _as_it_is(new)
    patch = create_merge_patch(before, after)
    if not patch:
        return _as_it_is(new)
    return _send(client, resource, old, {"status": patch}, "status")


def set_status(client: Client, resource: Resource, obj: JsonObject, fields: JsonObject) -> Written:
    """Writes fields of the status that are known to have changed. The object as it is now; None when it is gone."""
    return _send(client, resource, obj, {"status": fields}, "status")


async def _as_it_is(obj: JsonObject) -> JsonObject | None:
    """There is nothing to be written."""
    return obj


async def delete_object(client: Client, resource: Resource, obj: JsonObject) -> bool:
    """Asks for the deletion of exactly this object; False when it is gone already."""
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    try:
        await client.delete(resource, name, uid=uid)
    except NotFound:
        return False
    except Conflict:
        # Another object may have taken the name: then this one is gone as well.
        try:
            found = await client.get(resource, name)
        except NotFound:
            return False
        if found["metadata"]["uid"] != uid:
            return False
        raise
    return True


async def _send(
    client: Client, resource: Resource, old: JsonObject, patch: dict[str, Any], subresource: str
) -> JsonObject | None:
    metadata, patched = old["metadata"], patch.get("metadata")
    meant = {**patched, "uid": metadata["uid"]} if patched else {"uid": metadata["uid"]}
    if _has_list(patch):
        meant["resourceVersion"] = metadata["resourceVersion"]
    try:
        return await client.patch(resource, metadata["name"], {**patch, "metadata": meant}, subresource=subresource)
    except NotFound:
        return None
    except Invalid as error:
        # The server puts it this way when another object has taken the name.
        if any(cause.field == "metadata.uid" for cause in error.causes):
            return None
        raise


def _has_list(patch: dict[str, Any]) -> bool:
    for value in patch.values():  # noqa: SIM110 - a plain loop costs half of any() with a generator
        if isinstance(value, list) or (isinstance(value, dict) and _has_list(value)):
            return True
    return False


def _without_status(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key != "status"}
