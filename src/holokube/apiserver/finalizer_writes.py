"""Patches that take finalizers off an object and leave everything else as it is, by the short way.

Every pod of a job and everything that is deleted in the foreground meets one at the end of its life. Such an object
was found valid as it is, and cannot become invalid by that; only who owns which field has to be noted, and admission
asked. The long way, in ``writes``, is gone wherever something else has a part in it, and wherever something is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.deletes import is_gone
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import MEANT_FOR, RENEWED, STORED_FIELDS
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


class FinalizerWrites:
    """The short way."""

    def __init__(self, registry: Registry, ownership: Ownership) -> None:
        self._registry = registry
        self._ownership = ownership

    async def patch(
        self, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        """Take finalizers off; None if the patch does something else, or has to go the long way."""
        before = old.obj
        left = remaining(before["metadata"], content_type, body)
        if left is None or not (old.checked and old.settled) or options.dry_run or [*before] != STORED_FIELDS:
            return None
        kind = self._registry.kind_of(served)
        # Jobs without labels are given those of their template.
        if served.version != served.type.storage_version or served.type.custom or not before["metadata"].get("labels"):
            return None
        new = self._without(before, left)
        if not kind.stays_valid(new, before) or not self._own(served, before, new, options, caller):
            return None
        meta = before["metadata"]
        attributes = Attributes(
            "UPDATE", served, meta.get("namespace", ""), meta["name"], "", new, before, caller, self._registry, False,
            {"fieldManager": options.field_manager},
        )  # fmt: skip
        if not self._registry.admission.passes_as_it_was(attributes):
            return None
        attributes.warnings.extend(kind.warnings(new, before))
        stored = await self._store(served, kind, old, new)
        stored.settled = True
        return WriteResult(conversion.to_served(served, stored), warnings=attributes.warnings)

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

    @staticmethod
    def _without(before: JsonObject, left: list[str]) -> JsonObject:
        meta: JsonObject = before["metadata"].copy()
        for key in RENEWED:
            meta.pop(key, None)
        if left:
            meta[_FINALIZERS] = left
        else:
            del meta[_FINALIZERS]
        return {**before, "metadata": meta}

    def _own(
        self, served: Served, before: JsonObject, new: JsonObject, options: WriteOptions, caller: Caller
    ) -> bool:
        """Note who took them off; False if that cannot be said."""
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


def remaining(meta: JsonObject, content_type: str, body: Any) -> list[str] | None:
    """The finalizers that a patch leaves on an object with this metadata; None if it takes none off, or does more."""
    held = meta.get(_FINALIZERS)
    value = body.value if isinstance(body, Body) else body
    if not held or type(value) is not dict or len(value) != 1 or (isinstance(body, Body) and body.duplicate_fields):
        return None
    asked = value.get("metadata")
    if type(asked) is not dict:
        return None
    name = _FINALIZERS if content_type == MERGE_PATCH else _DELETED if content_type == STRATEGIC else ""
    named = asked.get(name)
    if type(named) is not list or not all(type(one) is str for one in named):
        return None
    for key, part in asked.items():
        if key != name and not (key in MEANT_FOR and part == meta.get(key)):
            return None
    if name == _DELETED:
        left = [one for one in held if one not in named]
    else:
        # A list that says more than which of them stay, or says it in another order, is another change.
        left = [one for one in held if one in named]
        if left != named:
            return None
    return left if len(left) < len(held) else None
