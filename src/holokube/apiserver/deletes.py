"""Delete: grace periods, finalizers, propagation, preconditions, collections."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.answers import ListResult
from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.metadata import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from holokube.apiserver.options import DeleteOptions, ListOptions
from holokube.apiserver.resources import Served
from holokube.base.errors import KeyMissing, RevisionMismatch
from holokube.kube import timeformat
from holokube.kube.errors import OBJECT_WAS_MODIFIED, ApiError, Conflict, NotFound, conflict, not_found
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_ATTEMPTS = 5


class Deletes:
    """The delete verbs of the registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._ending: tuple[datetime | None, int, str] = None, 0, ""

    async def delete(
        self,
        served: Served,
        namespace: str,
        name: str,
        options: DeleteOptions,
        caller: Caller,
        warnings: list[str] | None = None,
    ) -> tuple[JsonObject, int]:
        """Delete, or mark for deletion. Returns what the client is answered, and the HTTP code; admission's
        ``warnings`` are put into the list given."""
        registry, store = self._registry, self._registry.store
        key = registry.key(served, namespace, name)
        for attempt in range(_ATTEMPTS):
            stored = store.get(served.bucket, key)
            if stored is None:
                raise not_found(served.group, served.plural, name)
            if not registry.admission.has_no_say(served, "DELETE", "", namespace):
                await self._admit(
                    served, namespace, name, stored, options, caller, [] if warnings is None else warnings
                )
            self._check_preconditions(served, name, stored, options)
            revision = store.revision
            try:
                answer = self._delete_stored(served, key, stored, options)
            except ApiError as problem:
                if problem.code != 409 or attempt == _ATTEMPTS - 1:
                    raise
                continue
            if store.revision != revision and not store.is_durable_at_once:
                await store.durable()
            return answer
        raise AssertionError("unreachable")

    def delete_at_once(self, served: Served, namespace: str, name: str, options: DeleteOptions) -> JsonObject | None:
        """As ``delete``, where nobody has to be waited for; None where somebody has, or another write came between."""
        registry = self._registry
        store = registry.store
        if not (store.is_durable_at_once and registry.admission.has_no_say(served, "DELETE", "", namespace)):
            return None
        key = f"{namespace}/{name}" if served.namespaced else name
        stored = store.get(served.bucket, key)
        if stored is None:
            raise not_found(served.group, served.plural, name)
        if options.uid is not None or options.resource_version is not None:
            self._check_preconditions(served, name, stored, options)
        try:
            return self._delete_stored(served, key, stored, options)[0]
        except Conflict:
            return None

    async def _admit(
        self,
        served: Served,
        namespace: str,
        name: str,
        stored: Stored,
        options: DeleteOptions,
        caller: Caller,
        warnings: list[str],
    ) -> None:
        attributes = Attributes(
            "DELETE", served, namespace, name, "", None, stored.obj, caller, self._registry, options.dry_run,
            warnings=warnings,
        )  # fmt: skip
        await self._registry.admission.mutate(attributes)
        await self._registry.admission.validate(attributes)

    def _check_preconditions(self, served: Served, name: str, stored: Stored, options: DeleteOptions) -> None:
        meta = stored.obj["metadata"]
        if options.uid is not None and options.uid != meta["uid"]:
            raise conflict(
                served.group, served.kind, name,
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
                "The object might have been deleted and then recreated",
            )  # fmt: skip
        version = options.resource_version
        if version is not None and version != meta["resourceVersion"]:
            raise conflict(
                served.group, served.kind, name,
                f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
                f"({meta['resourceVersion']}). The object might have been modified",
            )  # fmt: skip

    def _delete_stored(
        self, served: Served, key: str, stored: Stored, options: DeleteOptions
    ) -> tuple[JsonObject, int]:
        """What the client is answered, and the HTTP code; the write may not be durable yet."""
        registry = self._registry
        kind = registry.kind_of(served)
        before = stored.obj
        finalizers = self._finalizers(kind, before, options)
        grace_s = kind.grace_period_s(before, options.grace_period_s)
        lingers = bool(finalizers) or grace_s > 0 or kind.lingers(before)
        if not lingers:
            if kind.is_graceful:
                stored = self._announced(served, key, stored, dry_run=options.dry_run)
            final = self.take_out(served, key, stored, dry_run=options.dry_run)
            return self._answer(served, kind, final), 200
        marked = self._marked(before, finalizers, grace_s)
        kind.mark_deleted(marked)
        code = 202 if options.orphan_dependents is False else 200
        if marked == before:
            return conversion.to_served(served, stored).obj, code
        if options.dry_run:
            return conversion.to_served(served, Stored(marked, stored.revision)).obj, code
        try:
            changed = registry.store.update(served.bucket, key, marked, expected=stored.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            raise conflict(served.group, served.plural, before["metadata"]["name"], OBJECT_WAS_MODIFIED) from None
        changed.checked, changed.settled = stored.checked, stored.settled
        registry.custom_resources.after_write(served, changed.obj)
        return (changed if served.shows_stored else conversion.to_served(served, changed)).obj, code

    def _announced(self, served: Served, key: str, stored: Stored, *, dry_run: bool) -> Stored:
        """What can linger is marked even when it goes at once, so that watchers see the same steps."""
        marked = self._marked(stored.obj, [], 0)
        if dry_run or marked == stored.obj:
            return Stored(marked, stored.revision)
        try:
            return self._registry.store.update(served.bucket, key, marked, expected=stored.revision, owned=True)
        except (RevisionMismatch, KeyMissing):
            raise conflict(served.group, served.plural, stored.obj["metadata"]["name"], OBJECT_WAS_MODIFIED) from None

    def _finalizers(self, kind: Kind, before: JsonObject, options: DeleteOptions) -> list[str]:
        """Propagation is asked for by finalizers, which the garbage collector honours and removes."""
        current: list[str] = before["metadata"].get("finalizers") or []
        policy = options.propagation
        if not policy:
            if ORPHAN_FINALIZER in current or FOREGROUND_FINALIZER in current:
                return current
            policy = kind.cascades_by_default
        if not current and policy == "Background":
            return current
        kept = [f for f in current if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
        if policy == "Orphan":
            kept.append(ORPHAN_FINALIZER)
        elif policy == "Foreground":
            kept.append(FOREGROUND_FINALIZER)
        return kept

    def _marked(self, before: JsonObject, finalizers: list[str], grace_s: int) -> JsonObject:
        """The object with its deletion announced; a later delete may only shorten the grace period."""
        meta: JsonObject = before["metadata"].copy()
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        known_s = meta.get("deletionGracePeriodSeconds")
        if not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = self._time_after(grace_s)
            meta["deletionGracePeriodSeconds"] = grace_s
            if meta.get("generation"):
                meta["generation"] += 1
        elif known_s is not None and grace_s < known_s:
            earlier = timeformat.parse_time(meta["deletionTimestamp"]) - timedelta(seconds=known_s - grace_s)
            meta["deletionTimestamp"] = timeformat.format_time(earlier)
            meta["deletionGracePeriodSeconds"] = grace_s
        return {**before, "metadata": meta}

    def _time_after(self, grace_s: int) -> str:
        """When a grace period ends that begins now; the periods of all that is deleted at an instant are the same."""
        now = self._registry.clock.now()
        if not grace_s:
            return timeformat.format_time(now)
        since, known_s, text = self._ending
        if since is not now or known_s != grace_s:
            text = timeformat.format_time(now + timedelta(seconds=grace_s))
            self._ending = now, grace_s, text
        return text

    async def finish(self, served: Served, key: str, stored: Stored, *, dry_run: bool) -> Stored:
        """Take the object out of the store."""
        gone = self.take_out(served, key, stored, dry_run=dry_run)
        if not (dry_run or self._registry.store.is_durable_at_once):
            await self._registry.store.durable()
        return gone

    def take_out(self, served: Served, key: str, stored: Stored, *, dry_run: bool) -> Stored:
        """As ``finish``, without waiting until that is on disk."""
        registry = self._registry
        if dry_run:
            return stored
        try:
            gone = registry.store.delete(served.bucket, key, expected=stored.revision)
        except (RevisionMismatch, KeyMissing):
            name = stored.obj["metadata"]["name"]
            raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED) from None
        registry.custom_resources.after_delete(served, gone.obj)
        return gone

    def _answer(self, served: Served, kind: Kind, gone: Stored) -> JsonObject:
        if kind.returns_deleted_object:
            return conversion.to_served(served, gone).obj
        meta = gone.obj["metadata"]
        details: JsonObject = {"name": meta["name"]}
        if served.group:
            details["group"] = served.group
        details.update(kind=served.plural, uid=meta["uid"])
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    async def delete_collection(
        self, served: Served, namespace: str, selector: ListOptions, options: DeleteOptions, caller: Caller
    ) -> ListResult:
        """Delete everything that a list with these options would show; returns what was there."""
        registry = self._registry
        found = registry.list(served, namespace, selector)
        for stored in found.items:
            meta = stored.obj["metadata"]
            try:
                await self.delete(served, meta.get("namespace", ""), meta["name"], options, caller)
            except NotFound:
                continue
        return found


def is_gone(kind: Kind, obj: JsonObject) -> bool:
    """Marked for deletion, nobody holds it back, and no grace period runs."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or kind.lingers(obj):
        return False
    return not kind.is_graceful or meta.get("deletionGracePeriodSeconds") == 0
