"""Sets of fields, in the very form the API shows them (``fieldsV1``).

A set is a trie of path elements: ``f:name`` (a field), ``k:{"name":"x"}`` (an element of a list with keys),
``v:"x"`` (an element of a set), ``i:0`` (an index). An empty node is a member of the set; a node with
children is a member only if it also holds ``"."``. Working on this form directly means that nothing is
encoded or decoded when an object is written.

Tries are plain dicts, immutable by convention, and share their unchanged parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

Trie: TypeAlias = dict[str, Any]
"""A node: path element -> node. ``Any`` because the type is recursive."""

LEAF: Trie = {}
"""The one member without children; shared, never written to."""
SELF = "."


class FieldSetError(ValueError):
    """A ``fieldsV1`` document cannot be read."""


class FieldSet:
    """An immutable set of field paths."""

    __slots__ = ("trie",)

    def __init__(self, trie: Trie | None = None) -> None:
        self.trie: Trie = trie if trie is not None else {}

    @staticmethod
    def from_json(document: Any) -> FieldSet:
        """Read ``fieldsV1``: elements of an unknown kind are dropped, keys are spelled canonically."""
        if document is None:
            return EMPTY
        return FieldSet(parse_trie(document))

    @staticmethod
    def from_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
        """The set of the given paths, each a sequence of path elements."""
        trie: Trie = {}
        for path in paths:
            branch: Trie = LEAF
            for element in reversed(tuple(path)):
                branch = {element: branch}
            trie = union(trie, branch, root=True)
        return FieldSet(trie)

    @staticmethod
    def of_fields(*names: str) -> FieldSet:
        """The set of plain fields, written like ``spec`` or ``metadata.ownerReferences``."""
        return FieldSet.from_paths([f"f:{step}" for step in name.split(".")] for name in names)

    def to_json(self) -> Trie:
        """The ``fieldsV1`` document; do not change it."""
        return self.trie

    def union(self, other: FieldSet) -> FieldSet:
        return FieldSet(union(self.trie, other.trie, root=True))

    def difference(self, other: FieldSet) -> FieldSet:
        """The paths of this set that are not in the other; parents and children are different paths."""
        return FieldSet(difference(self.trie, other.trie))

    def intersection(self, other: FieldSet) -> FieldSet:
        return FieldSet(intersection(self.trie, other.trie))

    def without(self, other: FieldSet) -> FieldSet:
        """Like ``difference``, but a member of the other set takes everything below it along."""
        return FieldSet(recursive_difference(self.trie, other.trie))

    def leaves(self) -> FieldSet:
        """The members that have no members below them."""
        return FieldSet(_leaves(self.trie))

    def contains(self, path: Iterable[str]) -> bool:
        """Whether exactly this path is a member."""
        node: Any = self.trie
        steps = 0
        for element in path:
            node = node.get(element)
            if node is None:
                return False
            steps += 1
        return steps > 0 and is_member(node)

    def paths(self) -> Iterator[tuple[str, ...]]:
        """All members; at each level first the members themselves, then what is below them."""
        return _paths(self.trie, ())

    def __bool__(self) -> bool:
        return bool(self.trie)

    def __len__(self) -> int:
        return sum(1 for _ in self.paths())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.trie == other.trie

    def __hash__(self) -> int:
        return hash(frozenset(self.paths()))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(format_path(path) for path in self.paths())})"

    __or__ = union
    __sub__ = difference
    __and__ = intersection


EMPTY = FieldSet()


def is_member(node: Trie) -> bool:
    """Whether a node stands for a member, or is only on the way to some."""
    return not node or SELF in node


def union(a: Trie, b: Trie, *, root: bool = False) -> Trie:
    """All paths of both; ``a`` itself if ``b`` adds nothing. Only at the root an empty node means nothing."""
    if not root:
        if not a:
            return b if not b or SELF in b else {SELF: LEAF, **b}
        if not b:
            return a if SELF in a else {SELF: LEAF, **a}
    elif not a:
        return b
    out: Trie | None = None
    grown = False
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is theirs:
            continue
        if ours is None:
            both = theirs
            grown = True
        elif element == SELF:
            continue
        else:
            both = union(ours, theirs)
            if both is ours:
                continue
        if out is None:
            out = dict(a)
        out[element] = both
    if out is None:
        return a
    return ordered(out) if grown else out


def difference(a: Trie, b: Trie) -> Trie:
    """The paths of ``a`` that are not in ``b``; ``a`` itself if they have none in common."""
    out: Trie | None = None
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None:
            continue
        left = _node_difference(ours, theirs)
        if left is ours:
            continue
        if out is None:
            out = dict(a)
        if left is None:
            del out[element]
        else:
            out[element] = left
    return a if out is None else out


def _node_difference(ours: Trie, theirs: Trie) -> Trie | None:
    if not theirs:
        if not ours:
            return None
        return {element: node for element, node in ours.items() if element != SELF} if SELF in ours else ours
    if not ours:
        return None if SELF in theirs else ours
    return _node(difference(ours, theirs), ours)


def _node(trie: Trie, ours: Trie) -> Trie | None:
    """Bring a node below the root into its one canonical form; nothing if it holds no member any more."""
    if trie is ours:
        return ours
    if not trie:
        return None
    if len(trie) == 1 and SELF in trie:
        return LEAF
    return trie


def intersection(a: Trie, b: Trie) -> Trie:
    """The paths that are in both."""
    out: Trie = {}
    for element, ours in a.items():
        theirs = b.get(element)
        if theirs is None:
            continue
        if not ours or not theirs:
            if is_member(ours) and is_member(theirs):
                out[element] = LEAF
            continue
        both = intersection(ours, theirs)
        if both:
            out[element] = LEAF if len(both) == 1 and SELF in both else both
    return out


def recursive_difference(a: Trie, b: Trie) -> Trie:
    """``a`` without the members of ``b`` and all below them; ``a`` itself if that is nothing."""
    out: Trie | None = None
    for element, theirs in b.items():
        ours = a.get(element)
        if ours is None or element == SELF:
            continue
        left: Trie | None
        if is_member(theirs):
            left = None
        elif not ours:
            continue
        else:
            left = _node(recursive_difference(ours, theirs), ours)
            if left is ours:
                continue
        if out is None:
            out = dict(a)
        if left is None:
            del out[element]
        else:
            out[element] = left
    return a if out is None else out


def _leaves(trie: Trie) -> Trie:
    return {element: _leaves(node) if node else LEAF for element, node in trie.items() if element != SELF}


def _paths(trie: Trie, prefix: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for element, node in trie.items():
        if element != SELF and is_member(node):
            yield (*prefix, element)
    for element, node in trie.items():
        if node:
            yield from _paths(node, (*prefix, element))


def ordered(trie: Trie) -> Trie:
    """The node with its elements in upstream's order: fields by name, list elements by key, by value."""
    if len(trie) < 2:
        return trie
    elements = sorted(trie)
    if elements[-1][0] in "kvi":
        elements.sort(key=_rank)
    return {element: trie[element] for element in elements}


