"""Drives the workloads of a scenario: applies their manifests, follows their curves, makes Jobs as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import NAMESPACES, Resource
from holokube.kube.errors import AlreadyExists, ApiError
from holokube.kube.types import JsonObject
from holokube.lab.run.amounts import milliseconds
from holokube.lab.run.event_log import EventLog
from holokube.lab.scenario.behaviour import annotated
from holokube.lab.scenario.model import Workload

_DEFAULT: Final = "default"


class WorkloadDriver:
    """One task per workload; all of them go by the clock and their own stream of draws."""

    def __init__(
        self, clock: Clock, client: Client, rng: Rng, log: EventLog, *, start_s: float, duration_s: float
    ) -> None:
        self._clock = clock
        self._client = client
        self._rng = rng
        self._log = log
        self._start_s = start_s
        self._duration_s = duration_s
        self._discovery = Discovery(client)

    async def run(self, workloads: tuple[Workload, ...]) -> None:
        """Until nothing is left to do."""
        for workload in workloads:
            await self._make_namespaces(workload)
        async with asyncio.TaskGroup() as group:
            for workload in workloads:
                group.create_task(self._drive(workload), name=f"workload {workload.name}")

    async def _make_namespaces(self, workload: Workload) -> None:
        for name in dict.fromkeys(_namespace_of(manifest) for manifest in workload.manifests):
            try:
                await self._client.create(NAMESPACES, {"metadata": {"name": name}})
            except AlreadyExists:
                continue

    async def _drive(self, workload: Workload) -> None:
        rng = self._rng.fork(f"workload/{workload.name}")
        driven = workload.scaled if workload.curve is not None else None
        arriving = workload.arriving if workload.arrivals is not None else None
        changes: Iterator[tuple[float, int]] = iter(())
        if workload.curve is not None:
            changes = workload.curve.changes(rng.fork("curve"), self._start_s, self._duration_s)
        first = next(changes, None)
        annotations = workload.behaviour.annotations()
        for manifest in workload.manifests:
            if manifest is arriving:
                continue
            made = annotated(manifest, annotations)
            if manifest is driven and first is not None:
                made = {**made, "spec": {**made["spec"], "replicas": first[1]}}
            await self._create(made)
        if driven is not None:
            await self._follow(workload, driven, changes)
        if arriving is not None:
            await self._arrive(workload, arriving, rng)

    async def _create(
        self, manifest: JsonObject, what: str = "applied", resource: Resource | None = None
    ) -> None:
        """``resource`` is what the manifest is of, if that is known."""
        if resource is None:
            resource = await self._discovery.for_object(manifest)
        namespace = _namespace_of(manifest) if resource.namespaced else None
        try:
            made = await self._client.create(resource, manifest, namespace)
        except ApiError as error:
            raise UsageError(
                f"{_title(manifest)} of the scenario was refused: {error.message}",
                hint="Correct the manifest; the message is the API server's.",
            ) from error
        self._tell(resource, made["metadata"], what)

    async def _follow(
        self, workload: Workload, driven: JsonObject, changes: Iterator[tuple[float, int]]
    ) -> None:
        resource = await self._discovery.for_object(driven)
        name, namespace = driven["metadata"]["name"], _namespace_of(driven)
        for at_s, replicas in changes:
            await self._until(at_s)
            patch = {"spec": {"replicas": replicas}}
            await self._client.patch(resource, name, patch, namespace=namespace, subresource="scale")
            self._tell(resource, {"name": name, "namespace": namespace}, "scaled", replicas=replicas,
                       workload=workload.name)  # fmt: skip

    async def _arrive(self, workload: Workload, manifest: JsonObject, rng: Rng) -> None:
        assert workload.arrivals is not None
        behaviour = rng.fork("behaviour")
        moments = workload.arrivals.arrivals(rng.fork("arrivals"), self._start_s, self._duration_s)
        resource: Resource | None = None
        for number, at_s in enumerate(moments):
            await self._until(at_s)
            if resource is None:
                resource = await self._discovery.for_object(manifest)
            meta = {**manifest["metadata"], "name": f"{manifest['metadata']['name']}-{number:05}"}
            made = annotated({**manifest, "metadata": meta}, workload.behaviour.drawn(behaviour))
            await self._create(made, "arrived", resource)

    async def _until(self, at_s: float) -> None:
        left_s = at_s - self._clock.monotonic()
        if left_s > 0:
            await self._clock.sleep(left_s)

    def _tell(self, resource: Resource, meta: Mapping[str, Any], what: str, **more: Any) -> None:
        if self._log.is_on:
            name = "/".join(part for part in (meta.get("namespace", ""), meta["name"]) if part)
            self._log.write(milliseconds(self._clock.monotonic()), resource.kind, name, what, **more)


def _namespace_of(manifest: Mapping[str, Any]) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or _DEFAULT)


def _title(manifest: Mapping[str, Any]) -> str:
    return f"{manifest.get('kind')} {_namespace_of(manifest)}/{(manifest.get('metadata') or {}).get('name')}"
