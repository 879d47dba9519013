"""To the embedded API server in the same process: no HTTP, and no copying of what is read.

Objects that come back are the stored ones. They are shared with everybody else and must not be changed; build a new
dict instead. What is handed in is copied by the server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from holokube.apiserver.admission.base import IN_PROCESS, Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.discovery import Discovery
from holokube.apiserver.http.negotiation import Format
from holokube.apiserver.http.paths import parse_path
from holokube.apiserver.openapi import OpenApi
from holokube.apiserver.options import DeleteOptions, ListOptions, WriteOptions
from holokube.apiserver.patching import APPLY
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.binding import bind_at_once
from holokube.apiserver.subresources.bodies import success
from holokube.apiserver.subresources.logs import TextStream
from holokube.apiserver.watching import Shown, WatchStream
from holokube.base.errors import StoreReadOnly, TransportError
from holokube.base.loop import VirtualTimeLoop
from holokube.client.resources import Resource
from holokube.client.transport import JSON, Call, GoOn, OnEvents, OnStored, WatchEvent
from holokube.kube.errors import MethodNotAllowed, NotFound, ServiceUnavailable
from holokube.kube.types import JsonObject
from holokube.store.values import StoreEvent

# Calls in process never wait, so a caller with much to do would keep everybody else from running: the server's
# other clients, timers, leases. A count, not a time, for the order of things must not depend on the machine.
CALLS_PER_TURN = 32

RESOURCES_KEPT = 1024
_OPTION_KINDS = {"create": "CreateOptions", "update": "UpdateOptions"}
_HEALTH = ("/healthz", "/livez", "/readyz")
_NO_OPTIONS = WriteOptions.parse({}, "PatchOptions")
_tuple = tuple.__new__
_Resolved = tuple[Resource, Served, tuple[str, ...], tuple[str, ...]]
"""A resource, what is served for it, and the verbs of that and of its status; none where it has no status."""


class InProcessTransport:
    """Carries calls straight to a ``Registry``."""

    def __init__(self, registry: Registry, caller: Caller = IN_PROCESS) -> None:
        self._registry = registry
        self._table = registry.table
        self._at_once = registry.writes.at_once
        self._caller = caller
        self._open: set[WatchStream] = set()
        self._closed = False
        self._calls = 0
        self._resolved: dict[int, _Resolved] = {}
        """By identity of a resource: what is served for it, as long as no resource comes or goes."""
        self._resolved_at = -1
        self._documents: dict[str, JsonObject] = {}
        self._discovered_at = -1

    async def call(self, call: Call) -> JsonObject:
        if self._closed:
            self._check_open(call)
        self._calls += 1
        if self._calls % CALLS_PER_TURN == 0:
            await asyncio.sleep(0)
        verb, resource, namespace, name, subresource, query, body, content_type = call
        registry = self._registry
        try:
            known = self._resolved.get(id(resource))
            if known is None or known[0] is not resource or self._resolved_at != self._table.generation:
                known = self._resolve(resource)
            _, served, verbs, status_verbs = known
            if subresource:
                if subresource != "status":
                    if (
                        subresource == "binding" and verb == "create" and served.bucket == "pods" and not query
                        and bind_at_once(registry, served, namespace, name, body)
                    ):  # fmt: skip
                        return success()
                    return await self._subresource(call, served)
                verbs = status_verbs
            if verb not in verbs:
                if not verbs:
                    raise NotFound("the server could not find the requested resource", details={})
                raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})
            # The most frequent come first, and straight from here: a cluster at work writes, and every step costs.
            if verb == "patch":
                options = _options(call) if query or content_type == APPLY else _NO_OPTIONS
                at_once = self._at_once.patch_status if subresource else self._at_once.patch_metadata
                written = at_once(served, namespace, name, content_type, body, options, self._caller)
                if written is not None:
                    return written.obj
                patched = await registry.patch(
                    served, namespace, name, content_type, body, options, self._caller, subresource
                )
                return patched.stored.obj
            if verb == "update":
                options = _options(call) if query else _NO_OPTIONS
                if subresource:
                    replaced = self._at_once.replace_status(served, namespace, name, body, options, self._caller)
                    if replaced is not None:
                        return replaced.obj
                updated = await registry.update(served, namespace, name, body, options, self._caller, subresource)
                return updated.stored.obj
            if verb == "create" and verbs != ("create",):
                options = _options(call) if query else _NO_OPTIONS
                one_more = self._at_once.create(served, namespace, body, options, self._caller)
                if one_more is not None:
                    return one_more.obj
                return (await registry.create(served, namespace, body, options, self._caller)).stored.obj
            if verb == "delete":
                deletion = DeleteOptions.parse(query, body)
                answer = registry.deletes.delete_at_once(served, namespace, name, deletion)
                if answer is not None:
                    return answer
                return (await registry.delete(served, namespace, name, deletion, self._caller))[0]
            if verb == "get":
                version = query.get("resourceVersion", "") if query else ""
                return registry.get(served, namespace, name, resource_version=version).obj
            return await self._answer(call, served)
        except StoreReadOnly as problem:
            raise ServiceUnavailable(f"{problem} {problem.hint}".strip()) from problem

    async def _answer(self, call: Call, served: Served) -> JsonObject:
        """The less frequent verbs."""
        if call.verb == "list":
            return self._list(call, served)
        if call.verb == "deletecollection":
            return await self._delete_collection(call, served)
        virtual = self._registry.subresources.create_virtual
        return (await virtual(served, call.namespace, call.body, _options(call), self._caller)).stored.obj

    def _list(self, call: Call, served: Served) -> JsonObject:
        options = ListOptions.parse(call.query, watch=False)
        found = self._registry.list(served, call.namespace, options)
        meta: JsonObject = {"resourceVersion": str(found.revision)} if found.revision else {}
        if found.continue_:
            meta["continue"] = found.continue_
        if found.remaining:
            meta["remainingItemCount"] = found.remaining
        return {
            "kind": served.type.list_kind,
            "apiVersion": served.api_version,
            "metadata": meta,
            "items": [stored.obj for stored in found.items],
        }

    async def _delete_collection(self, call: Call, served: Served) -> JsonObject:
        deletion = DeleteOptions.parse(call.query, call.body)
        selector = ListOptions.parse(call.query, watch=False)
        gone = await self._registry.delete_collection(served, call.namespace, selector, deletion, self._caller)
        return {
            "kind": served.type.list_kind,
            "apiVersion": served.api_version,
            "metadata": {"resourceVersion": str(gone.revision)},
            "items": [stored.obj for stored in gone.items],
        }

    async def _subresource(self, call: Call, served: Served) -> JsonObject:
        name, _, rest = call.subresource.partition("/")
        known = served.info.subresources.get(name)
        if known is None:
            raise NotFound("the server could not find the requested resource", details={})
        if call.verb not in known.verbs:
            raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})
        outcome = await self._registry.subresources.handle(
            served, call.namespace, call.name, name, call.verb,
            body=call.body, content_type=call.content_type, query=call.query,
            options=_options(call), caller=self._caller, rest=rest,
        )  # fmt: skip
        if isinstance(outcome, WriteResult):
            return outcome.stored.obj
        if isinstance(outcome, tuple | TextStream):
            raise TransportError(
                f"{call} answers with text, not with an object",
                hint="use Client.request for logs and proxies",
            )
        return outcome

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return _InProcessWatch(self, call)

    def open_stream(self, call: Call) -> WatchStream:
        """The server's side of a watch."""
        self._check_open(call)
        served = self._served(call.resource)
        query = dict(call.query)
        if call.name:
            own = f"metadata.name={call.name}"
            query["fieldSelector"] = f"{query['fieldSelector']},{own}" if query.get("fieldSelector") else own
        stream = self._registry.watch(served, call.namespace, ListOptions.parse(query, watch=True))
        self._open.add(stream)
        return stream

    def may_go_on(self) -> bool:
        """Whether a watch whose time is over may last on: here nobody is relieved by ending it."""
        return not self._closed

    def lasts_on(self, stream: WatchStream, call: Call, go_on: GoOn) -> bool:
        """Whether a watch that has come to its end lasts on, instead of being ended and begun anew."""
        if not stream.is_out_of_time:
            return False
        resource = call.resource
        served = self._table.find(resource.group, resource.version, resource.plural)
        if served is None or not stream.is_of(served):
            return False
        timeout_s = go_on(str(stream.reached))
        if timeout_s is None or timeout_s <= 0:
            return False
        stream.last(timeout_s)
        return True

    def close_stream(self, stream: WatchStream) -> None:
        """Give a watch up."""
        self._open.discard(stream)
        stream.close()

    def check_not_cut_off(self) -> None:
        """A watch that ended because the transport was closed ended too early."""
        if self._closed:
            raise TransportError("the connection to the embedded server was closed", hint="watch again")

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        """Paths that are not resources, and resources whose answers are text."""
        plain = urlsplit(path).path.rstrip("/") or "/"
        if method == "GET":
            found = self._discovered(plain)
            if found is not None:
                return found
            if plain in _HEALTH:
                return "ok"
            if plain == "/openapi/v2":
                return orjson.loads(OpenApi(self._registry).v2().raw)
        parsed = parse_path(plain)
        if parsed is None or not parsed.plural:
            raise NotFound("the server could not find the requested resource", details={})
        served = self._registry.resolve(parsed.group, parsed.version, parsed.plural)
        verb = {"GET": "get" if parsed.name else "list", "POST": "create", "PUT": "update", "PATCH": "patch"}.get(
            method, "delete" if parsed.name else "deletecollection"
        )
        resource = Resource(parsed.group, parsed.version, parsed.plural, served.kind, served.namespaced)
        if parsed.subresource in ("log", "proxy"):
            outcome = await self._registry.subresources.handle(
                served, parsed.namespace, parsed.name, parsed.subresource, verb, body=body, content_type=content_type,
                query=query or {}, options=WriteOptions(), caller=self._caller, rest=parsed.rest,
            )  # fmt: skip
            if isinstance(outcome, TextStream):
                raise TransportError(
                    f"{method} {path} answers with a stream that has no end", hint="ask without follow=true"
                )
            return outcome[0].decode() if isinstance(outcome, tuple) else outcome
        return await self.call(
            Call(
                verb, resource, parsed.namespace, parsed.name, parsed.subresource, query or {}, body, content_type
            )
        )

    def _discovered(self, path: str) -> JsonObject | None:
        """The document of discovery at a path, the very same until a resource comes or goes."""
        generation = self._registry.table.generation
        if self._discovered_at != generation:
            self._discovered_at = generation
            self._documents.clear()
        found = self._documents.get(path)
        if found is None:
            discovery = Discovery(self._registry)
            found = discovery.version() if path == "/version" else discovery.answer(path, Format())
            if found is not None:
                self._documents[path] = found
        return found

    async def close(self) -> None:
        self._closed = True
        for stream in list(self._open):
            stream.close()

    def _served(self, resource: Resource) -> Served:
        return self._registry.resolve(resource.group, resource.version, resource.plural)

    def _resolve(self, resource: Resource) -> _Resolved:
        """As ``_served``, with a note of the answer: components ask for the same few resources, over and over."""
        generation = self._table.generation
        if self._resolved_at != generation or len(self._resolved) >= RESOURCES_KEPT:
            self._resolved_at = generation
            self._resolved.clear()
        served = self._served(resource)
        info = served.info
        status = info.subresources.get("status")
        found = self._resolved[id(resource)] = resource, served, info.verbs, () if status is None else status.verbs
        return found

    def _check_open(self, call: Call) -> None:
        if self._closed:
            raise TransportError(f"{call}: this client has been closed", hint="make a new client")


