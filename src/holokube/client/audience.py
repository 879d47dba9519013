"""Who is told of which change: each listener says what concerns it, and a change is brought to nobody else.

Each pod's every change comes by at two dozen handlers, and most changes are of the status alone, which half of them
never look at. What a change is about is found out once, and who wants to hear of it is known from the last one like it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

JsonObject = dict[str, Any]
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Handler = Callable[[EventType, JsonObject | None, JsonObject | None], None]
"""Called with (type, old, new). ``ADDED`` has no old, ``DELETED`` no new; old is always exactly the object
that was new in the change told before, so that a handler which keeps sums can take away what it had added. A resync
is a ``MODIFIED`` whose old is its new. The cache may be ahead of what a handler is told: changes that come together
are all taken over before anybody is told of the first."""
Concern = Callable[[JsonObject | None, JsonObject | None], bool]
"""Whether a change, told as (old, new), may concern somebody at all."""

ANYTHING_ELSE: Final = 1
SPEC: Final = 2
STATUS: Final = 4
PHASE: Final = 8
"""``status.phase``; what heeds the status need not name it."""
LABELS: Final = 16
OWNERS: Final = 32
FINALIZERS: Final = 64
DELETION: Final = 128
"""``metadata.deletionTimestamp``."""
ENDING: Final = 256
"""``status.phase`` has become or ceased to be one in which a pod is over; what heeds the phase need not name it."""
EVERYTHING: Final = 511
EXISTENCE: Final = 512
"""It came or went, which all are told of who do not say otherwise."""
LAST: Final = 1024
"""It went right after this change: whoever is told of that is not told of the change."""

Kind = tuple[str, str]
"""Group (or ``apiVersion``, where it is said) and kind."""
_NOBODY: Final[Kind] = ("", "")
_TOGETHER_MAX: Final = 256
_OVER: Final = frozenset(("Succeeded", "Failed"))


def controller_kind(obj: Mapping[str, Any]) -> Kind:
    """``apiVersion`` and kind of who controls an object; empty for an orphan."""
    references = obj["metadata"].get("ownerReferences")
    if references:
        for reference in references:
            if reference.get("controller"):
                return reference.get("apiVersion") or "", reference.get("kind") or ""
    return _NOBODY


def aspects_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """In which respects two states of an object may differ; never leaves one out in which they do.

    Large parts are only looked at as a whole: in process, what a write leaves alone is the very same object.
    """
    found = ANYTHING_ELSE
    if old.get("spec") is not new.get("spec"):
        found |= SPEC
    before, after = old.get("status"), new.get("status")
    if before is not after:
        found |= STATUS
        if not before or not after:
            found |= PHASE | ENDING
        elif (phase := before.get("phase")) != (phase_now := after.get("phase")):
            found |= PHASE | ENDING if phase in _OVER or phase_now in _OVER else PHASE
    was, is_ = old["metadata"].get, new["metadata"].get
    a, b = was("labels"), is_("labels")
    if a is not b and a != b:
        found |= LABELS
    a, b = was("ownerReferences"), is_("ownerReferences")
    if a is not b and a != b:
        found |= OWNERS
    a, b = was("finalizers"), is_("finalizers")
    if a is not b and a != b:
        found |= FINALIZERS
    a, b = was("deletionTimestamp"), is_("deletionTimestamp")
    if a is not b and a != b:
        found |= DELETION
    return found


def aspects_of_status(old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """As ``aspects_changed``, of two states in which all that it looks at but the status is the same."""
    before, after = old.get("status"), new.get("status")
    if before is after:
        return ANYTHING_ELSE
    if not before or not after:
        return ANYTHING_ELSE | STATUS | PHASE | ENDING
    phase, phase_now = before.get("phase"), after.get("phase")
    if phase == phase_now:
        return ANYTHING_ELSE | STATUS
    return ANYTHING_ELSE | STATUS | PHASE | (ENDING if phase in _OVER or phase_now in _OVER else 0)


@dataclass(slots=True, eq=False)
class Listener:
    """One who is told, and of what."""

    handler: Handler
    heeds: int
    """Changes in none of these respects are kept from it."""
    controlled_by: Kind | None
    """If given, objects that are controlled by another kind are kept from it."""
    hears_orphans: bool = True
    """Whether it is told of objects that nobody controls, if ``controlled_by`` is given."""
    hears_comings: bool = True
    """Whether it is told that an object came or went, and not only of changes."""
    concerns: Concern | None = None
    """If given, it is asked of each change first: most that get so far concern nobody, and to be told costs more."""
    is_away: bool = False
    is_dismissed: bool = False

    def hears(self, aspects: int, controller: Kind) -> bool:
        """Whether it is told of a change in some respects to an object that is controlled by such a one."""
        heeds = self.heeds | EXISTENCE if self.hears_comings else self.heeds
        if self.is_away or not heeds & aspects or (aspects & LAST and self.hears_comings):
            return False
        if self.controlled_by is None:
            return True
        if controller == _NOBODY:
            # Which those may be whose owners have just changed.
            return self.hears_orphans or bool(aspects & OWNERS)
        api_version, kind = controller
        return self.controlled_by == (api_version.rpartition("/")[0], kind)


class Hearers(tuple[Listener, ...]):
    """Those who are told of a change, in order; the very same for all changes that are alike, and known by that."""

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class Audience:
    """The listeners of an informer, in the order in which they came."""

    __slots__ = ("_chosen", "_heeds_controllers", "_listeners", "_together")

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._chosen: dict[tuple[int, str, str], Hearers] = {}
        """Who has to be told, by what is told and by ``apiVersion`` and kind of the controller; found when it first
        happens."""
        self._together: dict[frozenset[Hearers], list[tuple[Listener, frozenset[Hearers]]]] = {}
        """What ``together`` has answered."""
        self._heeds_controllers = False
        """Whether it makes a difference to anybody what an object is controlled by."""

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)
        self._heeds_controllers |= listener.controlled_by is not None
        self._forget_chosen()

    def remove(self, listener: Listener) -> None:
        """Takes one out; a second time does no harm."""
        if not listener.is_dismissed:
            listener.is_dismissed = True
            self._listeners.remove(listener)
            self._forget_chosen()

    def set_away(self, listener: Listener, *, is_away: bool) -> None:
        """One who is away keeps its place, and is told of nothing."""
        if listener.is_away != is_away:
            listener.is_away = is_away
            self._forget_chosen()

    def _forget_chosen(self) -> None:
        self._chosen.clear()
        self._together.clear()

    def together(self, several: frozenset[Hearers]) -> list[tuple[Listener, frozenset[Hearers]]]:
        """Who is among several hearers and still here, in the order in which they came, and among which of them."""
        known = self._together.get(several)
        if known is None:
            known = []
            for listener in self._listeners:
                among = frozenset([hearers for hearers in several if listener in hearers])
                if among:
                    known.append((listener, among))
            if len(self._together) >= _TOGETHER_MAX:
                self._together.clear()
            self._together[several] = known
        return known

    def of(self, aspects: int, obj: Mapping[str, Any]) -> Hearers:
        """Who has to be told of a change of an object in some respects, in order.

        The tuple is never changed: a handler may add or remove others while it is being told.
        """
        # One whose owners changed concerns those who listen for the old one and for the new one.
        api_version, kind = _NOBODY
        if self._heeds_controllers and not aspects & OWNERS:
            references = obj["metadata"].get("ownerReferences")
            if references:
                # As ``controller_kind`` has it, without a call where there is only one, as is the rule.
                first = references[0]
                if first.get("controller"):
                    api_version, kind = first.get("apiVersion") or "", first.get("kind") or ""
                else:
                    api_version, kind = controller_kind(obj)
        chosen = self._chosen.get((aspects, api_version, kind))
        if chosen is None:
            chosen = Hearers(one for one in self._listeners if one.hears(aspects, (api_version, kind)))
            self._chosen[aspects, api_version, kind] = chosen
        return chosen
