"""A local copy of a kind of object, kept true by list and watch.

Handlers see, for every object, a history that could have happened: ``ADDED``, any number of ``MODIFIED`` each
with the state before, ``DELETED``, ``ADDED`` again. Intermediate states may be missing, after an interruption and
where changes come together, but no event is repeated, invented or out of order: what changed while the watch was
down is found by comparing the new list with the cache, writes to one object that come one right after the other are
told as one, and the last one to what was told to end, by which no time is left, is not told of beside its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.audience import (
    DELETION,
    EVERYTHING,
    EXISTENCE,
    LAST,
    Audience,
    Concern,
    EventType,
    Handler,
    Hearers,
    Kind,
    Listener,
    aspects_changed,
    aspects_of_status,
    controller_kind,
)
from holokube.client.backoff import Backoff, BackoffPolicy
from holokube.client.cache import Cache, IndexFunction, JsonObject, Lister, object_key
from holokube.client.client import PAGE_SIZE, Client
from holokube.client.resources import Resource
from holokube.client.transport import OnEvents, WatchEvent, close_stream
from holokube.kube.errors import ApiError, BadRequest, Expired, Gone, Invalid
from holokube.store.values import StoreEvent

__all__ = ["EventType", "Follow", "Handler", "Informer", "Transform"]

Follow = Callable[[OnEvents], Awaitable[None]]
"""Tells of all events of a watch until it ends."""

Transform = Callable[[JsonObject], JsonObject]
"""Makes of an object what the cache keeps of it: less, as a rule. Name, uid and version have to stay."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
WATCH_TIMEOUT_S = (300, 600)
"""The server is asked to end each watch after a random time in this range, so that load spreads anew."""
SHORT_WATCH_S = 1.0
LOWER_LISTS_BEFORE_RESET = 3
_TIME_LEFT = frozenset(
    {"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "managedFields"}
)
"""What a server writes of an object that is told to end, and again when its time has come."""
_News = tuple[Hearers, EventType, JsonObject | None, JsonObject | None]
"""A change that the cache has taken over, and who has to be told of it."""

_log = get_logger("holokube.client.informer")


class Informer:
    """Lists and watches one resource and tells handlers what changes."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        indexers: Mapping[str, IndexFunction] | None = None,
        resync_every_s: float = 0.0,
        watch_list: bool = False,
        page_size: int = PAGE_SIZE,
        backoff: BackoffPolicy | None = None,
        rng: Rng | None = None,
        transform: Transform | None = None,
    ) -> None:
        """``watch_list`` asks the server to stream the first state instead of listing it; a server that
        cannot is noticed. Give each process an ``rng`` of its own, or all come back at the same moment.
        ``transform`` may change the object it gets only if the client's transport shares it with nobody."""
        self._clock = clock
        self._client = client
        self.resource = resource
        self.namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._resync_every_s = resync_every_s
        self._watch_list = watch_list
        self._page_size = page_size
        self._transform = transform
        self._rng = rng or Rng(f"informer/{resource}/{namespace or ''}/{label_selector}/{field_selector}")
        self._backoff = Backoff(clock, self._rng.fork("backoff"), backoff)
        self._cache = Cache(indexers)
        self.lister: Lister = self._cache
        self._audience = Audience()
        self._version = ""
        self._seen = 0
        self._must_list = True
        self._lower_lists = 0
        self._listed = asyncio.Event()
        self._has_synced = False
        self._task: asyncio.Task[None] | None = None
        self._log = _log.bind(resource=str(resource), **({"namespace": namespace} if namespace else {}))

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the cache, and handlers were told."""
        return self._has_synced

    @property
    def resource_version(self) -> str:
        """The version up to which the cache is known to be complete."""
        return self._version

    def add_handler(self, on_event: Handler, *, heeds: int = EVERYTHING) -> Callable[[], None]:
        """Has ``on_event`` called from now on, at once with ``ADDED`` for what is there already.

        Changes in other respects than ``heeds`` are kept from it. Returns a function that takes it out again.
        """
        return partial(self.dismiss, self.listen(on_event, heeds=heeds))

    def listen(
        self, on_event: Handler, *, heeds: int = EVERYTHING, controlled_by: Kind | None = None,
        hears_orphans: bool = True, hears_comings: bool = True, concerns: Concern | None = None,
    ) -> Listener:  # fmt: skip
        """As ``add_handler``, but only for changes in the respects that are named (``client.audience``), and to
        objects that are not controlled by something of another group and kind, nor perhaps by nobody at all;
        ``dismiss`` ends it. What is left goes no further than to ``concerns`` if that says so.

        That an object came or went is told as well, unless ``hears_comings`` is False. ``old`` is the state before this
        very change, which need not be the one last told of.
        """
        listener = Listener(on_event, heeds, controlled_by, hears_orphans, hears_comings, concerns)
        alone = Hearers((listener,))
        for obj in self._cache:
            if listener.hears(EXISTENCE, controller_kind(obj)):
                self._tell_of_one((alone, "ADDED", None, obj))
        self._audience.add(listener)
        return listener

    def dismiss(self, listener: Listener) -> None:
        """Tell it of nothing any more; a second time does no harm."""
        self._audience.remove(listener)

    def set_away(self, listener: Listener, *, is_away: bool) -> None:
        """Tell it of nothing for a while; it keeps its place among the others."""
        self._audience.set_away(listener, is_away=is_away)

    def add_index(
        self, name: str, function: IndexFunction, *, heeds: int = EVERYTHING, when_asked: bool = False
    ) -> None:
        """``heeds`` names the respects in which objects must differ for the function to tell another value.

        An index ``when_asked`` is made when somebody first asks for something in it, and kept up from then on.
        """
        self._cache.add_index(name, function, heeds=heeds, when_asked=when_asked)

    async def synced(self) -> None:
        """Waits for the first list."""
        await self._listed.wait()
        if not self._has_synced:
            raise HolokubeError(
                f"the informer of {self.resource.qualified_name} was stopped before its first list",
                hint="See the log for why it could not list.",
            )

    def start(self) -> asyncio.Task[None]:
        """Runs in a task of its own until ``stop``."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self.run(), name=f"informer {self.resource}")
        return self._task

    async def stop(self) -> None:
        """Ends the task that ``start`` began. The cache stays as it is."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self._listed.set()
        if task is not None and not task.cancelled():
            task.result()

    async def run(self) -> None:
        """Keeps the cache true until cancelled."""
        resync = asyncio.create_task(self._resync()) if self._resync_every_s > 0 else None
        try:
            while True:
                await self._list_and_watch()
        finally:
            self._listed.set()
            if resync is not None:
                resync.cancel()
                await asyncio.wait({resync})

    async def _list_and_watch(self) -> None:
        """One list, if needed, and one watch; errors are survived here."""
        started_at = self._clock.monotonic()
        try:
            follow = await self._start()
            if follow is None:
                return
            seen = await self._follow(follow)
        except (Expired, Gone) as error:
            self._log.info("version has left the server's history: listing again", why=error.message)
            self._must_list = True
        except ApiError as error:
            if _version_is_in_the_future(error):
                self._log.warning("server does not know our version: listing again", why=error.message)
                self._must_list = True
            else:
                self._log.warning("list or watch refused: trying again", why=error.message)
        except HolokubeError as error:
            self._log.info("list or watch interrupted: trying again", why=error.message)
        else:
            # Servers end watches all the time; only one that ends at once looks like trouble.
            if seen or self._clock.monotonic() - started_at >= SHORT_WATCH_S:
                return
        await self._backoff.wait()

    async def _start(self) -> Follow | None:
        """How to go on where the cache is; None if the first state has to be fetched once more."""
        if self._must_list:
            if self._watch_list:
                return await self._stream_initial_state()
            listed = await self._client.list_all(
                self.resource,
                self.namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                page_size=self._page_size,
            )
            if not await self._replace(listed.items, listed.resource_version):
                return None
        return partial(
            self._client.follow,
            resource=self.resource,
            namespace=self.namespace,
            resource_version=self._version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_s=self._timeout_s(),
            go_on=self._go_on,
            on_stored=self._on_stored if self._transform is None else None,
        )

    def _go_on(self, version: str) -> int:
        """What a bookmark and another watch come to: how far the cache is complete, and for how long that lasts."""
        if _order(version, self._version) > 0:
            self._version = version
        return self._timeout_s()

    def _timeout_s(self) -> int:
        low, high = WATCH_TIMEOUT_S
        return low + self._rng.randrange(high - low)

    async def _stream_initial_state(self) -> Follow | None:
        """Reads the first state as events; the stream then goes on with what happens next."""
        stream = self._client.watch(
            self.resource,
            self.namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            timeout_s=self._timeout_s(),
            send_initial_events=True,
        )
        state: dict[str, JsonObject] = {}
        handed_over = False
        try:
            async for event in stream:
                if event.type == "BOOKMARK":
                    meta = event.object["metadata"]
                    if (meta.get("annotations") or {}).get(INITIAL_EVENTS_END) == "true":
                        handed_over = await self._replace(state.values(), str(meta["resourceVersion"]))
                        return partial(_follow_on, stream) if handed_over else None
                elif event.type == "DELETED":
                    state.pop(object_key(event.object), None)
                else:
                    state[object_key(event.object)] = event.object
        except (Invalid, BadRequest) as error:
            self._log.info("server does not stream the first state: listing instead", why=error.message)
        finally:
            if not handed_over:
                await close_stream(stream)
        # Refused, or ended before the end of the first state: an old server ignores the wish altogether.
        self._watch_list = False
        return None

    async def _follow(self, follow: Follow) -> int:
        """Applies a watch until it ends; the number of events."""
        self._seen = 0
        await follow(self._on_events)
        return self._seen

    def _on_events(self, events: Sequence[WatchEvent]) -> None:
        """Takes over events of a watch, except where the cache has seen them or something newer, and tells of them."""
        self._seen += len(events)
        news: list[_News] = []
        try:
            self._take_over(events, news)
        finally:
            # What has been taken over is told even if the rest could not be.
            if len(news) == 1:
                self._tell_of_one(news[0])
            elif news:
                self._tell_all(news)

    def _on_stored(self, events: Sequence[StoreEvent]) -> None:
        """As ``_on_events``, of events as a store in the same process has them. There is less to find out: one that has
        come of the very state in the cache is the next one of this very object."""
        self._seen += len(events)
        news: list[_News] = []
        cached = self._cache.by_key
        try:
            for event in events:
                stored, previous, key = event.stored, event.previous, event.key
                obj, old = stored.obj, cached(key)
                meta = obj["metadata"]
                version: str = meta["resourceVersion"]
                have = self._version
                if len(version) == len(have) and version > have:
                    if previous is None:
                        if old is None:
                            self._add(key, None, obj, news)
                            self._version = version
                            continue
                    elif previous.obj is old:
                        what = event.type
                        if what == "MODIFIED" and stored.only_status:
                            self._change(key, old, obj, news, aspects_of_status(old, obj))
                            self._version = version
                            continue
                        if old["metadata"].get("uid") == meta.get("uid"):
                            if what == "MODIFIED":
                                self._change(key, old, obj, news, aspects_changed(old, obj))
                            else:
                                self._remove(key, old, news)
                            self._version = version
                            continue
                # Something was missed, or comes a second time.
                self._take_over((WatchEvent(event.type, obj),), news)
        finally:
            if len(news) == 1:
                self._tell_of_one(news[0])
            elif news:
                self._tell_all(news)

    def _take_over(self, events: Sequence[WatchEvent], news: list[_News]) -> None:
        transform, cached = self._transform, self._cache.by_key
        for what, obj in events:
            if what == "ERROR":
                raise ApiError.from_status(obj)
            meta = obj["metadata"]
            version: str = meta.get("resourceVersion") or ""
            have = self._version
            if len(version) == len(have) and version > have and version.isdecimal() and have.isdecimal():
                # As ``_order`` has it, without a call.
                is_newer = True
            else:
                is_newer = _order(version, have) > 0
            if what == "MODIFIED" or what == "ADDED":
                if is_newer:
                    # As ``object_key`` has it, without a call.
                    namespace = meta.get("namespace")
                    key = f"{namespace}/{meta['name']}" if namespace else str(meta["name"])
                    new = obj if transform is None else transform(obj)
                    old = cached(key)
                    if old is None or old["metadata"].get("uid") != meta.get("uid"):
                        self._add(key, old, new, news)
                    else:
                        self._change(key, old, new, news, aspects_changed(old, new))
            elif what == "DELETED":
                self._take_out(obj, version, news)
            elif what != "BOOKMARK":
                self._log.warning("event of an unknown type ignored", type=what, key=object_key(obj))
            if is_newer and version:
                # The cache is complete up to here.
                self._version = version

    async def _replace(self, items: Iterable[JsonObject], version: str) -> bool:
        """Makes the cache what a list shows, with an event for each difference; False if it is refused.

        A list older than the cache comes from a server that lags behind: taking it would make time go back.
        If it happens again and again, the server's history began anew (a restored backup, an empty cluster
        under the same address), and the list is the truth.
        """
        if _order(version, self._version) < 0:
            self._lower_lists += 1
            if self._lower_lists < LOWER_LISTS_BEFORE_RESET:
                self._log.warning(
                    "list is older than the cache: listing again", listed=version, have=self._version
                )
                await self._backoff.wait()
                return False
            self._log.warning("server's history began anew", listed=version, had=self._version)
        self._lower_lists = 0
        if self._transform is not None:
            items = map(self._transform, items)
        listed = {object_key(obj): obj for obj in items}
        news: list[_News] = []
        for key in self._cache.all_keys():
            if key not in listed and (old := self._cache.by_key(key)) is not None:
                self._remove(key, old, news)
        for key, obj in listed.items():
            old = self._cache.by_key(key)
            if old is None or _uid(old) != _uid(obj):
                self._add(key, old, obj, news)
            elif _version(old) != _version(obj):
                self._change(key, old, obj, news, aspects_changed(old, obj))
        if news:
            self._tell_all(news)
        self._version = version
        self._must_list = False
        self._has_synced = True
        self._listed.set()
        return True

    def _take_out(self, obj: JsonObject, version: str, news: list[_News]) -> None:
        key = object_key(obj)
        old = self._cache.by_key(key)
        # Some servers send the last state with its own old version, which may be lower than what other
        # objects have reached meanwhile: only this object's version counts.
        if old is not None and _order(version, _version(old)) >= 0:
            self._remove(key, old, news)

    def _add(self, key: str, old: JsonObject | None, new: JsonObject, news: list[_News]) -> None:
        if old is not None:
            # Deleted and made anew while nobody looked: two objects, not a change of one.
            self._remove(key, old, news)
        self._cache.put(key, new, EXISTENCE)
        news.append((self._audience.of(EXISTENCE, new), "ADDED", None, new))

    def _change(self, key: str, old: JsonObject, new: JsonObject, news: list[_News], aspects: int) -> None:
        self._cache.put(key, new, aspects)
        if news:
            # Of several writes to an object that come together only what they make of it counts.
            _, what, before, last = news[-1]
            if what == "MODIFIED" and last is old and before is not None:
                news[-1] = self._audience.of(aspects_changed(before, new), new), "MODIFIED", before, new
                return
        news.append((self._audience.of(aspects, new), "MODIFIED", old, new))

    def _remove(self, key: str, old: JsonObject, news: list[_News]) -> None:
        self._cache.remove(key)
        if news:
            # A server writes down that no time is left, and takes the object out: the latter says it all, but to those
            # who are not told of it.
            _, what, before, last = news[-1]
            if what == "MODIFIED" and last is old and before is not None and _only_ends_sooner(before, old):
                news.pop()
                if not before["metadata"].get("deletionTimestamp"):
                    hearers = self._audience.of(DELETION | LAST, old)
                    if hearers:
                        news.append((hearers, "MODIFIED", before, old))
                old = before
        news.append((self._audience.of(EXISTENCE, old), "DELETED", old, None))

    def _tell_all(self, news: list[_News]) -> None:
        """Tells each listener of all that concerns it before the next one: one after the other has the processor do
        the same again and again, which it is much quicker at than at a bit of everything for each of the changes."""
        everything = frozenset([one[0] for one in news])
        if len(everything) <= 1:
            for listener in news[0][0]:
                self._tell_one(listener, news)
            return
        # Most listeners are told of all of it; some that are told of less have the same share.
        shares: dict[frozenset[Hearers], list[_News]] = {everything: news}
        for listener, heard in self._audience.together(everything):
            share = shares.get(heard)
            if share is None:
                share = shares[heard] = [one for one in news if one[0] in heard]
            self._tell_one(listener, share)

    def _tell_of_one(self, change: _News) -> None:
        """Tells all of a change that came alone, as most do."""
        hearers, what, old, new = change
        for listener in hearers:
            if listener.is_dismissed:
                continue
            concerns = listener.concerns
            try:
                if concerns is None or concerns(old, new):
                    listener.handler(what, old, new)
            except Exception as error:
                self._report(error, what, old, new)

    def _tell_one(self, listener: Listener, news: Sequence[_News]) -> None:
        handler, concerns = listener.handler, listener.concerns
        for _, what, old, new in news:
            if listener.is_dismissed:
                return
            try:
                if concerns is None or concerns(old, new):
                    handler(what, old, new)
            except Exception as error:
                self._report(error, what, old, new)

    def _tell(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """Tells everybody, whatever it is that has changed."""
        obj = new if new is not None else old
        assert obj is not None, "something came, went or changed"
        self._tell_of_one((self._audience.of(EVERYTHING, obj), type, old, new))

    def _report(
        self, error: Exception, type: EventType, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        """One bad handler must not keep the others, or the cache, from the truth."""
        obj: Mapping[str, Any] = new or old or {}
        self._log.exception("handler failed", exc=error, type=type, key=object_key(obj))

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._resync_every_s)
            for obj in self._cache:
                # A handler may have been quicker than this loop: only what is still current is repeated.
                if self._cache.by_key(object_key(obj)) is obj:
                    self._tell("MODIFIED", obj, obj)


async def _follow_on(stream: AsyncIterator[WatchEvent], on_events: OnEvents) -> None:
    """Follows a stream that has been read for a while."""
    try:
        async for event in stream:
            on_events((event,))
    finally:
        await close_stream(stream)


def _only_ends_sooner(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether nothing has changed of an object that is told to end, but how much time it has left; by the identity of
    its parts, which servers in the same process leave alone."""
    was, is_ = old["metadata"], new["metadata"]
    if not is_.get("deletionTimestamp") or old.keys() != new.keys():
        return False
    for part, value in old.items():
        if value is not new[part] and part != "metadata":
            return False
    for part in was.keys() | is_.keys():  # noqa: SIM110 - all() with a generator costs twice as much
        if was.get(part) is not is_.get(part) and part not in _TIME_LEFT:
            return False
    return True


def _version(obj: Mapping[str, Any]) -> str:
    version: str = obj["metadata"].get("resourceVersion") or ""
    return version


def _uid(obj: Mapping[str, Any]) -> str:
    uid: str = obj["metadata"].get("uid") or ""
    return uid


def _order(a: str, b: str) -> int:
    """Below, at or above zero as version ``a`` is before, at or after ``b``.

    Versions of Kubernetes are numbers that only grow. Of a server that uses anything else only equality is
    known, and what differs is taken to be newer.
    """
    if a == b:
        return 0
    if a.isdecimal() and b.isdecimal():
        # Texts of the same length compare as their numbers do.
        before = a < b if len(a) == len(b) else int(a) < int(b)
        return -1 if before else 1
    return 1


def _version_is_in_the_future(error: ApiError) -> bool:
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes) or (
        "Too large resource version" in error.message
    )
