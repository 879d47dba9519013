"""Pods made from templates: created and deleted with upstream's events, bursts and slow start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from holokube.base.errors import HolokubeError
from holokube.client.client import Client
from holokube.client.resources import PODS
from holokube.kube.errors import ApiError, NotFound
from holokube.kube.names import is_dns1123_subdomain
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.workloads.expectations import Expectations
from holokube.workloads.ownership import controller_reference

T = TypeVar("T")

SLOW_START_FIRST = 1
BURST_PODS = 500
"""Upstream's replica controllers touch at most this many pods in one go."""
_DELETES_AT_ONCE = 50


def pod_from_template(
    template: Mapping[str, Any], owner: Mapping[str, Any], *, generate_name: str = ""
) -> JsonObject:
    """The pod an owner makes of its template: labels, annotations and finalizers are taken over."""
    source = template.get("metadata") or {}
    meta: JsonObject = {"generateName": generate_name or name_prefix(owner["metadata"]["name"])}
    meta["namespace"] = owner["metadata"]["namespace"]
    for name in ("labels", "annotations", "finalizers"):
        if source.get(name):
            meta[name] = source[name]
    meta["ownerReferences"] = [controller_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


def name_prefix(owner_name: str) -> str:
    """``web-``; without the dash where that would make the name too long."""
    prefix = f"{owner_name}-"
    return owner_name if is_dns1123_subdomain(f"{owner_name}a") else prefix


def namespace_is_terminating(error: BaseException) -> bool:
    return isinstance(error, ApiError) and any(c.reason == "NamespaceTerminating" for c in error.causes)


async def slow_start(
    items: Sequence[T], act: Callable[[T], Awaitable[None]], *, one_by_one: bool = False
) -> HolokubeError | None:
    """Acts on all items in batches of 1, 2, 4, ... until a batch has a failure, which is returned.

    What would fail for all, as under a used-up quota, is so tried only a few times. ``one_by_one`` as for ``together``.
    """
    done, size = 0, SLOW_START_FIRST
    while done < len(items):
        batch = items[done : done + size]
        failure = await together(batch, act, one_by_one=one_by_one)
        if failure is not None:
            return failure
        done += len(batch)
        size *= 2
    return None


async def together(
    items: Sequence[T], act: Callable[[T], Awaitable[None]], *, one_by_one: bool = False
) -> HolokubeError | None:
    """Acts on all items at once; the first failure, if any. Bugs are raised.

    ``one_by_one`` is for those who need not wait for what they ask for (``Client.answers_at_once``): nothing is gained
    by doing several things side by side then, and a task for each costs more than most of what is done.
    """
    first: HolokubeError | None = None
    if one_by_one or len(items) == 1:
        for item in items:
            try:
                await act(item)
            except HolokubeError as error:
                first = first or error
        return first
    for result in await asyncio.gather(*map(act, items), return_exceptions=True):
        if isinstance(result, HolokubeError):
            first = first or result
        elif result is not None:
            raise result
    return first


class PodControl:
    """Creates and deletes the pods of one controller, tells users, and remembers until the cache shows it."""

    def __init__(self, client: Client, recorder: EventRecorder, expectations: Expectations) -> None:
        self._client = client
        self._recorder = recorder
        self._expectations = expectations
        self._one_by_one = client.answers_at_once

    def create(
        self, key: str, owner: JsonObject, pods: Sequence[JsonObject]
    ) -> Coroutine[Any, Any, HolokubeError | None]:
        """Creates pods, slowly at first; the first failure, if any.

        In a namespace that is being deleted every create fails, and there is nothing to be done about it.
        """
        create_one = partial(self._create_one, key, owner)
        if len(pods) == 1:
            return together(pods, create_one)
        return slow_start(pods, create_one, one_by_one=self._one_by_one)

    async def _create_one(self, key: str, owner: JsonObject, pod: JsonObject) -> None:
        try:
            created = await self._client.create(PODS, pod, pod["metadata"]["namespace"])
        except HolokubeError as error:
            if namespace_is_terminating(error):
                return
            self._recorder.event(owner, WARNING, "FailedCreate", f"Error creating: {error}")
            raise
        self._expectations.created(key, created)
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")

    async def delete(self, key: str, owner: JsonObject, pods: Sequence[JsonObject]) -> HolokubeError | None:
        """Deletes pods; the first failure, if any. A pod that is gone already is fine."""
        delete_one = partial(self._delete_one, key, owner)
        for start in range(0, len(pods), _DELETES_AT_ONCE):
            batch = pods[start : start + _DELETES_AT_ONCE]
            failure = await together(batch, delete_one, one_by_one=self._one_by_one)
            if failure is not None:
                return failure
        return None

    async def _delete_one(self, key: str, owner: JsonObject, pod: JsonObject) -> None:
        meta = pod["metadata"]
        try:
            # The uid keeps a stale cache from deleting a new pod under an old name.
            await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return
        except HolokubeError as error:
            self._recorder.event(owner, WARNING, "FailedDelete", f"Error deleting: {error}")
            raise
        self._expectations.deleted(key, pod)
        self._recorder.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {meta['name']}")
