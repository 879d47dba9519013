"""Creates the claims of pods' generic ephemeral volumes; the garbage collector takes them with the pod."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import EXISTENCE
from holokube.client.client import Client
from holokube.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from holokube.kube.errors import AlreadyExists
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads.ownership import controller_reference, is_controlled_by
from holokube.workloads.pod_control import namespace_is_terminating

NAME: Final = "ephemeral-volume-controller"
WORKERS: Final = 5


class ForeignClaim(HolokubeError):
    """A claim has the name that a pod's volume needs, and is somebody else's."""


def wanted_claims(pod: JsonObject) -> list[tuple[str, JsonObject]]:
    """The claims of a pod's ephemeral volumes, each with the name of its volume."""
    meta = pod["metadata"]
    wanted = []
    for volume in pod["spec"].get("volumes") or ():
        if not volume.get("ephemeral"):
            continue
        template = volume["ephemeral"].get("volumeClaimTemplate") or {}
        source = template.get("metadata") or {}
        claim_meta: JsonObject = {
            "name": f"{meta['name']}-{volume['name']}", "namespace": meta["namespace"],
            "ownerReferences": [controller_reference(pod)],
        }  # fmt: skip
        claim_meta.update({name: source[name] for name in ("labels", "annotations") if source.get(name)})
        claim = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim_meta, "spec": template["spec"],
        }  # fmt: skip
        wanted.append((volume["name"], claim))
    return wanted


class EphemeralVolumes:
    """Sees to the claims of one pod."""

    def __init__(self, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._pods = informers.get(PODS).lister
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS).lister

    async def reconcile(self, key: str) -> None:
        pod = self._pods.by_key(key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        for volume, claim in wanted_claims(pod):
            try:
                await self._ensure(pod, claim)
            except HolokubeError as error:
                if namespace_is_terminating(error):
                    return
                self._recorder.event(pod, WARNING, "FailedBinding", f"ephemeral volume {volume}: {error}")
                raise

    async def _ensure(self, pod: JsonObject, claim: JsonObject) -> None:
        name, space = claim["metadata"]["name"], claim["metadata"]["namespace"]
        found = self._claims.get(name, space)
        if found is None:
            try:
                await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim, space)
                return
            except AlreadyExists:
                found = await self._client.get(PERSISTENT_VOLUME_CLAIMS, name, space)
        if not is_controlled_by(found, pod):
            raise ForeignClaim(
                f"PVC {space}/{name} was not created for pod {space}/{pod['metadata']['name']} (pod is not owner)"
            )

    def pods_of_claim(self, claim: JsonObject) -> list[str]:
        """The pod that a claim was made for, so that it gets another one when the claim is deleted."""
        space = claim["metadata"]["namespace"]
        owners = claim["metadata"].get("ownerReferences") or ()
        return [f"{space}/{ref['name']}" for ref in owners if ref["kind"] == "Pod" and ref.get("controller")]


def _has_ephemeral_volumes(old: JsonObject | None, new: JsonObject | None) -> bool:
    """A pod's volumes never change: its claims are looked after when it comes, and again when one of them goes."""
    if old is None and new is not None:
        for volume in new["spec"].get("volumes") or ():
            if volume.get("ephemeral"):
                return True
    return False


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of claims for ephemeral volumes."""
    volumes = EphemeralVolumes(client, informers, recorder)
    return Controller(
        clock, NAME, volumes.reconcile, workers=WORKERS,
        sources=[
            InformerSource(
                informers.get(PODS), enqueue_self, concerns=_has_ephemeral_volumes, heeds=EXISTENCE
            ),
            InformerSource(
                informers.get(PERSISTENT_VOLUME_CLAIMS), volumes.pods_of_claim,
                predicates=[lambda change: change.deleted],
            ),
        ],
    )  # fmt: skip
