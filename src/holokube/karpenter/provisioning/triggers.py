"""What makes the provisioner look: pods without a node, and nodes whose pods will need another one."""

from __future__ import annotations

from itertools import count
from typing import Final

from holokube.base.clock import Clock
from holokube.client.cache import object_key
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import DISRUPTED_TAINT
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.provisioning.batcher import Batcher
from holokube.karpenter.state.pod_times import PodTimes
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.runtime.stop import StopSignal

_CHANGED: Final = "changed"
_ONE_ITEM: Final = (_CHANGED,)
_EMPTY: Final[JsonObject] = {}
LOOK_AGAIN_S: Final = 10.0
"""A pod may not end up where a solve saw it: it counts anew until it is bound."""


class PodTrigger(ControllerComponent):
    """A component: pods that wait for a node.

    A pod is looked at when it changes, and again every ten seconds. Pods wait by the hundred and most began to at the
    same moment: those whose next look is due together are one item of the queue, a party.
    """

    name = "provisioner.trigger.pod"

    def __init__(self, clock: Clock, informers: InformerSet, batcher: Batcher, pod_times: PodTimes) -> None:
        self._clock = clock
        self._pods = informers.get(PODS)
        self._batcher = batcher
        self._pod_times = pod_times
        self._changed: dict[str, JsonObject | None] = {}
        """Pods that were told of since the last look, by key; each as it was found to wait, or None."""
        self._parties: dict[str, dict[str, JsonObject]] = {}
        """By name of a party: its pods by key, as they were at their last look."""
        self._waiting: set[str] = set()
        """The pods in all of them."""
        self._party_names = (f"party-{number}" for number in count())
        self._controller = Controller(
            clock, self.name, self.reconcile,
            sources=[InformerSource(self._pods, _as_changed, concerns=self._takes_note)],
        )  # fmt: skip

    async def run(self, stop: StopSignal) -> None:
        # A queue of an earlier run is gone, and with it when to look again; all pods are told of anew.
        self._parties.clear()
        self._waiting.clear()
        await super().run(stop)

    def _takes_note(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Of a pod's many changes, those to a pod that waits; once it does not, its next look comes by itself."""
        if new is not None and not (new.get("spec") or _EMPTY).get("nodeName") and is_provisionable(new):
            self._changed[object_key(new)] = new
            return True
        # Nothing but parties waits for its time.
        if not self._parties or not self._controller.queue.has_due:
            return False
        pod = new if new is not None else old
        if pod is not None:
            self._changed[object_key(pod)] = None
        return True

    async def reconcile(self, item: str) -> Result | None:
        """Triggers for the pods that wait: those that have changed, or those of a party."""
        if item == _CHANGED:
            self._look_at_changed()
            return None
        return Result(requeue_after_s=LOOK_AGAIN_S) if self._look_at_party(item) else None

    def _look_at_changed(self) -> None:
        changed, self._changed = self._changed, {}
        party: dict[str, JsonObject] = {}
        now_s = self._clock.time()
        triggered: list[str] = []
        by_key = self._pods.lister.by_key
        for key, known in changed.items():
            pod = by_key(key)
            # Most are still what was told.
            if pod is not None and (pod is known or is_provisionable(pod)):
                triggered.append(pod["metadata"]["uid"])
                self._pod_times.seen(key, now_s)
                if key not in self._waiting:
                    party[key] = pod
        self._batcher.trigger_all(triggered)
        if party:
            name = next(self._party_names)
            self._parties[name] = party
            self._waiting.update(party)
            self._controller.queue.add_after(name, LOOK_AGAIN_S)

    def _look_at_party(self, name: str) -> bool:
        """Whether some of its pods still wait."""
        party = self._parties.pop(name, {})
        left: dict[str, JsonObject] = {}
        by_key = self._pods.lister.by_key
        for key, before in party.items():
            pod = by_key(key)
            if pod is before:
                left[key] = before
            elif pod is not None and is_provisionable(pod):
                self._pod_times.seen(key, self._clock.time())
                left[key] = pod
            else:
                self._waiting.discard(key)
        if left:
            self._batcher.trigger_all([pod["metadata"]["uid"] for pod in left.values()])
            self._parties[name] = left
        return bool(left)


def _as_changed(_pod: JsonObject) -> tuple[str, ...]:
    """All pods that have changed are one item of the queue."""
    return _ONE_ITEM


class NodeTrigger(ControllerComponent):
    """A component: nodes that are being emptied."""

    name = "provisioner.trigger.node"

    def __init__(self, clock: Clock, informers: InformerSet, batcher: Batcher) -> None:
        self._nodes = informers.get(NODES)
        self._batcher = batcher
        self._controller = Controller(
            clock, self.name, self.reconcile,
            sources=[InformerSource(self._nodes, enqueue_self, concerns=self._concerns)],
        )  # fmt: skip

    def _concerns(self, _old: JsonObject | None, new: JsonObject | None) -> bool:
        return _is_emptied(new) or self._is_due()

    async def reconcile(self, name: str) -> Result | None:
        """Triggers while the node carries the taint."""
        node = self._nodes.lister.get(name)
        if node is None or not _is_emptied(node):
            return None
        self._batcher.trigger(node["metadata"]["uid"])
        return Result(requeue_after_s=LOOK_AGAIN_S)


def _is_emptied(node: JsonObject | None) -> bool:
    """Whether the node carries the taint."""
    if node is None or not (node.get("spec") or {}).get("taints"):
        return False
    return any(taint.is_same(DISRUPTED_TAINT) for taint in taints_of(node))
