"""What is known of changes of status that are made again and again: the same step in the lives of many pods.

A kubelet says of each pod of a template the same thing, with another address, another container id and another time.
What merging, decoding, defaulting and comparing make of such a patch depends on the texts of the old status and of the
patch. Of some values it depends only on which of them are equal: they are carried over, and whatever they are compared
with is a value of the same field. So the texts are compared without these values, and with a note of which are equal;
what became of the first such change is then filled in with the values of the next.

Only values of a form that every stage takes as it is count as such; others are a part of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from holokube.apiserver.repeats import STRICTLY
from holokube.kube.patch.fieldset import Trie
from holokube.kube.types import JsonObject

KEPT: Final = 4096
KEPT_SAME: Final = 256

_DAY: Final = (
    rb"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13578]|1[02])-(?:29|30|31)|(?:0[469]|11)-(?:29|30))"
)
_TIME: Final = rb"[12]\d{3}-" + _DAY + rb"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
_BYTE: Final = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS: Final = rb"(?:" + _BYTE + rb"\.){3}" + _BYTE
_VALUE_OF: Final = rb'":"'


def _after(*fields: bytes) -> bytes:
    """An expression for a place at which the value of one of the fields begins."""
    return rb"(?:" + b"|".join(rb'(?<="' + field + rb'":")' for field in fields) + rb")"


# A quote inside of a JSON text has a backslash before it, so that none of these can stand within a value. What values
# may begin with comes first: it is found out quickest.
_OPEN: Final = re.compile(
    _VALUE_OF
    + rb"((?=[12]\d{3}-)"
    + _after(b"lastTransitionTime", b"lastProbeTime", b"startTime", b"startedAt", b"finishedAt")
    + _TIME
    + rb"|(?=\d)"
    + _after(b"podIP", b"hostIP", b"ip")
    + _ADDRESS
    + rb"|"
    + _after(b"containerID")
    + rb"[a-z]+://[0-9a-f]+|"
    + _after(b"message")
    + rb'[^"\\]+)(?=")'
)
_ADDRESS_KEY: Final = re.compile(rb'k:\{"ip":"(' + _ADDRESS + rb')"\}')
# Whether these are valid depends on the spec, or on more than equality.
_BEYOND: Final = (b'"nominatedNodeName":', b'"resourceClaimStatuses":')
_ENDED: Final = b'"terminated":'
_CONTAINERS: Final = b'"containerID":'

Key = tuple[Any, ...]
Values = list[str]
TriePlan = list[tuple[str, int, "TriePlan | None", Trie]]
"""Per key of a set of fields: the key, or which address stands in it (-1 for none), and what is below."""


class Asked(NamedTuple):
    """A change that somebody asks for, as far as it can be repeated."""

    before: JsonObject
    text: Key
    """What is asked for, with all values."""
    key: Key
    values: list[bytes]
    """The different values that are left out of the key, in the order in which they come first."""
    change: Change | None = None
    """What became of the very same: the same text, asked for an object with the very same status."""


class Change(NamedTuple):
    """What becomes of a status, and which fields that changes and removes."""

    status: JsonObject
    changed: Trie
    removed: Trie


@dataclass(frozen=True, slots=True)
class _Form:
    """A dict or list in which some values have to be filled in. All others are shared: they are never changed."""

    base: Any
    places: tuple[tuple[str, int], ...]
    """Keys, and which value each gets."""
    parts: tuple[tuple[Any, _Form], ...]
    """Keys or positions of what has places in it."""

    def filled(self, values: Values) -> Any:
        made = self.base.copy()
        for key, place in self.places:
            made[key] = values[place]
        for at, part in self.parts:
            made[at] = part.filled(values)
        return made


@dataclass(frozen=True, slots=True)
class _Known:
    """The same with places for values."""

    status: JsonObject
    form: _Form | None
    changed: Trie
    changed_plan: TriePlan | None
    removed: Trie
    removed_plan: TriePlan | None

    def with_values(self, texts: list[bytes]) -> Change:
        values = [text.decode() for text in texts]
        status = self.status if self.form is None else self.form.filled(values)
        changed = self.changed if self.changed_plan is None else _filled(self.changed_plan, values)
        removed = self.removed if self.removed_plan is None else _filled(self.removed_plan, values)
        return Change(status, changed, removed)


class StatusRepeats:
    """Remembers a bounded number of changes."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known | None] = {}
        self._same: dict[Key, tuple[JsonObject, Change]] = {}
        """By identity of a status and text of a patch: what became of it. All pods of a template begin with the very
        same status, and a scheduler says the same of all that it finds no room for at an instant."""
        self._opened: dict[int, tuple[JsonObject, list[bytes], list[bytes]]] = {}
        """By identity of a status: its text, split."""

    def ask(self, before: JsonObject, patch: Any, *others: object) -> Asked | None:
        """A patch of a status, None if it cannot be written as text. ``others`` decide on the outcome as well."""
        try:
            new = orjson.dumps(patch, option=STRICTLY)
            text: Key = (id(before), new, others)
            same = self._same.get(text)
            if same is not None and same[0] is before:
                return Asked(before, text, (), [], same[1])
            parts, values = self._open(before)
        except TypeError:
            return None
        more = _OPEN.split(new)
        places: dict[bytes, int] = {}
        equals = tuple([places.setdefault(value, len(places)) for value in values + more[1::2]])
        del more[1::2]
        return Asked(before, text, (others, equals, len(parts), *parts, *more), [*places])

    def _open(self, before: JsonObject) -> tuple[list[bytes], list[bytes]]:
        """The text of a status without its values, and those."""
        known = self._opened.get(id(before))
        if known is not None and known[0] is before:
            return known[1], known[2]
        text = orjson.dumps(before, option=STRICTLY)
        parts = _OPEN.split(text)
        values = parts[1::2]
        del parts[1::2]
        # Only pods whose containers have not been told of have their status in common with others.
        if _CONTAINERS not in text:
            if len(self._opened) >= KEPT_SAME:
                self._opened.clear()
            self._opened[id(before)] = before, parts, values
        return parts, values

    def recall(self, asked: Asked) -> Change | None:
        """What becomes of the status; None if no such change has been seen."""
        if asked.change is not None:
            return asked.change
        known = self._known.get(asked.key)
        if known is None:
            return None
        change = known.with_values(asked.values)
        # What is said of containers has their ids in it, and is said once.
        if _CONTAINERS not in asked.text[1]:
            if len(self._same) >= KEPT_SAME:
                self._same.clear()
            self._same[asked.text] = asked.before, change
        return change

    def is_new(self, asked: Asked) -> bool:
        """Whether it is not known either that such a change cannot be repeated."""
        return asked.change is None and asked.key not in self._known

    def remember(self, asked: Asked, before: JsonObject, change: Change) -> None:
        """A change was made, and found valid."""
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[asked.key] = _learn(asked, before, change)


