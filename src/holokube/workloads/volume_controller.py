"""Binds claims to volumes, makes volumes up where a storage class asks for them, and reclaims them.

It stands for the volume binder, every provisioner and the protection controllers at once. A volume that is
made up lies in a zone, if nodes have zones: that of the node which the scheduler selected, else a random one.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.audience import SPEC
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import CacheSource, InformerSource, Need, enqueue_self
from holokube.workloads import volume_decisions as decisions
from holokube.workloads.status_writes import write_status
from holokube.workloads.volume_decisions import Bind, Provision, WaitForVolume

CLAIMS_NAME: Final = "persistentvolume-binder-controller"
VOLUMES_NAME: Final = "persistentvolume-reclaimer-controller"
CLAIM_INDEX: Final = "claim"
RETRY_S: Final = 15.0
"""``--pvclaimbinder-sync-period``: a claim that found nothing looks again this often."""


class Claims:
    """Finds or makes the volume of one claim."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, rng: Rng
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._rng = rng
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS).lister
        self._volumes = informers.get(PERSISTENT_VOLUMES).lister
        self._classes = informers.get(STORAGE_CLASSES).lister
        self._nodes = informers.get(NODES).lister
        # Only who lets a claim go asks for its pods; a cluster without claims has no use for the index.
        self._pods = informers.indexed(PODS, CLAIM_INDEX, decisions.claims_of, heeds=SPEC, when_asked=True).lister

    def may_be_used(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a pod has claims, of which there are any. Its volumes never change, so that either state tells."""
        pod = new if new is not None else old
        return len(self._claims) > 0 and pod is not None and bool(decisions.claims_of(pod))

    def pending(self, _changed: JsonObject) -> list[str]:
        """A volume or a class that changed may be what a claim waits for."""
        return [object_key(claim) for claim in self._claims if not claim["spec"].get("volumeName")]

    async def reconcile(self, key: str) -> Result | None:
        claim = self._claims.by_key(key)
        if claim is None:
            return None
        try:
            if claim["metadata"].get("deletionTimestamp"):
                await self._let_go(key, claim)
                return None
            named = claim["spec"].get("volumeName")
            return await (self._bind_named(claim, named) if named else self._find(claim))
        except NotFound:
            # The claim or its volume went meanwhile; the change is on its way to us.
            return Result(requeue_after_s=0)

    async def _let_go(self, key: str, claim: JsonObject) -> None:
        """A deleted claim stays as long as a pod may use it."""
        finalizers = claim["metadata"].get("finalizers") or []
        if decisions.CLAIM_PROTECTION not in finalizers:
            return
        if decisions.is_in_use(self._pods.by_index(CLAIM_INDEX, key)):
            return
        kept = [name for name in finalizers if name != decisions.CLAIM_PROTECTION]
        meta = {**claim["metadata"], "finalizers": kept}
        await self._client.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": meta})

    async def _bind_named(self, claim: JsonObject, name: str) -> Result | None:
        volume = self._volumes.get(name)
        completed = decisions.BIND_COMPLETED in (claim["metadata"].get("annotations") or {})
        if volume is None:
            volume = await self._look_for(name)
        if volume is None or (completed and _belongs_to_another(volume, claim)):
            if not completed:
                return Result(requeue_after_s=RETRY_S)
            await self._lose(claim)
            return None
        if _belongs_to_another(volume, claim):
            message = f'volume "{name}" already bound to a different claim.'
            self._recorder.event(claim, WARNING, "FailedBinding", message)
            return Result(requeue_after_s=RETRY_S)
        await self._bind(claim, volume)
        return None

    async def _look_for(self, name: str) -> JsonObject | None:
        """Asks the server before a claim is given up: the cache may be behind."""
        try:
            return await self._client.get(PERSISTENT_VOLUMES, name)
        except NotFound:
            return None

    async def _lose(self, claim: JsonObject) -> None:
        status = claim.get("status") or {}
        if status.get("phase") == "Lost":
            return
        await write_status(self._client, PERSISTENT_VOLUME_CLAIMS, claim, {**status, "phase": "Lost"})
        message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        self._recorder.event(claim, WARNING, "ClaimLost", message)

    async def _find(self, claim: JsonObject) -> Result | None:
        name = decisions.class_of(claim)
        storage_class = self._classes.get(name) if name else None
        selected = (claim["metadata"].get("annotations") or {}).get(decisions.SELECTED_NODE) or ""
        plan = decisions.plan(claim, self._volumes, storage_class, list(self._nodes), self._nodes.by_key(selected))
        if isinstance(plan, WaitForVolume):
            self._recorder.event(claim, plan.type, plan.reason, plan.message)
            return Result(requeue_after_s=RETRY_S)
        if isinstance(plan, Bind):
            await self._bind(claim, plan.volume)
        elif isinstance(plan, Provision):
            await self._provision(claim, plan)
        return None

    async def _provision(self, claim: JsonObject, plan: Provision) -> None:
        driver = plan.storage_class["provisioner"]
        annotations = claim["metadata"].get("annotations") or {}
        if annotations.get(decisions.PROVISIONER) != driver:
            meta = {**claim["metadata"], "annotations": {**annotations, decisions.PROVISIONER: driver}}
            claim = await self._client.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": meta})
        key = object_key(claim)
        message = f'External provisioner is provisioning volume for claim "{key}"'
        self._recorder.event(claim, NORMAL, "Provisioning", message)
        # The zone depends on the claim alone, so that a second try makes the same volume.
        zone = self._rng.fork(claim["metadata"]["uid"]).choice(plan.zones) if plan.zones else ""
        wanted = decisions.made_up_volume(claim, plan.storage_class, zone)
        name = wanted["metadata"]["name"]
        try:
            volume = await self._client.create(PERSISTENT_VOLUMES, wanted)
        except AlreadyExists:
            volume = await self._client.get(PERSISTENT_VOLUMES, name)
        message = f"Successfully provisioned volume {name}"
        self._recorder.event(claim, NORMAL, "ProvisioningSucceeded", message)
        await self._bind(claim, volume)

    async def _bind(self, claim: JsonObject, volume: JsonObject) -> None:
        """Volume first, then claim: whoever dies in between finds the volume reserved and goes on."""
        reserved = decisions.reserved_volume(volume, claim)
        if reserved is not None:
            volume = await self._client.update(PERSISTENT_VOLUMES, reserved)
        bound = decisions.bound_claim(claim, volume)
        if bound is not None:
            claim = await self._client.update(PERSISTENT_VOLUME_CLAIMS, bound)
        if (claim.get("status") or {}).get("phase") != "Bound":
            status = decisions.bound_status(claim, volume)
            await write_status(self._client, PERSISTENT_VOLUME_CLAIMS, claim, status)


class Volumes:
    """Keeps the phase of one volume, and reclaims it when its claim is gone."""

    def __init__(self, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._volumes = informers.get(PERSISTENT_VOLUMES).lister
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS).lister

    async def reconcile(self, name: str) -> None:
        volume = self._volumes.by_key(name)
        if volume is None:
            return
        try:
            phase = decisions.volume_phase(volume, await self._claim_of(volume))
            if volume["metadata"].get("deletionTimestamp"):
                await self._let_go(volume, phase)
                return
            status = volume.get("status") or {}
            if status.get("phase") != phase and not (phase == "Released" and status.get("phase") == "Failed"):
                volume = await write_status(
                    self._client, PERSISTENT_VOLUMES, volume, {**status, "phase": phase}
                )
            if phase == "Released":
                await self._reclaim(volume)
        except NotFound:
            return

    async def _claim_of(self, volume: JsonObject) -> JsonObject | None:
        reference = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            return None
        claim = self._claims.get(reference["name"], reference["namespace"])
        if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            return claim
        # Data is at stake, so the server is asked and not the cache.
        try:
            return await self._client.get(PERSISTENT_VOLUME_CLAIMS, reference["name"], reference["namespace"])
        except NotFound:
            return None

    async def _let_go(self, volume: JsonObject, phase: str) -> None:
        finalizers = volume["metadata"].get("finalizers") or []
        if phase == "Bound" or decisions.VOLUME_PROTECTION not in finalizers:
            return
        kept = [name for name in finalizers if name != decisions.VOLUME_PROTECTION]
        meta = {**volume["metadata"], "finalizers": kept}
        await self._client.update(PERSISTENT_VOLUMES, {**volume, "metadata": meta})

    async def _reclaim(self, volume: JsonObject) -> None:
        meta = volume["metadata"]
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        if policy == "Delete":
            await self._client.delete(PERSISTENT_VOLUMES, meta["name"], uid=meta["uid"])
        elif policy == "Recycle" and (volume.get("status") or {}).get("phase") != "Failed":
            message = "No recycler plugin found for the volume!"
            self._recorder.event(volume, WARNING, "VolumeFailedRecycle", message)
            status = {**(volume.get("status") or {}), "phase": "Failed", "message": message}
            await write_status(self._client, PERSISTENT_VOLUMES, volume, status)


def _belongs_to_another(volume: JsonObject, claim: JsonObject) -> bool:
    reference = volume["spec"].get("claimRef")
    if not reference:
        return False
    meta = claim["metadata"]
    same_name = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return not same_name or reference.get("uid") not in (None, "", meta["uid"])


def _claim_key(volume: JsonObject) -> list[str]:
    reference = volume["spec"].get("claimRef") or {}
    return [f"{reference['namespace']}/{reference['name']}"] if reference.get("name") else []


def _volume_key(claim: JsonObject) -> list[str]:
    name = claim["spec"].get("volumeName")
    return [name] if name else []


def build(
    clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, rng: Rng
) -> Controller[str]:
    """The controller of claims. One worker, so that no two claims want the same volume at once."""
    claims = Claims(clock, client, informers, recorder, rng.fork(CLAIMS_NAME))
    volumes, claimed = informers.get(PERSISTENT_VOLUMES), informers.get(PERSISTENT_VOLUME_CLAIMS)
    return Controller(
        clock, CLAIMS_NAME, claims.reconcile,
        sources=[
            InformerSource(volumes, _claim_key),
            InformerSource(volumes, claims.pending, predicates=[lambda change: change.added]),
            InformerSource(informers.get(STORAGE_CLASSES), claims.pending),
            # Nodes ask for nothing, but their zones have to be known before the first volume is made.
            CacheSource(informers.get(NODES)),
            InformerSource(claimed, enqueue_self),
            InformerSource(
                informers.get(PODS), decisions.claims_of, concerns=claims.may_be_used,
                needs=Need(claimed, lambda: len(claimed.lister) > 0),
            ),
        ],
    )  # fmt: skip


def build_reclaimer(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of volumes."""
    volumes = Volumes(client, informers, recorder)
    return Controller(
        clock, VOLUMES_NAME, volumes.reconcile,
        sources=[
            InformerSource(informers.get(PERSISTENT_VOLUMES), enqueue_self),
            InformerSource(informers.get(PERSISTENT_VOLUME_CLAIMS), _volume_key),
        ],
    )  # fmt: skip
