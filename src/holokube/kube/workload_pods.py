"""The pods that workloads ask for and do not have: what a plan on manifests is made for.

Nobody runs controllers on a file. A Deployment that was only written down, or wants more than it has, gets here the
pods that its controller would make, as pending pods that no node was found for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_SIZED: Final = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1",
                 "ReplicationController": "v1", "Job": "batch/v1"}  # fmt: skip


def missing_pods(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """The pods that are missing, and the ReplicaSets of Deployments that have none."""
    all_objects = list(objects)
    counts = Counter(_owners(all_objects))
    made: list[JsonObject] = []
    for obj in all_objects:
        if obj.get("kind") not in _SIZED or _controller(obj) is not None:
            continue
        spec, key = obj.get("spec") or _EMPTY, _key(obj)
        missing = wanted_pods(obj) - _pods_of(key, all_objects, counts)
        if missing <= 0 or not isinstance(spec.get("template"), Mapping):
            continue
        owner = obj
        if obj["kind"] == "Deployment":
            owner = _replica_set(obj)
            made.append(owner)
        first = counts[key] if obj["kind"] == "StatefulSet" else 0
        made.extend(_pod(owner, spec["template"], number) for number in range(first, first + missing))
    return made


def wanted_pods(workload: Mapping[str, Any]) -> int:
    """How many pods a workload wants to have at the same time."""
    spec = workload.get("spec") or _EMPTY
    if workload.get("kind") != "Job":
        return int(spec.get("replicas", 1))
    if spec.get("suspend") or any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in (workload.get("status") or _EMPTY).get("conditions") or ()
    ):
        return 0
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    return parallelism if completions is None else min(parallelism, int(completions))


def _owners(objects: Iterable[JsonObject]) -> Iterable[tuple[str, str, str]]:
    for obj in objects:
        controller = _controller(obj)
        if controller is not None and not (
            obj.get("kind") == "Pod" and (obj.get("status") or _EMPTY).get("phase") in ("Succeeded", "Failed")
        ):
            yield controller["kind"], _namespace(obj), controller["name"]


def _pods_of(key: tuple[str, str, str], objects: Iterable[JsonObject], counts: Counter[tuple[str, str, str]]) -> int:
    """How many pods there are, those of a Deployment by way of its ReplicaSets."""
    if key[0] != "Deployment":
        return counts[key]
    sets = [obj for obj in objects if obj.get("kind") == "ReplicaSet" and _owner_key(obj) == key]
    return sum(counts[_key(obj)] for obj in sets)


def _replica_set(deployment: JsonObject) -> JsonObject:
    meta, spec = deployment["metadata"], deployment["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-planned", "namespace": _namespace(deployment),
            "uid": f"{_namespace(deployment)}/{meta['name']}-planned",
            "labels": dict((spec["template"].get("metadata") or _EMPTY).get("labels") or {}),
            "ownerReferences": [_reference(deployment)],
        },
        "spec": {"replicas": wanted_pods(deployment), "selector": spec.get("selector"), "template": spec["template"]},
    }  # fmt: skip


def _pod(owner: JsonObject, template: Mapping[str, Any], number: int) -> JsonObject:
    meta = template.get("metadata") or _EMPTY
    name = f"{owner['metadata']['name']}-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": _namespace(owner), "uid": f"{_namespace(owner)}/{name}",
            "labels": dict(meta.get("labels") or {}), "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [_reference(owner)],
        },
        "spec": dict(template.get("spec") or {}),
    }  # fmt: skip


def _reference(owner: JsonObject) -> JsonObject:
    meta = owner["metadata"]
    return {
        "apiVersion": owner.get("apiVersion") or _SIZED[owner["kind"]], "kind": owner["kind"], "name": meta["name"],
        "uid": meta.get("uid") or f"{_namespace(owner)}/{meta['name']}", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip


def _controller(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    references = (obj.get("metadata") or _EMPTY).get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def _owner_key(obj: JsonObject) -> tuple[str, str, str] | None:
    controller = _controller(obj)
    return None if controller is None else (controller["kind"], _namespace(obj), controller["name"])


def _key(obj: JsonObject) -> tuple[str, str, str]:
    return obj["kind"], _namespace(obj), obj["metadata"]["name"]


def _namespace(obj: JsonObject) -> str:
    return str(obj["metadata"].get("namespace") or "default")
