"""Writes of status that leave everything else of an object as it is, by the short way.

Nothing but the status is decoded, compared and checked. The long way, in ``writes``, is gone wherever something else
has a part in it, and wherever something is wrong: it knows in which order to say so. A patch that does again what one
before it did is not even looked at as far as that; see ``status_repeats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body, read_status
from holokube.apiserver.crds.custom_kind import CustomKind
from holokube.apiserver.deletes import is_gone
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import MEANT_FOR, STORED_FIELDS, is_unchanged
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.ownership import Ownership
from holokube.apiserver.patching import APPLY, MERGE_PATCH, STRATEGIC, apply_plain_patch, patch_object
from holokube.apiserver.resources import Served
from holokube.apiserver.status_repeats import Asked, Change, StatusRepeats
from holokube.base.errors import KeyMissing, RevisionMismatch
from holokube.kube.errors import OBJECT_WAS_MODIFIED, conflict
from holokube.kube.patch import PatchError
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_FIELDS_BUT_STATUS = STORED_FIELDS[:-1]
_MORE: Final = object()


class StatusWrites:
    """The short way."""

    def __init__(self, registry: Registry, ownership: Ownership) -> None:
        self._registry = registry
        self._ownership = ownership
        self._repeats = StatusRepeats()

    def ask(self, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions) -> Asked | None:
        """What a patch asks for; None if it has to go the long way."""
        if not self._registry.kind_of(served).repeats_status:
            return None
        patch = _patch_of_status(old, content_type, body, options)
        if patch is _MORE:
            return None
        before = old.obj
        return self._repeats.ask(
            before["status"], patch, content_type, options.field_validation,
            template=before["spec"].get("containers"),
        )  # fmt: skip

    def recall(self, asked: Asked) -> Change | None:
        """What became of a patch of the same form."""
        return self._repeats.recall(asked)

    def patch_at_once(
        self, served: Served, namespace: str, name: str, content_type: str, body: Any, options: WriteOptions,
        caller: Caller,
    ) -> Stored | None:  # fmt: skip
        """Patch a status by the short way, where there is no disk to wait for; None, with nothing done, if it has to go
        another way."""
        registry = self._registry
        store = registry.store
        key = f"{namespace}/{name}" if served.namespaced else name
        old = store.get(served.bucket, key)
        if old is None or not (old.checked and store.is_durable_at_once):
            return None
        kind = registry.kind_of(served)
        if not kind.repeats_status:
            return self._patched(served, kind, old, content_type, body, options, caller, [], key)
        patch = _patch_of_status(old, content_type, body, options)
        if patch is _MORE or not registry.admission.has_no_say(served, "UPDATE", "status", namespace):
            return None
        before = old.obj
        known = before["status"]
        change = self._repeats.change(
            known, patch, (content_type, options.field_validation), before["spec"].get("containers")
        )
        if change is None or ("deletionTimestamp" in before["metadata"] and is_gone(kind, before)):
            return None
        status = change.status
        if registry.tracks_managed_fields:
            new = self._changed(served, before, status, change, options, caller)
        else:
            new = _with_status(before, status)
        if status == known and is_unchanged(new, before):
            return old
        stored = store.update(served.bucket, key, new, owned=True)
        stored.checked, stored.settled, stored.only_status = True, old.settled, True
        return stored if served.shows_stored else conversion.to_served(served, stored)

    async def make(
        self, served: Served, old: Stored, change: Change, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        """Write a change that is known to be valid; None if it has to go the long way."""
        kind = self._registry.kind_of(served)
        if not old.checked or is_gone(kind, old.obj):
            return None
        changed = self._changed(served, old.obj, change.status, change, options, caller)
        warnings: list[str] = []
        return await self._durable(self._store(served, old, changed, options, caller, warnings), old, warnings)

    async def replace(
        self, served: Served, old: Stored, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        """Put another status into an object that is otherwise sent back as it was read, the very same; None if it has
        to go the long way."""
        warnings: list[str] = []
        return await self._durable(self._replaced(served, old, body, options, caller, warnings), old, warnings)

    def replace_at_once(
        self, served: Served, namespace: str, name: str, body: Any, options: WriteOptions, caller: Caller
    ) -> Stored | None:
        """As ``replace``, where there is no disk to wait for; None, with nothing done, if it has to go another way."""
        store = self._registry.store
        key = f"{namespace}/{name}" if served.namespaced else name
        old = store.get(served.bucket, key)
        if old is None or not store.is_durable_at_once:
            return None
        return self._replaced(served, old, body, options, caller, [], key)

    def _replaced(
        self, served: Served, old: Stored, body: Any, options: WriteOptions, caller: Caller, warnings: list[str],
        key: str = "",
    ) -> Stored | None:  # fmt: skip
        value = body
        if type(value) is not dict:
            value = body.value if isinstance(body, Body) else None
            if type(value) is not dict:
                return None
        before = old.obj
        if value.get("metadata") is not before["metadata"] or not old.checked:
            return None
        if served.custom or not _has_stored_fields(old) or len(value) != len(before) or "status" not in value:
            return None
        # That it has no other fields than the stored object is seen by their number, and by these being the same.
        if (
            value.get("spec") is not before["spec"] or value.get("kind") is not before["kind"]
            or value.get("apiVersion") is not before["apiVersion"]
        ):  # fmt: skip
            return None
        kind = self._registry.kind_of(served)
        if not kind.status_stands_alone or not self._may_put(served, kind, before, options):
            return None
        status = read_status(served, kind, before, value["status"])
        if status is None:
            return None
        return self._replace(served, kind, old, status, options, caller, warnings, key, checked=False)

    async def patch(
        self, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        """Patch a status, with nothing said about the rest but for which object it is meant; None if it has to go the
        long way."""
        kind, warnings = self._registry.kind_of(served), list[str]()
        written = self._patched(served, kind, old, content_type, body, options, caller, warnings)
        return await self._durable(written, old, warnings)

    def _patched(
        self, served: Served, kind: Kind, old: Stored, content_type: str, body: Any, options: WriteOptions,
        caller: Caller, warnings: list[str], key: str = "",
    ) -> Stored | None:  # fmt: skip
        value = body
        if type(value) is not dict:
            value = body.value if isinstance(body, Body) and not body.duplicate_fields else None
            if type(value) is not dict:
                return None
        before = old.obj
        if not old.checked or not _concerns_status(value, before["metadata"]):
            return None
        is_custom = served.custom
        if content_type != MERGE_PATCH and (content_type != STRATEGIC or is_custom):
            return None
        if is_custom and not old.settled:
            return None
        if not _has_stored_fields(old) and not (is_custom and [*before] == _FIELDS_BUT_STATUS):
            return None
        if not self._may_put(served, kind, before, options):
            return None
        if is_custom and isinstance(kind, CustomKind) and type(value["status"]) is dict:
            fields, patch = kind.status_fields, value["status"]
            status = fields.patched(before["status"], patch) if "status" in before else fields.first(patch)
            if status is not None:
                return self._replace(served, kind, old, status, options, caller, warnings, key)
        live = {"status": before["status"]} if "status" in before else {}
        try:
            patched = apply_plain_patch(served, live, content_type, {"status": value["status"]})
        except PatchError:
            return None
        return self._put(served, kind, old, patched.get("status"), options, caller, warnings)

    async def _durable(self, written: Stored | None, old: Stored, warnings: list[str]) -> WriteResult | None:
        """What was written, once it is on disk."""
        if written is None:
            return None
        store = self._registry.store
        if not store.is_durable_at_once and written.revision != old.revision:
            await store.durable()
        return WriteResult(written, False, warnings)

    @staticmethod
    def _may_put(served: Served, kind: Kind, before: JsonObject, options: WriteOptions) -> bool:
        if not served.is_storage_version or options.dry_run:
            return False
        return "deletionTimestamp" not in before["metadata"] or not is_gone(kind, before)

    def _put(
        self, served: Served, kind: Kind, old: Stored, value: Any, options: WriteOptions, caller: Caller,
        warnings: list[str],
    ) -> Stored | None:  # fmt: skip
        """Read, compare, check and write a status."""
        before = old.obj
        if served.custom:
            status = self._registry.custom_resources.read_status(served, before, value)
        else:
            status = read_status(served, kind, before, value) if kind.status_stands_alone else None
        if status is None:
            return None
        return self._replace(served, kind, old, status, options, caller, warnings, checked=False)

    def _replace(
        self, served: Served, kind: Kind, old: Stored, status: JsonObject, options: WriteOptions, caller: Caller,
        warnings: list[str], key: str = "", *, checked: bool = True,
    ) -> Stored | None:  # fmt: skip
        """Compare, check and write a status that was read."""
        before = old.obj
        # Who prepares it may change more.
        only_status = True
        if not self._registry.tracks_managed_fields:
            new = _with_status(before, status)
        else:
            known = {"status": before["status"]} if "status" in before else {}
            fields = self._ownership.compared(served, known, {"status": status}, "status")
            if fields is None:
                return None
            new = self._changed(served, before, status, Change(status, *fields), options, caller)
        if not checked:
            if type(kind).prepare_status_update is not Kind.prepare_status_update and not kind.prepares_only_metadata:
                kind.prepare_status_update(new, before, self._registry.write_context(caller))
                only_status = False
            errors = FieldErrors()
            kind.validate_status_update(new, before, errors)
            if errors.causes:
                return None
        return self._store(served, old, new, options, caller, warnings, key, only_status=only_status)

    def _changed(
        self, served: Served, before: JsonObject, status: JsonObject, change: Change, options: WriteOptions,
        caller: Caller,
    ) -> JsonObject:  # fmt: skip
        """The object with another status, and with a note of who changed which fields, where such notes are taken."""
        if not self._registry.tracks_managed_fields:
            return _with_status(before, status)
        meta: JsonObject = before["metadata"].copy()
        del meta["resourceVersion"]
        entries = self._ownership.after_change(
            served, before, change.changed, change.removed, options, caller, "status"
        )
        if entries:
            if not served.custom:
                # Who owns what comes last, as everywhere but in custom resources.
                meta.pop("managedFields", None)
            meta["managedFields"] = entries
        else:
            meta.pop("managedFields", None)
        return {**before, "metadata": meta, "status": status}

    def _store(
        self, served: Served, old: Stored, new: JsonObject, options: WriteOptions, caller: Caller, warnings: list[str],
        key: str = "", *, only_status: bool = True,
    ) -> Stored | None:  # fmt: skip
        """Write an object that is known to be valid, unless nothing changed: what a status lost on its way here may
        have been given back to it."""
        registry, before = self._registry, old.obj
        meta = before["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if not registry.admission.has_no_say(served, "UPDATE", "status", namespace):
            attributes = Attributes(
                "UPDATE", served, namespace, name, "status", new, before, caller, registry, False,
                {"fieldManager": options.field_manager}, warnings,
            )  # fmt: skip
            if not registry.admission.passes(attributes):
                return None
        if new["status"] == before.get("status") and is_unchanged(new, before):
            # There is nothing to warn of.
            warnings.clear()
            return old
        try:
            if not key:
                key = f"{namespace}/{name}" if served.namespaced else name
            stored = registry.store.update(served.bucket, key, new, expected=old.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED) from None
        stored.checked, stored.settled, stored.only_status = True, old.settled, only_status
        return stored if served.shows_stored else conversion.to_served(served, stored)

    def learn(
        self, asked: Asked, served: Served, old: Stored, content_type: str, body: Any, options: WriteOptions,
        caller: Caller, written: WriteResult,
    ) -> None:  # fmt: skip
        """Take note of what became of a patch that went the long way, unless something else had a part in it."""
        if not self._repeats.is_new(asked) or written.warnings or written.stored.revision == old.revision:
            return
        attributes = Attributes(
            "UPDATE", served, "", "", "status", written.stored.obj, old.obj, caller, self._registry
        )  # fmt: skip
        if self._registry.admission.may_change(attributes):
            return
        patched = patch_object(self._registry, served, old, content_type, body, options, caller, "status")
        fields = self._ownership.compared(served, old.obj, patched.obj, "status")
        if fields is not None:
            self._repeats.remember(asked, old.obj["status"], Change(written.stored.obj["status"], *fields))


def _patch_of_status(old: Stored, content_type: str, body: Any, options: WriteOptions) -> Any:
    """What a patch says of a status; ``_MORE`` if it says more than that, or has to go the long way."""
    value = body
    if type(value) is not dict:
        value = body.value if isinstance(body, Body) and not body.duplicate_fields else None
        if type(value) is not dict:
            return _MORE
    if "status" not in value or content_type == APPLY or options.dry_run:
        return _MORE
    before = old.obj
    meta = before["metadata"]
    if len(value) != 1:
        # Of the metadata it may say for which object it is meant, nothing else.
        named = value.get("metadata")
        if len(value) != 2 or type(named) is not dict or len(named) != 1 or named.get("uid") != meta["uid"]:
            return _MORE
    # Annotations may have to agree with the spec; those of an object that is settled do.
    if ("annotations" in meta and not old.settled) or not _has_stored_fields(old):
        return _MORE
    return value["status"]


def _has_stored_fields(old: Stored) -> bool:
    """Whether an object has the fields that most have, in their order; what came of such a write has."""
    return old.only_status or [*old.obj] == STORED_FIELDS


def _with_status(before: JsonObject, status: JsonObject) -> JsonObject:
    """The object with another status, and no note of who changed it."""
    meta: JsonObject = before["metadata"].copy()
    del meta["resourceVersion"]
    meta.pop("managedFields", None)
    new = before.copy()
    new["metadata"], new["status"] = meta, status
    return new


def _concerns_status(patch: JsonObject, meta: JsonObject) -> bool:
    """Whether a patch says nothing of the object but what becomes of its status, and which object it is meant for."""
    if "status" not in patch:
        return False
    if len(patch) == 1:
        return True
    named = patch.get("metadata")
    if len(patch) > 2 or type(named) is not dict:
        return False
    for key, value in named.items():  # noqa: SIM110 - all() with a generator costs twice as much
        if key not in MEANT_FOR or value != meta[key]:
            return False
    return True
