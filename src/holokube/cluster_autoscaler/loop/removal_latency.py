"""How long nodes stay although they could go: ``--node-removal-latency-tracking-enabled``."""

from __future__ import annotations

from collections.abc import Iterable

from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.scale_down.report import UnneededNode


class RemovalLatency:
    """Remembers from when on each unneeded node could have gone."""

    def __init__(self, metrics: AutoscalerMetrics) -> None:
        self._metrics = metrics
        self._ripe_at_s: dict[str, float] = {}

    def update(self, unneeded: Iterable[UnneededNode], deleted: Iterable[str], now_s: float) -> None:
        """Take over a turn: what has gone, and what is needed again, is measured and forgotten."""
        gone = set(deleted)
        ripe_at_s = {name_of(entry.node): entry.since_s + entry.removal_threshold_s for entry in unneeded}
        for name, at_s in (self._ripe_at_s | ripe_at_s).items():
            if name in gone:
                self._metrics.removal_latency(max(0.0, now_s - at_s), deleted=True)
            elif name not in ripe_at_s and now_s > at_s:
                self._metrics.removal_latency(now_s - at_s, deleted=False)
        self._ripe_at_s = {name: at_s for name, at_s in ripe_at_s.items() if name not in gone}
