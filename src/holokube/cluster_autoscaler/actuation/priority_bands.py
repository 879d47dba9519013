"""Draining by priority: which pods are evicted together, and how long each such band is waited for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.kube.types import JsonObject

HIGHEST_PRIORITY = 2**31 - 1


@dataclass(slots=True)
class EvictionBand:
    """Pods that are evicted at the same time."""

    priority: int
    grace_s: int
    full: list[JsonObject] = field(default_factory=list)
    """Pods that must be gone before the node may be deleted."""
    best_effort: list[JsonObject] = field(default_factory=list)


def single_band(max_graceful_termination_s: int) -> tuple[tuple[int, int], ...]:
    """The configuration without bands: everything at once."""
    return ((HIGHEST_PRIORITY, max_graceful_termination_s),)


def bands(
    config: Sequence[tuple[int, int]], full: Sequence[JsonObject], best_effort: Sequence[JsonObject]
) -> list[EvictionBand]:
    """The pods in bands by ascending priority; ``config`` holds (priority, seconds).

    A pod belongs to the band with the highest priority not above its own, and to the lowest band if there is none.
    """
    result = [EvictionBand(priority, grace_s) for priority, grace_s in sorted(config)]
    priorities = [band.priority for band in result]
    for pod in full:
        result[_index(pod, priorities)].full.append(pod)
    for pod in best_effort:
        result[_index(pod, priorities)].best_effort.append(pod)
    return result


def _index(pod: JsonObject, priorities: Sequence[int]) -> int:
    priority = pod["spec"].get("priority") or 0
    index = bisect_left(priorities, priority)
    if index == len(priorities):
        return index - 1
    if index > 0 and priorities[index] > priority:
        return index - 1
    return index
