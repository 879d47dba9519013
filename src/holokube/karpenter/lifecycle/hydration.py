"""Gives claims and nodes the label of their node class, should they lack it: others find them by it."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.audience import LABELS, SPEC
from holokube.client.client import Client
from holokube.client.resources import NODES, Resource
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
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
                InformerSource(self._claims, enqueue_self, concerns=self._concerns),
                InformerSource(self._nodes, self._claims_of, heeds=SPEC | LABELS),
            ],
        )  # fmt: skip

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        if new is None or (old is not None and _looks_alike(old, new)):
            return False
        return self._lacks_label(new)

    def _claims_of(self, node: JsonObject) -> list[str]:
        return [
            claim["metadata"]["name"]
            for provider_id in node_ids(node)
            for claim in self._claims.lister.by_index(BY_PROVIDER_ID, provider_id)
            if self._lacks_label(claim)
        ]

    def _lacks_label(self, stored: JsonObject) -> bool:
        """Whether a claim or one of its Nodes has to be labelled, which hardly ever is so."""
        ref = NodeClassRef.from_json((stored.get("spec") or {}).get("nodeClassRef"))
        label, name = ref.label, ref.name
        for one in (stored, *self._nodes_of(stored)):
            if (one["metadata"].get("labels") or {}).get(label) != name:
                return True
        return False

    def _nodes_of(self, stored: JsonObject) -> list[JsonObject]:
        provider_id = _provider_id(stored)
        return self._nodes.lister.by_index(BY_PROVIDER_ID, provider_id) if provider_id else []

    async def reconcile(self, name: str) -> Result | None:
        """Labels one claim and its Nodes."""
        stored = self._claims.lister.get(name)
        if stored is None:
            return None
        claim = NodeClaim.of(stored)
        if not self._provider.supports(claim.node_class_ref):
            return None
        await self._label(NODE_CLAIMS, stored, claim)
        for node in self._nodes_of(stored):
            await self._label(NODES, node, claim)
        return None

    async def _label(self, resource: Resource, obj: JsonObject, claim: NodeClaim) -> None:
        metadata, ref = obj["metadata"], claim.node_class_ref
        if not _is_labelled(obj, ref):
            labels = {**(metadata.get("labels") or {}), ref.label: ref.name}
            await patch_object(self._client, resource, obj, {**obj, "metadata": {**metadata, "labels": labels}})


def _is_labelled(obj: JsonObject, ref: NodeClassRef) -> bool:
    return bool((obj["metadata"].get("labels") or {}).get(ref.label) == ref.name)


def _looks_alike(old: JsonObject, new: JsonObject) -> bool:
    """Whether two states of a claim are the same in class, labels and instance: nothing else is looked at."""
    # What a change leaves alone is the very same object as a rule.
    before, after = old.get("spec"), new.get("spec")
    if before is not after and before != after:
        return False
    before, after = old["metadata"].get("labels"), new["metadata"].get("labels")
    if before is not after and before != after:
        return False
    before, after = old.get("status"), new.get("status")
    if before and after and before.get("providerID") is after.get("providerID"):
        return True
    return _provider_id(old) == _provider_id(new)


def _provider_id(claim: JsonObject) -> str:
    return (claim.get("status") or {}).get("providerID") or ""
