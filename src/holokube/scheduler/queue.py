"""The pods that wait for a node: those whose turn it is, those that back off, and those that nothing would help.

Pure: the time comes with every call. Pods leave ``pop`` in the order of their priority, then of their age. A pod
that filters refused waits until an event may help it (``hints``), then until its backoff is over, but not longer
than there are other pods to try. After five minutes it is tried again in any case.

Pods that fare alike, copies of one template mostly, are woken one by one: the first is tried, and if it finds a place
the next one follows. If it is refused, so would be the others, and whatever stands against it now stands against all.
If it was refused in other words, the others are tried for the words alone, once nothing new was heard for ten seconds:
nodes that come up one by one change the words each time, and nobody reads them meanwhile.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from holokube.kube.types import JsonObject
from holokube.packing.podclass import PodClass
from holokube.scheduler.cluster_events import Change, ClusterEvent, own_events
from holokube.scheduler.hints import concerns, may_help
from holokube.scheduler.nominations import Nominations
from holokube.scheduler.pod_facts import is_gated, key_of, nominated_node_of, priority_of, uid_of

FIRST_BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 10.0
LONGEST_WAIT_S: Final = 300.0
_WINDOW_S: Final = 1.0
"""Backoffs end together at whole seconds, so that among pods of one second the more important goes first."""


class Place(Enum):
    """Where a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    """As BACKOFF, but waited for to the end: the trouble was not the pod's, and trying at once would not help."""
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"
    GONE = "gone"


