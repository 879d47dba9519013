"""The API without HTTP: what every verb means for every resource.

The HTTP face and the in-process client are both thin layers over this one class. Reads are synchronous; writes are
coroutines, because admission webhooks and durable stores have to be waited for. Objects that come out are the stored
ones: they are shared and must not be changed.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import IN_PROCESS, Caller
from holokube.apiserver.admission.chain import AdmissionChain
from holokube.apiserver.answers import ListResult, Warnings, WriteResult
from holokube.apiserver.crds.serving import CustomResources
from holokube.apiserver.deletes import Deletes
from holokube.apiserver.kinds.all_kinds import kind_for
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.apiserver.metrics_api import MetricsApi
from holokube.apiserver.options import ContinueToken, DeleteOptions, ListOptions, WriteOptions, parse_revision
from holokube.apiserver.resources import ResourceTable, Served
from holokube.apiserver.selection import Selection, select
from holokube.apiserver.subresources import Subresources
from holokube.apiserver.types import TypeCatalog
from holokube.apiserver.watching import WatchStream
from holokube.apiserver.writes import Writes
from holokube.base.clock import Clock
from holokube.base.errors import RevisionTooOld
from holokube.base.rng import Rng
from holokube.kube.errors import BadRequest, Cause, Expired, MethodNotAllowed, NotFound, Timeout, not_found
from holokube.kube.types import JsonObject
from holokube.store.store import Store
from holokube.store.values import Stored

_TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class Registry:
    """All resources of one API server over one store."""

    def __init__(
        self,
        clock: Clock,
        rng: Rng,
        store: Store,
        *,
        catalog: TypeCatalog | None = None,
        tracks_managed_fields: bool = True,
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.store = store
        self.catalog = catalog or TypeCatalog()
        self.table = ResourceTable(self.catalog)
        self.tracks_managed_fields = tracks_managed_fields
        self.admission = AdmissionChain(clock, self)
        self.writes = Writes(self)
        self.deletes = Deletes(self)
        self.subresources = Subresources(self)
        self.custom_resources = CustomResources(self)
        self.metrics = MetricsApi(self)
        self._kinds: dict[str, Kind] = {}
        """The rules of built-in resources, by the names of these."""
        self._last_custom: tuple[Served | None, Kind, int] = None, Kind(), -1
        """The rules of the custom resource that was asked for last, as long as no resource comes or goes."""

    # -- what there is -------------------------------------------------------------------------------------------

    def resolve(self, group: str, version: str, plural: str) -> Served:
        """The resource that a path names."""
        served = self.table.find(group, version, plural)
        if served is None:
            raise NotFound("the server could not find the requested resource", details={})
        return served

    def kind_of(self, served: Served) -> Kind:
        if served.custom:
            last, of_last, generation = self._last_custom
            if last is served and generation == self.table.generation:
                return of_last
            custom = self.custom_resources.kind_for(served)
            custom.has_status = "status" in served.info.subresources
            self._last_custom = served, custom, self.table.generation
            return custom
        kind = self._kinds.get(served.qualified_name)
        if kind is None:
            kind = self._kinds[served.qualified_name] = kind_for(served.group, served.plural)
            kind.has_status = "status" in served.info.subresources
        return kind

    def check_verb(self, served: Served, verb: str) -> None:
        if verb not in served.info.verbs:
            raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})

    def write_context(self, caller: Caller = IN_PROCESS, *, dry_run: bool = False) -> WriteContext:
        return WriteContext(self.clock.now(), self.rng, self, caller.name, dry_run, caller.uid, caller.groups)

    # -- Lookup: how kinds and admission see other objects ----------------------------------------------------------

    def find(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        bucket = f"{plural}.{group}" if group else plural
        stored = self.store.get(bucket, f"{namespace}/{name}" if namespace else name)
        return stored.obj if stored is not None else None

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        bucket = f"{plural}.{group}" if group else plural
        page = self.store.list(bucket, f"{namespace}/" if namespace else "")
        return [stored.obj for _, stored in page.items]

    # -- reads ---------------------------------------------------------------------------------------------------

    @staticmethod
    def key(served: Served, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if served.namespaced else name

    def get_stored(self, served: Served, namespace: str, name: str) -> Stored:
        """The object as it is stored, whatever version was asked for."""
        stored = self.store.get(served.bucket, f"{namespace}/{name}" if served.namespaced else name)
        if stored is None:
            raise not_found(served.group, served.plural, name)
        return stored

    def get(self, served: Served, namespace: str, name: str, *, resource_version: str = "") -> Stored:
        """One object in the version asked for."""
        if self.metrics.serves(served):
            return self.metrics.get(served, namespace, name)
        if resource_version:
            wanted = parse_revision(resource_version)
            if wanted > self.store.revision:
                raise self._too_large(wanted)
        return conversion.to_served(served, self.get_stored(served, namespace, name))

    def list(self, served: Served, namespace: str, options: ListOptions) -> ListResult:
        """A page of objects; see ``ListOptions``."""
        if self.metrics.serves(served):
            return self.metrics.list(served, namespace, options)
        selection = select(served, self.kind_of(served), namespace, options)
        revision, start_after = self._list_position(selection, options)
        if selection.name and selection.prefix and revision is None:
            return self._list_one(served, selection)
        # Upstream serves "any version" from a cache that does not page.
        limit = 0 if options.resource_version == "0" else options.limit
        items, page_revision, last_key, more, remaining = self._page(
            served.bucket, selection, revision, start_after, limit
        )
        token = ""
        if more:
            token = ContinueToken(page_revision, last_key).encode(selection.prefix)
        converted = conversion.all_to_served(served, items)
        counts = more and selection.matches is None
        return ListResult(converted, page_revision, token, remaining if counts else None)

    def _list_position(self, selection: Selection, options: ListOptions) -> tuple[int | None, str]:
        """At which revision to read (None is the present), and after which key."""
        current = self.store.revision
        if options.continue_:
            if options.resource_version not in ("", "0"):
                raise BadRequest("specifying resource version is not allowed when using continue")
            token = ContinueToken.decode(options.continue_, selection.prefix)
            if token.revision < 0:
                return None, token.start_after
            if token.revision > current:
                raise self._too_large(token.revision)
            return token.revision, token.start_after
        wanted = parse_revision(options.resource_version)
        if wanted > current:
            raise self._too_large(wanted)
        exact = options.resource_version_match == "Exact" or (
            wanted > 0 and options.limit > 0 and not options.resource_version_match
        )
        return (wanted if exact and wanted > 0 else None), ""

    def _page(
        self, bucket: str, selection: Selection, revision: int | None, start_after: str, limit: int
    ) -> tuple[Sequence[Stored], int, str, bool, int]:
        """Matching objects up to ``limit``; objects that do not match do not count against it."""
        matches = selection.matches
        try:
            if matches is None or not limit:
                page = self.store.list(
                    bucket, selection.prefix, at_revision=revision, start_after=start_after, limit=limit
                )
                found = [stored for _, stored in page.items]
                last = page.items[-1][0] if page.items else start_after
                if matches is not None:
                    found = [stored for stored in found if matches(stored.obj)]
                return found, page.revision, last, page.more, page.remaining
            page = self.store.list(bucket, selection.prefix, at_revision=revision, start_after=start_after)
        except RevisionTooOld as problem:
            if not start_after:
                raise Expired(str(problem)) from None
            token = ContinueToken(-1, start_after).encode(selection.prefix)
            raise Expired(_TOO_OLD_CONTINUE, status=_expired_with_token(token)) from None
        chosen: list[tuple[str, Stored]] = []
        for item in page.items:
            if matches(item[1].obj):
                if len(chosen) == limit:
                    return [s for _, s in chosen], page.revision, chosen[-1][0], True, 0
                chosen.append(item)
        return [s for _, s in chosen], page.revision, chosen[-1][0] if chosen else "", False, 0

    def _list_one(self, served: Served, selection: Selection) -> ListResult:
        stored = self.store.get(served.bucket, selection.prefix + selection.name)
        matching = stored is not None and (selection.matches is None or selection.matches(stored.obj))
        items = [conversion.to_served(served, stored)] if stored is not None and matching else []
        return ListResult(items, self.store.revision)

    @staticmethod
    def _too_large_cause() -> Cause:
        return Cause("ResourceVersionTooLarge", "Too large resource version")

    def _too_large(self, wanted: int) -> Timeout:
        return Timeout(
            f"Timeout: Too large resource version: {wanted}, current: {self.store.revision}",
            details={"causes": [self._too_large_cause().to_json()], "retryAfterSeconds": 1},
        )

    def watch(self, served: Served, namespace: str, options: ListOptions) -> WatchStream:
        """A stream of changes; see ``ListOptions``."""
        selection = select(served, self.kind_of(served), namespace, options)
        empty = self.kind_of(served).empty_object()
        return WatchStream(self.clock, self.store, served, selection, options, empty=empty)

    async def close(self) -> None:
        """Give back what admission holds open (connections to webhooks)."""
        await self.admission.close()

    # -- writes --------------------------------------------------------------------------------------------------
    # They hand out the coroutines of those who do the work: one more around each would only cost.

    def create(
        self,
        served: Served,
        namespace: str,
        body: Any,
        options: WriteOptions = WriteOptions(),  # noqa: B008 - frozen
        caller: Caller = IN_PROCESS,
    ) -> Coroutine[Any, Any, WriteResult]:
        return self.writes.create(served, namespace, body, options, caller)

    def update(
        self,
        served: Served,
        namespace: str,
        name: str,
        body: Any,
        options: WriteOptions = WriteOptions(),  # noqa: B008 - frozen
        caller: Caller = IN_PROCESS,
        subresource: str = "",
    ) -> Coroutine[Any, Any, WriteResult]:
        return self.writes.update(served, namespace, name, body, options, caller, subresource=subresource)

    def patch(
        self,
        served: Served,
        namespace: str,
        name: str,
        content_type: str,
        body: Any,
        options: WriteOptions = WriteOptions(),  # noqa: B008 - frozen
        caller: Caller = IN_PROCESS,
        subresource: str = "",
    ) -> Coroutine[Any, Any, WriteResult]:
        return self.writes.patch(
            served, namespace, name, content_type, body, options, caller, subresource=subresource
        )

    def delete(
        self,
        served: Served,
        namespace: str,
        name: str,
        options: DeleteOptions = DeleteOptions(),  # noqa: B008 - frozen
        caller: Caller = IN_PROCESS,
        warnings: Warnings | None = None,
    ) -> Coroutine[Any, Any, tuple[JsonObject, int]]:
        """Delete one object; the answer is the object or a Status, with its HTTP code."""
        return self.deletes.delete(served, namespace, name, options, caller, warnings)

    async def delete_collection(
        self,
        served: Served,
        namespace: str,
        selector: ListOptions,
        options: DeleteOptions = DeleteOptions(),  # noqa: B008 - frozen
        caller: Caller = IN_PROCESS,
    ) -> ListResult:
        return await self.deletes.delete_collection(served, namespace, selector, options, caller)


def _expired_with_token(token: str) -> JsonObject:
    """Upstream hands out a token that goes on inconsistently, in the Status' own metadata."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": token},
        "status": "Failure",
        "message": _TOO_OLD_CONTINUE,
        "reason": "Expired",
        "code": 410,
    }
