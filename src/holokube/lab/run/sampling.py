"""Samples of a run at a fixed distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.lab.results import Series
from holokube.lab.run.amounts import NANO_USD
from holokube.lab.run.node_meter import NodeMeter
from holokube.lab.run.pod_meter import PodMeter
from holokube.lab.run.usage_meter import UsageMeter

_DIGITS = 6


@dataclass(slots=True)
class Sampler:
    """Reads the meters, and adds up what is used: that changes all the time, and nothing tells."""

    nodes: NodeMeter
    pods: PodMeter
    usage: UsageMeter
    times_s: list[float] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    by_type: list[dict[str, int]] = field(default_factory=list)
    by_group: list[dict[str, int]] = field(default_factory=list)
    used_cpu_milli: int = 0
    used_memory_bytes: int = 0
    held_cpu_milli: int = 0
    held_memory_bytes: int = 0
    """Sums over all samples, of what was used and of what the nodes had."""

    def take(self, at_s: float) -> None:
        """One sample."""
        nodes, pods = self.nodes, self.pods
        cpu, memory = nodes.cpu_milli.amount, nodes.memory_bytes.amount
        used_cpu, used_memory = self.usage.now()
        self.used_cpu_milli += used_cpu
        self.used_memory_bytes += used_memory
        self.held_cpu_milli += cpu
        self.held_memory_bytes += memory
        self.times_s.append(at_s)
        row: dict[str, float] = {
            "nodes": nodes.nodes.amount,
            "nodes_ready": nodes.ready.amount,
            "cost_usd_per_hour": nodes.price_nano_usd.amount / NANO_USD,
            "cpu_allocated_share": share(pods.cpu_milli.amount, cpu) or 0.0,
            "memory_allocated_share": share(pods.memory_bytes.amount, memory) or 0.0,
            "cpu_used_share": share(used_cpu, cpu) or 0.0,
            "memory_used_share": share(used_memory, memory) or 0.0,
            "pods_running": pods.running.amount,
            "pods_pending": pods.pending.amount,
        }
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)
        self.by_type.append({name: area.amount for name, area in nodes.by_type.items()})
        self.by_group.append({name: count for name, count in nodes.by_group.items() if name})

    def series(self) -> Series:
        """All samples."""
        return Series(
            tuple(self.times_s),
            {name: tuple(values) for name, values in self.columns.items()},
            _by_name(self.by_type),
            _by_name(self.by_group),
        )


def share(part: int, whole: int) -> float | None:
    """A part of something; None of nothing."""
    return round(part / whole, _DIGITS) if whole else None


def _by_name(samples: Sequence[dict[str, int]]) -> dict[str, tuple[int, ...]]:
    names = sorted({name for sample in samples for name in sample})
    return {name: tuple(sample.get(name, 0) for sample in samples) for name in names}
