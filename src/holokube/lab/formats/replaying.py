"""Plays a timeline to a cluster: every change at its time, as the users of that cluster would make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import UsageError
from holokube.client.client import Client, PatchType
from holokube.client.discovery import Discovery
from holokube.client.resources import NAMESPACES, Resource, built_in_for
from holokube.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from holokube.kube.patch.merge_patch import create_merge_patch
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Change, Ref, Timeline, ref_of

FIELD_MANAGER: Final = "holokube-replay"
_TRIES: Final = 10
_TRY_EVERY_S: Final = 1.0


class Replay:
    """One replay. What the server refuses is told to ``on_problem`` and left out; the rest goes on."""

    def __init__(
        self, clock: Clock, client: Client, timeline: Timeline, on_problem: Callable[[str], None] = lambda _: None
    ) -> None:
        self._clock = clock
        self._client = client
        self._timeline = timeline
        self._on_problem = on_problem
        self._discovery = Discovery(client)
        self._applied: dict[Ref, JsonObject] = {}
        self._spaces: set[str] = set()

    async def run(self, *, begin_s: float | None = None) -> None:
        """From the beginning to the last change; it begins now, or when the clock's ``monotonic`` reads ``begin_s``."""
        if begin_s is None:
            begin_s = self._clock.monotonic()
        for obj in self._timeline.objects:
            await self._carry_out(Change(0.0, "apply", obj))
        for change in self._timeline.changes:
            await self._clock.sleep(begin_s + change.at_s - self._clock.monotonic())
            await self._carry_out(change)

    async def _carry_out(self, change: Change) -> None:
        ref = ref_of(change.object)
        try:
            resource = built_in_for(change.object) or await self._discovery.for_object(change.object)
            if change.method == "delete":
                await self._delete(resource, ref)
            elif change.method == "patch":
                await self._patch(resource, ref, change.object)
            else:
                await self._apply(resource, ref, change.object)
        except (ApiError, UsageError) as error:
            self._on_problem(f"{change.at_s:g} s: cannot {change.method} {ref}: {error.message}")

    async def _apply(self, resource: Resource, ref: Ref, obj: JsonObject) -> None:
        before = self._applied.get(ref)
        if before is None:
            try:
                await self._create(resource, ref, obj)
            except AlreadyExists:
                before = {}
        if before is not None:
            # Only what is new compared with what was asked for last: others have written to the object since.
            patch = create_merge_patch(before, obj)
            if patch:
                await self._client.patch(
                    resource, ref.name, patch, namespace=ref.namespace or None, field_manager=FIELD_MANAGER
                )
        self._applied[ref] = obj

    async def _create(self, resource: Resource, ref: Ref, obj: JsonObject) -> None:
        if ref.namespace:
            await self._ensure_namespace(ref.namespace)
        for left in reversed(range(_TRIES)):
            try:
                await self._client.create(resource, obj, field_manager=FIELD_MANAGER)
                return
            except Forbidden:
                # The account that every pod of a new namespace needs is made by a controller, a little later.
                if not left or ref.kind != "Pod":
                    raise
            await self._clock.sleep(_TRY_EVERY_S)

    async def _ensure_namespace(self, name: str) -> None:
        """A trace of a workload need not say that its namespaces are there."""
        if name not in self._spaces:
            self._spaces.add(name)
            try:
                await self._client.create(NAMESPACES, {"metadata": {"name": name}}, field_manager=FIELD_MANAGER)
            except AlreadyExists:
                return

    async def _delete(self, resource: Resource, ref: Ref) -> None:
        self._applied.pop(ref, None)
        try:
            await self._client.delete(resource, ref.name, ref.namespace or None, propagation="Background")
        except NotFound:
            # It has ended, or was removed by a component, before its time in the trace.
            return

    async def _patch(self, resource: Resource, ref: Ref, patch: JsonObject) -> None:
        kind = PatchType.MERGE if built_in_for(patch) is None else PatchType.STRATEGIC
        await self._client.patch(
            resource, ref.name, patch, namespace=ref.namespace or None, type=kind, field_manager=FIELD_MANAGER
        )
