"""The scale subresource: replicas of any workload through one small object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.decode import fresh
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.patching import APPLY, JSON_PATCH, MERGE_PATCH, apply_plain_patch, as_api_error
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.bodies import read_typed
from holokube.kube.errors import (
    OBJECT_WAS_MODIFIED,
    BadRequest,
    Cause,
    NotFound,
    UnsupportedMediaType,
    conflict,
    invalid,
)
from holokube.kube.jsonpath import compile_path
from holokube.kube.patch import PatchError
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_SELECTORS_KEPT = 1024
_REPLICAS_END = 2**31


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps its replicas."""

    spec: str = ".spec.replicas"
    status: str = ".status.replicas"
    selector: str = ""


class ScaleDoor:
    """Get, update and patch of Scale for deployments, replica sets, stateful sets, RCs and CRDs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._selectors: dict[int, tuple[JsonObject, str]] = {}
        """By identity: the texts of selectors, which outlive all that is scaled."""

    async def handle(
        self,
        served: Served,
        namespace: str,
        name: str,
        verb: str,
        body: Any,
        content_type: str,
        options: WriteOptions,
        caller: Caller,
    ) -> WriteResult | JsonObject:
        stored = self._registry.get_stored(served, namespace, name)
        paths = self._paths(served)
        if verb == "patch" and content_type == MERGE_PATCH and not served.custom and _says_how_many(body):
            self._check(served, name, stored, body, paths)
            return await self._write(served, stored, paths, body, options, caller, [])
        current = self._scale(served, stored, paths, lenient=verb != "get")
        if verb == "get":
            return current
        if verb == "update":
            wanted, warnings = read_typed(self._registry, body, "autoscaling", "v1", "Scale", options)
        else:
            patched = self._patched(served, current, content_type, body)
            wanted, warnings = read_typed(self._registry, patched, "autoscaling", "v1", "Scale", options)
        self._check(served, name, stored, wanted, paths)
        return await self._write(served, stored, paths, wanted, options, caller, warnings)

    def _paths(self, served: Served) -> ScalePaths:
        if served.type.custom:
            return self._registry.custom_resources.scale_paths(served)
        return ScalePaths()

    def _scale(self, served: Served, stored: Stored, paths: ScalePaths, *, lenient: bool = False) -> JsonObject:
        """The Scale of an object. Reading one that says nothing of replicas fails; setting them does not."""
        obj, meta = stored.obj, stored.obj["metadata"]
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        replicas = _number_at(obj, paths.spec)
        if replicas is None and served.type.custom and not lenient:
            raise NotFound(f'the spec replicas field "{paths.spec}" does not exist', details={})
        scale: JsonObject = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {key: meta[key] for key in kept if key in meta},
            "spec": {"replicas": replicas} if replicas else {},
            "status": {"replicas": _number_at(obj, paths.status) or 0},
        }
        selector = self._selector(served, obj, paths)
        if selector:
            scale["status"]["selector"] = selector
        return scale

    def _selector(self, served: Served, obj: JsonObject, paths: ScalePaths) -> str:
        if served.type.custom:
            found = compile_path(paths.selector)(obj) if paths.selector else []
            return str(found[0]) if found else ""
        selector = (obj.get("spec") or {}).get("selector")
        if served.plural == "replicationcontrollers":
            return str(LabelSelector.from_labels(selector or {}))
        if not selector:
            return ""
        known = self._selectors.get(id(selector))
        if known is None or known[0] is not selector:
            if len(self._selectors) >= _SELECTORS_KEPT:
                self._selectors.clear()
            known = self._selectors[id(selector)] = selector, str(LabelSelector.from_json(selector))
        return known[1]

    @staticmethod
    def _patched(served: Served, current: JsonObject, content_type: str, body: Any) -> Any:
        value = body.value if isinstance(body, Body) else body
        if content_type == APPLY:
            # An applied Scale says only spec.replicas, so merging it is all there is to do.
            if not isinstance(value, dict):
                raise BadRequest("the applied Scale must be an object")
            return {**current, "spec": {**current["spec"], **(value.get("spec") or {})}}
        if content_type != JSON_PATCH and served.type.custom and "strategic" in content_type:
            raise UnsupportedMediaType("415: Unsupported Media Type", details={})
        try:
            merge = MERGE_PATCH if content_type != JSON_PATCH else content_type
            return apply_plain_patch(served, current, merge, value)
        except PatchError as problem:
            raise as_api_error(problem) from None

    @staticmethod
    def _check(served: Served, name: str, stored: Stored, wanted: JsonObject, paths: ScalePaths) -> None:
        meta = wanted.get("metadata") or {}
        given = meta.get("name") or name
        if given != name:
            raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")
        version = meta.get("resourceVersion")
        if version and version != stored.obj["metadata"]["resourceVersion"]:
            raise conflict(served.group, served.plural, name, OBJECT_WAS_MODIFIED)
        uid = meta.get("uid")
        if uid and uid != stored.obj["metadata"]["uid"]:
            raise conflict(served.group, served.plural, name, f"Precondition failed: UID in precondition: {uid}")
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            cause = Cause(
                "FieldValueInvalid",
                f"Invalid value: {replicas}: must be greater than or equal to 0",
                paths.spec if served.type.custom else "spec.replicas",
            )
            if served.type.custom:
                raise invalid(served.group, served.kind, name, [cause])
            raise invalid("autoscaling", "Scale", name, [cause])

    async def _write(
        self,
        served: Served,
        stored: Stored,
        paths: ScalePaths,
        wanted: JsonObject,
        options: WriteOptions,
        caller: Caller,
        warnings: list[str],
    ) -> WriteResult:
        new = self._scaled(served, stored, paths, (wanted.get("spec") or {}).get("replicas", 0))
        result = await self._registry.writes.replace(
            served, stored, new, options, caller, warnings, subresource="scale"
        )
        shown = self._scale(served, Stored(result.stored.obj, result.stored.revision), paths)
        return WriteResult(Stored(shown, result.stored.revision), warnings=result.warnings)

    def _scaled(self, served: Served, stored: Stored, paths: ScalePaths, replicas: int) -> JsonObject:
        """The object with so many replicas, to be changed at will, or at the top only, where nobody goes further."""
        obj, meta = stored.obj, stored.obj["metadata"]
        admission = self._registry.admission
        is_usual = stored.settled and not served.type.custom
        if is_usual and admission.has_no_say(served, "UPDATE", "scale", meta.get("namespace", "")):
            return {**obj, "metadata": dict(meta), "spec": {**obj["spec"], "replicas": replicas}}
        new: JsonObject = fresh(obj)
        _put(new, paths.spec, replicas)
        return new


def _says_how_many(body: Any) -> bool:
    """Whether a patch of a Scale says nothing but how many there are to be; it need not be merged and read then."""
    spec = body.get("spec") if type(body) is dict and len(body) == 1 else None
    replicas = spec.get("replicas") if type(spec) is dict and len(spec) == 1 else None
    return type(replicas) is int and abs(replicas) < _REPLICAS_END


def _number_at(obj: JsonObject, path: str) -> int | None:
    found = compile_path(path)(obj)
    return found[0] if found and isinstance(found[0], int) else None


def _put(obj: JsonObject, path: str, value: int) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value
