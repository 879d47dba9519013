"""Short descriptions of types and fields, in our own words: what ``kubectl explain`` shows.

The data files hold one API package each, as the schemas do: for each type, its own description under the
empty key and those of its fields. What they leave out follows from rules (every condition has a reason), or
from the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import orjson

_ANYWHERE = {
    "apiVersion": "Group and version of this object, such as apps/v1.",
    "kind": "Kind of this object, such as Deployment.",
    "metadata": "Name, labels, owners and the like.",
    "fsType": "File system of the volume, such as ext4.",
    "readOnly": "Mount it read only.",
    "secretRef": "Secret with what is needed to log in.",
}
_OF_LISTS = {
    "metadata": "Revision of the list, and how to get the next page.",
    "items": "The objects.",
}
_OF_CONDITIONS = {
    "type": "Type of the condition, which is its name.",
    "status": "True, False or Unknown.",
    "reason": "Why it is so, in one word.",
    "message": "Why it is so, for people.",
    "lastTransitionTime": "When the status changed last.",
    "lastProbeTime": "When it was checked last.",
    "lastUpdateTime": "When the condition was updated last.",
    "observedGeneration": "Generation of the object that the condition is about.",
}
# ``podCIDRs`` is "pod CIDRs", ``targetWWNs`` is "target WWNs": an acronym and its plural stay in one piece.
_WORD = re.compile(r"[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@cache
def _package(package: str) -> Mapping[str, Mapping[str, str]]:
    path = resources.files(__name__).joinpath(f"{package}.json")
    found: Mapping[str, Mapping[str, str]] = orjson.loads(path.read_bytes()) if path.is_file() else {}
    return found


def describe_type(name: str) -> str:
    """What a type is, such as ``io.k8s.api.core.v1.Pod``."""
    package, _, kind = name.rpartition(".")
    known = _package(package).get(kind)
    if known is not None:
        return known[""]
    if kind.endswith("List"):
        return f"Objects of kind {kind.removesuffix('List')}, with the revision they were read at."
    if kind.endswith("Condition"):
        return f"A fact about one {kind.removesuffix('Condition')}."
    return f"{_sentence(kind)}."


def describe_field(owner: str, field: str, source: Mapping[str, Any]) -> str:
    """What a field of a type is; ``source`` is the field's schema."""
    package, _, kind = owner.rpartition(".")
    known = _package(package).get(kind, {}).get(field)
    if known is not None:
        return known
    if kind.endswith("List") and field in _OF_LISTS:
        return _OF_LISTS[field]
    if kind.endswith("Condition") and field in _OF_CONDITIONS:
        return _OF_CONDITIONS[field]
    return _ANYWHERE.get(field) or _from_name(field, source)


def _from_name(field: str, source: Mapping[str, Any]) -> str:
    """The best that name and type alone can tell."""
    words = _words(field)
    kind = source.get("type")
    if kind == "boolean":
        return f"Whether {words} is on."
    if words.endswith(" seconds"):
        return f"{_capital(words.removesuffix(' seconds'))}, in seconds."
    if kind == "array":
        return f"List of {words}."
    if "additionalProperties" in source:
        return f"{_capital(words)}, by key."
    if kind == "integer":
        return f"{_capital(words)}, a whole number."
    return f"{_capital(words)}."


def _words(name: str) -> str:
    parts = _WORD.findall(name) or [name]
    return " ".join(part if part[1:2].isupper() else part.lower() for part in parts)


def _sentence(name: str) -> str:
    return _capital(_words(name))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
