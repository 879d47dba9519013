"""Which pods are asked to leave at all."""

from __future__ import annotations

from typing import Any, cast

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.termination.eviction_queue import EvictionQueue
from holokube.runtime.informers import InformerSet
from tests.karpenter.objects import NOW_S, pod


def test_a_pod_that_leaves_already_is_asked_only_if_it_would_be_too_late() -> None:
    clock, nobody = VirtualClock(), cast("Any", None)
    queue = EvictionQueue(clock, nobody, InformerSet(clock, nobody, Rng("queue")), nobody, KarpenterMetrics())
    stays = pod("stays", node_name="n")
    leaves = pod("leaves", node_name="n", deleted_s=0)
    has_ended = pod("ended", node_name="n", phase="Succeeded")
    queue.add([stays, leaves, has_ended], None)
    assert [one in queue for one in (stays, leaves, has_ended)] == [True, False, False]
    queue.add([leaves], NOW_S - 60)
    assert leaves in queue
