"""Patches that change finalizers, labels and annotations and leave everything else as it is, by the short way.

Every pod of a job and everything that is deleted in the foreground meets one at the end of its life, and every node
that an autoscaler brings up several, as does its claim. Such an object was found valid as it is; only the general rules
for what is new have to be looked at, who owns which field has to be noted, and admission asked. The long way, in
``writes``, is gone wherever something else has a part in it, and wherever something is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.deletes import is_gone
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import (
    MEANT_FOR,
    RENEWED,
    STORED_FIELDS,
    validate_metadata,
    validate_metadata_update,
)
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.ownership import Ownership
from holokube.apiserver.patching import MERGE_PATCH, STRATEGIC
from holokube.apiserver.resources import Served
from holokube.base.errors import KeyMissing, RevisionMismatch
from holokube.kube.errors import OBJECT_WAS_MODIFIED, conflict
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_FINALIZERS: Final = "finalizers"
_DELETED: Final = "$deleteFromPrimitiveList/finalizers"
_MAPS: Final = ("labels", "annotations")
_SHAPES: Final = (STORED_FIELDS, STORED_FIELDS[:-1])
"""A custom resource has no status until somebody writes one."""


class MetadataWrites:
    """The short way."""

    def __init__(self, registry: Registry, ownership: Ownership) -> None:
        self._registry = registry
        self._ownership = ownership

    async def patch(
        self, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        """Change the metadata; None if the patch does something else, or has to go the long way."""
        before = old.obj
        meta = before["metadata"]
        asked = _asked(meta, content_type, body)
        changes = None if asked is None else changed_parts(meta, content_type, asked)
        if not changes or not (old.checked and old.settled) or options.dry_run or [*before] not in _SHAPES:
            return None
        kind = self._registry.kind_of(served)
        is_custom = served.type.custom
        if served.version != served.type.storage_version or (is_custom and self._registry.tracks_managed_fields):
            return None
        # Custom resources know no strategic merge patches.
        if is_custom and content_type == STRATEGIC:
            return None
        # Jobs without labels are given those of their template.
        if not is_custom and not meta.get("labels"):
            return None
        new = _with(before, changes)
        # Of the metadata, definitions can only restrict names.
        if not (is_custom or kind.stays_valid(new, before)) or not self._own(served, before, new, options, caller):
            return None
        if not _only_takes_off(changes, meta) and not self._is_valid(served, kind, new, before):
            return None
        namespace, warnings = meta.get("namespace", ""), kind.warnings(new, before)
        if not self._registry.admission.has_no_say(served, "UPDATE", "", namespace):
            attributes = Attributes(
                "UPDATE", served, namespace, meta["name"], "", new, before, caller, self._registry, False,
                {"fieldManager": options.field_manager},
            )  # fmt: skip
            if not self._registry.admission.passes_as_it_was(attributes):
                return None
            warnings = [*attributes.warnings, *warnings]
        stored = await self._store(served, kind, old, new)
        stored.settled = True
        return WriteResult(conversion.to_served(served, stored), warnings=warnings)

    @staticmethod
    def _is_valid(served: Served, kind: Kind, new: JsonObject, before: JsonObject) -> bool:
        """Whether nothing is wrong with what is new; the long way says what is."""
        errors = FieldErrors()
        validate_metadata(new, kind, namespaced=served.namespaced, errors=errors, known=before["metadata"])
        validate_metadata_update(new, before, errors)
        return not errors

    async def _store(self, served: Served, kind: Kind, old: Stored, new: JsonObject) -> Stored:
        """Write the object; one whose last finalizer is gone goes away."""
        registry, meta = self._registry, old.obj["metadata"]
        key = registry.key(served, meta.get("namespace", ""), meta["name"])
        if is_gone(kind, new):
            # Watchers are shown the last stored state; the caller sees the change that ended it.
            gone = await registry.deletes.finish(served, key, old, dry_run=False)
            new["metadata"]["resourceVersion"] = gone.obj["metadata"]["resourceVersion"]
            return Stored(new, gone.revision)
        try:
            stored = registry.store.update(served.bucket, key, new, expected=old.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            raise conflict(served.group, served.plural, meta["name"], OBJECT_WAS_MODIFIED) from None
        stored.checked = True
        registry.custom_resources.after_write(served, stored.obj)
        if not registry.store.is_durable_at_once:
            await registry.store.durable()
        return stored

    def _own(
        self, served: Served, before: JsonObject, new: JsonObject, options: WriteOptions, caller: Caller
    ) -> bool:
        """Note who changed it; False if that cannot be said."""
        if not self._registry.tracks_managed_fields:
            return True
        fields = self._ownership.compared(
            served, {"metadata": before["metadata"]}, {"metadata": new["metadata"]}, ""
        )
        if fields is None:
            return False
        entries = self._ownership.after_change(served, before, *fields, options, caller)
        if entries:
            new["metadata"]["managedFields"] = entries
        return True


def _only_takes_off(changes: JsonObject, meta: JsonObject) -> bool:
    """Whether there is nothing new: finalizers go, and those that stay, stay in their order."""
    left = changes.get(_FINALIZERS)
    return len(changes) == 1 and left is not None and left == [one for one in meta.get(_FINALIZERS, ()) if one in left]


def _with(before: JsonObject, changes: JsonObject) -> JsonObject:
    """The object with some parts of its metadata changed; those that are empty go."""
    meta: JsonObject = before["metadata"].copy()
    for key in RENEWED:
        meta.pop(key, None)
    for key, part in changes.items():
        if part:
            meta[key] = part
        else:
            del meta[key]
    return {**before, "metadata": meta}


def _asked(meta: JsonObject, content_type: str, body: Any) -> JsonObject | None:
    """What a patch asks for of an object with this metadata; None if it is about anything else, or meant for another
    state of the object."""
    value = body.value if isinstance(body, Body) else body
    if type(value) is not dict or len(value) != 1 or (isinstance(body, Body) and body.duplicate_fields):
        return None
    asked = value.get("metadata")
    if type(asked) is not dict:
        return None
    taken = (_FINALIZERS, *_MAPS) if content_type == MERGE_PATCH else (_DELETED,) if content_type == STRATEGIC else ()
    for key, part in asked.items():
        if key not in taken and not (key in MEANT_FOR and part == meta.get(key)):
            return None
    return asked


def changed_parts(meta: JsonObject, content_type: str, asked: JsonObject) -> JsonObject | None:
    """The finalizers, labels and annotations as a patch leaves them, those that it changes; None if it takes a longer
    look to tell."""
    changes: JsonObject = {}
    for key in _MAPS:
        if key in asked:
            merged = _merged(meta.get(key), asked[key])
            if merged is None:
                return None
            if merged != meta[key]:
                changes[key] = merged
    name = _FINALIZERS if content_type == MERGE_PATCH else _DELETED
    if name in asked:
        held, named = meta.get(_FINALIZERS) or [], asked[name]
        if type(named) is not list or not all(type(one) is str for one in named):
            return None
        # A list of its own: what was sent belongs to the sender.
        left = [*named] if name == _FINALIZERS else [one for one in held if one not in named]
        if left != held:
            changes[_FINALIZERS] = left
        elif not held:
            # Whether an empty list is kept where there was none is for the long way to say.
            return None
    return changes


def _merged(held: Any, asked: Any) -> dict[str, str] | None:
    """A map of texts after a merge patch; None of one that comes or goes as a whole, or has anything else in it."""
    if type(asked) is not dict or not held:
        return None
    merged: dict[str, str] = held.copy()
    for key, value in asked.items():
        if value is None:
            merged.pop(key, None)
        elif type(value) is str:
            merged[key] = value
        else:
            return None
    return merged or None
