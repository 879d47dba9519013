"""YAML in which every value knows where it stands, before anybody asks what it means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError, SafeConstructor

from holokube.kube.yaml_text import YamlError, compose_documents, load_documents
from holokube.lab.scenario.errors import Mark, Problem, ScenarioError

Plain = str | int | float | bool | None
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_TEXTS: Final = (f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value")
_SCALARS: Final = tuple(f"{_TAG}{name}" for name in ("null", "bool", "int", "float"))
_SIXTIES: Final = (f"{_TAG}int", f"{_TAG}float")
_STEP: Final = re.compile(r"[^.\[\]]+")
_AT_LINE: Final = re.compile(r"line (\d+), column (\d+)")


@dataclass(frozen=True, slots=True)
class Marked:
    """A value and its place. Mappings and lists hold further ones."""

    value: dict[str, Marked] | list[Marked] | Plain
    mark: Mark
    raw: str = ""
    """A scalar as it was written."""
    key_marks: Mapping[str, Mark] = field(default_factory=dict)
    """Where the names of a mapping's fields stand."""

    @property
    def plain(self) -> Any:
        """The value without places, as JSON has it."""
        if isinstance(self.value, dict):
            return {key: part.plain for key, part in self.value.items()}
        if isinstance(self.value, list):
            return [part.plain for part in self.value]
        return self.value

    def at(self, path: str) -> Mark:
        """Where something below stands, such as ``points[2].at``; as near as can be told."""
        found = self
        for step in _STEP.findall(path):
            value = found.value
            if isinstance(value, dict) and step in value:
                found = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                found = value[int(step)]
            else:
                break
        return found.mark

    @property
    def kind(self) -> str:
        """What the value is, in words."""
        match self.value:
            case dict():
                return "a mapping"
            case list():
                return "a list"
            case None:
                return "nothing"
            case bool():
                return f"{self.raw or str(self.value).lower()}, which is true or false"
            case int() | float():
                return f"the number {self.raw or self.value}"
            case _:
                return f"the text {self.value!r}"


@dataclass(frozen=True, slots=True)
class Document:
    """A scenario file as it was written."""

    root: Marked
    text: str
    path: str


def read_document(path: Path) -> Document:
    """Reads a file; ScenarioError if there is not one YAML mapping in it."""
    source = str(path)
    try:
        data = path.read_bytes()
        text = data.decode()
    except OSError as error:
        raise _whole(source, f"cannot be read: {error.strerror}", "Check the name of the file.") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ScenarioError(
            [Problem(Mark(source, line, 1), "", "is not text in UTF-8", "Save it in that encoding.")]
        ) from error
    return parse_document(text, source)


def parse_document(text: str, source: str) -> Document:
    """Reads a text; ``source`` is named in errors, and paths in it are relative to its folder."""
    data = text.encode()
    try:
        # The guards against texts that are small and yet without end are in there.
        load_documents(data)
        roots = [node for node in compose_documents(data) if node is not None and not _is_null(node)]
    except (YamlError, yaml.YAMLError, RecursionError) as error:
        raise _no_yaml(source, error) from error
    if not roots:
        raise _whole(source, "is empty", "Begin with `apiVersion: holokube.dev/v1alpha1` and `kind: Scenario`.")
    if len(roots) > 1:
        second = roots[1].start_mark
        mark = Mark(source, second.line + 1, second.column + 1)
        remedy = "Keep one per file, and put manifests into files of their own."
        raise ScenarioError([Problem(mark, "", "has a second document where one scenario is expected", remedy)])
    marking = _Marking(source)
    root = marking.marked(roots[0], "")
    if marking.problems:
        raise ScenarioError(marking.problems)
    if not isinstance(root.value, dict):
        problem = Problem(root.mark, "", f"is {root.kind}, not a scenario", "Write fields such as `kind: Scenario`.")
        raise ScenarioError([problem])
    return Document(root, text, source)


