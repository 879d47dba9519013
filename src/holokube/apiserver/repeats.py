"""What is known of objects that are made again and again, word for word: the pods of one template.

What decoding and defaulting make of a body, which of its fields its creator owns, and whether a spec is valid, all
depend on the text alone, so that it is worked out for the first and taken over for the others. Texts are compared, not
identities: a body may be changed by its owner and sent again. Pods of one template share their spec from then on, as
objects in the store are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from holokube.apiserver.bodies import read_body
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.kube.patch.fieldset import Trie
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

K = TypeVar("K")
V = TypeVar("V")

KEPT: Final = 1024
# What is no JSON must not be taken for the JSON that it would be written as.
_STRICTLY: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)


@dataclass(slots=True)
class Reading:
    """A body, decoded and defaulted."""

    text: bytes
    owned: Trie | None = None
    """The fields that whoever creates it comes to own; None as long as that is not known."""

    def copy(self) -> JsonObject:
        """The object, to be changed at will."""
        obj: JsonObject = orjson.loads(self.text)
        return obj


@dataclass(frozen=True, slots=True)
class Prepared:
    """An object that was found valid; its parts are shared, and not to be changed."""

    spec: JsonObject
    status: JsonObject
    warnings: tuple[str, ...]


class Repeats:
    """Remembers a bounded number of texts; which ones are worth it, the kind says."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._readings: dict[tuple[str, bytes], Reading] = {}
        self._prepared: dict[bytes, Prepared] = {}

    def reading(self, served: Served, kind: Kind, body: Any, options: WriteOptions) -> Reading | None:
        """What there is in a body; None if it has to be read by itself."""
        if not kind.is_made_in_numbers or type(body) is not dict:
            return None
        try:
            key = (options.field_validation, orjson.dumps(body, option=_STRICTLY))
        except TypeError:
            return None
        found = self._readings.get(key)
        if found is None:
            obj, warnings = read_body(self._registry, served, body, options)
            if warnings or "managedFields" in obj["metadata"]:
                return None
            found = _keep(self._readings, key, Reading(orjson.dumps(obj)))
        return found

    def prepared(self, key: bytes | None) -> Prepared | None:
        """What became of an object of the same text; the key is the kind's ``repeat_key``."""
        return self._prepared.get(key) if key is not None else None

    def remember(self, key: bytes | None, obj: JsonObject, warnings: list[str]) -> None:
        """An object was found valid."""
        if key is not None:
            _keep(self._prepared, key, Prepared(obj["spec"], obj["status"], tuple(warnings)))


def _keep(kept: dict[K, V], key: K, value: V) -> V:
    if len(kept) >= KEPT:
        kept.clear()
    kept[key] = value
    return value
