"""Makes the Nodes of launched claims, after the delay that their node class asks for.

It works on what the claims say and remembers nothing of importance. A Node whose claim is gone, because the claim ended
while its Node was being made, is taken away again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.karpenter.api.durations import duration_s
from holokube.karpenter.api.labels import LAUNCHED, NODEPOOL_LABEL, REGISTERED
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.provider.choice import PROVIDER_PREFIX, node_object
from holokube.karpenter.provider.faults import Fate, fate_of
from holokube.karpenter.provider.hollow import HollowProvider
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids
from holokube.karpenter.writes import delete_object
from holokube.kube.conditions import conditions_of, is_true
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

WORKERS: Final = 32
BY_CLAIM: Final = "karpenter/claim-of-machine"


class Machines(ControllerComponent):
    """A component: one Node per launched claim."""

    name = "hollow-machines"

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, rng: Rng, provider: HollowProvider
    ) -> None:
        """``rng`` is the provider's own: both have to agree on the fate of a machine."""
        self._clock = clock
        self._client = client
        self._rng = rng
        self._provider = provider
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._nodes = informers.indexed(NODES, BY_CLAIM, claim_of_machine)
        self._launched_s: dict[str, float] = {}
        self._log = get_logger("holokube.karpenter.machines")
        sources = [
            InformerSource(self._claims, enqueue_self, concerns=self._concerns),
            InformerSource(self._nodes, self._unsettled_claims),
        ]
        self._controller = Controller(clock, self.name, self.reconcile, sources=sources, workers=WORKERS)

    def _unsettled_claims(self, node: JsonObject) -> list[str]:
        """The claim of a Node, unless it is one for which nothing is done, whatever becomes of the Node."""
        due = self._is_due()
        return [name for name in claim_of_machine(node) if due or not is_settled(self._claims.lister.by_key(name))]

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        if old is None or new is None or not is_settled(new):
            return True
        # What a change leaves alone is the very same object as a rule.
        is_like_before = conditions_of(old) is conditions_of(new) and not new["metadata"].get("deletionTimestamp")
        return not (is_like_before or is_settled(old)) or self._is_due()

    async def reconcile(self, name: str) -> Result | None:
        """Brings the machine of one claim in order."""
        found = self._claims.lister.by_key(name)
        if found is None:
            await self._clear_away(name)
            return None
        claim = NodeClaim.of(found)
        if is_settled(found) or not claim.provider_id.startswith(PROVIDER_PREFIX):
            self._launched_s.pop(claim.uid, None)
            return None
        return await self._bring(claim)

    async def _bring(self, claim: NodeClaim) -> Result | None:
        node_name = claim.provider_id.removeprefix(PROVIDER_PREFIX)
        if self._nodes.lister.by_key(node_name) is not None:
            return None
        fate = fate_of(self._provider.faults, self._rng, claim.uid)
        if fate is Fate.NEVER_COMES:
            return None
        due_s = self._launch_time_s(claim) + self._delay_s(claim)
        if fate is Fate.COMES_LATE:
            due_s += self._provider.faults.slow_by_s
        wait_s = due_s - self._clock.time()
        if wait_s > 0:
            return Result(requeue_after_s=wait_s)
        try:
            await self._client.create(NODES, node_object(claim))
        except AlreadyExists:
            return None
        self._log.debug("Machine is up", node=node_name, claim=claim.name)
        return None

    def _launch_time_s(self, claim: NodeClaim) -> float:
        """Conditions tell whole seconds; whoever saw the launch itself knows better."""
        condition_s = claim.since_s(LAUNCHED)
        told_s = condition_s if condition_s is not None else self._clock.time()
        return self._launched_s.setdefault(claim.uid, max(told_s, min(self._clock.time(), told_s + 1.0)))

    def _delay_s(self, claim: NodeClaim) -> float:
        node_class = self._provider.node_class(claim.node_class_ref) or {}
        return duration_s(node_class.get("spec") or {}, "nodeRegistrationDelay", 0.0) or 0.0

    async def _clear_away(self, name: str) -> None:
        """Deletes Nodes of a claim that no longer is. The server is asked: the cache may be behind."""
        nodes = self._nodes.lister.by_index(BY_CLAIM, name)
        leftover = [
            node
            for node in nodes
            if not node["metadata"].get("deletionTimestamp")
            # Machines that others have brought may have hostnames of another kind.
            and not self._claims.lister.by_index(BY_PROVIDER_ID, node["spec"]["providerID"])
        ]
        if not leftover:
            return
        try:
            await self._client.get(NODE_CLAIMS, name)
        except NotFound:
            for node in leftover:
                self._log.info("Machine without a claim is taken away", node=node["metadata"]["name"], claim=name)
                await delete_object(self._client, NODES, node)


def claim_of_machine(node: JsonObject) -> Iterable[str]:
    """The claim that a Node of ours was made for; its name is the hostname."""
    labels = node["metadata"].get("labels") or {}
    provider_id = str((node.get("spec") or {}).get("providerID") or "")
    if provider_id.startswith(PROVIDER_PREFIX) and labels.get(NODEPOOL_LABEL) and labels.get(HOSTNAME_LABEL):
        return (str(labels[HOSTNAME_LABEL]),)
    return ()


def is_settled(claim: JsonObject | None) -> bool:
    """Whether a claim has its machine, or needs none any more."""
    return claim is not None and (bool(claim["metadata"].get("deletionTimestamp")) or is_true(claim, REGISTERED))