def _learn(asked: Asked, before: JsonObject, change: Change) -> _Known | None:
    """The change with places for values; None if it depends on more than the key says."""
    old, text = orjson.dumps(before), orjson.dumps(change.status)
    if old == text or _ENDED in old or any(word in part for word in _BEYOND for part in (old, text)):
        return None
    places = {value: place for place, value in enumerate(asked.values)}
    if any(value not in places for value in _OPEN.split(text)[1::2]):
        return None
    try:
        changed, removed = _plan(change.changed, places), _plan(change.removed, places)
    except ValueError:
        return None
    known = _Known(change.status, _form(change.status, places), change.changed, changed, change.removed, removed)
    again = known.with_values(asked.values)
    return known if orjson.dumps([*again]) == orjson.dumps([*change]) else None


def _form(value: Any, places: dict[bytes, int]) -> _Form | None:
    """How to build such a value with others in the places; None if it has none, and can be shared."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return None
    own: list[tuple[str, int]] = []
    parts: list[tuple[Any, _Form]] = []
    for key, part in items:
        if isinstance(part, str) and isinstance(key, str):
            found = _OPEN.split(orjson.dumps({key: part}))
            if len(found) > 1:
                own.append((key, places[found[1]]))
        elif (inner := _form(part, places)) is not None:
            parts.append((key, inner))
    return _Form(value, tuple(own), tuple(parts)) if own or parts else None


def _plan(trie: Trie, places: dict[bytes, int]) -> TriePlan | None:
    """How to build such a set of fields with other addresses; None if there are none, and it can be shared.

    Keys are sorted; two addresses beside each other would have to be sorted anew: ValueError.
    """
    plan: TriePlan = []
    opened = 0
    for key, below in trie.items():
        text = key.encode()
        address = _ADDRESS_KEY.fullmatch(text)
        place = -1 if address is None else places.get(address[1], -1)
        if place < 0 and b'"ip"' in text:
            raise ValueError(f"{key} may not come first or last among addresses")
        opened += place >= 0
        plan.append((key, place, _plan(below, places), below))
    if opened > 1:
        raise ValueError("there are several addresses")
    return plan if opened or any(inner is not None for _, _, inner, _ in plan) else None


def _filled(plan: TriePlan, values: Values) -> Trie:
    out: Trie = {}
    for key, place, inner, shared in plan:
        filled = key if place < 0 else f'k:{{"ip":"{values[place]}"}}'
        out[filled] = shared if inner is None else _filled(inner, values)
    return out
