"""What is known of objects that are made again and again, word for word: the pods of one template.

What decoding and defaulting make of a body, which of its fields its creator owns, and whether a spec is valid, all
depend on the text alone, so that it is worked out for the first and taken over for the others. Texts are compared, not
identities: a body may be changed by its owner and sent again. Pods of one template share their spec from then on, as
objects in the store are never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import orjson

from holokube.apiserver.admission.base import Attributes
from holokube.apiserver.bodies import read_beside, read_body
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.kube.patch.fieldset import Trie
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

K = TypeVar("K")
V = TypeVar("V")

KEPT: Final = 1024
_PLAIN: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_SPEC: Final = "f:spec"
# What is no JSON must not be taken for the JSON that it would be written as.
STRICTLY: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """An object that was created with a generated name: what comes of the same body as long as nothing changes that had
    a part in it. Its parts are shared, and not to be changed."""

    obj: JsonObject
    settled: bool
    namespace: str
    """In which it was to be created."""
    generation: int
    """Of the admission chain."""
    buckets: tuple[str, ...]
    """Of the objects that admission looked at."""
    revisions: list[int]
    """Of the last changes to each of these."""


@dataclass(slots=True)
class Reading:
    """A body, decoded and defaulted."""

    text: bytes
    """Empty if nobody will ask for a second copy."""
    owned: Trie | None
    """The fields that whoever creates it comes to own; None as long as that is not known."""
    _first: JsonObject | None
    pattern: Pattern | None = None
    """What became of the body when it was used last."""

    def copy(self) -> JsonObject:
        """The object, to be changed at will."""
        obj: JsonObject | None = self._first
        if obj is None:
            obj = orjson.loads(self.text)
            assert obj is not None
        self._first = None
        return obj


class SpecReading(NamedTuple):
    """A spec, decoded and defaulted."""

    text: bytes
    owned: Trie | None
    """Its fields, as whoever creates it comes to own them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An object that was found valid; its parts are shared, and not to be changed."""

    spec: JsonObject
    status: JsonObject
    warnings: tuple[str, ...]
    settled: bool
    """Whether defaulting would leave the spec as it is; admission may have left something to do."""


class Repeats:
    """Remembers a bounded number of texts; which ones are worth it, the kind says."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._readings: dict[tuple[str, bytes], Reading] = {}
        self._seen: dict[int, None] = {}
        """Hashes of texts whose spec was known, but not the rest. Few of these come a second time."""
        self._specs: dict[tuple[str, bytes], SpecReading] = {}
        self._prepared: dict[bytes, Prepared] = {}

    def _read(
        self, served: Served, kind: Kind, body: JsonObject, options: WriteOptions
    ) -> tuple[JsonObject, list[str], Trie | None, bool]:
        """A body, decoded and defaulted, with warnings, the fields that are owned if that is known, and whether the
        spec was known.

        The pods of two jobs differ in more than their names, but not in their specs.
        """
        spec = body.get("spec")
        if not kind.status_stands_alone or type(spec) is not dict or not _PLAIN.issuperset(body):
            return *read_body(self._registry, served, body, options), None, False
        key = (options.field_validation, orjson.dumps(spec, option=STRICTLY))
        known = self._specs.get(key)
        if known is not None:
            obj = read_beside(served, kind, body, known.text)
            if obj is not None:
                return obj, [], self._registry.writes.ownership.owned_at_creation(served, obj, known.owned), True
        obj, warnings = read_body(self._registry, served, body, options)
        owned = self._registry.writes.ownership.owned_at_creation(served, obj, None)
        if not warnings and (owned is not None or not self._registry.tracks_managed_fields):
            _keep(self._specs, key, SpecReading(orjson.dumps(obj["spec"]), owned and owned.get(_SPEC)))
        return obj, warnings, owned, False

    def reading(self, served: Served, kind: Kind, body: Any, options: WriteOptions) -> Reading | None:
        """What there is in a body; None if it has to be read by itself."""
        if not kind.is_made_in_numbers or type(body) is not dict:
            return None
        try:
            key = (options.field_validation, orjson.dumps(body, option=STRICTLY))
        except TypeError:
            return None
        found = self._readings.get(key)
        if found is None:
            obj, warnings, owned, is_known = self._read(served, kind, body, options)
            if warnings or "managedFields" in obj["metadata"]:
                return None
            if is_known and (seen := hash(key)) not in self._seen:
                _keep(self._seen, seen, None)
                return Reading(b"", owned, obj)
            found = _keep(self._readings, key, Reading(orjson.dumps(obj), owned, obj))
        return found

    def pattern(self, reading: Reading, namespace: str) -> Pattern | None:
        """What has come of the body, and would come of it again; None if that cannot be said."""
        pattern = reading.pattern
        if pattern is None or pattern.namespace != namespace:
            return None
        changed_at = self._registry.store.changed_at
        if pattern.generation != self._registry.admission.generation:
            return None
        return pattern if [changed_at(bucket) for bucket in pattern.buckets] == pattern.revisions else None

    def take_pattern(self, reading: Reading, namespace: str, stored: Stored, attributes: Attributes) -> None:
        """An object was created, and nobody had anything to say about it."""
        looked_at = self._registry.admission.looked_at(attributes)
        # What is not kept is not asked for again.
        if looked_at is None or not reading.text:
            return
        buckets = tuple(sorted(looked_at))
        revisions = [self._registry.store.changed_at(bucket) for bucket in buckets]
        reading.pattern = Pattern(
            stored.obj, stored.settled, namespace, self._registry.admission.generation, buckets, revisions
        )

    def prepared(self, key: bytes | None) -> Prepared | None:
        """What became of an object of the same text; the key is the kind's ``repeat_key``."""
        return self._prepared.get(key) if key is not None else None

    def remember(self, kind: Kind, key: bytes | None, obj: JsonObject, warnings: list[str]) -> Prepared | None:
        """An object was found valid."""
        if key is None:
            return None
        again: JsonObject = orjson.loads(orjson.dumps(obj))
        kind.default(again)
        settled = orjson.dumps(again["spec"]) == orjson.dumps(obj["spec"])
        return _keep(self._prepared, key, Prepared(obj["spec"], obj["status"], tuple(warnings), settled))


def _keep(kept: dict[K, V], key: K, value: V) -> V:
    if len(kept) >= KEPT:
        kept.clear()
    kept[key] = value
    return value
