"""Writes of ``status`` that change nothing are not sent; those that lose a race are tried once more."""

from __future__ import annotations

from holokube.client.client import Client
from holokube.client.resources import Resource
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject


async def write_status(client: Client, resource: Resource, obj: JsonObject, status: JsonObject) -> JsonObject:
    """Replaces the status if it differs. The object as it is afterwards.

    A status is counted from other objects than the one it is in, so it stays right when somebody else changed
    the spec meanwhile: its ``observedGeneration`` says what it was made from.
    """
    if same_status(obj.get("status") or {}, status):
        return obj
    meta = obj["metadata"]
    try:
        return await client.update_status(resource, {**obj, "status": status}, meta.get("namespace"))
    except NotFound:
        # It is gone, as the watch will say: there is nobody left to tell.
        return obj
    except Conflict:
        fresh = await client.get(resource, meta["name"], meta.get("namespace"))
        if fresh["metadata"]["uid"] != meta["uid"]:
            raise
        return await client.update_status(resource, {**fresh, "status": status}, meta.get("namespace"))


def same_status(old: JsonObject, new: JsonObject) -> bool:
    """Equal up to what the API leaves out: zeros, empty lists and nulls."""
    for key, value in new.items():
        before = old.get(key)
        if before is not value and (before or value) and before != value:
            return False
    for key, value in old.items():  # noqa: SIM110 - all() with a generator costs twice as much
        if value and key not in new:
            return False
    return True
