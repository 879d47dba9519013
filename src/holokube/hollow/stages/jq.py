"""The part of jq that Stages use to look into an object.

Paths (``.status.conditions.[]``, ``.metadata.labels["a/b"]``, ``.items[0]``), pipes, ``select``, comparisons,
``and``, ``or``, ``not``, ``//``, ``has``, ``any``, ``all``, ``length``, ``keys``, ``first``, ``last``, ``empty``,
``tostring``, ``startswith``, ``endswith``, ``contains`` of strings, and literals. As in kwok, nulls are dropped from
the result and an expression that fails at run time yields nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from holokube.hollow.stages.errors import QueryError

SUPPORTED = (
    "paths such as .a.b, .a[], .a.[], .a[\"key\"], .a[0]; pipes; select(...); == != < <= > >=; and, or, not; //; "
    "has, any, all, length, keys, first, last, empty, tostring, startswith, endswith, contains"
)

Filter = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<field>\.[A-Za-z_]\w*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<op>==|!=|<=|>=|//|[.\[\]()|<>?,-])
  )""",
    re.VERBOSE,
)


class _Failed(Exception):
    """The expression does not fit the value."""


class Query:
    """A compiled expression."""

    __slots__ = ("_filter", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._filter = _Parser(text).parse()

    def run(self, value: Any) -> list[Any]:
        """All results but nulls; nothing when the expression does not fit the value."""
        try:
            return [found for found in self._filter(value) if found is not None]
        except _Failed:
            return []


@lru_cache(maxsize=1024)
def compile_query(text: str) -> Query:
    """Compiles once per text."""
    return Query(text)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            rest = stripped[at:].strip()
            raise QueryError(f"jq expression {text!r}: cannot read {rest[:20]!r}")
        kind = match.lastgroup
        assert kind is not None
        found.append((kind, match.group(kind)))
        at = match.end()
    return found


class _Parser:
    """Recursive descent: pipe, alternative, or, and, comparison, path."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def parse(self) -> Filter:
        if not self._tokens:
            raise QueryError("an empty jq expression selects nothing")
        made = self._pipe()
        if self._at < len(self._tokens):
            raise self._unexpected()
        return made

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, *texts: str) -> str:
        kind, text = self._peek()
        if kind in ("op", "word") and text in texts:
            self._at += 1
            return text
        return ""

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f", where {text!r} was expected")

    def _unexpected(self, more: str = "") -> QueryError:
        kind, text = self._peek()
        what = "the end" if kind == "end" else repr(text)
        return QueryError(f"jq expression {self._text!r}: {what} is not understood here{more}")

    def _pipe(self) -> Filter:
        left = self._alternative()
        while self._accept("|"):
            left = _piped(left, self._alternative())
        return left

    def _alternative(self) -> Filter:
        left = self._either()
        while self._accept("//"):
            left = _alternative(left, self._either())
        return left

    def _either(self) -> Filter:
        left = self._both()
        while self._accept("or"):
            left = _pairwise(left, self._both(), lambda a, b: _is_true(a) or _is_true(b))
        return left

    def _both(self) -> Filter:
        left = self._comparison()
        while self._accept("and"):
            left = _pairwise(left, self._comparison(), lambda a, b: _is_true(a) and _is_true(b))
        return left

    def _comparison(self) -> Filter:
        left = self._postfix()
        operator = self._accept("==", "!=", "<=", ">=", "<", ">")
        return _pairwise(left, self._postfix(), _COMPARE[operator]) if operator else left

    def _postfix(self) -> Filter:
        made = self._term()
        while True:
            kind, text = self._peek()
            if kind == "field":
                self._at += 1
                made = _piped(made, _field(text[1:]))
            elif text == "[" and kind == "op":
                made = self._suffix(made)
            elif text == "." and kind == "op":
                # ``.a.[]`` and ``.a."b"`` are what jq 1.7 and kwok's own stages write.
                self._at += 1
                kind, text = self._peek()
                if kind == "string":
                    self._at += 1
                    made = _piped(made, _field(json.loads(text)))
                elif text != "[":
                    raise self._unexpected()
            elif text == "?" and kind == "op":
                self._at += 1
                made = _tried(made)
            else:
                return made

    def _suffix(self, base: Filter) -> Filter:
        self._expect("[")
        if self._accept("]"):
            return _piped(base, _iterate)
        kind, text = self._next()
        negative = kind == "op" and text == "-"
        if negative:
            kind, text = self._next()
        if kind == "string" and not negative:
            made = _piped(base, _field(json.loads(text)))
        elif kind == "number" and "." not in text:
            made = _piped(base, _item(-int(text) if negative else int(text)))
        else:
            self._at -= 1
            raise self._unexpected(', where "key", a number or ] was expected')
        self._expect("]")
        return made

    def _term(self) -> Filter:
        kind, text = self._next()
        if kind == "field":
            return _field(text[1:])
        if kind == "string":
            return _constant(json.loads(text))
        if kind == "number":
            return _constant(float(text) if "." in text else int(text))
        if kind == "op" and text == "-" and self._peek()[0] == "number":
            text = self._next()[1]
            return _constant(-float(text) if "." in text else -int(text))
        if kind == "op" and text == "(":
            inner = self._pipe()
            self._expect(")")
            return inner
        if kind == "op" and text == ".":
            kind, text = self._peek()
            if kind == "string":
                self._at += 1
                return _field(json.loads(text))
            return _identity
        if kind == "word":
            return self._word(text)
        self._at -= 1
        raise self._unexpected()

    def _word(self, word: str) -> Filter:
        if word in _CONSTANTS:
            return _constant(_CONSTANTS[word])
        if word in _PLAIN and self._peek() != ("op", "("):
            return _PLAIN[word]
        if word in _WITH_ARGUMENT:
            self._expect("(")
            argument = self._pipe()
            self._expect(")")
            return _WITH_ARGUMENT[word](argument)
        raise QueryError(f"jq expression {self._text!r}: the function {word!r} is not understood")


def _identity(value: Any) -> Iterator[Any]:
    yield value


def _constant(constant: Any) -> Filter:
    def run(_value: Any) -> Iterator[Any]:
        yield constant

    return run


def _field(name: str) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        if value is None:
            yield None
        elif isinstance(value, dict):
            yield value.get(name)
        else:
            raise _Failed

    return run


def _item(index: int) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        if value is None:
            yield None
        elif isinstance(value, list):
            yield value[index] if -len(value) <= index < len(value) else None
        else:
            raise _Failed

    return run


def _iterate(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
    else:
        raise _Failed


def _piped(left: Filter, right: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for found in left(value):
            yield from right(found)

    return run


def _tried(inner: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        try:
            yield from inner(value)
        except _Failed:
            return

    return run


def _alternative(left: Filter, right: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        try:
            found = [item for item in left(value) if _is_true(item)]
        except _Failed:
            found = []
        yield from found or right(value)

    return run


def _pairwise(left: Filter, right: Filter, combine: Callable[[Any, Any], bool]) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for second in right(value):
            for first in left(value):
                yield combine(first, second)

    return run


def _is_true(value: Any) -> bool:
    return value is not None and value is not False


def _order(value: Any) -> tuple[int, Any]:
    """jq orders all values: null, false, true, numbers, strings, arrays, objects."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (2 if value else 1, 0)
    if isinstance(value, int | float):
        return (3, value)
    if isinstance(value, str):
        return (4, value)
    if isinstance(value, list):
        return (5, [_order(item) for item in value])
    return (6, [sorted(value), [_order(value[key]) for key in sorted(value)]])


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: _order(a) == _order(b),
    "!=": lambda a, b: _order(a) != _order(b),
    "<": lambda a, b: _order(a) < _order(b),
    "<=": lambda a, b: _order(a) <= _order(b),
    ">": lambda a, b: _order(a) > _order(b),
    ">=": lambda a, b: _order(a) >= _order(b),
}  # fmt: skip
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}


