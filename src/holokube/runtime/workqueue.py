"""The work queue of every controller, with client-go's promises.

* An item is in the queue at most once, however often it is added.
* An item is with one worker at most. Added again meanwhile, it is queued again when that worker is done.
* ``add_after`` adds later; of several delays for one item the earliest counts.
* ``add_rate_limited`` adds after the item's own, growing delay until ``forget``.

One thing more than client-go's: whoever makes a queue may say of a delayed item whose time has come that it can wait.

The queue is a plain data structure on the clock: ``try_get`` needs no event loop at all. Only ``get`` waits,
and then one loop timer, for the earliest delayed item, serves all the items and all the workers.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.runtime.ratelimit import RateLimiter, default_limiter

T = TypeVar("T", bound=Hashable)

_log = get_logger("holokube.runtime.workqueue")

DUE_TOLERANCE_S = 1e-6
"""Event loops round their timers and may fire a little early; what is due within a microsecond is due."""


class QueueShutDown(Exception):
    """``get`` on a queue that was shut down and holds nothing more: the end of the work, not an error."""


class QueueObserver(Protocol):
    """What the metrics want to know of one queue."""

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def taken(self, waited_s: float) -> None: ...

    def finished(self, worked_s: float) -> None: ...


class QueueMetrics(Protocol):
    """Hands out the observer of one named queue; ``holokube.runtime.metrics`` has the Prometheus one."""

    def observe_queue(self, name: str, queue: WorkQueue[T]) -> QueueObserver: ...


class WorkQueue(Generic[T]):
    """A deduplicating, delaying, rate-limited queue; higher priority first, then first in, first out."""

    def __init__(
        self,
        clock: Clock,
        name: str = "",
        *,
        limiter: RateLimiter[T] | None = None,
        metrics: QueueMetrics | None = None,
        postpone: Callable[[T], float | None] | None = None,
    ) -> None:
        """``postpone`` is asked about each delayed item whose time has come: for how long it can wait again, or None.

        Thousands of items may ask for a look every few minutes of which nearly all find nothing; what is postponed
        wakes nobody. What can wait for ever (``math.inf``) is forgotten until somebody adds it again. It is to be
        quick; an item about which it fails is handed out.
        """
        self._clock = clock
        self.name = name
        self._postpone = postpone
        self._limiter: RateLimiter[T] = limiter if limiter is not None else default_limiter(clock)
        self.forget: Callable[[T], None] = self._limiter.forget
        """Ends an item's history of failures. It does not take the item out of the queue."""
        # Ready items, each there only once: those of priority zero, which nearly all have, and those of others by their
        # priority, as long as there are any. These priorities are kept sorted, lowest first.
        self._plain: deque[T] = deque()
        self._levels: dict[int, deque[T]] = {}
        self._order: list[int] = []
        self.ready = 0
        """How many items can be handed out, apart from those whose time has come since somebody last looked."""
        # Everything that must be handed out, with its priority: ready items, and those to re-queue when done.
        self._dirty: dict[T, int] = {}
        self._processing_since_s: dict[T, float] = {}
        self._added_at_s: dict[T, float] = {}
        # Delayed items. A heap entry is alive while the dict names its very deadline and sequence number.
        self._delayed: dict[T, tuple[float, int, int]] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._sequence = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._drainers: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of those who wait."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_s = 0.0
        self.shutting_down = False
        """Whether no more items are taken."""
        self._observer = metrics.observe_queue(name, self) if metrics is not None else None

    def __len__(self) -> int:
        """How many items could be handed out now."""
        self._promote_due()
        return self.ready

    @property
    def depth(self) -> int:
        """Items waiting for a worker, those included whose worker must be done with them first."""
        self._promote_due()
        return len(self._dirty)

    @property
    def delayed(self) -> int:
        """How many items wait for their time."""
        self._promote_due()
        return len(self._delayed)

    @property
    def has_due(self) -> bool:
        """Whether the time of a delayed item has come, and nobody has noticed yet."""
        return bool(self._heap) and self._heap[0][0] <= self._clock.monotonic() + DUE_TOLERANCE_S

    @property
    def processing(self) -> int:
        """How many items are with a worker."""
        return len(self._processing_since_s)

    def processing_ages_s(self) -> list[float]:
        """For each item with a worker, for how long; known where there are metrics."""
        now_s = self._clock.monotonic()
        return [now_s - since_s for since_s in self._processing_since_s.values()]

    def add(self, item: T, *, priority: int = 0) -> None:
        """Marks the item as needing work. Added again, it keeps its place, or gets the higher priority."""
        if self.shutting_down:
            return
        dirty = self._dirty
        known = dirty.get(item)
        if known is not None:
            if priority > known:
                self._raise_priority(item, known, priority)
            return
        dirty[item] = priority
        if self._observer is not None:
            self._observer.added()
            self._added_at_s.setdefault(item, self._clock.monotonic())
        if item not in self._processing_since_s:
            if priority:
                self._push(item, priority)
                return
            # As ``_push`` has it, without a call: this is what nearly all are.
            self._plain.append(item)
            self.ready += 1
            if self._getters:
                self._wake_getter()

    def add_after(self, item: T, delay_s: float, *, priority: int = 0) -> None:
        """Adds the item when the delay is over; an earlier time already set for it stands."""
        if self.shutting_down:
            return
        if self._observer is not None:
            self._observer.retried()
        if delay_s <= 0:
            self.add(item, priority=priority)
            return
        self.add_at(item, self._clock.monotonic() + delay_s, priority=priority)

    def add_at(self, item: T, due_s: float, *, priority: int = 0) -> None:
        """Adds the item at a time of the monotonic clock; an earlier one already set for it stands."""
        if self.shutting_down:
            return
        known = self._delayed.get(item)
        if known is not None:
            known_due_s, sequence, known_priority = known
            priority = max(priority, known_priority)
            if known_due_s <= due_s:
                self._delayed[item] = (known_due_s, sequence, priority)
                return
        self._sequence = sequence = self._sequence + 1
        self._delayed[item] = (due_s, sequence, priority)
        heapq.heappush(self._heap, (due_s, sequence, item))
        # Superseded entries would else pile up until they are due.
        if len(self._heap) > 2 * len(self._delayed) + 64:
            self._drop_dead_entries()
        if self._getters and self._loop is not None:
            self._arm_timer(self._loop)

    def add_rate_limited(self, item: T, *, priority: int = 0) -> None:
        """Adds the item when its limiter allows."""
        self.add_after(item, self._limiter.next_delay_s(item), priority=priority)

    def num_requeues(self, item: T) -> int:
        return self._limiter.num_requeues(item)

    def try_get(self) -> T | None:
        """The next item if there is one ready; ``done`` must follow."""
        heap = self._heap
        if heap and heap[0][0] <= self._clock.monotonic() + DUE_TOLERANCE_S:
            self._promote_due()
        if not self.ready:
            return None
        item = self._take_by_priority() if self._order else self._plain.popleft()
        self.ready -= 1
        del self._dirty[item]
        if self._observer is None:
            # Only metrics ask for how long.
            self._processing_since_s[item] = 0.0
        else:
            now_s = self._clock.monotonic()
            self._observer.taken(now_s - self._added_at_s.pop(item, now_s))
            self._processing_since_s[item] = now_s
        return item

    async def get(self) -> T:
        """Waits for the next item; ``done`` must follow. Raises QueueShutDown at the end."""
        while (item := self.try_get()) is None:
            if self.shutting_down:
                raise QueueShutDown(f"work queue {self.name!r} is shut down")
            arrival = self.arrival(asyncio.get_running_loop())
            try:
                await arrival
            except BaseException:
                self.withdraw(arrival)
                raise
        return item

    def arrival(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Done when there may be something to get, or the queue is shut down: what ``get`` is made of, for workers.

        ``loop`` is the running one, which a worker asks for once: to be told takes a call of the operating system.
        Each is for one waiter, who looks again then, and who has to ``withdraw`` it if it will not.
        """
        self._loop = loop
        arrival: asyncio.Future[None] = asyncio.Future(loop=loop)
        self._getters.append(arrival)
        # Most often the timer stands as the last one who waited has left it.
        if self._heap and (self._timer is None or self._heap[0][0] < self._timer_due_s):
            self._arm_timer(loop)
        return arrival

    def withdraw(self, arrival: asyncio.Future[None]) -> None:
        """Whoever waited for this is gone."""
        arrival.cancel()
        with suppress(ValueError):
            self._getters.remove(arrival)
        # A wake-up that reached a cancelled worker belongs to the next one.
        if self.ready and not arrival.cancelled():
            self._wake_getter()
        if not self._getters:
            self._disarm_timer()

    def done(self, item: T) -> None:
        """The worker is through with the item, well or not."""
        since_s = self._processing_since_s.pop(item, None)
        if since_s is None:
            raise ValueError(
                f"work queue {self.name!r}: done({item!r}) without a get; each get is followed by one done"
            )
        if self._observer is not None:
            self._observer.finished(self._clock.monotonic() - since_s)
        priority = self._dirty.get(item)
        if priority is not None:
            self._push(item, priority)
        if self._drainers:
            self._wake_drainers()

    def shut_down(self) -> None:
        """Takes no more items and drops the delayed ones; what is queued is still handed out."""
        self._begin_shut_down()
        for drainer in self._drainers:
            if not drainer.done():
                drainer.set_result(None)
        self._drainers.clear()

    async def shut_down_with_drain(self) -> None:
        """As ``shut_down``, and waits until all is worked off, or until a plain ``shut_down``."""
        self._begin_shut_down()
        if self.ready or self._processing_since_s:
            drainer = asyncio.get_running_loop().create_future()
            self._drainers.append(drainer)
            await drainer

    def _begin_shut_down(self) -> None:
        self.shutting_down = True
        self._delayed.clear()
        self._heap.clear()
        self._disarm_timer()
        while self._getters:
            self._wake_getter()

    def _wake_drainers(self) -> None:
        if self._drainers and not self.ready and not self._processing_since_s:
            self.shut_down()

    def _push(self, item: T, priority: int) -> None:
        if priority == 0:
            self._plain.append(item)
        else:
            level = self._levels.get(priority)
            if level is None:
                level = self._levels[priority] = deque()
                insort(self._order, priority)
            level.append(item)
        self.ready += 1
        if self._getters:
            self._wake_getter()

    def _take_by_priority(self) -> T:
        """The next one where there are others than those of priority zero."""
        order = self._order
        if order[-1] < 0 and self._plain:
            return self._plain.popleft()
        level = self._levels[order[-1]]
        item = level.popleft()
        if not level:
            del self._levels[order.pop()]
        return item

    def _raise_priority(self, item: T, old: int, new: int) -> None:
        self._dirty[item] = new
        if item in self._processing_since_s:
            return
        level = self._levels[old] if old else self._plain
        # This looks through all of them, for something that happens seldom.
        level.remove(item)
        self.ready -= 1
        if old and not level:
            del self._levels[old]
            self._order.remove(old)
        self._push(item, new)

    def _wake_getter(self) -> None:
        getters = self._getters
        while getters:
            # The one that was busy last: what it works with is still at hand for the processor.
            getter = getters.pop()
            if not getter.done():
                getter.set_result(None)
                return

    def _promote_due(self) -> None:
        """Moves the delayed items whose time has come into the queue."""
        if not self._heap:
            return
        now_s = self._clock.monotonic()
        limit_s = now_s + DUE_TOLERANCE_S
        heap, delayed, postpone = self._heap, self._delayed, self._postpone
        while heap and heap[0][0] <= limit_s:
            _, sequence, item = heapq.heappop(heap)
            entry = delayed.get(item)
            if entry is None or entry[1] != sequence:
                continue
            if postpone is not None:
                try:
                    wait_s = postpone(item)
                except Exception as error:
                    # Whoever gets the item meets what is wrong with it; to lose the item would hide that for ever.
                    _log.exception("Whether an item can wait could not be told", exc=error, item=item)
                    wait_s = None
                if wait_s == math.inf:
                    del delayed[item]
                    continue
                if wait_s is not None and wait_s > DUE_TOLERANCE_S:
                    self._sequence += 1
                    delayed[item] = (now_s + wait_s, self._sequence, entry[2])
                    heapq.heappush(heap, (now_s + wait_s, self._sequence, item))
                    continue
            del delayed[item]
            self.add(item, priority=entry[2])

    def _drop_dead_entries(self) -> None:
        self._heap = [(due_s, sequence, item) for item, (due_s, sequence, _) in self._delayed.items()]
        heapq.heapify(self._heap)

    def _arm_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer, for the earliest delayed item, and only while somebody waits."""
        if not self._heap:
            return
        due_s = self._heap[0][0]
        if self._timer is not None:
            if self._timer_due_s <= due_s:
                return
            self._timer.cancel()
        self._timer_due_s = due_s
        self._timer = loop.call_at(due_s, self._on_timer)

    def _disarm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        self._promote_due()
        if self._getters and self._loop is not None:
            self._arm_timer(self._loop)
