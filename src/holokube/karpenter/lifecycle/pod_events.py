"""Notes on a claim when pods came to its node or left it: consolidation waits until that is a while ago."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.audience import DELETION, ENDING, SPEC
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.node_claim import NodeClassRef, seconds_of
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_daemon, is_terminal, is_terminating
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, only
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import set_status
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource

WORKERS: Final = 8
DEDUPE_S: Final = 10.0
_EMPTY: Final[JsonObject] = {}
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
                    informers.get(PODS), node_of, concerns=self._concerns, heeds=SPEC | ENDING | DELETION,
                    hears_comings=False,
                )
            ],
        )  # fmt: skip

    def _claim_of(self, node_name: str) -> JsonObject | None:
        node = self._nodes.lister.by_key(node_name)
        return only(self._claims, (node.get("spec") or {}).get("providerID") or "") if node is not None else None

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a look would find anything to note: pods come and go by the dozen, and one note does for all."""
        if old is None or new is None or not _matters(old, new):
            return False
        stored = self._claim_of(new["spec"]["nodeName"])
        last = (stored.get("status") or _EMPTY).get("lastPodEventTime") if stored is not None else None
        last_s = seconds_of(last)
        return last_s is None or self._clock.time() - last_s >= SURELY_NOTED_S

    async def reconcile(self, node_name: str) -> Result | None:
        """Something happened to a pod of this node."""
        stored = self._claim_of(node_name)
        if stored is None:
            return None
        now_s = self._clock.time()
        last_s = seconds_of((stored.get("status") or _EMPTY).get("lastPodEventTime"))
        if last_s is not None and now_s - last_s < DEDUPE_S:
            return None
        if not self._provider.supports(NodeClassRef.from_json((stored.get("spec") or _EMPTY).get("nodeClassRef"))):
            return None
        # No list is touched, so that it does not matter who else has written meanwhile.
        await set_status(self._client, NODE_CLAIMS, stored, {"lastPodEventTime": format_time(now_s)})
        return None


def node_of(pod: JsonObject) -> tuple[str, ...]:
    """The name of the pod's node."""
    name = (pod.get("spec") or {}).get("nodeName")
    return (name,) if name else ()


def matters(change: Change) -> bool:
    """Whether a pod was bound, ended, or was told to end; those of DaemonSets come and go with the node."""
    return change.old is not None and change.new is not None and _matters(change.old, change.new)


def _matters(old: JsonObject, new: JsonObject) -> bool:
    spec = new.get("spec")
    if not spec or not spec.get("nodeName"):
        return False
    before = old.get("spec")
    return (
        (before is not spec and not (before or _EMPTY).get("nodeName"))
        or (is_terminating(new) and not is_terminating(old))
        or (old.get("status") is not new.get("status") and is_terminal(new) and not is_terminal(old))
    ) and not is_daemon(new)
