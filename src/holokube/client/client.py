"""The client: every way in which holokube, or a user's controller, talks to a cluster.

Objects are plain dicts as the API server sent them. Errors are the classes of ``holokube.kube.errors`` when
the server answered, and ``TransportError`` when it did not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any

from holokube.client.resources import PODS, Resource
from holokube.client.transport import JSON, Call, GoOn, OnEvents, OnStored, Transport, WatchEvent, close_stream
from holokube.kube.errors import ApiError, Expired, Gone

JsonObject = dict[str, Any]

_Follow = Callable[[OnEvents, GoOn | None, OnStored | None], Awaitable[None]]

_tuple = tuple.__new__
"""Makes a ``Call`` as its constructor does, which is a function of Python: all that is written comes by here."""

PAGE_SIZE = 500
"""Objects per page of a whole list, the number upstream's own pager uses."""


class PatchType(Enum):
    """How a patch is to be read; the value is its media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ListResult:
    """One page, or all, of a list."""

    items: list[JsonObject]
    resource_version: str
    continue_: str = ""
    """Hand it to the next ``list`` call; empty on the last page."""
    remaining: int | None = None
    """How many objects come after this page; None when the server does not say."""


class Client:
    """All verbs of the API on one transport.

    Most hand on the transport's own coroutine, and are no coroutines themselves: each step on the way costs all calls.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.answers_at_once: bool = getattr(transport, "answers_at_once", False)
        """Whether nobody has to wait for an answer, so that nothing is gained by asking for several side by side."""

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Reading

    def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str = "",
        resource_version: str = "",
    ) -> Coroutine[Any, Any, JsonObject]:
        query = _query(resourceVersion=resource_version) if resource_version else {}
        return self.transport.call(_named("get", resource, name, namespace, subresource, query))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> ListResult:
        """One page; without a limit the whole list. No namespace means all namespaces."""
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=str(limit) if limit else "",
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
            **{"continue": continue_},
        )
        answer = await self.transport.call(Call("list", resource, _space(resource, namespace), query=query))
        return _list_result(resource, answer)

    async def list_all(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
        page_size: int = PAGE_SIZE,
    ) -> ListResult:
        """The whole list, read in pages that all show the same moment.

        When the moment of the first page leaves the server's history before the last page was read, the
        list is read again in one piece, as upstream's pager does.
        """
        items: list[JsonObject] = []
        continue_ = ""
        while True:
            try:
                page = await self.list(
                    resource,
                    namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    limit=page_size,
                    continue_=continue_,
                    # The token of a later page carries the version; the server refuses both at once.
                    resource_version="" if continue_ else resource_version,
                    resource_version_match="" if continue_ else resource_version_match,
                )
            except (Expired, Gone):
                if not continue_:
                    raise
                return await self.list(
                    resource, namespace, label_selector=label_selector, field_selector=field_selector
                )
            if not items:
                items = page.items
            else:
                items.extend(page.items)
            if not page.continue_:
                return ListResult(items, page.resource_version)
            continue_ = page.continue_

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int | None = None,
        bookmarks: bool = True,
        send_initial_events: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Events after ``resource_version`` until the server ends the watch; an ``ERROR`` event is raised.

        Without a version the server first sends what exists as ``ADDED`` events. With ``send_initial_events``
        it marks the end of those with a bookmark annotated ``k8s.io/initial-events-end``.
        """
        stream = self._open_watch(
            resource, namespace, resource_version, label_selector, field_selector, timeout_s, bookmarks,
            send_initial_events,
        )  # fmt: skip
        try:
            async for event in stream:
                if event.type == "ERROR":
                    raise ApiError.from_status(event.object)
                yield event
        finally:
            await close_stream(stream)

    async def follow(
        self,
        on_events: OnEvents,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int | None = None,
        bookmarks: bool = True,
        go_on: Callable[[str], int] | None = None,
        on_stored: OnStored | None = None,
    ) -> None:
        """As ``watch``, but calls ``on_events`` with all that has come in, ``ERROR`` events among it.

        ``go_on`` tells for how many seconds another watch should last that is begun where this one ends, at a version;
        this one may then last on instead. Where events are at hand as the store of a server in the same process has
        them, ``on_stored`` is called in place of ``on_events``.
        """
        stream = self._open_watch(
            resource, namespace, resource_version, label_selector, field_selector, timeout_s, bookmarks, False
        )
        try:
            follow: _Follow | None = getattr(stream, "follow", None)
            if follow is not None:
                await follow(on_events, None if go_on is None else partial(self._go_on, go_on), on_stored)
            else:
                async for event in stream:
                    on_events((event,))
        finally:
            await close_stream(stream)

    def _go_on(self, go_on: Callable[[str], int], version: str) -> int | None:
        """For how long a watch whose time is over lasts on; None if it does not."""
        may_go_on: Callable[[], bool] | None = getattr(self.transport, "may_go_on", None)
        return go_on(version) if may_go_on is not None and may_go_on() else None

    def _open_watch(
        self,
        resource: Resource,
        namespace: str | None,
        resource_version: str,
        label_selector: str,
        field_selector: str,
        timeout_s: int | None,
        bookmarks: bool,
        send_initial_events: bool,
    ) -> AsyncIterator[WatchEvent]:
        query = _query(
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=str(timeout_s) if timeout_s is not None else "",
            allowWatchBookmarks="true" if bookmarks else "",
            sendInitialEvents="true" if send_initial_events else "",
            resourceVersionMatch="NotOlderThan" if send_initial_events else "",
        )
        return self.transport.watch(Call("watch", resource, _space(resource, namespace), query=query))

    # Writing

    def create(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        namespace: str | None = None,
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Coroutine[Any, Any, JsonObject]:
        """Creates an object; ``name`` is needed only to create a subresource such as ``token``."""
        space = namespace or str(obj.get("metadata", {}).get("namespace") or "")
        if resource.namespaced and not space:
            raise ValueError(_NO_NAMESPACE.format("create", resource.qualified_name))
        query = _write_query(dry_run, field_manager) if dry_run or field_manager else {}
        body = _typed(resource, obj, subresource)
        if not resource.namespaced:
            space = ""
        return self.transport.call(_tuple(Call, ("create", resource, space, name, subresource, query, body, JSON)))

    def update(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        namespace: str | None = None,
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Coroutine[Any, Any, JsonObject]:
        """Replaces an object; its ``metadata.resourceVersion``, if set, must still be the current one."""
        meta = obj.get("metadata", {})
        return self.transport.call(
            _named(
                "update",
                resource,
                name or str(meta.get("name") or ""),
                namespace or meta.get("namespace"),
                subresource,
                _write_query(dry_run, field_manager) if dry_run or field_manager else {},
                _typed(resource, obj, subresource),
            )
        )

    def update_status(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        namespace: str | None = None,
        *,
        field_manager: str = "",
    ) -> Coroutine[Any, Any, JsonObject]:
        # As ``update`` has it, without a call: nothing is written more often than a status.
        meta = obj.get("metadata", {})
        name, space = str(meta.get("name") or ""), namespace or meta.get("namespace")
        query = _write_query(False, field_manager) if field_manager else {}
        body = _typed(resource, obj, "status")
        return self.transport.call(_named("update", resource, name, space, "status", query, body))

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str | None = None,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> Coroutine[Any, Any, JsonObject]:
        """Changes part of an object. ``force`` takes over fields that others own (``APPLY`` only)."""
        query = _write_query(dry_run, field_manager) if dry_run or field_manager else {}
        if force:
            query["force"] = "true"
        return self.transport.call(
            _named("patch", resource, name, namespace, subresource, query, patch, type._value_)
        )

    def patch_status(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str | None = None,
        type: PatchType = PatchType.MERGE,
        field_manager: str = "",
    ) -> Coroutine[Any, Any, JsonObject]:
        # As ``patch`` has it, without a call.
        query = _write_query(False, field_manager) if field_manager else {}
        return self.transport.call(
            _named("patch", resource, name, namespace, "status", query, patch, type._value_)
        )

    async def apply(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        field_manager: str,
        namespace: str | None = None,
        subresource: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> JsonObject:
        """Server-side apply: creates the object or makes the listed fields this manager's."""
        meta = obj.get("metadata", {})
        return await self.patch(
            resource,
            str(meta.get("name") or ""),
            _typed(resource, obj, subresource),
            namespace=namespace or meta.get("namespace"),
            type=PatchType.APPLY,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager,
            force=force,
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Coroutine[Any, Any, JsonObject]:
        """Deletes an object; with ``uid`` or ``resource_version`` only if it is still that one."""
        options = _delete_options(grace_s, propagation, uid, resource_version, dry_run)
        return self.transport.call(_named("delete", resource, name, namespace, "", {}, options))

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        grace_s: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Deletes every object that matches; the API knows it for one namespace at a time only."""
        if resource.namespaced and not namespace:
            raise ValueError(_NO_NAMESPACE.format("delete_collection", resource.qualified_name))
        return await self.transport.call(
            Call(
                "deletecollection",
                resource,
                _space(resource, namespace),
                query=_query(labelSelector=label_selector, fieldSelector=field_selector),
                body=_delete_options(grace_s, propagation, "", "", dry_run),
            )
        )

    # Subresources with a meaning of their own

    async def get_scale(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        return await self.get(resource, name, namespace, subresource="scale")

    async def update_scale(
        self, resource: Resource, name: str, scale: Mapping[str, Any], namespace: str | None = None
    ) -> JsonObject:
        """Puts back a ``Scale`` as ``get_scale`` returned it, with ``spec.replicas`` changed."""
        return await self.update(resource, scale, namespace, name=name, subresource="scale")

    def bind(self, namespace: str, pod: str, node: str, *, uid: str = "") -> Coroutine[Any, Any, JsonObject]:
        """Puts a pod on a node; with ``uid`` only if the pod is still that one."""
        meta = {"name": pod, "namespace": namespace}
        if uid:
            meta["uid"] = uid
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.transport.call(_tuple(Call, ("create", PODS, namespace, pod, "binding", {}, body, JSON)))

    async def evict(
        self,
        namespace: str,
        pod: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Asks to delete a pod; ``TooManyRequests`` when a disruption budget forbids it for now."""
        body: JsonObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        options = _delete_options(grace_s, "", uid, resource_version, dry_run)
        if options is not None:
            body["deleteOptions"] = options
        return await self.transport.call(Call("create", PODS, namespace, pod, "eviction", {}, body))

    # Everything else

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        """A raw request: JSON answers come back as values, all others as text."""
        return await self.transport.request(method, path, query=query, body=body, content_type=content_type)


_NO_NAMESPACE = "{0} {1}: a namespace is needed, as these objects live in one; pass namespace=..."


def _query(**fields: str) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}


