"""Changes to a scenario before it is understood: whole variants, and single values by their path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

import yaml

from holokube.kube.yaml_text import YamlError, load_documents
from holokube.lab.scenario.document import Document, Marked, of_plain
from holokube.lab.scenario.errors import Mark, Problem, ScenarioError, choose_among

_STEP: Final = re.compile(r"""\.?([^.\[\]]+)|\[(\d+)\]|\["([^"]+)"\]|\['([^']+)'\]|\[([^\]"']+)\]""")
_NAME: Final = "name"

Step = str | int


def merge_variant(base: Document, variant: Document) -> Document:
    """The base with what the variant says differently.

    Mappings are merged field by field, and lists whose parts all have names part by part; anything else is replaced.
    A field without a value takes the base's away.
    """
    root = _merged(base.root, variant.root)
    return Document(root, _written(root, f"{_file(base)} with {_file(variant)}"), base.path)


def _file(document: Document) -> str:
    # Not its folder: results are the same wherever they come from, and reports are shared.
    return PurePath(document.path).name


def _merged(base: Marked, variant: Marked) -> Marked:
    if isinstance(base.value, dict) and isinstance(variant.value, dict):
        parts = dict(base.value)
        marks = dict(base.key_marks)
        for name, part in variant.value.items():
            if part.value is None:
                parts.pop(name, None)
                continue
            parts[name] = _merged(parts[name], part) if name in parts else part
            marks[name] = variant.key_marks[name]
        return Marked(parts, variant.mark, key_marks=marks)
    if isinstance(base.value, list) and isinstance(variant.value, list):
        ours, theirs = _by_name(base.value), _by_name(variant.value)
        if ours is not None and theirs is not None:
            for name, part in theirs.items():
                ours[name] = _merged(ours[name], part) if name in ours else part
            return Marked(list(ours.values()), variant.mark)
    return variant


def _by_name(parts: list[Marked]) -> dict[str, Marked] | None:
    """The parts of a list by their names; None if some have none, or two have the same."""
    found: dict[str, Marked] = {}
    for part in parts:
        name = part.value.get(_NAME) if isinstance(part.value, dict) else None
        if name is None or not isinstance(name.value, str) or name.value in found:
            return None
        found[name.value] = part
    return found


def apply_overrides(document: Document, overrides: Mapping[str, Any]) -> Document:
    """The document with single values changed: ``{"spec.workloads[0].curve.high": 40}``.

    A step of a path is a field, a place in a list, or the name of a part of a list: ``spec.workloads[web].copies``.
    Names with dots are quoted: ``labels["app.kubernetes.io/name"]``. None takes a field away.
    """
    problems: list[Problem] = []
    root = document.root
    for path, value in overrides.items():
        mark = Mark(f"--set {path}")
        try:
            root = _replaced(root, parse_path(path), of_plain(value, mark), mark, "")
        except _PathError as error:
            problems.append(Problem(mark, error.path, error.what, error.remedy))
    if problems:
        raise ScenarioError(problems)
    if not overrides:
        return document
    told = ", ".join(f"{path}={value}" for path, value in overrides.items())
    return Document(root, _written(root, f"{_file(document)} with {told}"), document.path)


def split_override(text: str) -> tuple[str, str]:
    """Path and value of ``PATH=VALUE``, the value as it is written. ScenarioError if it is none."""
    path, equals, value = _split(text)
    if not equals or not path:
        mark = Mark(f"--set {text}")
        raise ScenarioError([Problem(mark, "", "is not of the form PATH=VALUE", "Write --set spec.duration=1h.")])
    return path, value


def parse_override(text: str) -> tuple[str, Any]:
    """``PATH=VALUE`` as a command line has it; the value is read as YAML. ScenarioError if it is none."""
    path, value = split_override(text)
    mark = Mark(f"--set {text}")
    try:
        documents = load_documents(value.encode())
    except YamlError as error:
        why = " ".join(str(error).split())
        raise ScenarioError([Problem(mark, path, f"{value!r} is no value: {why}", "Quote it as YAML does.")]) from error
    return path, documents[0] if documents else None


def _split(text: str) -> tuple[str, str, str]:
    """At the first equals sign that is not inside brackets."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth == 0:
            return text[:place], "=", text[place + 1 :]
    return text, "", ""


class _PathError(Exception):
    def __init__(self, path: str, what: str, remedy: str) -> None:
        super().__init__(what)
        self.path = path
        self.what = what
        self.remedy = remedy


def parse_path(path: str) -> list[Step]:
    """The steps of a path."""
    steps: list[Step] = []
    place = 0
    while place < len(path):
        match = _STEP.match(path, place)
        if match is None or (place == 0 and path.startswith(".")):
            remedy = "Write one such as spec.workloads[0].curve.high."
            raise _PathError("", f"{path!r} is no path: {path[place:]!r} is not understood", remedy)
        field, index, *names = match.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(next(filter(None, (field, *names))))
        place = match.end()
    if not steps:
        raise _PathError("", "the path is empty", "Write one such as spec.duration.")
    return steps


def _replaced(given: Marked, steps: list[Step], value: Marked, mark: Mark, path: str) -> Marked:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(given.value, list):
        place = _place(given.value, step, path)
        parts = list(given.value)
        parts[place] = _replaced(parts[place], rest, value, mark, f"{path}[{place}]")
        return Marked(parts, given.mark)
    here = f"{path}.{step}" if path else str(step)
    if not isinstance(given.value, dict):
        raise _PathError(here, f"there is nothing below {path or 'the file'}: it is {given.kind}", "Shorten the path.")
    if isinstance(step, int):
        raise _PathError(f"{path}[{step}]", f"{path} is a mapping, not a list", "Name a field instead of a place.")
    fields = dict(given.value)
    if value.value is None and not rest:
        fields.pop(step, None)
    else:
        # A field that is not there yet may be meant; whether it is known is told when the whole is read.
        inside = fields.get(step) or Marked({}, mark)
        fields[step] = _replaced(inside, rest, value, mark, here)
    return Marked(fields, given.mark, key_marks={**given.key_marks, step: given.key_marks.get(step, mark)})


def _place(parts: list[Marked], step: Step, path: str) -> int:
    if isinstance(step, int):
        if step < len(parts):
            return step
        last = f"Places go from 0 to {len(parts) - 1}." if parts else "The list is empty."
        raise _PathError(f"{path}[{step}]", f"{path} has no part {step}", last)
    names = {
        name.value: place
        for place, part in enumerate(parts)
        if isinstance(part.value, dict) and (name := part.value.get(_NAME)) is not None and isinstance(name.value, str)
    }
    if step not in names:
        remedy = choose_among(step, names) if names else f"Name a place, such as {path}[0]."
        raise _PathError(f"{path}[{step}]", f"no part of {path} has the name {step!r}", remedy)
    return names[step]


def _written(root: Marked, what: str) -> str:
    """The changed scenario as text, so that a report alone is enough to run it again."""
    body: str = yaml.safe_dump(root.plain, sort_keys=False, width=110, allow_unicode=True)
    return f"# {what}\n{body}"
