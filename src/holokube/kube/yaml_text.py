"""YAML as Kubernetes reads it: dates stay strings, and aliases may not blow up."""

from __future__ import annotations

import json
from typing import Any

import orjson
import yaml

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
