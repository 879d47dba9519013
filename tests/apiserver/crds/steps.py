"""CRDs and custom objects for tests, and what the server answers to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import MERGE, World

RECORDED = Path(__file__).parent / "recorded"
GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"
LAB = "lab.example.com"


@dataclass
class Answer:
    """The outcome of one request, good or bad."""

    code: int
    obj: JsonObject = field(default_factory=dict)
    causes: list[tuple[str, str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    message: str = ""


def recorded(name: str) -> Any:
    return orjson.loads((RECORDED / f"{name}.json").read_bytes())


def expected_causes(case: JsonObject) -> list[tuple[str, str, str]]:
    return sorted((cause["field"], cause["reason"], cause["message"]) for cause in case.get("causes", []))


def definition(
    schema: JsonObject | None = None, *, plural: str = "widgets", kind: str = "Widget", **version: Any
) -> JsonObject:
    """A CRD of the group lab.example.com with one version."""
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
        **version,
    }
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{LAB}"},
        "spec": {"group": LAB, "scope": "Namespaced", "names": names, "versions": [first]},
    }


def with_spec(**properties: Any) -> JsonObject:
    """A schema whose spec has these properties."""
    spec = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}


def widget(name: str = "w", *, version: str = "v1", **spec: Any) -> JsonObject:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{LAB}/{version}", "kind": "Widget", "metadata": meta, "spec": spec}


async def define(world: World, crd: JsonObject) -> JsonObject:
    return await world.create(PLURAL, crd, GROUP)


async def redefine(world: World, crd: JsonObject) -> JsonObject:
    current = world.get(PLURAL, crd["metadata"]["name"], GROUP)
    version = current["metadata"]["resourceVersion"]
    body = {**crd, "metadata": {**crd["metadata"], "resourceVersion": version}}
    return await world.update(PLURAL, body, GROUP)


async def ask_create(
    world: World, group: str, plural: str, body: JsonObject, *, dry_run: bool = True
) -> Answer:
    served = world.served(plural, group)
    namespace = body["metadata"].get("namespace", "default") if served.namespaced else ""
    options = WriteOptions(dry_run=dry_run, field_validation="Warn")
    try:
        result = await world.registry.create(served, namespace, body, options)
    except ApiError as problem:
        return _refused(problem)
    return Answer(201, result.stored.obj, warnings=result.warnings)


async def ask_patch(
    world: World, group: str, plural: str, name: str, body: JsonObject, *, subresource: str = ""
) -> Answer:
    served = world.served(plural, group)
    namespace = "default" if served.namespaced else ""
    try:
        result = await world.registry.patch(
            served,
            namespace,
            name,
            MERGE,
            body,
            WriteOptions(field_validation="Warn"),
            subresource=subresource,
        )
    except ApiError as problem:
        return _refused(problem)
    return Answer(200, result.stored.obj, warnings=result.warnings)


def _refused(problem: ApiError) -> Answer:
    causes = sorted((cause.field, cause.reason, cause.message) for cause in problem.causes)
    return Answer(problem.code, causes=causes, message=problem.message)


def conditions(crd: JsonObject) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in crd["status"]["conditions"]}
