"""Kubernetes objects in scenarios: written in place, or in files next to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from holokube.apiserver.manifests import read_manifests
from holokube.base.errors import UsageError
from holokube.kube.types import JsonObject
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Told, Wrong, choose_among
from holokube.lab.scenario.object_types import type_problems
from holokube.lab.scenario.values import Reading, Text, Value

_FILE: Final = "file"
_OWN_TO_ONE: Final = (
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "managedFields", "selfLink", "ownerReferences",
)  # fmt: skip
_JOB_LABELS: Final = (
    "controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name",
)  # fmt: skip
_COMMON_KINDS: Final = (
    "ConfigMap", "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job",
    "KWOKNodeClass", "LimitRange", "List", "Namespace", "Node", "NodePool", "PersistentVolumeClaim", "Pod",
    "PodDisruptionBudget", "PriorityClass", "ReplicaSet", "ReplicationController", "ResourceQuota", "Secret", "Service",
    "ServiceAccount", "StatefulSet", "StorageClass",
)  # fmt: skip


@dataclass(frozen=True)
class Manifests(Value):
    """A list of objects and files; each file may hold several objects."""

    title: ClassVar[str] = "list: [manifests](#manifests)"
    example: ClassVar[str] = "[{file: web.yaml}]"
    as_new: bool = True
    """Whether what only a living object has is taken off, as it must be for what is created anew."""

    def read(self, given: Marked, path: str, reading: Reading) -> tuple[JsonObject, ...]:
        if not isinstance(given.value, list):
            remedy = "Write `- file: web.yaml`, or a manifest after a dash."
            raise Wrong(f"a list of manifests is expected, not {given.kind}", remedy)
        found: list[JsonObject] = []
        failed = False
        for number, part in enumerate(given.value):
            try:
                found.extend(self._one(part, f"{path}[{number}]", reading))
            except Told:
                failed = True
            except Wrong as wrong:
                field = f".{wrong.field}" if wrong.field else ""
                reading.problem(part.at(wrong.field), f"{path}[{number}]{field}", wrong.what, wrong.remedy)
                failed = True
        if failed:
            raise Told
        return tuple(map(new_object, found)) if self.as_new else tuple(found)

    def _one(self, given: Marked, path: str, reading: Reading) -> list[JsonObject]:
        name = file_name(given, path, reading)
        if name:
            return objects_of_file(name, given, reading, are_new=self.as_new)
        plain = given.plain
        problem = object_problem(plain)
        if problem is not None:
            raise problem
        problems = type_problems(new_object(plain)) if self.as_new else []
        for one in problems:
            reading.problem(given.at(one.field), f"{path}.{one.field}", one.what, one.remedy)
        if problems:
            raise Told
        return [plain]

    def shown(self, value: Any) -> str:  # noqa: ARG002 - part of the protocol
        return ""


def file_name(given: Marked, path: str, reading: Reading) -> str:
    """The file that a text, or a mapping with the field ``file``, names; empty if it names none."""
    if isinstance(given.value, str):
        return given.value
    if not isinstance(given.value, dict) or _FILE not in given.value:
        return ""
    for other in given.value:
        if other != _FILE:
            mark = given.key_marks[other]
            reading.problem(mark, f"{path}.{other}", "stands next to file", "Say either file, or the manifest itself.")
            raise Told
    name: str = reading.attempt(Text(), given.value[_FILE], f"{path}.{_FILE}")
    return name


def objects_of_file(name: str, given: Marked, reading: Reading, *, are_new: bool = False) -> list[JsonObject]:
    """All objects of a file, as they are; Wrong if one of them is none, or with ``are_new`` not of its type."""
    where = reading.file(name, given)
    try:
        read = read_manifests(str(where))
    except UsageError as error:
        raise Wrong(error.message, error.hint) from error
    for index, obj in enumerate(read.objects):
        problem = object_problem(obj)
        if problem is None and are_new:
            problem = next(iter(type_problems(new_object(obj))), None)
        if problem is not None:
            field = f"{problem.field}: " if problem.field else ""
            raise Wrong(f"{read.where(index)}: {field}{problem.what}", problem.remedy)
    return read.objects


def object_problem(obj: Any) -> Wrong | None:
    """What keeps a value from being a Kubernetes object."""
    if not isinstance(obj, dict):
        return Wrong("is no manifest", "Write a mapping with apiVersion, kind and metadata, or `file: NAME`.")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            return Wrong("is missing", _kind_remedy(obj) if field == "apiVersion" else "Say what it is.", field)
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return Wrong("is missing", "Add `metadata: {name: ...}`.", "metadata")
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return Wrong("is missing", "Give the object a name; generateName is not enough.", "metadata.name")
    if not isinstance(metadata.get("namespace", ""), str):
        return Wrong("must be a text", "Write the name of a namespace.", "metadata.namespace")
    for field in ("labels", "annotations"):
        texts = metadata.get(field)
        if texts is None:
            continue
        if not isinstance(texts, dict):
            return Wrong("must be a mapping", "Write `key: value` below it.", f"metadata.{field}")
        for key, text in texts.items():
            if not isinstance(text, str):
                return Wrong(f"{text!r} is no text", "Put it in quotes.", f"metadata.{field}[{key}]")
    return None


def _kind_remedy(obj: Mapping[str, Any]) -> str:
    kind = obj.get("kind")
    if isinstance(kind, str) and kind not in _COMMON_KINDS:
        return choose_among(kind, _COMMON_KINDS)
    return "Add it, such as `apiVersion: apps/v1`."


def new_object(obj: JsonObject) -> JsonObject:
    """The object without what only a living one has, so that it can be created."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OWN_TO_ONE}
    found = {key: value for key, value in obj.items() if key != "status" or obj["kind"] == "Node"}
    found["metadata"] = metadata
    if "uid" not in obj["metadata"] or not isinstance(obj.get("spec"), dict):
        return found
    # What follows is there only because a server put it there.
    if obj["kind"] == "Pod":
        found["spec"] = {key: value for key, value in obj["spec"].items() if key != "nodeName"}
    elif obj["kind"] == "Job" and not obj["spec"].get("manualSelector"):
        spec = {key: value for key, value in obj["spec"].items() if key != "selector"}
        template = spec.get("template")
        if isinstance(template, dict):
            spec["template"] = _without_labels(template)
        found = _without_labels(found)
        found["spec"] = spec
    return found


def _without_labels(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata") or {}
    kept = {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _JOB_LABELS}
    return {**obj, "metadata": {**metadata, "labels": kept}}
