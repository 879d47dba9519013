"""What one run of a scenario leaves behind: plain values, in the order of events, the same for the same seed.

Times are seconds since the run began, money is USD, shares are between 0 and 1. ``as_json`` gives what ``-o json``
prints and reports are made from; its shape changes only with :data:`RESULT_VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

RESULT_VERSION: Final = "holokube.dev/v1alpha1"

SILENCED: Final = "silenced"
"""A decision about a node: a fault takes its kubelet away. :data:`HEARD_AGAIN` is the end of it."""
HEARD_AGAIN: Final = "heard again"

Better = Literal["lower", "higher", ""]


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """One node's life."""

    name: str
    group: str
    """Node group or NodePool; empty for nodes that were there from the start and belong to none."""
    instance_type: str
    zone: str
    capacity_type: str
    price_usd_per_hour: float
    cpu_milli: int
    """Allocatable, as is the memory."""
    memory_bytes: int
    created_s: float
    ready_s: float | None
    removed_s: float | None
    why_added: str = ""
    why_removed: str = ""


# A long run has a hundred thousand of these two: as structs they are made at a fraction of the cost of frozen
# dataclasses.


class PodSpan(msgspec.Struct, frozen=True):
    """One pod's life; a pod that is made anew after an eviction is another one."""

    name: str
    """``namespace/name``."""
    workload: str
    """``namespace/kind/name`` of its topmost owner, or its own."""
    node: int | None
    """Its node's place in :attr:`RunResult.nodes`."""
    cpu_milli: int
    memory_bytes: int
    created_s: float
    bound_s: float | None
    ready_s: float | None
    ended_s: float | None
    end: Literal["", "done", "failed", "deleted", "evicted"] = ""


class Decision(msgspec.Struct, frozen=True):
    """An entry of the decision journal."""

    at_s: float
    component: str
    kind: str
    """What was decided about: ``node``, ``pod``, ``group``, ``scale-up``, ``scale-down``, ``fault``, ..."""
    subject: str
    """Its name; ``namespace/name`` for pods."""
    decision: str
    reasons: tuple[str, ...] = ()
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """Samples; every column is as long as ``times_s``."""

    times_s: tuple[float, ...]
    columns: Mapping[str, tuple[float, ...]]
    """``nodes``, ``nodes_ready``, ``cost_usd_per_hour``, ``cpu_allocated_share``, ``memory_allocated_share``,
    ``cpu_used_share``, ``memory_used_share``, ``pods_running``, ``pods_pending``."""
    nodes_by_type: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    nodes_by_group: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An assertion of the scenario, and whether it held."""

    text: str
    holds: bool
    measured: float | None


@dataclass(frozen=True, slots=True)
class RunResult:
    """Everything about one run."""

    scenario: str
    policy: str
    """The label of the policy or variant in tables."""
    seed: int
    start: str
    """The virtual time at which it began, RFC 3339."""
    duration_s: float
    summary: Mapping[str, float | None]
    """By name of a :class:`Measure`; None where there is nothing to measure."""
    cost_by_workload_usd: Mapping[str, float]
    node_hours_by_type: Mapping[str, float]
    api_calls: Mapping[str, int]
    """By verb."""
    series: Series
    nodes: tuple[NodeSpan, ...]
    pods: tuple[PodSpan, ...]
    decisions: tuple[Decision, ...]
    outcomes: tuple[Outcome, ...]
    scenario_text: str
    """The scenario as it was read, so that a report alone is enough to run it again."""

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = asdict(replace(self, pods=(), decisions=()))
        plain["pods"] = tuple(msgspec.structs.asdict(pod) for pod in self.pods)
        plain["decisions"] = tuple(
            {**msgspec.structs.asdict(decision), "facts": deepcopy(decision.facts)} for decision in self.decisions
        )
        return {"apiVersion": RESULT_VERSION, "kind": "RunResult", **plain}


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of the summary: how to call and to judge it."""

    name: str
    title: str
    unit: Literal["usd", "usd/h", "s", "share", "count", "h", ""]
    better: Better


MEASURES: Final[tuple[Measure, ...]] = (
    Measure("cost_usd", "Cost", "usd", "lower"),
    Measure("cost_usd_per_hour", "Cost per hour", "usd/h", "lower"),
    Measure("lower_bound_usd", "Lower bound of cost", "usd", ""),
    Measure("above_bound_share", "Above the bound", "share", "lower"),
    Measure("waste_usd", "Waste (paid for, not requested)", "usd", "lower"),
    Measure("node_hours", "Node hours", "h", "lower"),
    Measure("nodes_mean", "Nodes on average", "count", "lower"),
    Measure("nodes_max", "Nodes, peak", "count", "lower"),
    Measure("cpu_allocated_share", "CPU allocated", "share", "higher"),
    Measure("memory_allocated_share", "Memory allocated", "share", "higher"),
    Measure("cpu_used_share", "CPU used", "share", "higher"),
    Measure("memory_used_share", "Memory used", "share", "higher"),
    Measure("pending_p50_s", "Pending, median", "s", "lower"),
    Measure("pending_p90_s", "Pending, p90", "s", "lower"),
    Measure("pending_p99_s", "Pending, p99", "s", "lower"),
    Measure("pending_max_s", "Pending, longest", "s", "lower"),
    Measure("ready_p50_s", "Time to ready, median", "s", "lower"),
    Measure("ready_p99_s", "Time to ready, p99", "s", "lower"),
    Measure("pods_created", "Pods created", "count", ""),
    Measure("pods_pending_end", "Pods pending at the end", "count", "lower"),
    Measure("evictions", "Evictions", "count", "lower"),
    Measure("node_launches", "Nodes launched", "count", "lower"),
    Measure("node_removals", "Nodes removed", "count", "lower"),
    Measure("failed_scale_ups", "Failed scale-ups", "count", "lower"),
    Measure("api_calls_total", "API calls", "count", "lower"),
)
"""In the order of tables."""

MEASURE_BY_NAME: Final = {measure.name: measure for measure in MEASURES}
