"""Mirrors Endpoints that users write for services without a selector into EndpointSlices."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from holokube.kube.errors import Forbidden
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads import endpoint_mirroring_decisions as decisions
from holokube.workloads.endpoint_decisions import MANAGED_BY_LABEL, SERVICE_LABEL, SliceChanges
from holokube.workloads.service_account_controller import is_terminating as is_namespace_terminating
from holokube.workloads.slice_writes import SliceWrites

NAME: Final = "endpoint-slice-mirroring-controller"
WORKERS: Final = 5
MIRROR_INDEX: Final = "mirrored-service"


def by_mirrored_service(endpoint_slice: JsonObject) -> list[str]:
    """Lists the slices that are mirrors under the key of their service."""
    meta = endpoint_slice["metadata"]
    labels = meta.get("labels") or {}
    name = labels.get(SERVICE_LABEL)
    ours = labels.get(MANAGED_BY_LABEL) == decisions.MANAGER
    return [f"{meta['namespace']}/{name}"] if name and ours else []


class EndpointMirroring:
    """Brings the mirror slices of one Endpoints object in order."""

    def __init__(self, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._services = informers.get(SERVICES).lister
        self._endpoints = informers.get(ENDPOINTS).lister
        slices = informers.indexed(ENDPOINT_SLICES, MIRROR_INDEX, by_mirrored_service).lister
        self._writes = SliceWrites(client, slices, MIRROR_INDEX)

    async def reconcile(self, key: str) -> None:
        endpoints, service = self._endpoints.by_key(key), self._services.by_key(key)
        present = self._writes.present(key)
        if endpoints is None or not decisions.should_mirror(endpoints, service):
            await self._writes.carry_out(key, SliceChanges(delete=present))
            self._writes.forget(key)
            return
        mirrored = decisions.mirror(endpoints, present)
        self._report(endpoints, mirrored)
        try:
            await self._writes.carry_out(key, mirrored.changes)
        except Forbidden as error:
            if not is_namespace_terminating(error):
                raise

    def _report(self, endpoints: JsonObject, mirrored: decisions.Mirrored) -> None:
        if mirrored.invalid:
            self._recorder.event(
                endpoints, WARNING, "InvalidIPAddress",
                f"Skipped {mirrored.invalid} invalid IP addresses when mirroring to EndpointSlices",
            )  # fmt: skip
        if mirrored.too_many:
            self._recorder.event(
                endpoints, WARNING, "TooManyAddressesToMirror",
                f"A max of {decisions.MAX_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints "
                f"subset. {mirrored.too_many + mirrored.invalid} addresses were skipped",
            )  # fmt: skip


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of mirrored EndpointSlices."""
    mirroring = EndpointMirroring(client, informers, recorder)
    return Controller(
        clock, NAME, mirroring.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(SERVICES), enqueue_self),
            InformerSource(informers.get(ENDPOINTS), enqueue_self),
            InformerSource(informers.get(ENDPOINT_SLICES), by_mirrored_service),
        ],
    )  # fmt: skip
