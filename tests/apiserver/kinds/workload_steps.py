"""Takes workload objects through the rules of their kind, in the order in which the server applies them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from holokube.apiserver.decode import Decoder
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.apiserver.kinds.workload_registry import WORKLOAD_KINDS
from holokube.apiserver.metadata import validate_metadata, validate_metadata_update
from holokube.apiserver.types import TypeCatalog
from holokube.base.rng import Rng
from holokube.kube.types import JsonObject

CATALOG = TypeCatalog()
UID = "11111111-2222-3333-4444-555555555555"
KIND_NAMES = {
    "pods": "core.v1.Pod",
    "podtemplates": "core.v1.PodTemplate",
    "replicationcontrollers": "core.v1.ReplicationController",
    "controllerrevisions": "apps.v1.ControllerRevision",
    "daemonsets": "apps.v1.DaemonSet",
    "deployments": "apps.v1.Deployment",
    "replicasets": "apps.v1.ReplicaSet",
    "statefulsets": "apps.v1.StatefulSet",
    "cronjobs": "batch.v1.CronJob",
    "jobs": "batch.v1.Job",
}


class NobodyThere:
    """A server without other objects."""

    def find(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        return None

    def objects(self, group: str, plural: str, namespace: str = "") -> list[JsonObject]:
        return []


CONTEXT = WriteContext(datetime(2026, 1, 1, tzinfo=UTC), Rng(1), NobodyThere())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an object."""

    obj: JsonObject
    causes: list[tuple[str, str, str]]
    """Reason, field and message of every broken rule, sorted."""
    warnings: list[str]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Broken rules without their wording."""
        return [(reason.removeprefix("FieldValue"), field) for reason, field, _ in self.causes]


def kind_of(plural: str) -> Kind:
    group = {"apps": "apps", "batch": "batch"}.get(KIND_NAMES[plural].partition(".")[0], "")
    kind = WORKLOAD_KINDS[(group, plural)]()
    kind.has_status = plural not in ("podtemplates", "controllerrevisions")
    return kind


def decoded(plural: str, body: Mapping[str, Any]) -> JsonObject:
    """A body as the server reads it, with defaults."""
    schema = CATALOG.schema(f"io.k8s.api.{KIND_NAMES[plural]}")
    obj = Decoder().decode(orjson.loads(orjson.dumps(body)), schema)
    obj.setdefault("metadata", {}).setdefault("namespace", "default")
    kind_of(plural).default(obj)
    return obj


def _sorted(errors: FieldErrors) -> list[tuple[str, str, str]]:
    return sorted((cause.reason, cause.field, cause.message) for cause in errors.causes)


def create(plural: str, body: Mapping[str, Any]) -> Outcome:
    """What a POST of this body does."""
    kind = kind_of(plural)
    obj = decoded(plural, body)
    if kind.has_status:
        obj.pop("status", None)
    if plural == "pods":
        # Admission does this before the rules of the kind are asked.
        obj["spec"].setdefault("serviceAccountName", "default")
    kind.prepare_create(obj, CONTEXT)
    obj["metadata"]["uid"] = UID
    if kind.tracks_generation:
        obj["metadata"]["generation"] = 1
    errors = FieldErrors()
    validate_metadata(obj, kind, namespaced=True, errors=errors)
    kind.validate(obj, errors)
    return Outcome(obj, _sorted(errors), [] if errors else kind.warnings(obj, None))


def created(plural: str, body: Mapping[str, Any]) -> JsonObject:
    """An object that must be fine."""
    outcome = create(plural, body)
    assert outcome.causes == []
    return outcome.obj


def update(plural: str, old: JsonObject, new: Mapping[str, Any], *, status: bool = False) -> Outcome:
    """What a PUT of ``new`` does to ``old``, on the object itself or on its status."""
    kind = kind_of(plural)
    before = orjson.dumps(old)
    obj = decoded(plural, new)
    obj["metadata"]["uid"] = old["metadata"]["uid"]
    errors = FieldErrors()
    if status:
        obj = {**old, "metadata": obj["metadata"], "status": obj.get("status", {})}
        kind.prepare_status_update(obj, old, CONTEXT)
        kind.validate_status_update(obj, old, errors)
    else:
        if kind.has_status:
            obj["status"] = old["status"]
        kind.prepare_update(obj, old, CONTEXT)
        if kind.tracks_generation:
            moved = kind.spec_changed(obj, old)
            obj["metadata"]["generation"] = old["metadata"]["generation"] + (1 if moved else 0)
        validate_metadata_update(obj, old, errors)
        kind.validate_update(obj, old, errors)
    assert orjson.dumps(old) == before, "the stored object must not change"
    return Outcome(obj, _sorted(errors), kind.warnings(obj, old))


def changed(obj: JsonObject, path: str, value: Any) -> JsonObject:
    """A copy with another value at a dotted path; None removes it."""
    copy: JsonObject = orjson.loads(orjson.dumps(obj))
    at: Any = copy
    *parents, last = path.split(".")
    for key in parents:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    if isinstance(at, list):
        at[int(last)] = value
    elif value is None:
        at.pop(last, None)
    else:
        at[last] = value
    return copy


def pod(spec: Mapping[str, Any] | None = None, **container: Any) -> JsonObject:
    """A pod with one container."""
    first = {"name": "c", "image": "nginx:1.27", **container}
    return {"metadata": {"name": "p"}, "spec": {"containers": [first], **(spec or {})}}


def template(spec: Mapping[str, Any] | None = None, **container: Any) -> JsonObject:
    """A pod template with the label that ``SELECTOR`` asks for."""
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod(spec, **container)["spec"]}


SELECTOR = {"matchLabels": {"app": "web"}}


def workload(spec: Mapping[str, Any] | None = None) -> JsonObject:
    """A deployment, replica set, stateful set or daemon set."""
    return {"metadata": {"name": "w"}, "spec": {"selector": SELECTOR, "template": template(), **(spec or {})}}


def job(spec: Mapping[str, Any] | None = None) -> JsonObject:
    return {
        "metadata": {"name": "j"},
        "spec": {"template": template({"restartPolicy": "Never"}), **(spec or {})},
    }
