"""Field selectors such as ``spec.nodeName=x,status.phase!=Running``.

Which fields a resource offers is the API server's business; here a field is a name, and its value is asked
from the caller. A field that is not there reads as the empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from holokube.kube.selector_errors import SelectorError

FieldOperator = Literal["=", "!="]

_TERM = re.compile(r"(?:[^\\,]|\\.|\\\Z)*", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")
_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)
_MUST_ESCAPE = re.compile(r"[\\,=]")


class FieldRequirement(NamedTuple):
    """One condition on one field."""

    field: str
    operator: FieldOperator
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape_value(self.value)}"


def escape_value(value: str) -> str:
    """A literal value made fit for a field selector text."""
    return _MUST_ESCAPE.sub(lambda match: f"\\{match[0]}", value)


def unescape_value(text: str) -> str:
    """The literal value in a field selector text."""
    if not _MUST_ESCAPE.search(text):
        return text

    def literal(match: re.Match[str]) -> str:
        if match[2] is not None:
            # Upstream prints the code of the character here, not the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(match[2])}")
        if match[1] not in ("\\", ",", "="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: {match[0]}")
        return str(match[1])

    return _ESCAPED.sub(literal, text)


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions that all must hold, in upstream's order. Empty matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    @staticmethod
    def everything() -> FieldSelector:
        """The empty selector."""
        return _EVERYTHING

    @staticmethod
    def parse(text: str) -> FieldSelector:
        """The selector in ``text``; ``=`` and ``==`` are the same. :class:`SelectorError` if it is none."""
        return _parse_cached(text)

    def matches(self, get_field: Callable[[str], str | None]) -> bool:
        """Whether all conditions hold, given a way to read a field; None reads as the empty text."""
        for field, operator, value in self.requirements:
            if ((get_field(field) or "") == value) is not (operator == "="):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    def required_value(self, field: str) -> str | None:
        """The one value that ``field`` must have, if there is one; lets lists use an index."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None

    def transformed(self, convert: Callable[[str, str], tuple[str, str]]) -> FieldSelector:
        """Fields and values renamed; a pair of two empty texts is dropped. ``convert`` may raise."""
        kept = []
        for requirement in self.requirements:
            field, value = convert(requirement.field, requirement.value)
            if field or value:
                kept.append(FieldRequirement(field, requirement.operator, value))
        return FieldSelector(tuple(kept))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_EVERYTHING: Final = FieldSelector()


def _terms(text: str) -> list[str]:
    terms = []
    position = 0
    while True:
        match = _TERM.match(text, position)
        assert match is not None, "the pattern matches the empty text"
        terms.append(match[0])
        position = match.end() + 1
        if position > len(text):
            return terms


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> FieldSelector:
    found = []
    for term in sorted(_terms(text)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        value = unescape_value(term[operator.end() :])
        field = term[: operator.start()]
        # Upstream drops a term that says nothing, such as a lone ``=``.
        if field or value:
            found.append(FieldRequirement(field, "!=" if operator[0] == "!=" else "=", value))
    return FieldSelector(tuple(found)) if found else _EVERYTHING
