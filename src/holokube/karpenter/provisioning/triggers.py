"""What makes the provisioner look: pods without a node, and nodes whose pods will need another one."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import DISRUPTED_TAINT
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.provisioning.batcher import Batcher
from holokube.karpenter.state.pod_times import PodTimes
from holokube.kube.taints import taints_of
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

LOOK_AGAIN_S: Final = 10.0
"""A pod may not end up where a solve saw it: it counts anew until it is bound."""


class PodTrigger(ControllerComponent):
    """A component: pods that wait for a node."""

    name = "provisioner.trigger.pod"

    def __init__(self, clock: Clock, informers: InformerSet, batcher: Batcher, pod_times: PodTimes) -> None:
        self._clock = clock
        self._pods = informers.get(PODS)
        self._batcher = batcher
        self._pod_times = pod_times
        self._controller = Controller(
            clock, self.name, self.reconcile, sources=[InformerSource(self._pods, enqueue_self)]
        )

    async def reconcile(self, key: str) -> Result | None:
        """Triggers while the pod waits."""
        pod = self._pods.lister.by_key(key)
        if pod is None or not is_provisionable(pod):
            return None
        self._batcher.trigger(pod["metadata"]["uid"])
        self._pod_times.seen(key, self._clock.time())
        return Result(requeue_after_s=LOOK_AGAIN_S)


class NodeTrigger(ControllerComponent):
    """A component: nodes that are being emptied."""

    name = "provisioner.trigger.node"

    def __init__(self, clock: Clock, informers: InformerSet, batcher: Batcher) -> None:
        self._nodes = informers.get(NODES)
        self._batcher = batcher
        self._controller = Controller(
            clock, self.name, self.reconcile, sources=[InformerSource(self._nodes, enqueue_self)]
        )

    async def reconcile(self, name: str) -> Result | None:
        """Triggers while the node carries the taint."""
        node = self._nodes.lister.get(name)
        if node is None or not any(taint.is_same(DISRUPTED_TAINT) for taint in taints_of(node)):
            return None
        self._batcher.trigger(node["metadata"]["uid"])
        return Result(requeue_after_s=LOOK_AGAIN_S)
