"""Reads results back: what ``holokube run -o json`` printed, and event logs as far as they tell.

An event log knows neither prices nor sizes; the spans made from it have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
import orjson

from holokube.base.errors import UsageError
from holokube.lab.results import RESULT_VERSION, Decision, NodeSpan, PodSpan, RunResult

_HINT: Final = "Give what `holokube run SCENARIO -o json` printed, or a file of `--event-log`."
_ENDS: Final = ("done", "failed", "deleted", "evicted")
_End = Literal["", "done", "failed", "deleted", "evicted"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one run."""

    label: str
    """The policy; empty where a log does not tell."""
    scenario: str
    start: str
    """RFC 3339; empty where a log does not tell."""
    duration_s: float
    nodes: tuple[NodeSpan, ...]
    pods: tuple[PodSpan, ...]
    decisions: tuple[Decision, ...]


def evidence_of(result: RunResult) -> Evidence:
    """What a result tells."""
    return Evidence(
        result.policy, result.scenario, result.start, result.duration_s, result.nodes, result.pods, result.decisions
    )


def result_from_json(text: bytes, name: str) -> RunResult:
    """One result; UsageError if it is none, or of another version."""
    return _result(_loaded(text, name), name)


def read_evidence(path: Path) -> list[Evidence]:
    """All runs of a file, results or event log. UsageError says what is wrong with it."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Check the name of the file.") from error
    first, _, rest = text.lstrip().partition(b"\n")
    if _is_log_line(first) and (not rest.strip() or _is_log_line(rest.partition(b"\n")[0])):
        return [_Log(str(path)).read(text)]
    return [evidence_of(result) for result in _results(_loaded(text, str(path)), str(path))]


def _is_log_line(line: bytes) -> bool:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and {"at", "kind", "name", "what"} <= value.keys()


def _loaded(text: bytes, name: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{name} is not JSON: {error}", hint=_HINT) from error


def _results(value: Any, name: str) -> list[RunResult]:
    if isinstance(value, dict) and value.get("kind") == "RunResultList":
        items = value.get("items")
        if not isinstance(items, list) or not items:
            raise UsageError(f"{name} is a list of results without any", hint=_HINT)
        return [_result(item, f"{name}, items[{number}]") for number, item in enumerate(items)]
    return [_result(value, name)]


def _result(value: Any, name: str) -> RunResult:
    if not isinstance(value, dict) or value.get("kind") != "RunResult":
        raise UsageError(f"{name} is not the result of a run", hint=_HINT)
    if value.get("apiVersion") != RESULT_VERSION:
        raise UsageError(
            f"{name} has version {value.get('apiVersion')!r}, not {RESULT_VERSION}",
            hint="It was written by another version of holokube; run the scenario again.",
        )
    try:
        return msgspec.convert(value, RunResult)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name} is damaged: {error}", hint=_HINT) from error


@dataclass(slots=True)
class _Log:
    """Makes spans of the lines of an event log."""

    path: str
    nodes: list[dict[str, Any]] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    _node_places: dict[str, int] = field(default_factory=dict)
    _alive: dict[str, int] = field(default_factory=dict)

    def read(self, text: bytes) -> Evidence:
        last_s = 0.0
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            if not _is_log_line(line):
                raise UsageError(f"{self.path}, line {number}: not a line of an event log", hint=_HINT)
            entry = orjson.loads(line)
            last_s = max(last_s, float(entry["at"]))
            if entry["kind"] == "Decision":
                self._decide(entry)
            elif entry["kind"] == "Node":
                self._node(entry)
            elif entry["kind"] == "Pod":
                self._pod(entry)
        nodes = tuple(
            NodeSpan(capacity_type="", price_usd_per_hour=0.0, cpu_milli=0, memory_bytes=0, **node)
            for node in self.nodes
        )
        pods = tuple(PodSpan(cpu_milli=0, memory_bytes=0, **pod) for pod in self.pods)
        return Evidence("", "", "", last_s, nodes, pods, tuple(self.decisions))

    def _decide(self, entry: Mapping[str, Any]) -> None:
        kind, _, subject = entry["name"].partition("/")
        self.decisions.append(Decision(
            float(entry["at"]), str(entry.get("component", "")), kind, subject, entry["what"],
            tuple(entry.get("reasons") or ()), entry.get("facts") or {},
        ))  # fmt: skip

    def _node(self, entry: Mapping[str, Any]) -> None:
        name, at_s, what = entry["name"], float(entry["at"]), entry["what"]
        if what == "created":
            self._node_places[name] = len(self.nodes)
            self.nodes.append({
                "name": name, "group": entry.get("group", ""), "instance_type": entry.get("type", ""),
                "zone": entry.get("zone", ""), "created_s": at_s, "ready_s": None, "removed_s": None,
            })  # fmt: skip
        elif name in self._node_places:
            node = self.nodes[self._node_places[name]]
            if what == "ready" and node["ready_s"] is None:
                node["ready_s"] = at_s
            elif what == "removed":
                node["removed_s"] = at_s

    def _pod(self, entry: Mapping[str, Any]) -> None:
        name, at_s, what = entry["name"], float(entry["at"]), entry["what"]
        if what == "created":
            self._alive[name] = len(self.pods)
            self.pods.append({
                "name": name, "workload": entry.get("workload", ""), "node": None, "created_s": at_s,
                "bound_s": None, "ready_s": None, "ended_s": None, "end": "",
            })  # fmt: skip
            return
        if name not in self._alive:
            return
        pod = self.pods[self._alive[name]]
        if what == "bound":
            pod |= {"bound_s": at_s, "node": self._node_places.get(entry.get("node", ""))}
        elif what == "ready":
            pod["ready_s"] = at_s
        elif what in _ENDS and "why" not in entry:
            pod |= {"ended_s": at_s, "end": cast("_End", what)}
