"""What the page draws, as packed columns: samples, the lives of nodes and pods, the decision journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from holokube.lab.results import Decision, RunResult
from holokube.report.columns import Column, StringTable, floats, integers, pack, tick_s, ticks
from holokube.report.families import by_family, family
from holokube.report.figures import start_epoch_s

ENTRIES_MAX: Final = 200_000
"""Of the journal; the latest are kept, and the page says how many are missing."""
MARKS_MAX: Final = 200
"""Faults that are marked in the charts."""

SERIES: Final = (
    "nodes", "cost_usd_per_hour", "cpu_allocated_share", "memory_allocated_share", "cpu_used_share",
    "memory_used_share", "pods_pending", "pods_running",
)
_MIB: Final = 2**20


def series_block(result: RunResult) -> str:
    """The samples, with the faults that happened meanwhile."""
    unit_s = tick_s(result.duration_s)
    series = result.series
    columns: dict[str, Column] = {"times": ticks(series.times_s, unit_s)}
    for name in SERIES:
        if name in series.columns:
            columns[name] = floats(series.columns[name])
    marks = [
        [decision.at_s, f"{decision.subject}: {decision.decision}"]
        for decision in result.decisions if decision.kind == "fault"
    ]
    header = {
        "tick_s": unit_s,
        "start_s": start_epoch_s(result.start),
        "duration_s": result.duration_s,
        "marks": marks[:MARKS_MAX],
    }
    return pack(header, columns)


def wall_block(result: RunResult) -> str:
    """Who ran where."""
    unit_s = tick_s(result.duration_s)
    strings = StringTable()
    nodes, pods = result.nodes, result.pods
    workloads = StringTable()
    ran = {family(pod.workload) for pod in pods}
    # By what they cost, so that colours go to those that matter; the rest in order of appearance.
    for name, _ in sorted(by_family(result.cost_by_workload_usd).items(), key=lambda item: (-item[1], item[0])):
        if name in ran:
            workloads.place(name)
    columns = {
        "node_group": strings.column(node.group for node in nodes),
        "node_type": strings.column(node.instance_type for node in nodes),
        "node_zone": strings.column(node.zone for node in nodes),
        "node_capacity": strings.column(node.capacity_type for node in nodes),
        "node_price": floats(node.price_usd_per_hour for node in nodes),
        "node_cpu": integers(node.cpu_milli for node in nodes),
        "node_memory_mib": floats(node.memory_bytes / _MIB for node in nodes),
        "node_created": ticks((node.created_s for node in nodes), unit_s),
        "node_ready": ticks((node.ready_s for node in nodes), unit_s),
        "node_removed": ticks((node.removed_s for node in nodes), unit_s),
        "node_why_added": strings.column(node.why_added for node in nodes),
        "node_why_removed": strings.column(node.why_removed for node in nodes),
        "pod_node": integers(-1 if pod.node is None else pod.node for pod in pods),
        "pod_workload": workloads.column(family(pod.workload) for pod in pods),
        "pod_cpu": integers(pod.cpu_milli for pod in pods),
        "pod_memory_mib": floats(pod.memory_bytes / _MIB for pod in pods),
        "pod_created": ticks((pod.created_s for pod in pods), unit_s),
        "pod_bound": ticks((pod.bound_s for pod in pods), unit_s),
        "pod_ended": ticks((pod.ended_s for pod in pods), unit_s),
    }
    header = {
        "tick_s": unit_s,
        "strings": strings.strings(),
        "workloads": workloads.strings(),
        "node_names": [node.name for node in nodes],
        "pod_names": [pod.name for pod in pods],
    }
    return pack(header, columns)


def journal_block(result: RunResult) -> str:
    """The decisions in order of time."""
    unit_s = tick_s(result.duration_s)
    entries = sorted(result.decisions, key=lambda decision: decision.at_s)[-ENTRIES_MAX:]
    strings = StringTable()
    strings.place("")
    columns = {
        "at": ticks((entry.at_s for entry in entries), unit_s),
        "component": strings.column(entry.component for entry in entries),
        "kind": strings.column(entry.kind for entry in entries),
        "subject": strings.column(entry.subject for entry in entries),
        "decision": strings.column(entry.decision for entry in entries),
        "reasons": strings.column("\n".join(entry.reasons) for entry in entries),
        "facts": strings.column(_facts(entries)),
    }
    header = {
        "tick_s": unit_s,
        "strings": strings.strings(),
        "left_out": len(result.decisions) - len(entries),
    }
    return pack(header, columns)


def _facts(entries: Sequence[Decision]) -> Iterable[str]:
    for entry in entries:
        yield "\n".join(f"{name}: {_fact(value)}" for name, value in entry.facts.items())


def _fact(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
