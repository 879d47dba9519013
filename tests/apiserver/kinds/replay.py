"""Replays requests that were once sent to a real kube-apiserver 1.36.3, step by step, on a registry of our own.

What differs from run to run (uids, versions, times, who sent the request) is left out on both sides.
"""

from __future__ import annotations

from typing import Any

from holokube.apiserver.options import DeleteOptions, WriteOptions
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import MERGE, World

_VOLATILE = frozenset({
    "uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp", "lastPhaseTransitionTime",
    "lastTransitionTime", "lastUpdateTime", "timeAdded", "username", "groups",
})  # fmt: skip
_DRY_RUN = "?dryRun=All"


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_volatile(part) for key, part in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [without_volatile(part) for part in value]
    return value


async def send(world: World, step: JsonObject) -> JsonObject:
    """Carry out one step; the answer has the form of the recording."""
    try:
        obj, warnings = await _send(world, step)
    except ApiError as problem:
        status = problem.to_status()
        causes = sorted(
            [cause.get("field", ""), cause.get("reason", ""), cause.get("message", "")]
            for cause in (status.get("details") or {}).get("causes", [])
        )
        return {"code": status["code"], "reason": status.get("reason"), "causes": causes}
    return {"object": without_volatile(obj), "warnings": sorted(warnings)}


async def _send(world: World, step: JsonObject) -> tuple[JsonObject, list[str]]:
    method, body, registry = step["method"], step["body"], world.registry
    dry_run = step["path"].endswith(_DRY_RUN)
    parts = step["path"].removesuffix(_DRY_RUN).strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    served = registry.resolve(group, version, rest[0])
    name, subresource = (*rest[1:], "", "")[:2]
    options = WriteOptions(dry_run=dry_run, field_validation="Warn")
    if method == "GET":
        return registry.get(served, namespace, name).obj, []
    if method == "DELETE":
        answer, _ = await registry.delete(served, namespace, name, DeleteOptions())
        return answer, []
    if method == "POST":
        result = await registry.create(served, namespace, body, options)
    elif method == "PUT":
        result = await registry.update(served, namespace, name, body, options, subresource=subresource)
    else:
        result = await registry.patch(served, namespace, name, MERGE, body, options, subresource=subresource)
    return result.stored.obj, result.warnings
