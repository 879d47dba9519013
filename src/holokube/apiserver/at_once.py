"""Writes that are made many times a second in one process, by the shortest way: as plain calls.

Each does what its coroutine does, where nothing has to be waited for: no webhook, no disk. Where that is not so, and
where something is out of the ordinary, it answers None or False, and the ordinary way is to be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Caller
from holokube.apiserver.job_patterns import JobPatterns
from holokube.apiserver.metadata import NAME_ATTEMPTS, generated_name
from holokube.apiserver.metadata_writes import MetadataWrites
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.repeats import Pattern, Repeats
from holokube.apiserver.resources import Served
from holokube.apiserver.spec_patterns import SpecPattern
from holokube.apiserver.status_writes import StatusWrites
from holokube.base.errors import KeyExists
from holokube.kube import timeformat
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry



class AtOnce:
    """What repeats, made at once."""

    def __init__(
        self, registry: Registry, repeats: Repeats, job_patterns: JobPatterns, status_writes: StatusWrites,
        metadata_writes: MetadataWrites,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._repeats = repeats
        self._job_patterns = job_patterns
        self.patch_status = status_writes.patch_at_once
        self.replace_status = status_writes.replace_at_once
        self.patch_metadata = metadata_writes.patch_at_once

    def create(
        self, served: Served, namespace: str, body: Any, options: WriteOptions, caller: Caller
    ) -> Stored | None:
        """Create one more of what came of a body, with a name and an identity of its own."""
        registry, store = self._registry, self._registry.store
        kind = registry.kind_of(served)
        if not store.is_durable_at_once or options.dry_run:
            return None
        if not kind.is_made_in_numbers:
            return self._job_patterns.create(served, namespace, body, options) if kind.follows_job_patterns else None
        known = self._repeats.known(body, namespace, options)
        if isinstance(known, SpecPattern):
            return self._create_by_spec(served, namespace, body, known)
        pattern = None if known is None else self._repeats.pattern(known, namespace)
        if pattern is None:
            return None
        meta: JsonObject = pattern.obj["metadata"].copy()
        meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
        meta["uid"] = registry.rng.uid()
        meta["creationTimestamp"] = timeformat.format_time(registry.clock.now())
        ownership = registry.writes.ownership
        obj = ownership.after_create(served, {**pattern.obj, "metadata": meta}, options, caller, known)
        return self._store_new(served, obj, pattern)

    def _create_by_spec(
        self, served: Served, namespace: str, body: JsonObject, found: SpecPattern
    ) -> Stored | None:
        """Create an object after the pattern of others with the same spec."""
        registry = self._registry
        meta = found.metadata_for(registry.kind_of(served), namespace, body)
        if meta is None:
            return None
        # Nothing has been drawn before it is sure that it will be used.
        meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
        meta["uid"] = registry.rng.uid()
        meta["creationTimestamp"] = timeformat.format_time(registry.clock.now())
        return self._store_new(served, {**found.pattern.obj, "metadata": meta}, found.pattern)

    def _store_new(self, served: Served, obj: JsonObject, pattern: Pattern) -> Stored | None:
        registry, meta = self._registry, obj["metadata"]
        for _ in range(NAME_ATTEMPTS):
            name = meta["name"]
            key = f"{pattern.namespace}/{name}" if served.namespaced else name
            try:
                stored = registry.store.create(served.bucket, key, obj, owned=True)
            except KeyExists:
                meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
                continue
            stored.checked, stored.settled = True, pattern.settled
            return stored if served.shows_stored else conversion.to_served(served, stored)
        return None