@lru_cache(maxsize=16_384)
def _rank(element: str) -> tuple[Any, ...]:
    if element == SELF:
        return (0,)
    kind, rest = element[0], element[2:]
    if kind == "f":
        return (1, rest)
    if kind == "k":
        return (2, *((name, *_value_rank(value)) for name, value in orjson.loads(rest).items()))
    if kind == "v":
        return (3, *_value_rank(orjson.loads(rest)))
    return (4, int(rest))


def _value_rank(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, orjson.dumps(value))


def parse_trie(document: Any) -> Trie:
    """A canonical trie from a ``fieldsV1`` document of a client."""
    if not isinstance(document, dict):
        raise FieldSetError(f"fieldsV1 must be an object, got {type(document).__name__}")
    out: Trie = {}
    for element, node in document.items():
        if element == SELF:
            out[SELF] = LEAF
            continue
        spelled = _canonical(element)
        if spelled is not None:
            inner = parse_trie(node)
            out[spelled] = LEAF if not inner or (len(inner) == 1 and SELF in inner) else inner
    return ordered(out)


def _canonical(element: str) -> str | None:
    """The element as this module spells it; nothing for kinds that a later version may define."""
    kind, separator, rest = element[:1], element[1:2], element[2:]
    if len(element) < 2:
        raise FieldSetError(f"path element {element!r} must be 2 characters long")
    if separator != ":":
        raise FieldSetError(f"path element {element!r} misses a colon")
    if kind == "f":
        return element
    try:
        if kind == "k":
            keys = orjson.loads(rest)
            if not isinstance(keys, dict):
                raise FieldSetError(f"path element {element!r} must hold an object")
            return key_element(sorted(keys.items()))
        if kind == "v":
            return value_element(orjson.loads(rest))
        if kind == "i":
            return f"i:{int(rest)}"
    except ValueError as error:
        raise FieldSetError(f"path element {element!r} cannot be read: {error}") from error
    return None


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """``k:{...}`` for key fields that are already sorted by name."""
    return "k:" + _json(dict(keys))


def value_element(value: Any) -> str:
    """``v:...`` for an element of a set."""
    return "v:" + _json(value)


def _json(value: Any) -> str:
    return escape_html(orjson.dumps(value).decode())


def escape_html(text: str) -> str:
    """Go's JSON encoder writes these characters as escapes, and path elements are compared as text."""
    if "<" in text or ">" in text or "&" in text:
        return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text


def format_path(path: Iterable[str]) -> str:
    """A path as conflict messages print it: ``.spec.containers[name="x"].image``."""
    return "".join(_format_element(element) for element in path)


def _format_element(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        return f"[{','.join(f'{name}={_format_value(v)}' for name, v in orjson.loads(rest).items())}]"
    if kind == "v":
        return f"[={_format_value(orjson.loads(rest))}]"
    return f"[{rest}]"


def _format_value(value: Any) -> str:
    return orjson.dumps(value).decode()
