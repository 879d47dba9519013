"""Horizontal autoscaling: every 15 seconds looks at what is measured, and sets sizes through the scale subresource.

Any kind that has one can be scaled, custom ones too. Whatever goes wrong shows in conditions and events, and is tried
again at the next look: upstream has no faster retry either, and an autoscaler that hurries flaps.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import HORIZONTAL_POD_AUTOSCALERS, PODS, Resource
from holokube.kube.errors import Conflict
from holokube.kube.selector_errors import SelectorError
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import CacheSource, InformerSource, enqueue_self
from holokube.workloads import hpa_decisions as decisions
from holokube.workloads.hpa_decisions import DEFAULT_SETTINGS, Plan, Reading, Settings, Target
from holokube.workloads.hpa_limits import History
from holokube.workloads.hpa_metrics import MetricsReader
from holokube.workloads.pod_indexes import pods_by_label, selected_pods
from holokube.workloads.status_writes import same_status

NAME: Final = "horizontal-pod-autoscaler"
WORKERS: Final = 5
SYNC_S: Final = 15.0
"""``--horizontal-pod-autoscaler-sync-period``."""
_TRIES: Final = 5
_EARLY_S: Final = 1e-6


class Autoscalers:
    """Brings the target of one autoscaler to its size."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        recorder: EventRecorder,
        *,
        settings: Settings = DEFAULT_SETTINGS,
        sync_s: float = SYNC_S,
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._settings = settings
        self._sync_s = sync_s
        self._discovery = Discovery(client)
        self._reader = MetricsReader(client, self._discovery)
        self._autoscalers = informers.get(HORIZONTAL_POD_AUTOSCALERS).lister
        self._pods = pods_by_label(informers).lister
        self._due_s: dict[str, float] = {}
        self._histories: dict[str, History] = {}
        self._selectors: dict[str, LabelSelector] = {}
        self._log = get_logger("holokube.workloads.hpa").bind(controller=NAME)

    async def reconcile(self, key: str) -> Result | None:
        hpa = self._autoscalers.by_key(key)
        if hpa is None:
            for memory in (self._due_s, self._histories, self._selectors):
                memory.pop(key, None)
            return None
        now_s = self._clock.monotonic()
        # A new autoscaler is looked at for the first time one period later, and a change brings no look forward.
        wait_s = self._due_s.setdefault(key, now_s + self._sync_s) - now_s
        if wait_s > _EARLY_S:
            return Result(wait_s)
        self._due_s[key] = now_s + self._sync_s
        try:
            await self._look(key, hpa)
        except HolokubeError as error:
            self._log.warning("Autoscaler could not do its work", autoscaler=key, error=str(error))
        return Result(max(self._due_s[key] - self._clock.monotonic(), _EARLY_S))

    async def _look(self, key: str, hpa: JsonObject) -> None:
        reference = hpa["spec"]["scaleTargetRef"]
        try:
            resource, scale = await self._get_scale(reference, hpa["metadata"]["namespace"])
        except HolokubeError as error:
            self._tell(hpa, ("Warning", "FailedGetScale", error.message))
            status = decisions.unable_to_get_scale(hpa, error.message, self._clock.now())
            await self._write_status(hpa, status)
            return
        plan = await self._plan(key, hpa, Target.of(scale))
        self._histories[key] = plan.history
        rescale_error = ""
        if plan.rescales and not plan.failure:
            rescale_error = await self._rescale(resource, scale, plan.desired)
            if not rescale_error and hpa["spec"].get("behavior") is not None:
                self._histories[key] = plan.history.rescaled(plan.current, plan.desired, self._clock.time())
        status, events = decisions.finish(hpa, plan, self._clock.now(), rescale_error=rescale_error)
        for event in events:
            self._tell(hpa, event)
        await self._write_status(hpa, status)

    # What is there

    async def _get_scale(self, reference: JsonObject, namespace: str) -> tuple[Resource, JsonObject]:
        """The first version of the target's kind that has a scale; kinds may be served in several."""
        group = str(reference.get("apiVersion") or "").rpartition("/")[0]
        kind = reference["kind"]
        resources = await self._resources(group, kind)
        if not resources:
            raise HolokubeError(f'no matches for kind "{kind}" in group "{group}"')
        first: HolokubeError | None = None
        for resource in resources:
            try:
                return resource, await self._client.get_scale(resource, reference["name"], namespace)
            except HolokubeError as error:
                first = first or error
        assert first is not None
        raise first

    async def _resources(self, group: str, kind: str) -> list[Resource]:
        for attempt in range(2):
            known = [item.resource for item in await self._discovery.all()]
            found = [r for r in known if (r.group, r.kind) == (group, kind)]
            if found or attempt:
                return found
            # Its definition may have come since the last question.
            self._discovery.forget()
        return []

    async def _plan(self, key: str, hpa: JsonObject, target: Target) -> Plan:
        history = self._histories.get(key, History())
        if not decisions.needs_metrics(hpa, target):
            return decisions.plan(hpa, target, (), (), history, self._clock.now(), self._settings)
        namespace = hpa["metadata"]["namespace"]
        start = decisions.first_look(hpa, target, history, self._clock.now())
        selector = self._selector(key, target.selector, start)
        if isinstance(selector, Plan):
            return selector
        readings: list[Reading] = [
            await self._reader.read(spec, namespace, selector) for spec in hpa["spec"].get("metrics") or ()
        ]
        pods = selected_pods(self._pods, namespace, selector)
        return decisions.plan(hpa, target, readings, pods, history, self._clock.now(), self._settings)

    def _selector(self, key: str, text: str, start: Plan) -> LabelSelector | Plan:
        """Whose pods they are: exactly one autoscaler's, or nobody scales them."""
        now = self._clock.now()
        if not text:
            return decisions.selector_trouble(
                start, "InvalidSelector", "SelectorRequired",
                "the HPA target's scale is missing a selector", "selector is required", now,
            )  # fmt: skip
        try:
            selector = LabelSelector.parse(text)
        except SelectorError as error:
            message = f"couldn't convert selector into a corresponding internal selector object: {error}"
            return decisions.selector_trouble(start, "InvalidSelector", "InvalidSelector", message, message, now)
        self._selectors[key] = selector
        namespace = key.partition("/")[0]
        labels = [pod["metadata"].get("labels") or {} for pod in selected_pods(self._pods, namespace, selector)]
        rivals = [
            other for other, theirs in self._selectors.items()
            if other.partition("/")[0] == namespace and any(theirs.matches(each) for each in labels)
        ]  # fmt: skip
        if len(rivals) > 1:
            names = " ".join(f"{{{other.partition('/')[2]} {namespace}}}" for other in sorted(rivals))
            message = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            return decisions.selector_trouble(start, "AmbiguousSelector", "AmbiguousSelector", message, message, now)
        return selector

    # What is done

    async def _rescale(self, resource: Resource, scale: JsonObject, replicas: int) -> str:
        """Sets the size; an empty text, or why it could not be set."""
        meta = scale["metadata"]
        for attempt in range(_TRIES):
            wanted = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}}
            try:
                await self._client.update_scale(resource, meta["name"], wanted, meta.get("namespace"))
            except Conflict as error:
                if attempt == _TRIES - 1:
                    return error.message
                try:
                    scale = await self._client.get_scale(resource, meta["name"], meta.get("namespace"))
                except HolokubeError:
                    return error.message
            except HolokubeError as error:
                return error.message
            else:
                return ""
        return ""

    async def _write_status(self, hpa: JsonObject, status: JsonObject) -> None:
        if same_status(hpa.get("status") or {}, status):
            return
        try:
            await self._client.update_status(HORIZONTAL_POD_AUTOSCALERS, {**hpa, "status": status})
        except HolokubeError as error:
            self._tell(hpa, ("Warning", "FailedUpdateStatus", error.message))
            raise

    def _tell(self, hpa: JsonObject, event: decisions.Event) -> None:
        self._recorder.event(hpa, *event)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
    *,
    settings: Settings = DEFAULT_SETTINGS,
    sync_s: float = SYNC_S,
) -> Controller[str]:
    """The controller of HorizontalPodAutoscalers."""
    autoscalers = Autoscalers(clock, client, informers, recorder, settings=settings, sync_s=sync_s)
    return Controller(
        clock, NAME, autoscalers.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informers.get(HORIZONTAL_POD_AUTOSCALERS), enqueue_self),
            # Pods start nothing; but without them nothing can be decided.
            CacheSource(informers.get(PODS)),
        ],
    )  # fmt: skip
