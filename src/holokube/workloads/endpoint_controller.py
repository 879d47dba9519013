"""Keeps EndpointSlices, and the Endpoints of old, in step with the pods that a Service selects."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import DELETION, LABELS, SPEC, STATUS
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from holokube.kube.errors import AlreadyExists, Forbidden, NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, Need, enqueue_self
from holokube.workloads import endpoint_decisions as decisions
from holokube.workloads.pod_indexes import pods_by_label, selected_pods
from holokube.workloads.pod_status import is_pod_ready, is_terminated, is_terminating
from holokube.workloads.service_account_controller import is_terminating as is_namespace_terminating
from holokube.workloads.slice_writes import SliceWrites
from holokube.workloads.trigger_times import TriggerTimes, with_trigger_time

SLICE_NAME: Final = "endpoint-slice-controller"
ENDPOINTS_NAME: Final = "endpoint-controller"
WORKERS: Final = 5
SERVICE_INDEX: Final = "service"
SELECTED_LABEL_INDEX: Final = "selected label"
ANYTHING: Final = ""


def by_service(endpoint_slice: JsonObject) -> list[str]:
    """Lists the slices that are ours under the key of their service."""
    meta = endpoint_slice["metadata"]
    labels = meta.get("labels") or {}
    name = labels.get(decisions.SERVICE_LABEL)
    ours = labels.get(decisions.MANAGED_BY_LABEL) == decisions.MANAGER
    return [f"{meta['namespace']}/{name}"] if name and ours else []


def by_selected_label(service: JsonObject) -> list[str]:
    """Lists a service that has endpoints under one of the labels that its pods must have, if there is any, and
    under ``ANYTHING``."""
    if not decisions.has_endpoints(service):
        return []
    space, selector = service["metadata"]["namespace"], service["spec"]["selector"]
    return [_label_value(space, *min(selector.items())) if selector else space, ANYTHING]


def _label_value(space: str, key: str, value: str) -> str:
    return f"{space}/{key}={value}"


class ServicesOfPods:
    """Finds the services that select a pod."""

    def __init__(self, informers: InformerSet) -> None:
        self._services = informers.indexed(SERVICES, SELECTED_LABEL_INDEX, by_selected_label).lister

    def __call__(self, pod: JsonObject) -> list[str]:
        found = self._services.by_index
        space, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels") or {}
        services = found(SELECTED_LABEL_INDEX, space)
        for key, value in labels.items():
            services += found(SELECTED_LABEL_INDEX, _label_value(space, key, value))
        return [object_key(service) for service in services if selects(service, labels)]

    def source(self, informers: InformerSet) -> InformerSource[str]:
        """Feeds the services that a pod's change concerns."""
        return InformerSource(
            informers.get(PODS), self, predicates=[_pod_counts], concerns=self.has_any,
            heeds=LABELS | SPEC | STATUS | DELETION, needs=Need(informers.get(SERVICES), self._selects_any),
        )  # fmt: skip

    def _selects_any(self) -> bool:
        return self._services.has_indexed(SELECTED_LABEL_INDEX, ANYTHING)

    def has_any(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a service selects the pod as it is, or as it was. Most clusters have far more pods than services."""
        if not self._selects_any():
            return False
        return bool((new is not None and self(new)) or (old is not None and self(old)))


def selects(service: JsonObject, labels: JsonObject) -> bool:
    return all(labels.get(key) == value for key, value in service["spec"]["selector"].items())


class EndpointSlices:
    """Brings the slices of one service in order."""

    def __init__(self, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._services = informers.get(SERVICES).lister
        self._pods = pods_by_label(informers).lister
        self._nodes = informers.get(NODES).lister
        slices = informers.indexed(ENDPOINT_SLICES, SERVICE_INDEX, by_service).lister
        self._writes = SliceWrites(client, slices, SERVICE_INDEX)
        self._trigger_times = TriggerTimes()

    async def reconcile(self, key: str) -> Result | None:
        service = self._services.by_key(key)
        if service is None:
            # The garbage collector takes the slices with their owner.
            self._trigger_times.forget(key)
            self._writes.forget(key)
            return None
        if not decisions.has_endpoints(service):
            return None
        selector = LabelSelector.from_labels(service["spec"]["selector"])
        pods = selected_pods(self._pods, service["metadata"]["namespace"], selector)
        names = {str(pod["spec"].get("nodeName") or "") for pod in pods}
        nodes = {name: node for name in names if (node := self._nodes.by_key(name)) is not None}
        changes = decisions.slice_changes(service, pods, nodes, self._writes.present(key))
        changed_at = self._trigger_times.look(service, pods)
        changes.create = [with_trigger_time(new, changed_at) for new in changes.create]
        changes.update = [with_trigger_time(new, changed_at) for new in changes.update]
        try:
            await self._writes.carry_out(key, changes)
        except Forbidden as error:
            if is_namespace_terminating(error):
                return None
            self._fail(service, error)
            raise
        except HolokubeError as error:
            self._fail(service, error)
            raise
        # A pod may be known before its node is; it must not be left out for good.
        return Result(requeue_after_s=0) if changes.without_node else None

    def _fail(self, service: JsonObject, error: HolokubeError) -> None:
        meta = service["metadata"]
        message = f"Error updating Endpoint Slices for Service {meta['namespace']}/{meta['name']}: {error}"
        self._recorder.event(service, WARNING, "FailedToUpdateEndpointSlices", message)


class EndpointsObjects:
    """Brings the Endpoints object of one service in order."""

    def __init__(self, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._services = informers.get(SERVICES).lister
        self._pods = pods_by_label(informers).lister
        self._endpoints = informers.get(ENDPOINTS).lister
        self._trigger_times = TriggerTimes()

    async def reconcile(self, key: str) -> None:
        service, found = self._services.by_key(key), self._endpoints.by_key(key)
        if service is None:
            self._trigger_times.forget(key)
            await self._delete(found)
            return
        if not decisions.has_endpoints(service):
            return
        selector = LabelSelector.from_labels(service["spec"]["selector"])
        pods = selected_pods(self._pods, service["metadata"]["namespace"], selector)
        changed_at = self._trigger_times.look(service, pods)
        wanted = decisions.wanted_endpoints(service, pods, found)
        if wanted is None:
            return
        wanted = with_trigger_time(wanted, changed_at)
        try:
            if found is None:
                await self._client.create(ENDPOINTS, wanted)
            else:
                await self._client.update(ENDPOINTS, wanted)
        except (AlreadyExists, NotFound):
            return  # The cache is behind, and the change on its way to us.
        except HolokubeError as error:
            if isinstance(error, Forbidden) and is_namespace_terminating(error):
                return
            what = "create endpoint for service" if found is None else "update endpoint"
            reason = "FailedToCreateEndpoint" if found is None else "FailedToUpdateEndpoint"
            self._recorder.event(wanted, WARNING, reason, f"Failed to {what} {key}: {error}")
            raise

    async def _delete(self, found: JsonObject | None) -> None:
        """A service that is gone takes along what we made for it, and only that."""
        meta = (found or {}).get("metadata") or {}
        if (meta.get("labels") or {}).get(decisions.ENDPOINTS_MANAGED_BY_LABEL) != decisions.ENDPOINTS_MANAGER:
            return
        try:
            await self._client.delete(ENDPOINTS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return


def _pod_counts(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    return _endpoint_state(change.old) != _endpoint_state(change.new)


def _endpoint_state(pod: JsonObject) -> tuple[object, ...]:
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    return (
        pod["metadata"].get("labels"), status.get("podIPs") or status.get("podIP"), spec.get("nodeName"),
        is_pod_ready(pod), is_terminated(pod), is_terminating(pod), spec.get("hostname"), spec.get("subdomain"),
    )  # fmt: skip


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of EndpointSlices."""
    slices = EndpointSlices(client, informers, recorder)
    services = ServicesOfPods(informers)
    return Controller(
        clock, SLICE_NAME, slices.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(SERVICES), enqueue_self),
            services.source(informers),
            InformerSource(informers.get(ENDPOINT_SLICES), by_service),
        ],
    )  # fmt: skip


def build_endpoints(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of Endpoints."""
    endpoints = EndpointsObjects(client, informers, recorder)
    services = ServicesOfPods(informers)
    return Controller(
        clock, ENDPOINTS_NAME, endpoints.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(SERVICES), enqueue_self),
            services.source(informers),
            InformerSource(informers.get(ENDPOINTS), enqueue_self),
        ],
    )  # fmt: skip
