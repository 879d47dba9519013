"""Label selectors: parsed once, matched fast, printed in upstream's canonical form.

Two things that look alike differ. An *empty* selector (``""`` or ``{}``) matches everything. An *absent* JSON
selector (``None``) matches nothing, which is what upstream makes of a nil ``labelSelector``.
Field selectors are in :mod:`holokube.kube.field_selectors` and re-exported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from holokube.kube.errors import Cause
from holokube.kube.field_selectors import FieldRequirement, FieldSelector
from holokube.kube.names import is_label_value, is_qualified_name
from holokube.kube.quoting import go_json_strings, go_quote
from holokube.kube.selector_errors import SelectorError

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelRequirement",
    "LabelSelector",
    "Operator",
    "SelectorError",
    "parse_int64",
    "validate_label_selector",
]

_INT64_LIMIT: Final = 2**63
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII).fullmatch


@lru_cache(maxsize=16_384)
def parse_int64(text: str) -> int | None:
    """The integer in a label value as Go reads it, or None; signs and leading zeros are fine."""
    if not _INTEGER(text):
        return None
    number = int(text)
    return number if -_INT64_LIMIT <= number < _INT64_LIMIT else None


class Operator(Enum):
    """What a label requirement asks; the values are upstream's own words."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_BINARY_OPERATORS: Final = (
    Operator.IN, Operator.NOT_IN, Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS,
    Operator.GREATER_THAN, Operator.LESS_THAN,
)  # fmt: skip
_POSITIVE: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NEGATIVE: Final = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_EXACT: Final = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS})
_UNARY: Final = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_COMPARISON: Final = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})
_SYMBOLS: Final = {
    Operator.IN: " in ", Operator.NOT_IN: " notin ", Operator.EQUALS: "=", Operator.DOUBLE_EQUALS: "==",
    Operator.NOT_EQUALS: "!=", Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label key. Make it with :meth:`checked` unless the parts are known to be good."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    _set: frozenset[str] = field(init=False, repr=False, compare=False)
    _bound: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_set", frozenset(self.values))
        bound = None
        if self.operator in _COMPARISON and len(self.values) == 1:
            bound = parse_int64(self.values[0])
        object.__setattr__(self, "_bound", bound)

    @classmethod
    def checked(
        cls, key: str, operator: Operator, values: Sequence[str] | None = None, *, path: str = ""
    ) -> LabelRequirement:
        """The requirement, or :class:`SelectorError` listing everything that is wrong with it."""
        errors = _requirement_errors(key, operator, values, path)
        if errors:
            raise SelectorError(*errors)
        return cls(key, operator, tuple(values or ()))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil this one condition. A missing key fulfils only the negative operators."""
        operator = self.operator
        value = labels.get(self.key)
        if operator in _POSITIVE:
            return value is not None and value in self._set
        if operator in _NEGATIVE:
            return value is None or value not in self._set
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        if value is None or self._bound is None:
            return False
        number = parse_int64(value)
        if number is None:
            return False
        return number > self._bound if operator is Operator.GREATER_THAN else number < self._bound

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in (Operator.IN, Operator.NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS[self.operator]}{values}"


def _requirement_errors(key: str, operator: Operator, given: Sequence[str] | None, path: str) -> list[str]:
    values = given or ()
    prefix = f"{path}." if path else ""
    errors = []
    complaints = is_qualified_name(key)
    if complaints:
        errors.append(f"{prefix}key: Invalid value: {go_quote(key)}: {'; '.join(complaints)}")
    trouble = ""
    if operator in (Operator.IN, Operator.NOT_IN):
        if not values:
            trouble = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in _EXACT:
        if len(values) != 1:
            trouble = "exact-match compatibility requires one single value"
    elif operator in _UNARY:
        if values:
            trouble = "values set must be empty for exists and does not exist"
    elif len(values) != 1:
        trouble = "for 'Gt', 'Lt' operators, exactly one value is required"
    if trouble:
        errors.append(f"{prefix}values: Invalid value: {go_json_strings(given)}: {trouble}")
    if operator in _COMPARISON:
        errors.extend(
            f"{prefix}values[{i}]: Invalid value: {go_quote(value)}:"
            " for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if parse_int64(value) is None
        )
    for i, value in enumerate(values):
        complaints = is_label_value(value)
        if complaints:
            errors.append(
                f"{prefix}values[{i}][{key}]: Invalid value: {go_quote(value)}: {'; '.join(complaints)}"
            )
    return errors


_JSON_OPERATORS: Final = {
    "In": Operator.IN, "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS, "DoesNotExist": Operator.DOES_NOT_EXIST,
}  # fmt: skip


class LabelSelector:
    """Conditions that all must hold. Immutable and hashable; requirements are ordered by key."""

    __slots__ = ("_equal", "_other", "matches_nothing", "requirements")

    requirements: tuple[LabelRequirement, ...]
    matches_nothing: bool

    def __init__(
        self, requirements: Iterable[LabelRequirement] = (), *, matches_nothing: bool = False
    ) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.matches_nothing = matches_nothing
        # Most selectors are plain equalities, and those need no more than a lookup each.
        equal = [r for r in self.requirements if r.operator in _POSITIVE and len(r.values) == 1]
        self._equal = tuple((r.key, r.values[0]) for r in equal)
        self._other = tuple(r for r in self.requirements if r not in equal)

    @staticmethod
    def everything() -> LabelSelector:
        """The empty selector."""
        return _EVERYTHING

    @staticmethod
    def nothing() -> LabelSelector:
        """The absent selector."""
        return _NOTHING

    @staticmethod
    def parse(text: str) -> LabelSelector:
        """The selector in a text such as ``a=b,c in (x,y),!d``; :class:`SelectorError` if it is none."""
        return _parse_cached(text)

    @staticmethod
    def from_labels(labels: Mapping[str, str] | None) -> LabelSelector:
        """Equality with each of ``labels``, unchecked; none at all match everything."""
        return LabelSelector(LabelRequirement(k, Operator.EQUALS, (v,)) for k, v in (labels or {}).items())

    @staticmethod
    def from_json(selector: Mapping[str, Any] | None) -> LabelSelector:
        """The selector in ``{"matchLabels": ..., "matchExpressions": ...}``; None matches nothing."""
        if selector is None:
            return _NOTHING
        labels, expressions = selector.get("matchLabels"), selector.get("matchExpressions")
        if not expressions:
            return _equal_to(tuple(labels.items())) if labels else _EVERYTHING
        found = [LabelRequirement.checked(k, Operator.EQUALS, (v,)) for k, v in (labels or {}).items()]
        for expression in expressions:
            word = expression.get("operator", "")
            operator = _JSON_OPERATORS.get(word)
            if operator is None:
                raise SelectorError(f"{go_quote(word)} is not a valid label selector operator")
            values = expression.get("values") or None
            found.append(LabelRequirement.checked(expression.get("key", ""), operator, values))
        return LabelSelector(found)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether all conditions hold for ``labels``; None is the same as no labels."""
        if self.matches_nothing:
            return False
        found = labels if labels is not None else _NO_LABELS
        for key, value in self._equal:
            if found.get(key) != value:
                return False
        for requirement in self._other:  # noqa: SIM110 - a plain loop costs half of all() with a generator
            if not requirement.matches(found):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements and not self.matches_nothing

    def with_requirements(self, requirements: Iterable[LabelRequirement]) -> LabelSelector:
        """A selector that demands these as well; nothing stays nothing."""
        if self.matches_nothing:
            return self
        return LabelSelector((*self.requirements, *requirements))

    def required_value(self, key: str) -> str | None:
        """The one value that ``key`` must have, if its first requirement says so; lets lists use an index."""
        for requirement in self.requirements:
            if requirement.key == key:
                exact = requirement.operator in _POSITIVE and len(requirement.values) == 1
                return requirement.values[0] if exact else None
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "LabelSelector.nothing()" if self.matches_nothing else f"LabelSelector.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.matches_nothing == other.matches_nothing and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash((self.matches_nothing, self.requirements))


_NO_LABELS: Final[Mapping[str, str]] = {}
_EVERYTHING: Final = LabelSelector()
_NOTHING: Final = LabelSelector(matches_nothing=True)


# A workload's selector is asked for at each of its writes and by each of its controllers.
@lru_cache(maxsize=4096)
def _equal_to(labels: tuple[tuple[str, str], ...]) -> LabelSelector:
    return LabelSelector([LabelRequirement.checked(key, Operator.EQUALS, (value,)) for key, value in labels])


def validate_label_selector(selector: Mapping[str, Any] | None, path: str) -> list[Cause]:
    """What the API server complains about in a JSON selector at field ``path``."""
    if selector is None:
        return []
    causes = []
    labels_path = f"{path}.matchLabels"
    for key, value in (selector.get("matchLabels") or {}).items():
        causes += [_invalid(labels_path, key, message) for message in is_qualified_name(key)]
        causes += [_invalid(labels_path, value, message) for message in is_label_value(value)]
    for i, expression in enumerate(selector.get("matchExpressions") or ()):
        causes += _validate_expression(expression, f"{path}.matchExpressions[{i}]")
    return causes


def _validate_expression(expression: Mapping[str, Any], path: str) -> list[Cause]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    causes = []
    if operator in ("In", "NotIn"):
        if not values:
            message = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
            causes.append(Cause("FieldValueRequired", message, f"{path}.values"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            message = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(Cause("FieldValueForbidden", message, f"{path}.values"))
    else:
        causes.append(_invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key", "")
    causes += [_invalid(f"{path}.key", key, message) for message in is_qualified_name(key)]
    for i, value in enumerate(values):
        causes += [_invalid(f"{path}.values[{i}]", value, message) for message in is_label_value(value)]
    return causes


def _invalid(path: str, value: str, message: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {go_quote(value)}: {message}", path)


# The grammar. A token is its kind and its text; identifiers have the kind "id", the end of the text has "".
_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<special>[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+)|$)")
_ID: Final = "id"
_END: Final = ""


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None, "every position of a text starts a token"
        position = match.end()
        if match["word"] is not None:
            found.append((match["word"] if match["word"] in ("in", "notin") else _ID, match["word"]))
        elif match["special"] is not None:
            symbol = match["special"]
            if symbol in "=!" and text.startswith("=", position):
                symbol += "="
                position += 1
            found.append((symbol, symbol))
        else:
            found.append((_END, ""))
            return found


_TOKEN_OPERATORS: Final = {
    "in": Operator.IN, "notin": Operator.NOT_IN, "=": Operator.EQUALS, "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS, ">": Operator.GREATER_THAN, "<": Operator.LESS_THAN,
}  # fmt: skip


class _Parser:
    """Recursive descent over the tokens, complaining with upstream's words."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def _peek(self) -> tuple[str, str]:
        kind, text = self._tokens[min(self._position, len(self._tokens) - 1)]
        # ``in`` and ``notin`` are good keys and values, and words only where an operator stands.
        return (_ID, text) if kind in ("in", "notin") else (kind, text)

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token

    def parse(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while True:
            kind, text = self._peek()
            if kind == _END:
                return found
            if kind not in (_ID, "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._take()
            if kind == _END:
                return found
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in (_ID, "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        kind, key = self._take()
        negated = kind == "!"
        if negated:
            kind, key = self._take()
        if kind != _ID:
            raise SelectorError(f"found '{key}', expected: identifier")
        complaints = is_qualified_name(key)
        if complaints:
            raise SelectorError(f"<nil>: Invalid value: {go_quote(key)}: {'; '.join(complaints)}")
        if negated:
            return LabelRequirement.checked(key, Operator.DOES_NOT_EXIST)
        if self._peek()[0] in (_END, ","):
            return LabelRequirement.checked(key, Operator.EXISTS)
        operator = self._operator()
        values = self._values() if operator in (Operator.IN, Operator.NOT_IN) else {self._exact_value()}
        return LabelRequirement.checked(key, operator, sorted(values))

    def _operator(self) -> Operator:
        kind, text = self._tokens[self._position]
        self._position += 1
        operator = _TOKEN_OPERATORS.get(kind)
        if operator is None:
            expected = ", ".join(known.value for known in _BINARY_OPERATORS)
            raise SelectorError(f"found '{text}', expected: {expected}")
        return operator

    def _exact_value(self) -> str:
        if self._peek()[0] in (_END, ","):
            return ""
        kind, text = self._take()
        if kind != _ID:
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _values(self) -> set[str]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._take()
            return {""}
        if kind not in (_ID, ","):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._value_list()
        self._take()
        return values

    def _value_list(self) -> set[str]:
        """Values up to, and without, the closing bracket; a value may be left out and is then empty."""
        values: set[str] = set()
        while True:
            kind, text = self._take()
            if kind == _ID:
                values.add(text)
                kind, text = self._peek()
                if kind == ")":
                    return values
                if kind != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
            elif kind == ",":
                following = self._peek()[0]
                if not values or following in (",", ")"):
                    values.add("")
                if following == ")":
                    return values
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> LabelSelector:
    requirements = _Parser(text).parse()
    return LabelSelector(requirements) if requirements else _EVERYTHING