def _plain(function: Callable[[Any], Any]) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        yield function(value)

    return run


def _length(value: Any) -> Any:
    if value is None:
        return 0
    if isinstance(value, bool):
        raise _Failed
    return abs(value) if isinstance(value, int | float) else len(value)


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return sorted(value)
    if isinstance(value, list):
        return list(range(len(value)))
    raise _Failed


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, dict | list):
        raise _Failed
    return list(value.values()) if isinstance(value, dict) else value


def _empty(_value: Any) -> Iterator[Any]:
    yield from ()


_PLAIN: dict[str, Filter] = {
    "not": _plain(lambda value: not _is_true(value)),
    "length": _plain(_length),
    "keys": _plain(_keys),
    "first": _item(0),
    "last": _item(-1),
    "any": _plain(lambda value: any(map(_is_true, _listed(value)))),
    "all": _plain(lambda value: all(map(_is_true, _listed(value)))),
    "tostring": _plain(lambda value: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))),
    "empty": _empty,
}


def _select(condition: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for outcome in condition(value):
            if _is_true(outcome):
                yield value

    return run


def _has(key: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for name in key(value):
            if isinstance(value, dict) and isinstance(name, str):
                yield name in value
            elif isinstance(value, list) and isinstance(name, int):
                yield 0 <= name < len(value)
            else:
                raise _Failed

    return run


def _over_items(combine: Callable[[Iterator[bool]], bool]) -> Callable[[Filter], Filter]:
    def made(condition: Filter) -> Filter:
        def run(value: Any) -> Iterator[Any]:
            yield combine(_is_true(outcome) for item in _listed(value) for outcome in condition(item))

        return run

    return made


def _on_text(test: Callable[[str, str], bool]) -> Callable[[Filter], Filter]:
    def made(argument: Filter) -> Filter:
        def run(value: Any) -> Iterator[Any]:
            for other in argument(value):
                if not (isinstance(value, str) and isinstance(other, str)):
                    raise _Failed
                yield test(value, other)

        return run

    return made


def _first_of(inner: Filter) -> Filter:
    def run(value: Any) -> Iterator[Any]:
        for found in inner(value):
            yield found
            return

    return run


_WITH_ARGUMENT: dict[str, Callable[[Filter], Filter]] = {
    "select": _select,
    "has": _has,
    "any": _over_items(any),
    "all": _over_items(all),
    "first": _first_of,
    "startswith": _on_text(str.startswith),
    "endswith": _on_text(str.endswith),
    "contains": _on_text(lambda text, part: part in text),
}
