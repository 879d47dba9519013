"""least-waste: the option that leaves the smallest fraction of cpu and memory of its nodes without a request.

What counts is the capacity of the nodes, not what they offer to pods, and requests of the placed pods alone:
daemons on the nodes are waste.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Batch, Option
from holokube.kube.resources import CPU, MEMORY, parse_resources, pod_requests


class LeastWasteExpander:
    """See the module."""

    name = "least-waste"

    def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """Those with the least waste; only exactly equal numbers are equally good."""
        best: list[Option] = []
        least = 0.0
        for option in options:
            cpu, memory = waste_of(option)
            score = cpu + memory
            ctx.score(option, score, f"would waste {cpu * 100:.2f}% CPU, {memory * 100:.2f}% Memory, "
                                     f"{score * 50:.2f}% Blended")
            if best and score == least:
                best.append(option)
            elif not best or score < least:
                least, best = score, [option]
        return best


def waste_of(option: Option) -> tuple[float, float]:
    """The fractions of cpu and memory that nobody would ask for."""
    capacity = parse_resources((option.node.node.get("status") or {}).get("capacity"))
    requested_cpu_milli, requested_bytes = _requested(option.batches)
    available_cpu_milli = capacity.get(CPU, 0) * option.node_count
    available_bytes = -(-capacity.get(MEMORY, 0) // 1000) * option.node_count
    return (
        _ratio(available_cpu_milli - requested_cpu_milli, available_cpu_milli),
        _ratio(available_bytes - requested_bytes, available_bytes),
    )


def _requested(batches: Iterable[Batch]) -> tuple[int, int]:
    cpu_milli = memory_milli = 0
    for exemplar, pods in batches:
        requests = pod_requests(exemplar)
        cpu_milli += requests.get(CPU, 0) * pods
        memory_milli += requests.get(MEMORY, 0) * pods
    return cpu_milli, -(-memory_milli // 1000)


def _ratio(part: int, whole: int) -> float:
    # A node without capacity must not end the loop; it gets what IEEE division gives, as upstream has it.
    if whole == 0:
        return math.nan if part == 0 else math.copysign(math.inf, part)
    return part / whole
