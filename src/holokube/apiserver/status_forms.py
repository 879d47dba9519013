"""The form of a change of status: texts and objects with places for values, and how values are found and filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

import orjson

from holokube.kube.types import JsonObject

_DAY: Final = (
    rb"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13578]|1[02])-(?:29|30|31)|(?:0[469]|11)-(?:29|30))"
)
_TIME: Final = rb"[12]\d{3}-" + _DAY + rb"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
_BYTE: Final = rb"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
ADDRESS: Final = rb"(?:" + _BYTE + rb"\.){3}" + _BYTE
_IDENTITY: Final = rb"[a-z]+://[0-9a-f]+"
_MESSAGE: Final = rb'[^"\\]+'
_VALUE_OF: Final = b'":"'
_TIMES: Final = (b"lastTransitionTime", b"lastProbeTime", b"startTime", b"startedAt", b"finishedAt")
_ADDRESSES: Final = (b"podIP", b"hostIP", b"ip")


def _after(*fields: bytes) -> bytes:
    """An expression for a place at which the value of one of the fields begins."""
    return rb"(?:" + b"|".join(rb'(?<="' + field + rb'":")' for field in fields) + rb")"


# A quote inside of a JSON text has a backslash before it, so that none of these can stand within a value. What values
# may begin with comes first: it is found out quickest.
OPEN: Final = re.compile(
    _VALUE_OF
    + rb"((?=[12]\d{3}-)"
    + _after(*_TIMES)
    + _TIME
    + rb"|(?=\d)"
    + _after(*_ADDRESSES)
    + ADDRESS
    + rb"|"
    + _after(b"containerID")
    + _IDENTITY
    + rb"|"
    + _after(b"message")
    + _MESSAGE
    + rb')(?=")'
)
# The same times are told of many pods, the same address of all of a node, and the rest again when a pod ends.
_is_time: Final = lru_cache(maxsize=1024)(re.compile(_TIME).fullmatch)
_is_address: Final = lru_cache(maxsize=8192)(re.compile(ADDRESS).fullmatch)
_FITS: Final[Mapping[bytes, Callable[[bytes], object]]] = {
    **dict.fromkeys(_TIMES, _is_time),
    **dict.fromkeys(_ADDRESSES, _is_address),
    b"containerID": re.compile(_IDENTITY).fullmatch,
    b"message": re.compile(_MESSAGE).fullmatch,
}
"""Per field whose value is left open: what it has to look like."""

Values = Sequence[str]
Path = tuple[Any, ...]


class Form:
    """A dict or list in which some values have to be filled in. All others are shared: they are never changed."""

    __slots__ = ("_base", "_copies", "_places", "_shared")

    def __init__(self, part: _Part, times: set[int], *, is_shared: bool = False) -> None:
        """``times`` are the values that are times; one that is shared is asked for by its ``_Shared``."""
        self._base = part.value
        self._copies: list[tuple[int, Any, Any]] = []
        """What is inside has to be copied too: the number of the copy that it is in, where, and what."""
        self._places: list[tuple[int, str, int]] = []
        """In which copy which key gets which value."""
        self._shared: dict[frozenset[int], _Shared] = {}
        """What inside needs nothing but times, by which: many pods have these in common."""
        # What needs the very times of a whole that is shared is shared with it, and not by itself.
        self._collect(part, times, part.needs if is_shared else set(), 0)

    def _collect(self, part: _Part, times: set[int], whole: set[int], number: int) -> None:
        self._places.extend((number, key, place) for key, place in part.places)
        for at, inner in part.parts:
            if inner.needs <= times and inner.needs != whole:
                needs = frozenset(inner.needs)
                if needs not in self._shared:
                    self._shared[needs] = _Shared(needs)
                self._shared[needs].add(number, at, Form(inner, times, is_shared=True))
            else:
                self._copies.append((number, at, inner.value))
                self._collect(inner, times, whole, len(self._copies))

    def filled(self, values: Values) -> Any:
        made = [self._base.copy()]
        for number, at, base in self._copies:
            part = made[number][at] = base.copy()
            made.append(part)
        for number, key, place in self._places:
            made[number][key] = values[place]
        for shared in self._shared.values():
            for number, at, part in shared.at_times(values):
                made[number][at] = part
        return made[0]


class _Shared:
    """Parts that need the same times, and nothing else."""

    __slots__ = ("_filled_with", "_forms", "_last", "_times")

    def __init__(self, needs: frozenset[int]) -> None:
        self._times = itemgetter(*sorted(needs))
        self._forms: list[tuple[int, Any, Form]] = []
        self._filled_with: Any = None
        self._last: list[tuple[int, Any, Any]] = []

    def add(self, number: int, at: Any, form: Form) -> None:
        self._forms.append((number, at, form))

    def at_times(self, values: Values) -> list[tuple[int, Any, Any]]:
        """The parts and where they belong, the very same for all that is filled in with the same times one after the
        other."""
        wanted = self._times(values)
        if wanted != self._filled_with:
            self._last = [(number, at, form.filled(values)) for number, at, form in self._forms]
            self._filled_with = wanted
        return self._last


class _Part(NamedTuple):
    """A dict or list with places in it."""

    value: Any
    places: list[tuple[str, int]]
    """Keys, and which value each gets."""
    parts: list[tuple[Any, _Part]]
    """Keys or positions of what has places in it."""
    needs: set[int]
    """All values that get into it."""


def form_of(value: Any, places: dict[bytes, int]) -> Form | None:
    """How to build such a value with others in the places; None if it has none, and can be shared."""
    part = _part_of(value, places)
    times = {place for text, place in places.items() if _is_time(text)}
    return None if part is None else Form(part, times)


def _part_of(value: Any, places: dict[bytes, int]) -> _Part | None:
    found = _Part(value, [], [], set())
    for key, item in _items(value):
        if isinstance(item, str) and isinstance(key, str):
            text = _open_value(key, item)
            if text is not None:
                found.places.append((key, places[text]))
                found.needs.add(places[text])
        elif (inner := _part_of(item, places)) is not None:
            found.parts.append((key, inner))
            found.needs.update(inner.needs)
    return found if found.needs else None


class Shape:
    """Texts of a status and of a patch with places for values. Whether others are the same but for the values is seen
    without looking for these: they are taken from where they stood before, and must make the same texts."""

    __slots__ = ("_checks", "_paths", "_pick", "_pieces")

    def __init__(
        self, pieces: list[bytes], places: list[int], paths: tuple[Path, ...],
        checks: tuple[tuple[Callable[[bytes], object], int], ...],
    ) -> None:  # fmt: skip
        """``pieces`` is what stands before, between and after the ``places``; ``paths`` says for each value where in
        the status or in the patch it is found."""
        self._pieces: list[bytes] = [b""] * (2 * len(places) + 1)
        self._pieces[::2] = pieces
        self._pick = itemgetter(*places)
        self._paths = paths
        self._checks = checks

    def values(self, before: JsonObject, patch: JsonObject, text: bytes) -> list[str] | None:
        """The values of another status and patch, whose texts are ``text``; None if they are not of this shape."""
        values = []
        try:
            for path in self._paths:
                found: Any = before if path[0] else patch
                for step in path[1]:
                    found = found[step]
                values.append(found)
            texts = [value.encode() for value in values]
        except (KeyError, IndexError, TypeError, AttributeError, UnicodeEncodeError):
            return None
        # Which values are equal has a part in what becomes of the change.
        if len(set(texts)) != len(texts):
            return None
        pieces = self._pieces.copy()
        pieces[1::2] = self._pick(texts)
        if b"".join(pieces) != text:
            return None
        for fits, place in self._checks:
            if not fits(texts[place]):
                return None
        return values


def shape_of(before: JsonObject, patch: JsonObject, text: bytes, values: list[bytes]) -> Shape | None:
    """The shape of a status and a patch, whose texts are ``text``; ``values`` are those that are left open. None if
    these are too few to make it worth while."""
    parts = OPEN.split(text)
    number = {value: place for place, value in enumerate(values)}
    places = [number[value] for value in parts[1::2]]
    found: dict[bytes, Path] = {}
    # The shortest ways are found last, and stay.
    for is_before, value in ((True, before), (False, patch)):
        for path, at in sorted(_open_paths(value), key=lambda each: -len(each[0])):
            found[at] = (is_before, path)
    if len(places) < 2 or found.keys() != number.keys():
        return None
    pieces = [part + _VALUE_OF for part in parts[::2]]
    pieces[-1] = parts[-1]
    fields = [part.rpartition(b'"')[2] for part in parts[:-1:2]]
    checks = {(_FITS[field], place): None for field, place in zip(fields, places, strict=True)}
    return Shape(pieces, places, tuple(found[value] for value in values), tuple(checks))


def _open_paths(value: Any, path: Path = ()) -> list[tuple[Path, bytes]]:
    """Where the open values are, and what they are."""
    found: list[tuple[Path, bytes]] = []
    for key, part in _items(value):
        if isinstance(part, str) and isinstance(key, str):
            text = _open_value(key, part)
            if text is not None:
                found.append(((*path, key), text))
        else:
            found.extend(_open_paths(part, (*path, key)))
    return found


def _open_value(key: str, value: str) -> bytes | None:
    """The value of a field as text, if it is one that is left open."""
    found = OPEN.split(orjson.dumps({key: value}))
    return found[1] if len(found) > 1 else None


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []
