"""Reads dataclasses from mappings: the fields of a scenario file are those of its types.

A field that a file may have is annotated with the :class:`Value` it holds::

    every_s: Annotated[float, Duration(above_zero=True)] = 300.0

Its name in files is ``every``: without the unit, and in camel case. What a type wants to say about several fields at
once, it says in ``mistakes``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any, ClassVar, Final, Protocol, get_type_hints, runtime_checkable

from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Told, Wrong, choose_among
from holokube.lab.scenario.values import Choice, Reading, Value, mapping_of

_UNIT: Final = "_s"
KIND_FIELD: Final = "kind"


@runtime_checkable
class Checked(Protocol):
    """A type with rules of its own."""

    def mistakes(self) -> Iterator[Wrong]:
        """What is wrong though every field by itself is right."""
        ...


@dataclass(frozen=True, slots=True)
class Called:
    """The name of a field in files, where it is not the attribute's."""

    name: str


@dataclass(frozen=True, slots=True)
class FileField:
    """A field as files have it."""

    name: str
    attribute: str
    value: Value
    default: Any
    """``dataclasses.MISSING`` if it must be there."""

    @property
    def required(self) -> bool:
        """Whether it must be there."""
        return self.default is MISSING


@cache
def file_fields(cls: type) -> tuple[FileField, ...]:
    """The fields of a dataclass that a file may have, in order."""
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for one in dataclasses.fields(cls):
        notes = getattr(hints[one.name], "__metadata__", ())
        value = next((note for note in notes if isinstance(note, Value)), None)
        if value is None:
            continue
        name = next((note.name for note in notes if isinstance(note, Called)), _camel(one.name))
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        found.append(FileField(name, one.name, value, default))
    return tuple(found)


def _camel(attribute: str) -> str:
    first, *others = attribute.removesuffix(_UNIT).split("_")
    return first + "".join(word.capitalize() for word in others)


def read_attributes(cls: type, given: Marked, path: str, reading: Reading, others: tuple[str, ...] = ()) -> Any:
    """The arguments of a dataclass; ``others`` are fields that somebody else reads."""
    parts = mapping_of(given, f"a {getattr(cls, 'noun', 'mapping')}")
    known = {one.name: one for one in file_fields(cls)}
    failed = False
    for name in parts:
        if name not in known and name not in others:
            remedy = choose_among(name, (set(known) | set(others)) - set(parts))
            reading.problem(given.key_marks[name], below(path, name), "there is no such field", remedy)
            failed = True
    found: dict[str, Any] = {}
    for name, one in known.items():
        part = parts.get(name)
        # Nothing after the colon is the same as no field at all, as in Kubernetes.
        if part is None or part.value is None:
            if one.required:
                what = "is missing" if part is None else "has no value"
                mark = given.mark if part is None else given.key_marks[name]
                reading.problem(mark, below(path, name), what, f"Add `{name}: {one.value.example}`.")
                failed = True
            continue
        try:
            found[one.attribute] = reading.attempt(one.value, part, below(path, name))
        except Told:
            failed = True
    if failed:
        raise Told
    return found


def tell_mistakes(built: object, given: Marked, path: str, reading: Reading) -> None:
    """Puts what a type finds wrong with itself on the list, at the fields it names; Told if there is anything."""
    if not isinstance(built, Checked):
        return
    failed = False
    for wrong in built.mistakes():
        where = below(path, wrong.field) if wrong.field else path
        reading.problem(given.at(wrong.field), where, wrong.what, wrong.remedy)
        failed = True
    if failed:
        raise Told


def below(path: str, name: str) -> str:
    """The path of a field of a value."""
    return f"{path}.{name}" if path else name


@dataclass(frozen=True)
class Shape(Value):
    """A mapping with the fields of a dataclass."""

    example: ClassVar[str] = "{...}"
    cls: type

    def read(self, given: Marked, path: str, reading: Reading) -> Any:
        built = self.cls(**read_attributes(self.cls, given, path, reading))
        tell_mistakes(built, given, path, reading)
        return built

    def shown(self, value: Any) -> str:  # noqa: ARG002 - part of the protocol
        return ""

    @property
    def describes(self) -> str:
        return f"[{self.cls.__name__}](#{anchor(self.cls)})"


@dataclass(frozen=True)
class Tagged(Value):
    """A mapping whose field ``kind`` says which dataclass it is."""

    example: ClassVar[str] = "{kind: ..., ...}"
    classes: Mapping[str, type]

    def read(self, given: Marked, path: str, reading: Reading) -> Any:
        cls = self.class_of(given, path, reading)
        built = cls(**read_attributes(cls, given, path, reading, (KIND_FIELD,)))
        tell_mistakes(built, given, path, reading)
        return built

    def class_of(self, given: Marked, path: str, reading: Reading) -> type:
        """Which dataclass it is."""
        kinds = tuple(self.classes)
        parts = mapping_of(given, f"a mapping with kind {', '.join(kinds)}")
        kind = parts.get(KIND_FIELD)
        if kind is None:
            near = next((name for name in parts if name in self.classes), "")
            remedy = f"Add `kind: {near or kinds[0]}`; kinds are {', '.join(kinds)}."
            reading.problem(given.mark, below(path, KIND_FIELD), "is missing", remedy)
            raise Told
        return self.classes[reading.attempt(Choice(words=kinds), kind, below(path, KIND_FIELD))]

    def shown(self, value: Any) -> str:  # noqa: ARG002 - part of the protocol
        return ""

    @property
    def describes(self) -> str:
        return "one of " + ", ".join(f"[{kind}](#{anchor(cls)})" for kind, cls in self.classes.items())


def anchor(cls: type) -> str:
    """Where the reference tells of a type."""
    return cls.__name__.lower()
