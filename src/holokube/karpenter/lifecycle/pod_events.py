"""Notes on a claim when pods came to its node or left it: consolidation waits until that is a while ago."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.audience import DELETION, PHASE, SPEC
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_daemon, is_terminal, is_terminating
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, only
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource

WORKERS: Final = 8
DEDUPE_S: Final = 10.0
SURELY_NOTED_S: Final = 5.0
"""So soon after a note nothing is even queued: whatever time the queue takes, nothing would come of it."""


class PodEvents(ControllerComponent):
    """A component: ``status.lastPodEventTime``, at most every ten seconds."""

    name = "nodeclaim.podevents"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._nodes = informers.get(NODES)
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS,
            sources=[
                InformerSource(
                    informers.get(PODS), node_of, predicates=[matters, self._is_news],
                    heeds=SPEC | PHASE | DELETION,
                )
            ],
        )  # fmt: skip

    def _claim_of(self, node_name: str) -> JsonObject | None:
        node = self._nodes.lister.get(node_name)
        return only(self._claims, (node.get("spec") or {}).get("providerID") or "") if node is not None else None

    def _is_news(self, change: Change) -> bool:
        """Whether a look would find anything to note: pods come and go by the dozen, and one note does for all."""
        stored = self._claim_of(node_of(change.object)[0])
        last_s = NodeClaim.of(stored).last_pod_event_s if stored is not None else None
        return last_s is None or self._clock.time() - last_s >= SURELY_NOTED_S

    async def reconcile(self, node_name: str) -> Result | None:
        """Something happened to a pod of this node."""
        stored = self._claim_of(node_name)
        if stored is None:
            return None
        claim, now_s = NodeClaim.of(stored), self._clock.time()
        if not self._provider.supports(claim.node_class_ref):
            return None
        if claim.last_pod_event_s is not None and now_s - claim.last_pod_event_s < DEDUPE_S:
            return None
        changed = {**stored, "status": {**(stored.get("status") or {}), "lastPodEventTime": format_time(now_s)}}
        await patch_status(self._client, NODE_CLAIMS, stored, changed)
        return None


def node_of(pod: JsonObject) -> tuple[str, ...]:
    """The name of the pod's node."""
    name = (pod.get("spec") or {}).get("nodeName")
    return (name,) if name else ()


def matters(change: Change) -> bool:
    """Whether a pod was bound, ended, or was told to end; those of DaemonSets come and go with the node."""
    old, new = change.old, change.new
    if old is None or new is None or is_daemon(new) or not node_of(new):
        return False
    return (
        not node_of(old)
        or (is_terminal(new) and not is_terminal(old))
        or (is_terminating(new) and not is_terminating(old))
    )
