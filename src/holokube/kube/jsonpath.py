"""The simple JSON paths of CRDs: ``.spec.replicas``, ``.status.conditions[?(@.type=="Ready")].status``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from holokube.kube.types import JsonObject

_TOKEN = re.compile(
    r"""
    \.(?P<name>[\w$\0][\w\-$\0/]*)
    | \['(?P<single>(?:[^'\\]|\\.)*)'\]
    | \["(?P<double>(?:[^"\\]|\\.)*)"\]
    | \[\?\(\s*@(?P<filter_path>(?:\.[\w\-]+)+)\s*(?P<op>==|!=)\s*(?P<filter_value>"[^"]*"|'[^']*'|[\w.\-]+)\s*\)\]
    | \[(?P<index>-?\d+)\]
    | (?P<star>\[\*\]|\.\*)
    """,
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """A path that is not of the simple form."""


Step = Callable[[list[Any]], list[Any]]


@lru_cache(maxsize=1024)
def compile_path(path: str) -> Callable[[Any], list[Any]]:
    """A function that returns all values at ``path``; escaped dots (``\\.``) belong to the name."""
    steps = _steps(path)

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = step(found)
            if not found:
                break
        return found

    return find


def _steps(path: str) -> list[Step]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    # An escaped dot belongs to the name; no name holds a NUL, so that it can stand for one meanwhile.
    protected = text.replace("\\.", "\0")
    steps: list[Step] = []
    position = 0
    while position < len(protected):
        match = _TOKEN.match(protected, position)
        if match is None:
            raise JsonPathError(f"cannot read JSON path {path!r} at {protected[position:]!r}".replace("\0", "."))
        steps.append(_step(match.groupdict()))
        position = match.end()
    return steps


def _step(groups: dict[str, str | None]) -> Step:
    if groups.get("index") is not None:
        index = int(groups["index"] or 0)
        return lambda found: [v[index] for v in found if isinstance(v, list) and -len(v) <= index < len(v)]
    if groups.get("star"):
        return lambda found: [
            item
            for v in found
            for item in (v if isinstance(v, list) else v.values() if isinstance(v, dict) else ())
        ]
    if groups.get("filter_path"):
        return _filter(groups)
    name = groups.get("name") or groups.get("single") or groups.get("double") or ""
    key = name.replace("\0", ".")
    return lambda found: [v[key] for v in found if isinstance(v, dict) and key in v]


def _filter(groups: dict[str, str | None]) -> Step:
    inner = compile_path(groups["filter_path"] or "")
    wanted = (groups["filter_value"] or "").strip("\"'")
    equal = groups["op"] == "=="

    def step(found: list[Any]) -> list[Any]:
        items = [item for v in found if isinstance(v, list) for item in v]
        return [i for i in items if (wanted in [as_text(x) for x in inner(i)]) == equal]

    return step


def as_text(value: Any) -> str:
    """A scalar as Kubernetes prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def simple_path(path: str) -> Callable[[JsonObject], str]:
    """The first value at ``path`` as text, empty if there is none."""
    find = compile_path(path)

    def first(obj: JsonObject) -> str:
        found = find(obj)
        return as_text(found[0]) if found else ""

    return first
