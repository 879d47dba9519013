"""From a scenario file to a :class:`Scenario`: all mistakes are told at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from holokube.kube.types import JsonObject
from holokube.lab.scenario.appendix import appendix
from holokube.lab.scenario.changes import apply_overrides, merge_variant
from holokube.lab.scenario.document import Document, Marked, read_document
from holokube.lab.scenario.errors import ScenarioError, Told, choose_among
from holokube.lab.scenario.model import API_VERSION, COPY, KIND, Scenario, Workload
from holokube.lab.scenario.shapes import file_fields, read_attributes, tell_mistakes
from holokube.lab.scenario.snapshot_time import newest_time_s
from holokube.lab.scenario.values import Name, Reading, mapping_of

__all__ = ["apply_overrides", "build_scenario", "merge_variant", "read_document", "read_scenario"]

_TOP: Final = ("apiVersion", "kind", "metadata", "spec")


def read_scenario(
    path: Path, *, variants: Sequence[Path] = (), overrides: Mapping[str, Any] | None = None
) -> Scenario:
    """The scenario of a file, with variants over it in turn and then single values; ScenarioError if it is wrong."""
    document = read_document(path)
    for variant in variants:
        document = merge_variant(document, read_document(variant))
    return build_scenario(apply_overrides(document, overrides or {}))


def build_scenario(document: Document) -> Scenario:
    """The scenario of a document; ScenarioError with everything that is wrong with it."""
    reading = Reading(Path(document.path).parent)
    try:
        name, spec = _head(document.root, reading)
        found = read_attributes(Scenario, spec, "spec", reading)
        scenario = Scenario(name=name, text=document.text, path=document.path, **found)
        tell_mistakes(scenario, spec, "spec", reading)
    except Told:
        raise ScenarioError(sorted(reading.problems, key=lambda one: one.mark)) from None
    if reading.problems:
        raise ScenarioError(sorted(reading.problems, key=lambda one: one.mark))
    text = document.text + appendix(reading.files)
    scenario = dataclasses.replace(scenario, text=text, workloads=tuple(_copies(scenario.workloads)))
    if isinstance(spec.value, dict) and "start" not in spec.value:
        scenario = _after_snapshot(scenario)
    return _with_nodes_of_trace(scenario)


def _after_snapshot(scenario: Scenario) -> Scenario:
    """Not before what it begins with: in a cluster from the future no CronJob is ever due, and nothing gets old."""
    newest_s = newest_time_s(scenario.cluster.snapshot_objects)
    return scenario if newest_s is None else dataclasses.replace(scenario, start_s=max(scenario.start_s, newest_s))


def _with_nodes_of_trace(scenario: Scenario) -> Scenario:
    """Nodes that a trace begins with belong to the cluster: they are there before the run begins."""
    timeline, cluster = scenario.timeline, scenario.cluster
    nodes = tuple(obj for obj in timeline.objects if obj["kind"] == "Node") if timeline is not None else ()
    if timeline is None or not nodes:
        return scenario
    others = tuple(obj for obj in timeline.objects if obj["kind"] != "Node")
    return dataclasses.replace(
        scenario,
        cluster=dataclasses.replace(cluster, manifests=(*cluster.manifests, *nodes)),
        timeline=dataclasses.replace(timeline, objects=others),
    )


def _head(root: Marked, reading: Reading) -> tuple[str, Marked]:
    """The name and what is below ``spec``; Told only if there is none."""
    parts = mapping_of(root, "a scenario")
    for name in parts:
        if name not in _TOP:
            inside = "It belongs below spec." if name in _spec_fields() else choose_among(name, set(_TOP) - set(parts))
            reading.problem(root.key_marks[name], name, "there is no such field", inside)
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if name not in parts:
            reading.problem(root.mark, name, "is missing", f"Add `{name}: {wanted}`.")
        elif parts[name].value != wanted:
            reading.problem(parts[name].mark, name, f"is not {wanted}", f"Write `{name}: {wanted}`.")
    spec = parts.get("spec")
    name = _name(root, parts, reading)
    if spec is None or spec.value is None:
        reading.problem(root.mark, "spec", "is missing", "Add it, with `duration: 24h` below.")
        raise Told
    if not isinstance(spec.value, dict):
        reading.problem(spec.mark, "spec", f"a mapping is expected, not {spec.kind}", "Write its fields below it.")
        raise Told
    return name, spec


def _spec_fields() -> set[str]:
    return {one.name for one in file_fields(Scenario)}


def _name(root: Marked, parts: Mapping[str, Marked], reading: Reading) -> str:
    metadata = parts.get("metadata")
    if metadata is None or not isinstance(metadata.value, dict):
        mark = root.mark if metadata is None else metadata.mark
        reading.problem(mark, "metadata.name", "is missing", "Add `metadata: {name: my-scenario}`.")
        return ""
    for name in metadata.value:
        if name not in ("name", "labels", "annotations"):
            remedy = choose_among(name, ("name", "labels", "annotations"))
            reading.problem(metadata.key_marks[name], f"metadata.{name}", "there is no such field", remedy)
    given = metadata.value.get("name")
    if given is None or given.value is None:
        reading.problem(metadata.mark, "metadata.name", "is missing", "Add `name: my-scenario`.")
        return ""
    try:
        found: str = reading.attempt(Name(), given, "metadata.name")
    except Told:
        return ""
    return found


def _copies(workloads: Sequence[Workload]) -> Iterator[Workload]:
    for workload in workloads:
        digits = len(str(workload.copies - 1))
        for number in range(workload.copies):
            label = f"{number:0{digits}d}"
            manifests = tuple(_numbered(obj, label) for obj in workload.manifests)
            name = workload.name if workload.copies == 1 else f"{workload.name}-{label}"
            yield dataclasses.replace(workload, name=name, manifests=manifests, copies=1)


def _numbered(obj: JsonObject, label: str) -> JsonObject:
    found: JsonObject = _replaced(obj, label)
    return found


def _replaced(value: Any, label: str) -> Any:
    if isinstance(value, str):
        return value.replace(COPY, label) if COPY in value else value
    if isinstance(value, dict):
        return {key: _replaced(part, label) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, label) for part in value]
    return value