def _write_query(dry_run: bool, field_manager: str) -> dict[str, str]:
    return _query(dryRun="All" if dry_run else "", fieldManager=field_manager)


def _space(resource: Resource, namespace: str | None) -> str:
    return namespace or "" if resource.namespaced else ""


def _named(
    verb: str,
    resource: Resource,
    name: str,
    namespace: str | None,
    subresource: str,
    query: Mapping[str, str],
    body: Any = None,
    content_type: str = JSON,
) -> Call:
    """A call on one object. An empty name would address the whole collection: never let that out."""
    if not name:
        raise ValueError(f"{verb} {resource.qualified_name}: the object's name is empty")
    if not resource.namespaced:
        space = ""
    elif namespace:
        space = namespace
    else:
        raise ValueError(_NO_NAMESPACE.format(verb, resource.qualified_name))
    return _tuple(Call, (verb, resource, space, name, subresource, query, body, content_type))


def _typed(resource: Resource, obj: Mapping[str, Any], subresource: str) -> JsonObject:
    """The object with ``apiVersion`` and ``kind``, which builders may leave out.

    Bodies of most subresources are of a kind of their own (Scale, Eviction, TokenRequest).
    """
    if subresource not in ("", "status") or ("kind" in obj and "apiVersion" in obj):
        return dict(obj)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _list_result(resource: Resource, answer: JsonObject) -> ListResult:
    """Reads a list object. Its items come without ``apiVersion`` and ``kind``; watch events carry them, so
    they are put in here to make both look alike."""
    meta = answer.get("metadata") or {}
    items = [
        item
        if "kind" in item and "apiVersion" in item
        else {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        for item in answer.get("items") or ()
    ]
    return ListResult(
        items,
        str(meta.get("resourceVersion") or ""),
        str(meta.get("continue") or ""),
        meta.get("remainingItemCount"),
    )


def _delete_options(
    grace_s: int | None, propagation: str, uid: str, resource_version: str, dry_run: bool
) -> JsonObject | None:
    options: JsonObject = {}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if propagation:
        options["propagationPolicy"] = propagation
    if uid or resource_version:
        options["preconditions"] = _query(uid=uid, resourceVersion=resource_version)
    if dry_run:
        options["dryRun"] = ["All"]
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None