def of_plain(value: Any, mark: Mark) -> Marked:
    """A value that came from somewhere else than a file."""
    if isinstance(value, Mapping):
        parts = {str(key): of_plain(part, mark) for key, part in value.items()}
        return Marked(parts, mark, key_marks=dict.fromkeys(parts, mark))
    if isinstance(value, list | tuple):
        return Marked([of_plain(part, mark) for part in value], mark)
    if value is None or isinstance(value, str | int | float | bool):
        return Marked(value, mark, str(value))
    raise TypeError(f"{value!r} is no JSON value")


def _whole(source: str, what: str, remedy: str) -> ScenarioError:
    return ScenarioError([Problem(Mark(source, 1, 1), "", what, remedy)])


def _no_yaml(source: str, error: Exception) -> ScenarioError:
    origin = error.__cause__ if isinstance(error, YamlError) and error.__cause__ is not None else error
    at = getattr(origin, "problem_mark", None) or getattr(origin, "context_mark", None)
    why = getattr(origin, "problem", None) or " ".join(str(origin).split())
    told = _AT_LINE.search(str(origin))
    if at is not None:
        mark = Mark(source, at.line + 1, at.column + 1)
    else:
        mark = Mark(source, int(told[1]), int(told[2])) if told else Mark(source, 1, 1)
    if isinstance(origin, ConstructorError):
        return ScenarioError([Problem(mark, "", f"has a tag that is not known here: {why}", "Leave the tag out.")])
    remedy = "Mind the indentation, use no tabs, and quote texts with colons or braces."
    return ScenarioError([Problem(mark, "", f"is not YAML: {why}", remedy)])


def _is_null(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


class _Marking:
    """Turns the nodes of YAML into values with places."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._scalars = SafeConstructor()
        self.problems: list[Problem] = []

    def _mark(self, node: Any) -> Mark:
        return Mark(self._source, node.start_mark.line + 1, node.start_mark.column + 1)

    def _problem(self, node: Any, path: str, what: str, remedy: str) -> None:
        self.problems.append(Problem(self._mark(node), path, what, remedy))

    def marked(self, node: Any, path: str) -> Marked:
        mark = self._mark(node)
        if isinstance(node, yaml.MappingNode):
            parts: dict[str, Marked] = {}
            marks: dict[str, Mark] = {}
            self._fill(node, path, parts, marks)
            return Marked(parts, mark, key_marks=marks)
        if isinstance(node, yaml.SequenceNode):
            return Marked([self.marked(part, f"{path}[{number}]") for number, part in enumerate(node.value)], mark)
        return Marked(self._scalar(node, path), mark, node.value)

    def _fill(self, node: Any, path: str, parts: dict[str, Marked], marks: dict[str, Mark]) -> None:
        merged: list[Any] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged.append(value)
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._problem(key, path, "has a field whose name is no text", "Names of fields are plain words.")
                continue
            name = key.value
            below = f"{path}.{name}" if path else name
            if name in parts:
                first = marks[name].line
                self._problem(key, below, f"is there twice, first in line {first}", "Keep one of the two.")
                continue
            marks[name] = self._mark(key)
            parts[name] = self.marked(value, below)
        for value in merged:
            for mapping in _mappings(value):
                inherited: dict[str, Marked] = {}
                inherited_marks: dict[str, Mark] = {}
                self._fill(mapping, path, inherited, inherited_marks)
                for name, part in inherited.items():
                    parts.setdefault(name, part)
                    marks.setdefault(name, inherited_marks[name])

    def _scalar(self, node: Any, path: str) -> Plain:
        # Numbers to the base of sixty are gone from YAML; whoever writes 14:30 means a time of day, or a port.
        if node.tag in _TEXTS or (":" in node.value and node.tag in _SIXTIES):
            return str(node.value)
        if node.tag in _SCALARS:
            try:
                found: Plain = self._scalars.construct_object(node)
            except (ConstructorError, ValueError):
                self._problem(node, path, f"{node.value!r} is no value of {node.tag}", "Leave the tag out.")
                return None
            return found
        self._problem(node, path, f"has the tag {node.tag}, which is not known here", "Leave the tag out.")
        return None


def _mappings(node: Any) -> Iterator[Any]:
    """What ``<<`` names: a mapping, or a list of them."""
    if isinstance(node, yaml.MappingNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _mappings(part)