# To look a member up in its class takes its time, and every pod asks for several.
_ACTIVE, _BACKOFF, _ERROR_BACKOFF, _UNSCHEDULABLE, _GATED, _IN_FLIGHT, _GONE = Place
_MOST_DOUBLINGS: Final = 60


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod and the history of its tries."""

    pod: JsonObject
    key: str
    priority: int
    number: int
    """Earlier pods have smaller numbers."""
    since_s: float
    """When it came, or was refused last."""
    place: Place = _GONE
    attempts: int = 0
    refusals: int = 0
    errors: int = 0
    """In a row."""
    cls: PodClass | None = None
    """Its class when it was refused last."""
    words: str = ""
    """In which it was refused last."""
    group: _Group | None = None
    """Those that fare alike, while it waits among them."""
    leads: _Group | None = None
    """Those that fare alike, while it is the one to try for them."""
    leads_for_words: bool = False
    """Whether those that were refused in other words shall be tried after it."""
    ticket: int = 0
    """The one entry of a heap that stands for it; others are leftovers."""
    is_held: bool = False
    was_woken: bool = False
    """While it was held."""
    said: object = None
    """What was last written into its status; for the one who writes."""


@dataclass(slots=True, eq=False)
class _Group:
    """Pods that fare alike: what helps one may help all, and what refuses one refuses all."""

    key: Hashable
    plugins: frozenset[str]
    """The filters that refused the one that was tried last."""
    cls: PodClass
    priority: int
    # Ordered, for the first is taken out again and again, which a plain dict is slow at.
    pods: OrderedDict[str, QueuedPod] = field(default_factory=OrderedDict)
    """The one that was refused longest ago comes first."""
    retell_at_s: float = 0.0
    """When those that were refused in other words have their turn, if it is among those with news."""


class SchedulingQueue:
    """See the module."""

    def __init__(
        self,
        *,
        first_backoff_s: float = FIRST_BACKOFF_S,
        longest_backoff_s: float = LONGEST_BACKOFF_S,
        longest_wait_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._first_backoff_s = first_backoff_s
        self._longest_backoff_s = longest_backoff_s
        self._longest_wait_s = longest_wait_s
        self.nominations = Nominations()
        self._pods: dict[str, QueuedPod] = {}
        self._line: deque[tuple[int, float, int, int, QueuedPod]] = deque()
        """Those whose turn it is, as far as they came in the order of their turns, as most do."""
        self._active: list[tuple[int, float, int, int, QueuedPod]] = []
        """The others, which go before one that came earlier."""
        self._backoff: list[tuple[float, int, float, int, int, QueuedPod]] = []
        self._errors: list[tuple[float, int, int, QueuedPod]] = []
        self._unschedulable: OrderedDict[str, QueuedPod] = OrderedDict()
        self._groups: dict[Hashable, _Group] = {}
        """The same pods by what they have in common."""
        self.refused_by: dict[frozenset[str], dict[Hashable, _Group]] = {}
        """The same groups by who refused them. For others to read: mostly there is none."""
        self._with_news: OrderedDict[_Group, None] = OrderedDict()
        """Groups in which not all were refused in the same words, in the order of their turns."""
        self._held: set[str] = set()
        self._numbers = 0
        self._tickets = 0

    # Pods come, change and go

    def get(self, key: str) -> QueuedPod | None:
        """A pod that is in the queue, or popped and not done."""
        return self._pods.get(key)

    def __len__(self) -> int:
        return len(self._pods)

    def counts(self) -> Mapping[Place, int]:
        """How many pods are where."""
        found = dict.fromkeys(Place, 0)
        for queued in self._pods.values():
            found[queued.place] += 1
        return found

    def add(self, pod: JsonObject, now_s: float, key: str = "") -> None:
        """A pod without a node appeared, whose key may be known."""
        key = key or key_of(pod)
        present = self._pods.get(key)
        if present is not None:
            if uid_of(present.pod) == uid_of(pod):
                self.update(present.pod, pod, now_s, key)
                return
            self.remove(key)
        self._numbers += 1
        queued = QueuedPod(pod, key, priority_of(pod), self._numbers, now_s)
        self._pods[key] = queued
        promised = nominated_node_of(pod)
        if promised or self.nominations.promised:
            self.nominations.put(pod, promised)
        self._activate(queued)

    def update(self, old: JsonObject, new: JsonObject, now_s: float, key: str = "") -> bool:
        """A pod without a node changed; if it waits, it is tried again only if that may help it: whether it is."""
        key = key or key_of(new)
        queued = self._pods.get(key)
        if queued is None or uid_of(queued.pod) != uid_of(new):
            self.add(new, now_s, key)
            return True
        queued.pod, queued.priority = new, priority_of(new)
        self.nominations.take_over(old, new)
        if queued.place is _GATED:
            if not is_gated(new):
                self._activate(queued)
                return True
        elif queued.place is _UNSCHEDULABLE:
            cls, group = queued.cls, queued.group
            assert group is not None, "a pod waits in a group"
            for event in own_events(old, new):
                if cls is not None and may_help(event, group.plugins, cls):
                    self._wake(queued, now_s)
                    return True
        return False

    def remove(self, key: str) -> QueuedPod | None:
        """A pod is gone, or has a node."""
        queued = self._pods.pop(key, None)
        if queued is not None:
            self._leave(queued, _GONE)
            if self._held:
                self._held.discard(key)
            if self.nominations.promised:
                self.nominations.remove(uid_of(queued.pod))
            if queued.leads is not None:
                self._follow(queued, queued.since_s)
        return queued

    # Tries

    def pop(self, now_s: float) -> QueuedPod | None:
        """The pod whose turn it is; None if there is none. It stays known until ``done`` or a refusal."""
        if self._backoff or self._errors:
            self._end_backoffs(now_s)
        queued: QueuedPod | None = None
        line, active = self._line, self._active
        while queued is None and (line or active):
            is_in_line = line and not (active and active[0] < line[0])
            _, _, _, ticket, candidate = line.popleft() if is_in_line else heappop(active)
            if candidate.ticket == ticket:
                queued = candidate
        while queued is None and self._backoff:
            *_, ticket, candidate = heappop(self._backoff)
            if candidate.ticket == ticket:
                queued = candidate
        if queued is not None:
            # It was in no other place than the heap.
            queued.place, queued.ticket = _IN_FLIGHT, 0
            queued.attempts += 1
        return queued

    def done(self, queued: QueuedPod) -> None:
        """A popped pod needs no more tries."""
        if self._pods.get(queued.key) is queued:
            self.remove(queued.key)

    def assumed(self, queued: QueuedPod, now_s: float) -> None:
        """A popped pod has found a node, and is being bound."""
        if queued.leads is not None:
            self._follow(queued, now_s)

    def refused(
        self,
        queued: QueuedPod,
        plugins: frozenset[str],
        cls: PodClass,
        now_s: float,
        *,
        how: Hashable = None,
        words: str = "",
    ) -> None:
        """Filters refused a popped pod: it waits for an event that helps.

        Pods of one class and priority that agree in ``how`` are taken to fare alike.
        """
        if self._pods.get(queued.key) is not queued:
            return
        if not plugins:
            self.failed(queued, now_s)
            return
        queued.cls, queued.since_s, queued.words = cls, now_s, words
        queued.refusals += 1
        queued.errors = 0
        self._leave(queued, _UNSCHEDULABLE)
        self._unschedulable[queued.key] = queued
        group = self._group((cls, queued.priority, how), plugins, cls, queued.priority)
        group.pods[queued.key] = queued
        queued.group = group
        if queued.leads is group:
            is_news = next(iter(group.pods.values())).words != words
            if is_news and not queued.leads_for_words:
                group.retell_at_s = now_s + self._longest_backoff_s
                self._with_news[group] = None
                self._with_news.move_to_end(group)
            if not (is_news and queued.leads_for_words):
                queued.leads = None
        if queued.leads is not None:
            self._follow(queued, now_s)

    def failed(self, queued: QueuedPod, now_s: float) -> None:
        """A popped pod could not be bound: it backs off and is tried again."""
        if self._pods.get(queued.key) is not queued:
            return
        queued.cls, queued.since_s = None, now_s
        queued.errors += 1
        self._leave(queued, _ERROR_BACKOFF)
        heappush(self._errors, (self._backoff_end_s(queued), queued.number, self._ticket(queued), queued))
        self._follow(queued, now_s)

    def hold(self, key: str) -> None:
        """Do not try a waiting pod, whatever happens, until it is released."""
        queued = self._pods.get(key)
        if queued is not None:
            queued.is_held, queued.was_woken = True, False
            self._held.add(key)

    def release(self, key: str, now_s: float, *, try_again: bool = False) -> None:
        """End a hold; what happened meanwhile counts now."""
        queued = self._pods.get(key)
        if queued is None or not queued.is_held:
            return
        queued.is_held = False
        self._held.discard(key)
        if queued.place is _UNSCHEDULABLE and (queued.was_woken or try_again):
            self._wake(queued, now_s)

    # Events

    def waits_for(self, change: Change) -> bool:
        """Whether any pod waits for an event of a kind."""
        for plugins in self.refused_by:  # noqa: SIM110 - a generator would cost more than all it asks
            if concerns(change, plugins):
                return True
        return False

    def move(self, event: ClusterEvent, now_s: float, *, priority_max: int | None = None) -> int:
        """Wake the pods that an event may help, or only those up to a priority; returns how many."""
        woken = 0
        for plugins in [plugins for plugins in self.refused_by if concerns(event.change, plugins)]:
            for group in list(self.refused_by[plugins].values()):
                if (priority_max is None or group.priority <= priority_max) and may_help(event, plugins, group.cls):
                    woken += self._wake_group(group, now_s)
        return woken

    def flush(self, now_s: float) -> int:
        """Wake the pods that have waited for five minutes or for news; returns for how many groups one is tried."""
        if not (self._with_news or self._unschedulable):
            return 0
        groups: dict[_Group, None] = {}
        while self._with_news:
            group = next(iter(self._with_news))
            if now_s < group.retell_at_s:
                break
            del self._with_news[group]
            groups[group] = None
        for _ in range(len(self._unschedulable)):
            queued = next(iter(self._unschedulable.values()))
            # The same sum as in next_due_s, so that what is due there is due here to the last bit.
            if now_s < queued.since_s + self._longest_wait_s:
                break
            assert queued.group is not None, "a pod waits in a group"
            groups[queued.group] = None
            # It has its turn now, through the one that is tried for the group.
            queued.since_s = now_s
            self._unschedulable.move_to_end(queued.key)
        return sum([self._wake_group(group, now_s, for_words=True) for group in groups])

    def next_due_s(self, now_s: float) -> float | None:
        """When ``pop`` or ``flush`` may have something new to say without any event; None for never."""
        if self._line or self._active or self._backoff or self._errors:
            self._drop_leftovers()
            if self._line or self._active or self._backoff:
                return now_s
        elif not self._unschedulable:
            # None of them is among those with news then.
            return None
        due = []
        if self._errors:
            due.append(self._errors[0][0] + _WINDOW_S)
        if self._with_news:
            due.append(next(iter(self._with_news)).retell_at_s)
        if self._unschedulable:
            due.append(next(iter(self._unschedulable.values())).since_s + self._longest_wait_s)
        return min(due, default=None)

    # Inside

    def _group(self, key: Hashable, plugins: frozenset[str], cls: PodClass, priority: int) -> _Group:
        """The pods that fare alike, from now on known to be refused by these filters."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(key, plugins, cls, priority)
        elif group.plugins != plugins:
            self._take_from_index(group)
            group.plugins = plugins
        else:
            return group
        self.refused_by.setdefault(plugins, {})[key] = group
        return group

    def _take_from_index(self, group: _Group) -> None:
        groups = self.refused_by[group.plugins]
        del groups[group.key]
        if not groups:
            del self.refused_by[group.plugins]

    def _wake_group(self, group: _Group, now_s: float, *, for_words: bool = False) -> int:
        """Try one for all of a group; returns whether there is one to try."""
        for key in self._held:
            if key in group.pods:
                group.pods[key].was_woken = True
        for queued in group.pods.values():
            if not queued.is_held:
                self._wake(queued, now_s)
                queued.leads, queued.leads_for_words = group, for_words
                return 1
        return 0

    def _follow(self, queued: QueuedPod, now_s: float) -> None:
        """A pod that was tried for others brought something new: try the next of them."""
        group, queued.leads = queued.leads, None
        if group is not None and group.pods:
            self._wake_group(group, now_s, for_words=queued.leads_for_words)

    def _activate(self, queued: QueuedPod) -> None:
        if is_gated(queued.pod):
            self._leave(queued, _GATED)
            return
        if queued.place is _UNSCHEDULABLE:
            self._leave(queued, _ACTIVE)
        queued.place = _ACTIVE
        entry = (-queued.priority, queued.since_s, queued.number, self._ticket(queued), queued)
        if not self._line or self._line[-1] < entry:
            self._line.append(entry)
        else:
            heappush(self._active, entry)

    def _wake(self, queued: QueuedPod, now_s: float) -> None:
        if queued.is_held:
            queued.was_woken = True
            return
        if queued.since_s + self._longest_backoff_s < now_s - _WINDOW_S:
            # However long it had to back off, that is over.
            self._activate(queued)
            return
        end_s = self._backoff_end_s(queued)
        if end_s < _window(now_s):
            self._activate(queued)
            return
        self._leave(queued, _BACKOFF)
        entry = (end_s, -queued.priority, queued.since_s, queued.number, self._ticket(queued), queued)
        heappush(self._backoff, entry)

    def _end_backoffs(self, now_s: float) -> None:
        window_s = _window(now_s)
        while self._backoff and self._backoff[0][0] < window_s:
            *_, ticket, queued = heappop(self._backoff)
            if queued.ticket == ticket:
                self._activate(queued)
        while self._errors and self._errors[0][0] < window_s:
            *_, ticket, queued = heappop(self._errors)
            if queued.ticket == ticket:
                self._activate(queued)

    def _backoff_end_s(self, queued: QueuedPod) -> float:
        count = queued.errors or queued.refusals
        if not count:
            return -math.inf
        doublings = min(count - 1, _MOST_DOUBLINGS)
        return _window(queued.since_s + min(self._first_backoff_s * 2.0**doublings, self._longest_backoff_s))

    def _leave(self, queued: QueuedPod, place: Place) -> None:
        """Take a pod out of where it is; an entry that a heap still has is void."""
        if queued.place is _UNSCHEDULABLE:
            del self._unschedulable[queued.key]
            group, queued.group = queued.group, None
            assert group is not None, "a pod waits in a group"
            del group.pods[queued.key]
            if not group.pods:
                del self._groups[group.key]
                self._take_from_index(group)
                self._with_news.pop(group, None)
        queued.place = place
        queued.ticket = 0

    def _ticket(self, queued: QueuedPod) -> int:
        self._tickets += 1
        queued.ticket = self._tickets
        return self._tickets

    def _drop_leftovers(self) -> None:
        while self._line and self._line[0][-1].ticket != self._line[0][-2]:
            self._line.popleft()
        while self._active and self._active[0][-1].ticket != self._active[0][-2]:
            heappop(self._active)
        while self._backoff and self._backoff[0][-1].ticket != self._backoff[0][-2]:
            heappop(self._backoff)
        while self._errors and self._errors[0][-1].ticket != self._errors[0][-2]:
            heappop(self._errors)


def _window(time_s: float) -> float:
    return math.floor(time_s / _WINDOW_S) * _WINDOW_S

