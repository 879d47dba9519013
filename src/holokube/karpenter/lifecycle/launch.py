"""The first step of a claim: the provider launches an instance, and the claim takes over what it is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from holokube.karpenter import events
from holokube.karpenter.api.labels import LAUNCHED
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.provider.protocol import (
    CloudProvider,
    Instance,
    InsufficientCapacity,
    LaunchFailed,
    NodeClassNotReady,
    ProviderError,
)
from holokube.kube.types import JsonObject


class Ending(Enum):
    """How a launch went."""

    DONE = auto()
    FAILED = auto()
    NO_CAPACITY = auto()
    CLASS_NOT_READY = auto()


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """The claim after the try, and the error if it did not succeed."""

    claim: JsonObject
    ending: Ending
    error: ProviderError | None = None


class Launcher:
    """Launches each claim once: an instance is remembered until the claim is known to carry it."""

    def __init__(self, provider: CloudProvider) -> None:
        self._provider = provider
        self._launched: dict[str, Instance] = {}

    async def launch(self, claim: JsonObject, now_s: float) -> LaunchResult:
        """Launches, unless the claim was launched."""
        uid = claim["metadata"]["uid"]
        if CLAIM_CONDITIONS.status(claim, LAUNCHED) != "Unknown":
            self._launched.pop(uid, None)
            return LaunchResult(CLAIM_CONDITIONS.observed(claim, LAUNCHED, now_s), Ending.DONE)
        instance = self._launched.get(uid)
        if instance is None:
            try:
                instance = await self._provider.create(NodeClaim.of(claim))
            except InsufficientCapacity as error:
                return LaunchResult(claim, Ending.NO_CAPACITY, error)
            except NodeClassNotReady as error:
                return LaunchResult(claim, Ending.CLASS_NOT_READY, error)
            except ProviderError as error:
                return LaunchResult(_failed(claim, error, now_s), Ending.FAILED, error)
            self._launched[uid] = instance
        return LaunchResult(launched(claim, instance, now_s), Ending.DONE)

    def forget(self, uid: str) -> None:
        """The claim is gone."""
        self._launched.pop(uid, None)


def _failed(claim: JsonObject, error: ProviderError, now_s: float) -> JsonObject:
    reason = error.reason if isinstance(error, LaunchFailed) else "LaunchFailed"
    return CLAIM_CONDITIONS.with_unknown(claim, LAUNCHED, now_s, reason, events.cut(error.message))


def launched(claim: JsonObject, instance: Instance, now_s: float) -> JsonObject:
    """The claim with what the provider tells of the instance: the claim's own labels win, annotations do not."""
    metadata = claim["metadata"]
    told = {
        "providerID": instance.provider_id,
        "imageID": instance.image_id,
        "capacity": dict(instance.capacity),
        "allocatable": dict(instance.allocatable),
    }
    made = {
        **claim,
        "metadata": {
            **metadata,
            "labels": {**instance.labels, **(metadata.get("labels") or {})},
            "annotations": {**(metadata.get("annotations") or {}), **instance.annotations},
        },
        "status": {**(claim.get("status") or {}), **{key: value for key, value in told.items() if value}},
    }
    return CLAIM_CONDITIONS.with_true(made, LAUNCHED, now_s)