class _InProcessWatch:
    """A watch without a task or generator of its own."""

    __slots__ = ("_call", "_rest", "_stream", "_transport")

    def __init__(self, transport: InProcessTransport, call: Call) -> None:
        self._transport = transport
        self._call = call
        self._stream: WatchStream | None = None
        self._rest: deque[WatchEvent] | None = deque()
        """What has been read and not asked for yet; None when the watch has ended."""

    async def follow(
        self, on_events: OnEvents, go_on: GoOn | None = None, on_stored: OnStored | None = None
    ) -> None:
        stream = self._stream = self._transport.open_stream(self._call)
        lasts_on = partial(self._transport.lasts_on, stream, self._call, go_on) if go_on is not None else None
        try:
            await _Delivery(stream, on_events, lasts_on, on_stored).ended
        finally:
            await self.aclose()
        self._transport.check_not_cut_off()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        if self._rest is None:
            raise StopAsyncIteration
        if self._rest:
            return self._rest.popleft()
        try:
            if self._stream is None:
                self._stream = self._transport.open_stream(self._call)
            batch = await self._stream.next_batch()
        except BaseException:
            await self.aclose()
            raise
        if batch is None:
            await self.aclose()
            self._transport.check_not_cut_off()
            raise StopAsyncIteration
        self._rest = deque(_as_events(batch))
        return self._rest.popleft()

    async def aclose(self) -> None:
        self._rest = None
        if self._stream is not None:
            self._transport.close_stream(self._stream)
            self._stream = None


