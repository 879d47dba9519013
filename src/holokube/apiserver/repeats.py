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
from holokube.apiserver.spec_patterns import SpecPattern, spec_pattern
from holokube.kube.patch.fieldset import Trie
from holokube.kube.types import JsonObject
from holokube.store.values import Stored, Tally

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
    tally: Tally
    """Of the objects that admission looked at."""
    count: int
    """How much had happened to these."""

    def holds_in(self, registry: Registry, namespace: str) -> bool:
        """Whether the same would come of the same body again."""
        return (
            self.namespace == namespace
            and self.tally.count == self.count
            and self.generation == registry.admission.generation
        )


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
    key: tuple[str, bytes] | None = None
    """Of the spec, where others with the same spec were read before; None otherwise."""
    metadata: JsonObject | None = None

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
        self._spec_patterns: dict[tuple[str, bytes], SpecPattern] = {}

    def _read(
        self, served: Served, kind: Kind, body: JsonObject, options: WriteOptions
    ) -> tuple[JsonObject, list[str], Trie | None, tuple[str, bytes] | None]:
        """A body, decoded and defaulted, with warnings, the fields that are owned if that is known, and the key of the
        spec if that was known.

        The pods of two jobs differ in more than their names, but not in their specs.
        """
        spec = body.get("spec")
        if not kind.status_stands_alone or type(spec) is not dict or not _PLAIN.issuperset(body):
            return *read_body(self._registry, served, body, options), None, None
        key = (options.field_validation, orjson.dumps(spec, option=STRICTLY))
        known = self._specs.get(key)
        if known is not None:
            obj = read_beside(served, kind, body, known.text)
            if obj is not None:
                return obj, [], self._registry.writes.ownership.owned_at_creation(served, obj, known.owned), key
        obj, warnings = read_body(self._registry, served, body, options)
        owned = self._registry.writes.ownership.owned_at_creation(served, obj, None)
        if not warnings and (owned is not None or not self._registry.tracks_managed_fields):
            _keep(self._specs, key, SpecReading(orjson.dumps(obj["spec"]), owned and owned.get(_SPEC)))
        return obj, warnings, owned, None

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
            obj, warnings, owned, of_spec = self._read(served, kind, body, options)
            if warnings or "managedFields" in obj["metadata"]:
                return None
            if of_spec is not None and (seen := hash(key)) not in self._seen:
                _keep(self._seen, seen, None)
                return Reading(b"", owned, obj, None, of_spec, orjson.loads(orjson.dumps(body["metadata"])))
            found = _keep(self._readings, key, Reading(orjson.dumps(obj), owned, obj))
        return found

    def known(self, body: Any, namespace: str, options: WriteOptions) -> Reading | SpecPattern | None:
        """What there is in a body that was read before, or what has come of others with the same spec; None if it has
        to be read."""
        try:
            key = (options.field_validation, orjson.dumps(body, option=STRICTLY))
        except TypeError:
            return None
        reading = self._readings.get(key)
        if reading is not None:
            return reading
        pattern = self._spec_pattern(body, namespace, options)
        if pattern is not None:
            # What comes a second time is worth to be read, and kept.
            if (seen := hash(key)) in self._seen:
                return None
            _keep(self._seen, seen, None)
        return pattern

    def pattern(self, reading: Reading, namespace: str) -> Pattern | None:
        """What has come of the body, and would come of it again; None if that cannot be said."""
        pattern = reading.pattern
        return pattern if pattern is not None and pattern.holds_in(self._registry, namespace) else None

    def _spec_pattern(self, body: Any, namespace: str, options: WriteOptions) -> SpecPattern | None:
        spec = body.get("spec") if type(body) is dict else None
        if not self._spec_patterns or type(spec) is not dict:
            return None
        found = self._spec_patterns.get((options.field_validation, orjson.dumps(spec, option=STRICTLY)))
        return found if found is not None and found.pattern.holds_in(self._registry, namespace) else None

    def take_pattern(self, reading: Reading, namespace: str, stored: Stored, attributes: Attributes) -> None:
        """An object was created, and nobody had anything to say about it."""
        admission = self._registry.admission
        # Who owns which field depends on the metadata.
        of_spec = None if self._registry.tracks_managed_fields else reading.key
        if of_spec is not None:
            known = self._spec_patterns.get(of_spec)
            if known is not None and known.pattern.holds_in(self._registry, namespace):
                of_spec = None
        # What is not kept is not asked for again.
        looked_at = admission.looked_at(attributes) if reading.text or of_spec is not None else None
        if looked_at is None:
            return
        tally = self._registry.store.tally(looked_at)
        reading.pattern = Pattern(stored.obj, stored.settled, namespace, admission.generation, tally, tally.count)
        if of_spec is not None and reading.metadata is not None and admission.goes_by_spec(attributes):
            kind = self._registry.kind_of(attributes.served)
            made = spec_pattern(reading.pattern, kind, reading.metadata)
            if made is not None:
                _keep(self._spec_patterns, of_spec, made)

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
