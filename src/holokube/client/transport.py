"""The one low-level seam between the client and a cluster.

A transport carries a ``Call`` to an API server and brings back its answer. It is bound to the embedded server
(``client.inprocess``), to any server over HTTP (``client.http``), or wraps another one to make it misbehave
(``client.faulty``). Nothing above this seam knows which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from holokube.client.resources import Resource
from holokube.store.values import StoreEvent

JSON = "application/json"

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


_NOTHING: Mapping[str, str] = {}


class Call(NamedTuple):
    """One request to the API, in the API's own words rather than HTTP's."""

    verb: str
    """``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` or ``deletecollection``."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = _NOTHING
    body: Any = None
    content_type: str = JSON

    @property
    def writes(self) -> bool:
        return self.verb in WRITES

    @property
    def path(self) -> str:
        return self.resource.path(namespace=self.namespace, name=self.name, subresource=self.subresource)

    def __str__(self) -> str:
        """``patch pods/status default/web-0``: how messages and logs name a call."""
        what = f"{self.resource.qualified_name}/{self.subresource}" if self.subresource else (
            self.resource.qualified_name
        )
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {what} {where}".rstrip()


class WatchEvent(NamedTuple):
    """One line of a watch: ``ADDED``, ``MODIFIED``, ``DELETED``, ``BOOKMARK`` or ``ERROR``.

    A transport hands ``ERROR`` through, with the ``Status`` as its object; ``Client.watch`` raises it.
    """

    type: str
    object: dict[str, Any]


OnEvents = Callable[[Sequence[WatchEvent]], None]
OnStored = Callable[[Sequence[StoreEvent]], None]
"""As ``OnEvents``, of events just as a store in the same process has them: each with its key, and with the state before
it."""
GoOn = Callable[[str], int | None]
"""For how many seconds a watch whose time is over lasts on; None ends it."""


class Transport(Protocol):
    """Carries calls to a cluster.

    One that has an answer for each call without waiting for anything may say so by an attribute ``answers_at_once``.
    """

    async def call(self, call: Call) -> dict[str, Any]:
        """The answer's object, list object or Status; raises ApiError or TransportError."""
        ...

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        """The events of a watch until the server ends it.

        Nothing is sent before the first event is asked for, so that a refusal (403, 410) is raised there. What is
        returned may have a method ``follow(on_events, go_on, on_stored)``, a coroutine that calls ``on_events`` with
        all that has come in until the watch ends, or ``on_stored`` where that is given and the store's own events are
        at hand. It is read this way or event by event, not both.

        Whoever follows a watch begins another one where it ends. A transport that can spare both sides the change, and
        says so by a method ``may_go_on()``, lets it last on instead: for as many seconds as ``go_on(version)``
        says, which learns thereby how far this one has come.
        """
        ...

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        """Anything else (``/version``, ``/apis``, ``/readyz``): JSON answers as values, others as text."""
        ...

    async def close(self) -> None:
        """Ends open watches and connections; the transport is of no use afterwards."""
        ...


async def close_stream(stream: AsyncIterator[WatchEvent]) -> None:
    """Ends a watch early. Generators need it to release their connection at once, not when collected."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()
