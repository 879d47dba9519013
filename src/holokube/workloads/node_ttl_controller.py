"""Tells kubelets, by an annotation of their node, how long they may keep secrets and config maps in cache."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.sources import InformerSource, enqueue_self

NAME: Final = "ttl-controller"
WORKERS: Final = 5
ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
_STEPS: Final = ((0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, 2**31 - 1, 300))
"""Least and most nodes of each step, and its seconds. They overlap, so that a node more or less changes nothing."""


def next_step(step: int, nodes: int) -> int:
    """The step for a number of nodes, given the one that held before."""
    while nodes > _STEPS[step][1]:
        step += 1
    while nodes < _STEPS[step][0]:
        step -= 1
    return step


class NodeTtl:
    """Brings the annotation of one node up to date."""

    def __init__(self, client: Client, informers: InformerSet) -> None:
        self._client = client
        self._nodes = informers.get(NODES).lister
        self._step = 0

    def concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a node calls for a look: not if it is gone, or has what it is to have."""
        if new is None:
            return False
        step = next_step(self._step, len(self._nodes))
        return old is None or step != self._step or not _has(new, _seconds(step))

    async def reconcile(self, key: str) -> None:
        node: JsonObject | None = self._nodes.by_key(key)
        if node is None:
            return
        self._step = next_step(self._step, len(self._nodes))
        wanted = _seconds(self._step)
        if _has(node, wanted):
            return
        try:
            await self._client.patch(NODES, key, {"metadata": {"annotations": {ANNOTATION: wanted}}})
        except NotFound:
            return


def _seconds(step: int) -> str:
    return str(_STEPS[step][2])


def _has(node: JsonObject, wanted: str) -> bool:
    return bool((node["metadata"].get("annotations") or {}).get(ANNOTATION) == wanted)


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
) -> Controller[str]:
    """The controller of nodes' cache times."""
    ttl = NodeTtl(client, informers)
    return Controller(
        clock, NAME, ttl.reconcile, workers=WORKERS,
        sources=[InformerSource(informers.get(NODES), enqueue_self, concerns=ttl.concerns)],
    )  # fmt: skip
