"""YAML as Kubernetes reads and writes it: dates stay strings, aliases may not blow up, and Go reads what is written.

PyYAML alone would write ``1e3`` and ``y`` bare, which Go's YAML reader takes for something other than a string.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson
import yaml

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MIN_ALLOWED_VALUES = 1_000_000


class YamlError(ValueError):
    """A text that cannot be read, or that would not fit into JSON."""


class _Loader(_BaseLoader):  # type: ignore[misc]  # the C loader has no type
    """The safe loader without the notion of a date."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for key, resolvers in _BaseLoader.yaml_implicit_resolvers.items()
}


def load_documents(text: bytes) -> list[Any]:
    """The documents of a text as JSON values that share nothing; an empty document is None."""
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
        # Without aliases there cannot be more values than bytes, so that a large honest text is never refused.
        allowed = max(_MIN_ALLOWED_VALUES, len(text))
        if b"&" in text and b"*" in text and _written_out(documents, {}, allowed) > allowed:
            raise YamlError("yaml: document contains excessive aliasing")
        if b".nan" in text.lower() or b".inf" in text.lower():
            # JSON has no word for these; orjson would write null.
            json.dumps(documents, allow_nan=False)
        found: list[Any] = orjson.loads(orjson.dumps(documents))
    except YamlError:
        raise
    except (yaml.YAMLError, orjson.JSONEncodeError, RecursionError, ValueError) as problem:
        raise YamlError(str(problem)) from problem
    return found


def _written_out(value: Any, known: dict[int, int], allowed: int) -> int:
    """How many values there are once every alias is written out; a few lines of aliases can stand for billions."""
    if not isinstance(value, dict | list):
        return 1
    counted = known.get(id(value))
    if counted is None:
        # An alias to what it stands in has no end; so large a count that nobody gets past it.
        known[id(value)] = allowed + 1
        parts = value.values() if isinstance(value, dict) else value
        counted = known[id(value)] = 1 + sum(_written_out(part, known, allowed) for part in parts)
    return counted


def compose_documents(text: bytes) -> list[Any]:
    """The documents as nodes that know their lines."""
    return list(yaml.compose_all(text, Loader=_BaseLoader))


class _Dumper(_BaseDumper):  # type: ignore[misc]  # the C dumper has no type
    """Block style, in the order given, with Go's idea of what is no string."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


for _tag, _pattern, _first in (
    ("float", r"^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$", "-+0123456789"),
    ("int", r"^[-+]?0[oO][0-7_]+$", "-+0"),
    ("bool", r"^(?:y|Y|n|N)$", "yYnN"),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def dump_document(value: Any) -> str:
    """One document, without the line of dashes before it."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False, width=4096
    )
    return text