class _Delivery:
    """Brings the events of a stream to whoever follows it, by one callback of the loop after the write.

    On virtual time it comes when those who write have nothing more to do: the more comes at once, the quicker it goes.
    """

    __slots__ = ("_call", "_is_due", "_lasts_on", "_on_events", "_on_stored", "_stream", "_waits", "ended")

    def __init__(
        self, stream: WatchStream, on_events: OnEvents, lasts_on: Callable[[], bool] | None = None,
        on_stored: OnStored | None = None,
    ) -> None:  # fmt: skip
        self._stream = stream
        self._on_events = on_events
        self._on_stored = on_stored
        self._lasts_on = lasts_on
        loop = asyncio.get_running_loop()
        # Whoever is told runs in the context of the follower, not of the writer.
        context = copy_context()
        if isinstance(loop, VirtualTimeLoop):
            self._call = loop.last_call(self._deliver, context)
        else:
            self._call = partial(loop.call_soon, self._deliver, context=context)
        self._is_due = False
        self._waits = False
        """Whether the timer of the stream is set, for which it has to be found without news."""
        self.ended: asyncio.Future[None] = loop.create_future()
        # The timer of the stream is set in that context, too.
        stream.listen(self._on_news, self._last_on)
        self._deliver()

    def _on_news(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call()

    def _last_on(self) -> None:
        """What ``_deliver`` comes to where time is over, nothing has come and the watch lasts on: most often so."""
        stream, lasts_on = self._stream, self._lasts_on
        self._waits = False
        if lasts_on is not None and not self.ended.done() and not stream.has_news:
            try:
                if lasts_on():
                    self._waits = True
                    return
            except Exception as error:
                self.ended.set_exception(error)
                return
        self._deliver()

    def _deliver(self) -> None:
        self._is_due = False
        ended, poll, on_stored = self.ended, self._stream.poll, self._on_stored
        try:
            while not ended.done():
                batch = poll()
                if batch:
                    # Those that are the store's own come by themselves, or after others.
                    if on_stored is not None and type(batch[0]) is StoreEvent:
                        on_stored(batch)  # type: ignore[arg-type]  # as was just seen
                        if self._waits and not self._is_due:
                            # Nothing has come meanwhile.
                            return
                    elif len(batch) == 1:
                        # As most come. The constructor is a function of Python, and all that happens comes by here.
                        only = batch[0]
                        self._on_events((_tuple(WatchEvent, (only.type, only.stored.obj)),))
                    else:
                        self._on_events(_as_events(batch))
                elif batch is not None:
                    self._waits = True
                    return
                elif self._lasts_on is None or not self._lasts_on():
                    ended.set_result(None)
        except Exception as error:
            ended.set_exception(error)


def _options(call: Call) -> WriteOptions:
    kind = _OPTION_KINDS.get(call.verb, "PatchOptions")
    return WriteOptions.parse(call.query, kind, apply=call.content_type == APPLY)


def _as_events(batch: Sequence[Shown]) -> list[WatchEvent]:
    # As the constructor does, which is a function of Python.
    return [_tuple(WatchEvent, (one.type, one.stored.obj)) for one in batch]
