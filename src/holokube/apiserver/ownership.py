"""Keeps ``metadata.managedFields``: which manager set which field."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Caller
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.kube.errors import BadRequest
from holokube.kube.patch import PatchError, PatchTypeError
from holokube.kube.patch.apply import apply
from holokube.kube.patch.fieldset import FieldSet, Trie
from holokube.kube.patch.managed_fields import (
    Entry,
    compare_objects,
    make_entry,
    record_update,
    starting_entries,
    updated_entries,
)
from holokube.kube.schema import Schema
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry
    from holokube.apiserver.repeats import Reading

_MANAGER_MAX_LENGTH = 128
_NOT_AT_CREATION = frozenset({"managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})
_STATUS = FieldSet.from_json({"f:status": {}})
_SPEC = FieldSet.from_json({"f:spec": {}})
_SPEC_AND_METADATA = FieldSet.from_json({"f:spec": {}, "f:metadata": {}})


class Ownership:
    """Records who set what, unless the server was told not to."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def after_create(
        self, served: Served, new: JsonObject, options: WriteOptions, caller: Caller, reading: Reading | None
    ) -> JsonObject:
        """As ``after_write``; what is known of the body says which fields are owned."""
        if reading is None or not self._registry.tracks_managed_fields:
            return self.after_write(served, None, new, options, caller)
        if reading.owned is None:
            new = self.after_write(served, None, new, options, caller)
            entries = new["metadata"].get("managedFields")
            reading.owned = entries[0]["fieldsV1"] if entries else {}
        elif reading.owned:
            version = conversion.storage_api_version(served)
            identity = (manager_name(options, caller) or "unknown", "Update", version, "")
            entry = make_entry(identity, version, self._registry.clock.now(), reading.owned)
            new["metadata"]["managedFields"] = [entry]
        return new

    def owned_at_creation(self, served: Served, new: JsonObject, spec: Trie | None) -> Trie | None:
        """The fields that whoever creates an object comes to own; with ``spec``, its fields are not looked at again.
        None if that is not known."""
        if not self._registry.tracks_managed_fields:
            return None
        empty = self._registry.kind_of(served).empty_object()
        meta = {key: value for key, value in new["metadata"].items() if key not in _NOT_AT_CREATION}
        compared = {**new, "metadata": meta}
        if spec is not None:
            empty = {key: value for key, value in empty.items() if key != "spec"}
            del compared["spec"]
        try:
            changed, _ = compare_objects(empty, compared, self._schema(served), self.ignored(served, ""))
        except PatchTypeError:
            return None
        return changed if spec is None else dict(sorted({**changed, "f:spec": spec}.items()))

    def after_write(
        self,
        served: Served,
        old: JsonObject | None,
        new: JsonObject,
        options: WriteOptions,
        caller: Caller,
        *,
        subresource: str = "",
    ) -> JsonObject:
        """The object with managedFields brought up to date after a create, update or plain patch."""
        if not self._registry.tracks_managed_fields:
            new["metadata"].pop("managedFields", None)
            return new
        return record_update(
            old,
            new,
            manager_name(options, caller),
            served.api_version if served.type.custom else conversion.storage_api_version(served),
            now=self._registry.clock.now(),
            schema=self._schema(served),
            subresource=subresource,
            ignore=self.ignored(served, subresource),
            empty=self._registry.kind_of(served).empty_object(),
        )

    def compared(
        self, served: Served, old: JsonObject, new: JsonObject, subresource: str
    ) -> tuple[Trie, Trie] | None:
        """The fields that a write changes and removes, if they are to be recorded; None if that cannot be said."""
        if not self._registry.tracks_managed_fields:
            return {}, {}
        if "metadata" in new:
            new = {**new, "metadata": {k: v for k, v in new["metadata"].items() if k != "managedFields"}}
        try:
            return compare_objects(old, new, self._schema(served), self.ignored(served, subresource))
        except PatchTypeError:
            return None

    def after_change(
        self,
        served: Served,
        old: JsonObject,
        changed: Trie,
        removed: Trie,
        options: WriteOptions,
        caller: Caller,
        subresource: str = "",
    ) -> list[Entry]:
        """The entries of ``managedFields`` after a write that changed and removed these fields."""
        if not self._registry.tracks_managed_fields:
            return []
        entries = starting_entries(old, None, ignore_request=True)
        if not entries and old["metadata"].get("uid"):
            return []
        version = served.api_version if served.type.custom else conversion.storage_api_version(served)
        identity = (manager_name(options, caller) or "unknown", "Update", version, subresource)
        return updated_entries(entries, changed, removed, identity, self._registry.clock.now())

    def _schema(self, served: Served) -> Schema:
        """The schema of what is stored, and ownership is kept in that version; the fields of custom resources are
        the same in all versions, so that they keep the version of the request, as upstream does."""
        if served.type.custom:
            return served.schema
        if served.group == "events.k8s.io":
            return self._registry.resolve("", "v1", "events").schema
        return served.type.versions[served.type.storage_version].schema

    def ignored(self, served: Served, subresource: str) -> FieldSet | None:
        """Fields that an endpoint does not store, so that nobody comes to own them through it."""
        if not self._registry.kind_of(served).has_status:
            return None
        if subresource != "status":
            return _STATUS
        return _SPEC_AND_METADATA if served.type.custom else _SPEC

    def for_apply_create(
        self, served: Served, options: WriteOptions, caller: Caller, applied: JsonObject
    ) -> Callable[[JsonObject], JsonObject]:
        """Ownership of an object that an apply creates: the applier owns what it named, nobody the defaults."""
        manager = manager_name(options, caller)
        try:
            # Judged before defaulting adds fields, so that those stay unowned.
            result = apply(
                None, applied, manager, served.api_version, force=bool(options.force),
                now=self._registry.clock.now(), schema=served.schema, ignore=self.ignored(served, ""),
            )  # fmt: skip
        except PatchError as problem:
            raise BadRequest(str(problem)) from None
        entries = result["metadata"].get("managedFields")

        def own(obj: JsonObject) -> JsonObject:
            if entries and self._registry.tracks_managed_fields:
                obj["metadata"]["managedFields"] = entries
            return obj

        return own


def manager_name(options: WriteOptions, caller: Caller) -> str:
    """The field manager: as given, else the first word of the user agent."""
    if options.field_manager:
        return options.field_manager
    return _manager_of(caller.user_agent)


@lru_cache(maxsize=1024)
def _manager_of(user_agent: str) -> str:
    agent = user_agent.partition("/")[0] or "unknown"
    return "".join(letter for letter in agent if letter.isprintable())[:_MANAGER_MAX_LENGTH]
