"""Patches that change finalizers, labels and annotations, and hardly anything else, by the short way.

Every pod of a job and everything that is deleted in the foreground meets one at the end of its life, and every node
that an autoscaler brings up several, as does its claim. Such an object was found valid as it is; only the general rules
for what is new have to be looked at, who owns which field has to be noted, and admission asked. Nodes get and lose
taints in the same breath, and an owner. The long way, in ``writes``, is gone wherever something else has a part in it,
and wherever something is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
_OWNERS: Final = "ownerReferences"
_OWNER_TEXTS: Final = ("apiVersion", "kind", "name", "uid")
_OWNER_FLAGS: Final = ("controller", "blockOwnerDeletion")
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
        written, store = self._patched(served, old, content_type, body, options, caller), self._registry.store
        if written is not None and not store.is_durable_at_once:
            await store.durable()
        return written

    def patch_at_once(
        self, served: Served, namespace: str, name: str, content_type: str, body: Any, options: WriteOptions,
        caller: Caller,
    ) -> Stored | None:  # fmt: skip
        """As ``patch``, where there is no disk to wait for; None, with nothing done, if it has to go another way."""
        store = self._registry.store
        old = store.get(served.bucket, f"{namespace}/{name}" if served.namespaced else name)
        if old is None or not store.is_durable_at_once:
            return None
        written = self._patched(served, old, content_type, body, options, caller)
        return None if written is None else written.stored

    def _patched(
        self, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        before = old.obj
        meta = before["metadata"]
        asked = _asked(meta, content_type, body)
        changes = None if asked is None else changed_parts(meta, content_type, asked.metadata)
        if asked is None or changes is None or not (old.checked and old.settled):
            return None
        if options.dry_run or [*before] not in _SHAPES:
            return None
        kind = self._registry.kind_of(served)
        is_custom = served.type.custom
        spec: JsonObject = before["spec"]
        if asked.spec is not None:
            merged = None if kind.tracks_generation else kind.merged_spec(spec, asked.spec)
            if merged is None or is_custom:
                return None
            spec = merged
        if not changes and spec == before["spec"]:
            return None
        if served.version != served.type.storage_version or (is_custom and self._registry.tracks_managed_fields):
            return None
        # Custom resources know no strategic merge patches.
        if is_custom and content_type == STRATEGIC:
            return None
        # Jobs without labels are given those of their template.
        if not is_custom and not meta.get("labels"):
            return None
        if asked.is_stale and is_custom:
            return None
        if asked.is_stale:
            # There was nothing to be said about the rest of it.
            raise conflict(served.group, served.plural, meta["name"], OBJECT_WAS_MODIFIED)
        new = _with(before, changes)
        has_other_spec = spec is not before["spec"]
        if has_other_spec:
            new["spec"] = spec
        # Of the metadata, definitions can only restrict names.
        is_still_valid = is_custom or has_other_spec or kind.stays_valid(new, before)
        if not is_still_valid or not self._own(served, before, new, options, caller):
            return None
        only_takes_off = not has_other_spec and _only_takes_off(changes, meta)
        if not only_takes_off and not self._is_valid(served, kind, new, before):
            return None
        namespace, warnings = meta.get("namespace", ""), kind.warnings(new, before)
        admission = self._registry.admission
        if not admission.has_no_say(served, "UPDATE", "", namespace, is_settled=not has_other_spec):
            if has_other_spec:
                return None
            attributes = Attributes(
                "UPDATE", served, namespace, meta["name"], "", new, before, caller, self._registry, False,
                {"fieldManager": options.field_manager},
            )  # fmt: skip
            if not admission.passes_as_it_was(attributes):
                return None
            warnings = [*attributes.warnings, *warnings]
        stored = self._store(served, kind, old, new)
        stored.settled = True
        return WriteResult(conversion.to_served(served, stored), warnings=warnings)

    @staticmethod
    def _is_valid(served: Served, kind: Kind, new: JsonObject, before: JsonObject) -> bool:
        """Whether nothing is wrong with what is new; the long way says what is."""
        errors = FieldErrors()
        validate_metadata(new, kind, namespaced=served.namespaced, errors=errors, known=before["metadata"])
        validate_metadata_update(new, before, errors)
        if new["spec"] is not before["spec"]:
            kind.validate_update(new, before, errors)
        return not errors

    def _store(self, served: Served, kind: Kind, old: Stored, new: JsonObject) -> Stored:
        """Write the object; one whose last finalizer is gone goes away."""
        registry, meta = self._registry, old.obj["metadata"]
        key = registry.key(served, meta.get("namespace", ""), meta["name"])
        if is_gone(kind, new):
            # Watchers are shown the last stored state; the caller sees the change that ended it.
            gone = registry.deletes.take_out(served, key, old, dry_run=False)
            new["metadata"]["resourceVersion"] = gone.obj["metadata"]["resourceVersion"]
            return Stored(new, gone.revision)
        try:
            stored = registry.store.update(served.bucket, key, new, expected=old.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            raise conflict(served.group, served.plural, meta["name"], OBJECT_WAS_MODIFIED) from None
        stored.checked = True
        registry.custom_resources.after_write(served, stored.obj)
        return stored

    def _own(
        self, served: Served, before: JsonObject, new: JsonObject, options: WriteOptions, caller: Caller
    ) -> bool:
        """Note who changed it; False if that cannot be said."""
        if not self._registry.tracks_managed_fields:
            return True
        parts = ("metadata",) if new["spec"] is before["spec"] else ("metadata", "spec")
        fields = self._ownership.compared(
            served, {part: before[part] for part in parts}, {part: new[part] for part in parts}, ""
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


class _Asked(NamedTuple):
    """What a patch asks for."""

    metadata: JsonObject
    spec: JsonObject | None
    """None where it says nothing of the spec."""
    is_stale: bool
    """Whether it is meant for another state of the object."""


def _asked(meta: JsonObject, content_type: str, body: Any) -> _Asked | None:
    """What a patch asks for of an object with this metadata; None if it is about anything else, or meant for another
    object."""
    value = body.value if isinstance(body, Body) else body
    if type(value) is not dict or (isinstance(body, Body) and body.duplicate_fields):
        return None
    asked, spec, is_stale = value.get("metadata"), None, False
    taken: tuple[str, ...] = ()
    if content_type == MERGE_PATCH:
        spec = value.get("spec")
        taken = (_FINALIZERS, _OWNERS, *_MAPS)
    elif content_type == STRATEGIC:
        taken = (_DELETED,)
    if type(asked) is not dict or len(value) != (1 if spec is None else 2):
        return None
    if spec is not None and type(spec) is not dict:
        return None
    for key, part in asked.items():
        if key in taken or (key in MEANT_FOR and part == meta.get(key)):
            continue
        if key != "resourceVersion" or type(part) is not str or not part:
            return None
        is_stale = True
    return _Asked(asked, spec, is_stale)


def changed_parts(meta: JsonObject, content_type: str, asked: JsonObject) -> JsonObject | None:
    """The finalizers, owners, labels and annotations as a patch leaves them, those that it changes, in its order; None
    if it takes a longer look to tell."""
    changes: JsonObject = {}
    name = _FINALIZERS if content_type == MERGE_PATCH else _DELETED
    for key, part in asked.items():
        if key in _MAPS:
            merged = _merged(meta.get(key), part)
            if merged is None:
                return None
            if merged != meta[key]:
                changes[key] = merged
        elif key == name:
            held = meta.get(_FINALIZERS) or []
            if type(part) is not list or not all(type(one) is str for one in part):
                return None
            # A list of its own: what was sent belongs to the sender.
            left = [*part] if name == _FINALIZERS else [one for one in held if one not in part]
            if left != held:
                changes[_FINALIZERS] = left
            elif not held:
                # Whether an empty list is kept where there was none is for the long way to say.
                return None
        elif key == _OWNERS:
            if meta.get(_OWNERS) or type(part) is not list or not part or not all(map(_is_plain_owner, part)):
                return None
            changes[_OWNERS] = [{**owner} for owner in part]
    return changes


def _is_plain_owner(owner: Any) -> bool:
    """Whether an owner has all it needs, and nothing that would be left out."""
    if type(owner) is not dict or not all(key in owner for key in _OWNER_TEXTS):
        return False
    return all(
        (type(part) is str and part) if key in _OWNER_TEXTS else (key in _OWNER_FLAGS and type(part) is bool)
        for key, part in owner.items()
    )


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
