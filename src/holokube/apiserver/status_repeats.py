"""What is known of changes of status that are made again and again: the same step in the lives of many pods.

A kubelet says of each pod of a template the same thing, with another address, another container id and another time.
What merging, decoding, defaulting and comparing make of such a patch depends on the texts of the old status and of the
patch. Of some values it depends only on which of them are equal: they are carried over, and whatever they are compared
with is a value of the same field. So the texts are compared without these values, and with a note of which are equal;
what became of the first such change is then filled in with the values of the next.

Only values of a form that every stage takes as it is count as such; others are a part of the text. To find them in a
long text takes most of the time, so that what was said of the last pods of a template is tried first; see
``status_forms``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

from holokube.apiserver.repeats import STRICTLY
from holokube.apiserver.status_forms import ADDRESS, OPEN, Form, Shape, Values, form_of, shape_of
from holokube.kube.patch.fieldset import Trie
from holokube.kube.types import JsonObject

KEPT: Final = 4096
KEPT_SAME: Final = 256
TRIED: Final = 4
"""How many changes are tried that were made to pods of the same template."""

_ADDRESS_KEY: Final = re.compile(rb'k:\{"ip":"(' + ADDRESS + rb')"\}')
# Whether these are valid depends on the spec, or on more than equality.
_BEYOND: Final = (b'"nominatedNodeName":', b'"resourceClaimStatuses":')
_ENDED: Final = b'"terminated":'
_CONTAINERS: Final = b'"containerID":'

_tuple = tuple.__new__
Key = tuple[Any, ...]
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
    """What becomes of it, if that was found out while it was read."""
    patch: Any = None
    hint: Key = ()
    """By which a change of the next pod of the template is recognized."""


class Change(NamedTuple):
    """What becomes of a status, and which fields that changes and removes."""

    status: JsonObject
    changed: Trie
    removed: Trie


@dataclass(slots=True, eq=False)
class _Known:
    """The same with places for values."""

    status: JsonObject
    form: Form | None
    changed: Trie
    changed_plan: TriePlan | None
    removed: Trie
    removed_plan: TriePlan | None
    shape: Shape | None = None
    """Set when it is asked for a second time."""

    def with_values(self, values: Values) -> Change:
        status = self.status if self.form is None else self.form.filled(values)
        changed = self.changed if self.changed_plan is None else _filled(self.changed_plan, values)
        removed = self.removed if self.removed_plan is None else _filled(self.removed_plan, values)
        # As the constructor does, which is a function of Python.
        return _tuple(Change, (status, changed, removed))


class StatusRepeats:
    """Remembers a bounded number of changes."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known | None] = {}
        self._same: dict[Key, tuple[JsonObject, Change]] = {}
        """By identity of a status and text of a patch: what became of it. All pods of a template begin with the very
        same status, and a scheduler says the same of all that it finds no room for at an instant."""
        self._opened: dict[int, tuple[JsonObject, bytes, list[bytes], list[bytes]]] = {}
        """By identity of a status: its text, whole and split."""
        self._tried: dict[Key, list[_Known]] = {}
        """What became of pods of the same template, the last one first. It is no more than a guess."""

    def ask(self, before: JsonObject, patch: Any, *others: object, template: object = None) -> Asked | None:
        """A patch of a status, None if it cannot be written as text. ``others`` decide on the outcome as well; objects
        of the very same ``template`` are likely to be told the same."""
        found = self._look(before, patch, others, template)
        return Asked(before, (), (), [], found) if isinstance(found, Change) else found

    def change(self, before: JsonObject, patch: Any, others: Key, template: object) -> Change | None:
        """What becomes of a patch, as ``ask`` and ``recall`` tell it; None if no such change has been seen."""
        found = self._look(before, patch, others, template)
        return self.recall(found) if isinstance(found, Asked) else found

    def _look(self, before: JsonObject, patch: Any, others: Key, template: object) -> Asked | Change | None:
        """What becomes of a patch if that is found while it is read, else what is asked for."""
        try:
            new = orjson.dumps(patch, option=STRICTLY)
            hint: Key = ()
            if type(patch) is dict and "containerStatuses" in patch:
                hint = (id(template), len(patch), len(before), others)
                guessed = self._guess(hint, before, patch, new)
                if guessed is not None:
                    return guessed
            else:
                same = self._same.get((id(before), new, others))
                if same is not None and same[0] is before:
                    return same[1]
            _, parts, values = self._open(before)
        except TypeError:
            return None
        more = OPEN.split(new)
        places: dict[bytes, int] = {}
        equals = tuple([places.setdefault(value, len(places)) for value in values + more[1::2]])
        del more[1::2]
        text: Key = (id(before), new, others)
        return Asked(before, text, (others, equals, len(parts), *parts, *more), [*places], None, patch, hint)

    def _guess(self, hint: Key, before: JsonObject, patch: JsonObject, new: bytes) -> Change | None:
        """What becomes of a patch that says the same as one of those before it; None if it does not."""
        tried = self._tried.get(hint)
        if tried is None:
            return None
        opened = self._opened.get(id(before))
        old = opened[1] if opened is not None and opened[0] is before else orjson.dumps(before, option=STRICTLY)
        text = old + new
        for place, known in enumerate(tried):
            shape = known.shape
            values = None if shape is None else shape.values(before, patch, text)
            if values is not None:
                if place:
                    tried.insert(0, tried.pop(place))
                return known.with_values(values)
        return None

    def _open(self, before: JsonObject) -> tuple[bytes, list[bytes], list[bytes]]:
        """The text of a status, the same without its values, and those."""
        known = self._opened.get(id(before))
        if known is not None and known[0] is before:
            return known[1:]
        text = orjson.dumps(before, option=STRICTLY)
        parts = OPEN.split(text)
        values = parts[1::2]
        del parts[1::2]
        # Only pods whose containers have not been told of have their status in common with others.
        if _CONTAINERS not in text:
            if len(self._opened) >= KEPT_SAME:
                self._opened.clear()
            self._opened[id(before)] = before, text, parts, values
        return text, parts, values

    def recall(self, asked: Asked) -> Change | None:
        """What becomes of the status; None if no such change has been seen."""
        if asked.change is not None:
            return asked.change
        known = self._known.get(asked.key)
        if known is None:
            return None
        change = known.with_values([value.decode() for value in asked.values])
        # What is said of containers has their ids in it, and is said once.
        if asked.hint:
            self._try_next(asked, known)
        elif _CONTAINERS not in asked.text[1]:
            if len(self._same) >= KEPT_SAME:
                self._same.clear()
            self._same[asked.text] = asked.before, change
        return change

    def _try_next(self, asked: Asked, known: _Known) -> None:
        """A change was made a second time, and may come again."""
        if known.shape is None:
            text = self._open(asked.before)[0] + asked.text[1]
            known.shape = shape_of(asked.before, asked.patch, text, asked.values)
        tried = self._tried.get(asked.hint)
        if tried is None:
            if len(self._tried) >= KEPT:
                self._tried.clear()
            tried = self._tried[asked.hint] = []
        if known not in tried:
            tried.insert(0, known)
            del tried[TRIED:]

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
    if any(value not in places for value in OPEN.split(text)[1::2]):
        return None
    try:
        changed, removed = _plan(change.changed, places), _plan(change.removed, places)
    except ValueError:
        return None
    known = _Known(change.status, form_of(change.status, places), change.changed, changed, change.removed, removed)
    again = known.with_values([value.decode() for value in asked.values])
    return known if orjson.dumps([*again]) == orjson.dumps([*change]) else None


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
