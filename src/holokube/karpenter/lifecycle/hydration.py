"""Gives claims and nodes the label of their node class, should they lack it: others find them by it."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.audience import LABELS, SPEC
from holokube.client.client import Client
from holokube.client.resources import NODES, Resource
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, node_ids
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_object
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self


class Hydration(ControllerComponent):
    """A component: from a claim, and with it its Node."""

    name = "nodeclaim.hydration"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._client = client
        self._provider = provider
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._controller = Controller(
            clock, self.name, self.reconcile,
            sources=[
                InformerSource(self._claims, enqueue_self, concerns=_is_other_claim),
                InformerSource(self._nodes, self._claims_of, heeds=SPEC | LABELS),
            ],
        )  # fmt: skip

    def _claims_of(self, node: JsonObject) -> list[str]:
        return [
            claim["metadata"]["name"]
            for provider_id in node_ids(node)
            for claim in self._claims.lister.by_index(BY_PROVIDER_ID, provider_id)
        ]

    async def reconcile(self, name: str) -> Result | None:
        """Labels one claim and its Nodes."""
        stored = self._claims.lister.get(name)
        if stored is None:
            return None
        claim = NodeClaim.of(stored)
        if not self._provider.supports(claim.node_class_ref):
            return None
        await self._label(NODE_CLAIMS, stored, claim)
        if claim.provider_id:
            for node in self._nodes.lister.by_index(BY_PROVIDER_ID, claim.provider_id):
                await self._label(NODES, node, claim)
        return None

    async def _label(self, resource: Resource, obj: JsonObject, claim: NodeClaim) -> None:
        metadata, ref = obj["metadata"], claim.node_class_ref
        labels = metadata.get("labels") or {}
        if labels.get(ref.label) != ref.name:
            made = {**obj, "metadata": {**metadata, "labels": {**labels, ref.label: ref.name}}}
            await patch_object(self._client, resource, obj, made)


def _is_other_claim(old: JsonObject | None, new: JsonObject | None) -> bool:
    """Whether a claim has got another class, label or instance: nothing else is looked at."""
    if old is None or new is None:
        return True
    return _looked_at(old) != _looked_at(new)


def _looked_at(claim: JsonObject) -> tuple[object, ...]:
    return claim.get("spec"), claim["metadata"].get("labels"), (claim.get("status") or {}).get("providerID") or ""
