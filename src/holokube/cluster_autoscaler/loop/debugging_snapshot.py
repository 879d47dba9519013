"""``/snapshotz``: the cluster as the next turn sees it, for people who want to know what the autoscaler knew."""

from __future__ import annotations

import asyncio
from typing import Any

from holokube.base.clock import Clock
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.timeformat import format_micro_time

TIMEOUT_S = 300.0


class DebuggingSnapshot:
    """Whoever asks waits for the end of the next turn. Nothing is collected while nobody asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[asyncio.Future[dict[str, Any]]] = []

    async def take(self) -> dict[str, Any]:
        """The snapshot of the next turn; ``TimeoutError`` if none comes for five minutes."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await answer
        finally:
            if answer in self._waiting:
                self._waiting.remove(answer)

    def serve(self, snapshot: ClusterSnapshot, report: TurnReport) -> None:
        """A turn has ended."""
        if not self._waiting:
            return
        taken = {
            "startTimestamp": format_micro_time(report.now_s),
            "endTimestamp": format_micro_time(self._clock.time()),
            "errorMessage": report.error.message if report.error is not None else "",
            "NodeList": [{"Node": snapshot.node(name), "Pods": snapshot.pods_on(name)} for name in snapshot.node_names],
            "TemplateNodes": {
                option.group_id: {"Node": option.node.node, "Pods": list(option.node.pods)}
                for option in report.scale_up.options
            },
            "UnscheduledPodsCanBeScheduled": [
                {"Pod": pod_key(status.pod), "Node": status.node_name} for status in report.schedulable
            ],
        }
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            if not answer.done():
                answer.set_result(taken)
