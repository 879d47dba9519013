"""Create, update and patch: from a body to a stored object.

The stages and their order are upstream's: decode, default, mutating admission, prepare, validate, validating
admission, store. A body is decoded into a private copy first, so that all stages may change it in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes, Caller, Operation
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.at_once import AtOnce
from holokube.apiserver.bodies import beside_stored, read_body
from holokube.apiserver.deletes import is_gone
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.job_patterns import JobPatterns
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.apiserver.metadata import (
    NAME_ATTEMPTS,
    carry_identity,
    generated_name,
    is_unchanged,
    validate_metadata,
    validate_metadata_update,
)
from holokube.apiserver.metadata_writes import MetadataWrites
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.ownership import Ownership
from holokube.apiserver.patching import APPLY, patch_object, read_applied
from holokube.apiserver.repeats import Pattern, Prepared, Reading, Repeats
from holokube.apiserver.resources import Served
from holokube.apiserver.status_writes import StatusWrites
from holokube.base.errors import KeyExists, KeyMissing, RevisionMismatch
from holokube.kube import timeformat
from holokube.kube.errors import (
    OBJECT_WAS_MODIFIED,
    AlreadyExists,
    BadRequest,
    Cause,
    already_exists,
    conflict,
    details_for,
    invalid,
    not_found,
    qualified,
)
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

OTHER_DOORS = frozenset({"resize", "ephemeralcontainers", "finalize", "approval"})
_PATCH_ATTEMPTS = 5


class Writes:
    """The write verbs of the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.ownership = Ownership(registry)
        self._repeats = Repeats(registry)
        self._status_writes = StatusWrites(registry, self.ownership)
        self._metadata_writes = MetadataWrites(registry, self.ownership)
        self._job_patterns = JobPatterns(registry)
        self.at_once = AtOnce(
            registry, self._repeats, self._job_patterns, self._status_writes, self._metadata_writes
        )

    # -- create --------------------------------------------------------------------------------------------------

    async def create(
        self, served: Served, namespace: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult:
        kind = self._registry.kind_of(served)
        reading = self._repeats.reading(served, kind, body, options)
        if reading is not None:
            pattern = None if options.dry_run else self._repeats.pattern(reading, namespace)
            if pattern is not None:
                return await self._create_alike(served, pattern, reading, options, caller)
            return await self.create_decoded(served, namespace, reading.copy(), options, caller, [], reading=reading)
        revision = self._registry.store.revision
        obj, warnings = read_body(self._registry, served, body, options)
        written = await self.create_decoded(served, namespace, obj, options, caller, warnings)
        is_alone = written.stored.revision == self._registry.store.revision == revision + 1
        if kind.follows_job_patterns and is_alone and not written.warnings:
            stored = written.stored
            attributes = self._attributes("CREATE", served, namespace, "", stored.obj, None, caller, options)
            self._job_patterns.learn(namespace, body, options, stored, attributes)
        return written

    async def _create_alike(
        self, served: Served, pattern: Pattern, reading: Reading, options: WriteOptions, caller: Caller
    ) -> WriteResult:
        """Create one more of what comes of a body, with a name and an identity of its own."""
        registry = self._registry
        meta: JsonObject = pattern.obj["metadata"].copy()
        meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
        meta["uid"] = registry.rng.uid()
        meta["creationTimestamp"] = timeformat.format_time(registry.clock.now())
        obj = self.ownership.after_create(served, {**pattern.obj, "metadata": meta}, options, caller, reading)
        stored = await self._store_new(served, obj, options, generated=True)
        stored.settled = pattern.settled
        return WriteResult(conversion.to_served(served, stored), created=True)

    async def create_decoded(
        self,
        served: Served,
        namespace: str,
        obj: JsonObject,
        options: WriteOptions,
        caller: Caller,
        warnings: list[str],
        *,
        own: Callable[[JsonObject], JsonObject] | None = None,
        reading: Reading | None = None,
    ) -> WriteResult:
        """Create an object that has been decoded. ``own`` records who owns which field; ``reading`` is what is known
        of the body it was decoded from."""
        registry = self._registry
        kind = registry.kind_of(served)
        meta: JsonObject = obj.setdefault("metadata", {})
        check_namespace(served, namespace, meta)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(key, None)
        # Before admission: what plugins and webhooks set belongs to nobody, as upstream has it.
        if own is not None:
            obj = own(obj)
        else:
            obj = self.ownership.after_create(served, obj, options, caller, reading)
        attributes = self._attributes("CREATE", served, namespace, "", obj, None, caller, options)
        attributes.warnings = warnings
        await registry.admission.mutate(attributes)
        obj = attributes.obj or obj
        meta = obj["metadata"]
        if meta.get("resourceVersion"):
            if not options.dry_run and meta["resourceVersion"] != "0":
                raise BadRequest("resourceVersion should not be set on objects to be created")
            meta.pop("resourceVersion")
        # After admission: webhooks see generateName and no name, as upstream's do.
        generated = not meta.get("name") and bool(meta.get("generateName"))
        if generated:
            meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
        context = registry.write_context(caller, dry_run=options.dry_run)
        if kind.has_status and not kind.keeps_status_on_create:
            obj.pop("status", None)
        meta["uid"] = registry.rng.uid()
        meta["creationTimestamp"] = timeformat.format_time(context.now)
        found, prepared = self._prepare_and_validate(served, obj, context)
        await registry.admission.validate(attributes)
        warnings.extend(found)
        stored = await self._store_new(served, obj, options, generated=generated)
        # Another version of a custom resource may know other fields.
        is_as_stored = served.version == served.type.storage_version
        settled = prepared is not None and prepared.settled
        stored.settled = settled or (is_as_stored and not registry.admission.may_unsettle(attributes))
        is_like_others = reading is not None and prepared is not None and generated
        if reading is not None and is_like_others and not warnings and not options.dry_run:
            self._repeats.take_pattern(reading, namespace, stored, attributes)
        return WriteResult(conversion.to_served(served, stored), created=True, warnings=warnings)

    def _prepare_and_validate(
        self, served: Served, obj: JsonObject, context: WriteContext
    ) -> tuple[list[str], Prepared | None]:
        """Set what the server owns, and refuse what breaks a rule; an object like one before it fares like that one.

        Returns warnings, and what will be known of the next one like it.
        """
        kind = self._registry.kind_of(served)
        key = kind.repeat_key(obj) if kind.is_made_in_numbers else None
        known = self._repeats.prepared(key)
        if known is None:
            kind.prepare_create(obj, context)
        else:
            obj["spec"], obj["status"] = known.spec, known.status
        if kind.tracks_generation:
            obj["metadata"]["generation"] = 1
        errors = FieldErrors()
        validate_metadata(obj, kind, namespaced=served.namespaced, errors=errors)
        if known is None:
            kind.validate(obj, errors)
        if errors:
            raise invalid(served.type.storage_group, served.kind, obj["metadata"].get("name", ""), errors.causes)
        if known is None and key is not None:
            known = self._repeats.remember(kind, key, obj, kind.warnings_besides_name(obj))
        if known is None:
            return kind.warnings(obj, None), None
        return [*kind.name_warnings(obj), *known.warnings], known

    async def _store_new(
        self, served: Served, obj: JsonObject, options: WriteOptions, *, generated: bool
    ) -> Stored:
        registry = self._registry
        meta: JsonObject = obj["metadata"]
        for attempt in range(NAME_ATTEMPTS):
            key = registry.key(served, meta.get("namespace", ""), meta["name"])
            ordered = in_wire_order(served, obj)
            try:
                if options.dry_run:
                    if registry.store.get(served.bucket, key) is not None:
                        raise KeyExists(key)
                    return Stored(ordered, 0)
                stored = registry.store.create(served.bucket, key, ordered, owned=True)
            except KeyExists:
                if generated and attempt < NAME_ATTEMPTS - 1:
                    meta["name"] = generated_name(meta["generateName"], registry.rng.name_suffix())
                    continue
                raise _taken(served, meta, registry.store.get(served.bucket, key), generated=generated) from None
            stored.checked = True
            registry.custom_resources.after_write(served, stored.obj)
            if not registry.store.is_durable_at_once:
                await registry.store.durable()
            return stored
        raise AssertionError("unreachable")

    # -- update --------------------------------------------------------------------------------------------------

    async def update(
        self,
        served: Served,
        namespace: str,
        name: str,
        body: Any,
        options: WriteOptions,
        caller: Caller,
        *,
        subresource: str = "",
    ) -> WriteResult:
        registry = self._registry
        old = registry.store.get(served.bucket, registry.key(served, namespace, name))
        if old is not None:
            if subresource == "status":
                written = await self._status_writes.replace(served, old, body, options, caller)
                if written is not None:
                    return written
            # Whoever changes an object sends most of it back as it was read; in one process, the very same.
            body = beside_stored(registry, served, body, old, subresource)
        new, warnings = read_body(registry, served, body, options)
        meta: JsonObject = new.setdefault("metadata", {})
        check_name(served, namespace, name, meta)
        if old is None:
            kind = registry.kind_of(served)
            if not kind.allow_create_on_update or subresource:
                raise not_found(served.group, served.plural, name)
            if meta.get("uid"):
                raise _precondition_uid(served, name, meta["uid"], "")
            meta.pop("resourceVersion", None)
            return await self.create_decoded(served, namespace, new, options, caller, warnings)
        self._check_version(served, name, meta, old)
        return await self.replace(served, old, new, options, caller, warnings, subresource=subresource)

    def _check_version(self, served: Served, name: str, meta: JsonObject, old: Stored) -> None:
        """409 on a stale resourceVersion; some kinds insist on one."""
        uid = meta.get("uid")
        if uid and uid != old.obj["metadata"]["uid"]:
            raise _precondition_uid(served, name, uid, old.obj["metadata"]["uid"])
        version = meta.get("resourceVersion") or ""
        if version in ("", "0"):
            if not self._registry.kind_of(served).allow_unconditional_update:
                cause = Cause(
                    "FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion"
                )
                raise invalid(served.group, served.plural, name, [cause])
            return
        if not (version.isascii() and version.isdigit()):
            raise BadRequest(f'metadata.resourceVersion: "{version}" is not a number')
        if version.lstrip("0") != str(old.revision):
            raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED)

    async def replace(
        self,
        served: Served,
        old: Stored,
        new: JsonObject,
        options: WriteOptions,
        caller: Caller,
        warnings: list[str],
        *,
        subresource: str = "",
        own: Callable[[JsonObject], JsonObject] | None = None,
    ) -> WriteResult:
        """Put ``new`` (decoded, private) in the place of ``old``. ``own`` records who owns which field."""
        registry = self._registry
        kind = registry.kind_of(served)
        before = old.obj
        namespace, name = before["metadata"].get("namespace", ""), before["metadata"]["name"]
        if served.namespaced:
            new["metadata"].setdefault("namespace", namespace)
        if own is not None:
            new = own(new)
        else:
            new = self.ownership.after_write(served, before, new, options, caller, subresource=subresource)
        attributes = self._attributes("UPDATE", served, namespace, name, new, before, caller, options)
        attributes.subresource = subresource
        attributes.warnings = warnings
        await registry.admission.mutate(attributes)
        new = attributes.obj or new
        context = registry.write_context(caller, dry_run=options.dry_run)
        new = self._prepare_update(served, new, before, subresource, context)
        errors = FieldErrors()
        known = before["metadata"] if old.checked else {}
        validate_metadata(new, kind, namespaced=served.namespaced, errors=errors, known=known)
        validate_metadata_update(new, before, errors)
        if subresource == "status":
            kind.validate_status_update(new, before, errors)
        elif subresource in OTHER_DOORS:
            kind.validate_door(subresource, new, before, errors)
        elif old.settled and kind.stays_valid(new, before) and _is_shared(new["spec"], before["spec"]):
            # It was found valid as it is; whoever watches it sees by the spec itself that this has not changed.
            new["spec"] = before["spec"]
        else:
            kind.validate_update(new, before, errors)
        if errors:
            raise invalid(served.type.storage_group, served.kind, name, errors.causes)
        attributes.obj = new
        await registry.admission.validate(attributes)
        warnings.extend(kind.warnings(new, before))
        stored = await self._store_change(served, old, new, options)
        if stored is not old:
            stored.settled = (old.settled and stored.obj.get("spec") is before.get("spec")) or (
                # The doors leave the rest of the spec as it is, however that came about.
                kind.settles_on_update and (not subresource or old.settled) and subresource in ("", "scale")
                and served.version == served.type.storage_version and not registry.admission.may_change(attributes)
            )  # fmt: skip
        return WriteResult(conversion.to_served(served, stored), warnings=warnings)

    def _prepare_update(
        self, served: Served, new: JsonObject, before: JsonObject, subresource: str, context: WriteContext
    ) -> JsonObject:
        """Everything but the status, or nothing but the status, comes from the new object."""
        kind = self._registry.kind_of(served)
        carry_identity(new, before)
        if subresource == "status":
            kept = {k: v for k, v in before.items() if k not in ("metadata", "status")}
            meta = new["metadata"]
            if served.type.custom:
                meta = {**before["metadata"], "managedFields": meta.get("managedFields")}
                if meta["managedFields"] is None:
                    del meta["managedFields"]
            elif "ownerReferences" in before["metadata"]:
                meta["ownerReferences"] = before["metadata"]["ownerReferences"]
            else:
                meta.pop("ownerReferences", None)
            merged = {**kept, "metadata": meta}
            if "status" in new:
                merged["status"] = new["status"]
            kind.prepare_status_update(merged, before, context)
            return merged
        if subresource in OTHER_DOORS:
            if not kind.prepare_door(subresource, new, before):
                raise BadRequest(f"{served.plural}/{subresource} is not supported")
            if kind.tracks_generation:
                new["metadata"]["generation"] = _next_generation(kind, new, before)
            return new
        if kind.has_status:
            if "status" in before:
                new["status"] = before["status"]
            else:
                new.pop("status", None)
        kind.prepare_update(new, before, context)
        if kind.tracks_generation:
            new["metadata"]["generation"] = _next_generation(kind, new, before)
        return new

    async def _store_change(
        self, served: Served, old: Stored, new: JsonObject, options: WriteOptions
    ) -> Stored:
        """Write unless nothing changed; an object whose last finalizer is gone goes away."""
        registry = self._registry
        before = old.obj
        new["metadata"].pop("resourceVersion", None)
        key = registry.key(served, before["metadata"].get("namespace", ""), before["metadata"]["name"])
        if is_gone(registry.kind_of(served), new):
            # Watchers are shown the last stored state; the caller sees the change that ended it.
            gone = await registry.deletes.finish(served, key, old, dry_run=options.dry_run)
            new["metadata"]["resourceVersion"] = gone.obj["metadata"]["resourceVersion"]
            return Stored(in_wire_order(served, new), gone.revision)
        # What differs in one of these has changed; to look at all of it would take longer.
        meta, known = new["metadata"], before["metadata"]
        is_alike = meta.get("generation") == known.get("generation")
        if is_alike and meta.get("finalizers") == known.get("finalizers") and is_unchanged(new, before):
            return old
        ordered = in_wire_order(served, new)
        if options.dry_run:
            ordered["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
            return Stored(ordered, old.revision)
        try:
            stored = registry.store.update(served.bucket, key, ordered, expected=old.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            name = before["metadata"]["name"]
            raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED) from None
        stored.checked = True
        registry.custom_resources.after_write(served, stored.obj)
        if not registry.store.is_durable_at_once:
            await registry.store.durable()
        return stored

    # -- patch ---------------------------------------------------------------------------------------------------

    async def patch(
        self,
        served: Served,
        namespace: str,
        name: str,
        content_type: str,
        body: Any,
        options: WriteOptions,
        caller: Caller,
        *,
        subresource: str = "",
    ) -> WriteResult:
        """Apply a patch; a write that came in between makes it start again from the new object."""
        registry = self._registry
        key = registry.key(served, namespace, name)
        for attempt in range(_PATCH_ATTEMPTS):
            old = registry.store.get(served.bucket, key)
            if old is None:
                if content_type == APPLY and not subresource:
                    return await self._create_on_apply(served, namespace, name, body, options, caller)
                raise not_found(served.group, served.plural, name)
            asked = None
            if subresource == "status":
                asked = self._status_writes.ask(served, old, content_type, body, options)
                known = None if asked is None else self._status_writes.recall(asked)
                if known is not None:
                    again = await self._status_writes.make(served, old, known, options, caller)
                    if again is not None:
                        return again
                if asked is None:
                    written = await self._status_writes.patch(served, old, content_type, body, options, caller)
                    if written is not None:
                        return written
            elif not subresource:
                written = await self._metadata_writes.patch(served, old, content_type, body, options, caller)
                if written is not None:
                    return written
            patched = patch_object(registry, served, old, content_type, body, options, caller, subresource)
            meta: JsonObject = patched.obj.setdefault("metadata", {})
            check_name(served, namespace, name, meta)
            given = meta.get("resourceVersion")
            if given and given != old.obj["metadata"]["resourceVersion"]:
                raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED)
            try:
                written = await self.replace(
                    served, old, patched.obj, options, caller, patched.warnings,
                    subresource=subresource, own=patched.own,
                )  # fmt: skip
                if asked is not None:
                    self._status_writes.learn(asked, served, old, content_type, body, options, caller, written)
                return written
            except Exception as problem:
                current = registry.store.get(served.bucket, key)
                raced = current is None or current.revision != old.revision
                if given or not raced or not _is_conflict(problem) or attempt == _PATCH_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _create_on_apply(
        self, served: Served, namespace: str, name: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult:
        applied, warnings = read_applied(self._registry, served, body, options)
        own = self.ownership.for_apply_create(served, options, caller, applied)
        obj, _ = read_body(self._registry, served, body, WriteOptions())
        meta = obj.setdefault("metadata", {})
        check_name(served, namespace, name, meta)
        if meta.get("uid"):
            raise _precondition_uid(served, name, meta["uid"], "")
        meta.pop("resourceVersion", None)
        return await self.create_decoded(
            served, namespace, obj, options, caller, warnings, own=own
        )

    def _attributes(
        self,
        operation: Operation,
        served: Served,
        namespace: str,
        name: str,
        obj: JsonObject | None,
        old: JsonObject | None,
        caller: Caller,
        options: WriteOptions,
    ) -> Attributes:
        if not name and obj is not None:
            name = obj["metadata"].get("name", "")
        return Attributes(
            operation, served, namespace, name, "", obj, old, caller, self._registry, options.dry_run,
            {"fieldManager": options.field_manager},
        )  # fmt: skip


def _next_generation(kind: Kind, new: JsonObject, before: JsonObject) -> int:
    generation: int = before["metadata"].get("generation", 0)
    return generation + 1 if kind.spec_changed(new, before) else generation


def _is_shared(new: JsonObject, old: JsonObject) -> bool:
    """Whether all parts of a spec are those of the stored one, in the same order; lists may have been joined anew."""
    if [*new] != [*old]:
        return False
    for after, before in zip(new.values(), old.values(), strict=True):
        if after is before:
            continue
        if type(after) is not list or type(before) is not list or len(after) != len(before):
            return False
        if any(one is not other for one, other in zip(after, before, strict=True)):
            return False
    return True


def in_wire_order(served: Served, obj: JsonObject) -> JsonObject:
    """kind, apiVersion and metadata first, as upstream writes them; lists cut the first two off the bytes."""
    ordered: JsonObject = {
        "kind": served.kind,
        "apiVersion": conversion.storage_api_version(served),
        "metadata": obj["metadata"],
    }
    for key, value in obj.items():
        if key not in ordered:
            ordered[key] = value
    return ordered


def check_namespace(served: Served, namespace: str, meta: JsonObject) -> None:
    """The namespace of a body must be the one on the URL, if it names one."""
    given = meta.get("namespace", "")
    if not served.namespaced:
        meta.pop("namespace", None)
        return
    if given and namespace and given != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if not namespace and not given:
        raise BadRequest("an empty namespace may not be set during creation")
    meta["namespace"] = namespace or given


def check_name(served: Served, namespace: str, name: str, meta: JsonObject) -> None:
    given = meta.get("name", "")
    if not given:
        raise BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
    space = meta.get("namespace", "")
    if served.namespaced and space and space != namespace:
        raise BadRequest(
            f"the namespace of the object ({space}) does not match the namespace on the request ({namespace})"
        )


def _taken(served: Served, meta: JsonObject, holder: Stored | None, *, generated: bool) -> AlreadyExists:
    if not generated:
        problem = already_exists(served.group, served.plural, meta["name"])
        if holder is not None and holder.obj["metadata"].get("deletionTimestamp"):
            return AlreadyExists(f"object is being deleted: {problem}", details=problem.details)
        return problem
    return AlreadyExists(
        f'{qualified(served.group, served.plural)} "{meta["name"]}" already exists, '
        "the server was not able to generate a unique name for the object",
        details={**details_for(served.group, served.plural, meta["name"]), "retryAfterSeconds": 1},
    )


def _precondition_uid(served: Served, name: str, given: str, actual: str) -> Exception:
    return conflict(
        served.group,
        served.plural,
        name,
        f"Precondition failed: UID in precondition: {given}, UID in object meta: {actual}",
    )


def _is_conflict(problem: Exception) -> bool:
    return getattr(problem, "code", 0) == 409
