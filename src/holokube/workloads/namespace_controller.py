"""Empties namespaces that are being deleted, says what is in the way, and lets them go when they are empty.

Pods go first, since they may need what else is in the namespace (secrets, network policies) to stop in order.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.discovery import Discovered, Discovery
from holokube.client.resources import NAMESPACES, PODS
from holokube.kube.errors import MethodNotAllowed, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.ratelimit import ExponentialBackoff
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads import namespace_decisions as decisions
from holokube.workloads.namespace_decisions import Content

NAME: Final = "namespace-controller"
WORKERS: Final = 10
RETRY_MAX_S: Final = 60.0


class ContentRemains(HolokubeError):
    """Something could not be deleted; the namespace's conditions say what."""


class NamespaceReconciler:
    """Brings one deleted namespace closer to its end."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet) -> None:
        self._clock = clock
        self._client = client
        self._namespaces = informers.get(NAMESPACES).lister
        self._log = get_logger("holokube.workloads.namespace")

    async def reconcile(self, key: str) -> Result | None:
        cached = self._namespaces.by_key(key)
        if cached is None or not decisions.is_doomed(cached):
            return None
        wait_s = decisions.settles_in_s(cached, self._clock.now())
        if wait_s > 0:
            return Result(requeue_after_s=wait_s)
        try:
            namespace = await self._client.get(NAMESPACES, key)
        except NotFound:
            return None
        if not decisions.is_doomed(namespace):
            return None
        namespace = {"apiVersion": "v1", "kind": "Namespace", **namespace}
        content = await self._delete_content(namespace)
        if content.failures or content.discovery_failure:
            raise ContentRemains("; ".join([content.discovery_failure, *content.failures]).strip("; "))
        if content.remaining:
            return Result(requeue_after_s=decisions.next_look_s(content))
        await self._finalize(key)
        return None

    async def _delete_content(self, namespace: JsonObject) -> Content:
        content = Content()
        resources = await self._resources(content)
        pods = [item for item in resources if item.resource == PODS]
        for item in pods:
            await self._delete_all(namespace, item, content)
        pods_only = bool(content.remaining)
        if not pods_only:
            for item in resources:
                if item.resource != PODS:
                    await self._delete_all(namespace, item, content)
        await self._report(namespace, content, pods_only=pods_only)
        return content

    async def _resources(self, content: Content) -> list[Discovered]:
        """What may hold content. A group that does not answer is a failure: it could hide something."""
        discovery = Discovery(self._client)
        try:
            discovered = await discovery.all()
        except HolokubeError as error:
            content.discovery_failure = error.message
            return []
        content.discovery_failure = decisions.discovery_failure(discovery.failed)
        return decisions.deletable(discovered)

    async def _delete_all(self, namespace: JsonObject, item: Discovered, content: Content) -> None:
        resource, name = item.resource, namespace["metadata"]["name"]
        try:
            estimate_s = 0
            if resource == PODS:
                pods = (await self._client.list_all(PODS, name)).items
                estimate_s = decisions.pods_estimate_s(pods, namespace, self._clock.now())
            if "deletecollection" in item.verbs:
                await self._client.delete_collection(resource, name, propagation="Background")
            else:
                await self._delete_each(item, name)
            if "list" in item.verbs:
                left = (await self._client.list_all(resource, name)).items
                content.found(resource, left, estimate_s)
                held = any(obj["metadata"].get("finalizers") for obj in left)
                if left and not estimate_s and not held:
                    content.failures.append(
                        f"unexpected items still remain in namespace: {name} for gvr: "
                        f"{resource.group}/{resource.version}, Resource={resource.plural}"
                    )
        except (NotFound, MethodNotAllowed):
            return  # A custom resource that was taken away meanwhile.
        except HolokubeError as error:
            content.failures.append(error.message)

    async def _delete_each(self, item: Discovered, namespace: str) -> None:
        if "list" not in item.verbs:
            return
        for obj in (await self._client.list_all(item.resource, namespace)).items:
            try:
                await self._client.delete(
                    item.resource, obj["metadata"]["name"], namespace, propagation="Background"
                )
            except NotFound:
                continue

    async def _report(self, namespace: JsonObject, content: Content, *, pods_only: bool) -> None:
        status = decisions.status_of(namespace, content, self._clock.now(), pods_only=pods_only)
        if status == namespace.get("status"):
            return
        try:
            await self._client.update_status(NAMESPACES, {**namespace, "status": status})
        except HolokubeError as error:
            # Telling is not worth stopping for; the next look tells again.
            name = namespace["metadata"]["name"]
            self._log.warning("Conditions of the namespace not written", namespace=name, error=str(error))

    async def _finalize(self, name: str) -> None:
        try:
            fresh = await self._client.get(NAMESPACES, name)
            spec = fresh.get("spec") or {}
            kept = [finalizer for finalizer in spec.get("finalizers") or () if finalizer != decisions.FINALIZER]
            body = {**fresh, "spec": {**spec, "finalizers": kept}}
            await self._client.update(NAMESPACES, body, subresource="finalize")
        except NotFound:
            return


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
) -> Controller[str]:
    """The controller that empties namespaces."""
    reconciler = NamespaceReconciler(clock, client, informers)
    return Controller(
        clock, NAME, reconciler.reconcile, workers=WORKERS,
        sources=[InformerSource(informers.get(NAMESPACES), enqueue_self)],
        limiter=ExponentialBackoff(max_s=RETRY_MAX_S),
    )  # fmt: skip
