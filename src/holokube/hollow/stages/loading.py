"""Reads Stages from files as kwok's ``--config`` takes them, and from objects of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holokube.hollow.stages import spec as written
from holokube.hollow.stages.errors import StageError
from holokube.hollow.stages.stage import Kind, Stage, compile_stage
from holokube.kube.yaml_text import YamlError, load_documents

_CONFIG_GROUPS = ("config.kwok.x-k8s.io/", "kwok.x-k8s.io/", "kustomize.config.k8s.io/")


@dataclass(slots=True)
class StageSet:
    """Stages by name: a later one of the same name replaces the earlier."""

    stages: dict[str, Stage] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    """What was found besides and is not used, for a warning."""

    def of_kind(self, kind: Kind) -> list[Stage]:
        return [stage for stage in self.stages.values() if stage.kind == kind]

    def add(self, stage: Stage) -> None:
        self.stages[stage.name] = stage


def load_stages(paths: Iterable[Path]) -> StageSet:
    """Reads files; a folder means all YAML and JSON files in it."""
    found = StageSet()
    for path in paths:
        for file in _files(path):
            try:
                text = file.read_bytes()
            except OSError as error:
                raise StageError(
                    f"{file}: cannot be read: {error.strerror}", hint="Give files or folders with Stages in YAML."
                ) from error
            parse_stages(text, str(file), found)
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
    if not files:
        raise StageError(f"{path}: has no YAML or JSON file", hint="Give files or folders with Stages in YAML.")
    return files


def parse_stages(text: bytes, source: str, into: StageSet | None = None) -> StageSet:
    """Reads the documents of one text; kwok's other kinds are noted and left alone."""
    found = into if into is not None else StageSet()
    try:
        documents = load_documents(text)
    except YamlError as error:
        raise StageError(f"{source}: is not YAML: {error}", hint="Give a file with Stage documents.") from error
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict):
            raise StageError(f"{source}: a document is no object", hint="Give a file with Stage documents.")
        version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
        if kind == "List" and version == "v1":
            for item in document.get("items") or ():
                _take(item, source, found)
        elif kind == "Stage" or not version.startswith(_CONFIG_GROUPS):
            _take(document, source, found)
        else:
            found.ignored.append(f"{source}: {kind} is not used")
    return found


def _take(document: Mapping[str, Any], source: str, found: StageSet) -> None:
    stage = read_stage(document, source)
    if stage is None:
        found.ignored.append(f"{source}: stage {document['metadata']['name']} has no selector")
    else:
        found.add(stage)


def read_stage(document: Mapping[str, Any], source: str) -> Stage | None:
    """One Stage from a document or an object of the cluster; None for one that has no selector."""
    meta = document.get("metadata")
    name = str(meta.get("name", "")) if isinstance(meta, Mapping) else ""
    if document.get("apiVersion") != written.API_VERSION or document.get("kind") != "Stage":
        raise StageError(
            f"{source}: {document.get('apiVersion')} {document.get('kind')} is not a Stage",
            hint=f"Supported: apiVersion {written.API_VERSION}, kind Stage.",
        )
    try:
        parsed = msgspec.convert(document, written.StageFile)
    except msgspec.ValidationError as error:
        raise StageError(
            f"{source}: stage {name or '(without a name)'}: {error}",
            hint="Supported in spec: resourceRef, selector, weight, weightFrom, delay, next, steps, "
            "immediateNextStage; see docs/hollow-nodes.md.",
        ) from error
    return compile_stage(parsed, source)
