"""Brings objects of another cluster, or of an earlier life of this one, into a server as they were.

``create`` would not do: it drops the status, forgets when things were made and has admission change them.
Here instead

- status, creationTimestamp, generation, deletionTimestamp and managedFields stay; resourceVersions are new;
- uids are new, and every mention of an old uid, owner references above all, is changed along with it. Owner
  references that name no uid of the file are found by group, kind, name and namespace;
- CustomResourceDefinitions go in first, then namespaces, then the rest in the order given;
- namespaces that objects live in but that are not in the file are made, each with its default service
  account;
- admission is not asked. Types, defaults and validation are the server's own; an object that was served by
  some server already (it has a uid) is judged as an update of itself, as upstream treats old objects.

What cannot be restored is left out and reported; nothing is left out in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holokube.apiserver.admission.base import IN_PROCESS
from holokube.apiserver.bodies import read_body
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.metadata import validate_metadata
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.writes import in_wire_order
from holokube.kube import timeformat
from holokube.kube.errors import AlreadyExists, ApiError, Invalid, invalid
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_WARN = WriteOptions(field_validation="Warn")
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = ("", "Namespace")
_FIRST = {_CRD: 0, _NAMESPACE: 1}

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about one object that its owner should know."""

    index: int
    """Its place among the objects given."""
    object: str
    """``Pod default/web``."""
    message: str
    left_out: bool
    """The object is not in the server; otherwise it is, with a flaw."""

    def __str__(self) -> str:
        return f"{self.object}: {self.message}"


@dataclass(slots=True)
class RestoreReport:
    """What came of it."""

    restored: Counter[str] = field(default_factory=Counter)
    """How many objects by resource (``deployments.apps``)."""
    problems: list[Problem] = field(default_factory=list)
    added_namespaces: list[str] = field(default_factory=list)

    @property
    def left_out(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.left_out]


async def restore(registry: Registry, objects: Iterable[Any]) -> RestoreReport:
    """Put ``objects`` into the store of ``registry``; one that is there already is replaced."""
    run = _Restore(registry)
    run.read(objects)
    run.store_all()
    await run.complete_namespaces()
    await registry.store.durable()
    return run.report


@dataclass(slots=True)
class _Entry:
    """One object on its way."""

    index: int
    source: JsonObject
    group: str
    version: str
    kind: str
    served: Served | None = None
    uid: str = ""

    @property
    def meta(self) -> JsonObject:
        meta: JsonObject = self.source["metadata"]
        return meta

    @property
    def namespace(self) -> str:
        return str(self.meta.get("namespace") or "")

    @property
    def identity(self) -> Identity:
        return (self.group, self.kind, self.namespace, self.meta["name"])

    def __str__(self) -> str:
        return _title(self.kind, self.namespace, self.meta["name"])


class _Restore:
    """One run of ``restore``."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._entries: list[_Entry] = []
        self._by_identity: dict[Identity, _Entry] = {}
        self._new_uids: dict[str, str] = {}
        self._namespaces: dict[str, None] = {}
        self.report = RestoreReport()

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, objects: Iterable[Any]) -> None:
        for index, obj in enumerate(objects):
            entry = _entry(index, obj)
            if isinstance(entry, Problem):
                self.report.problems.append(entry)
            else:
                self._entries.append(entry)
        self._entries.sort(key=lambda entry: _FIRST.get((entry.group, entry.kind), 2))

    def store_all(self) -> None:
        # Custom resources are known, and find their place, only when their definitions are stored.
        definitions = [entry for entry in self._entries if (entry.group, entry.kind) == _CRD]
        others = [entry for entry in self._entries if (entry.group, entry.kind) != _CRD]
        for part in (definitions, others):
            placed = [entry for entry in part if self._place(entry)]
            for entry in placed:
                self._store(entry)

    def _place(self, entry: _Entry) -> bool:
        """Find the resource an object belongs to, and give it its uid."""
        served = self._registry.table.by_kind(entry.group, entry.kind, entry.version)
        if served is None or "create" not in served.info.verbs:
            api_version = f"{entry.group}/{entry.version}" if entry.group else entry.version
            why = "the server does not serve" if served is None else "objects cannot be stored of"
            self._problem(entry, f"{why} kind {entry.kind} in version {api_version}", left_out=True)
            return False
        entry.served = served
        if served.namespaced and not entry.namespace:
            entry.source = {**entry.source, "metadata": {**entry.meta, "namespace": "default"}}
        elif not served.namespaced and entry.namespace:
            meta = {key: value for key, value in entry.meta.items() if key != "namespace"}
            entry.source = {**entry.source, "metadata": meta}
        known = self._by_identity.get(entry.identity)
        if known is not None:
            self._problem(entry, "stands here twice; the first one counts", left_out=True)
            return False
        entry.uid = self._registry.rng.uid()
        self._by_identity[entry.identity] = entry
        old_uid = entry.meta.get("uid")
        if isinstance(old_uid, str) and old_uid:
            self._new_uids.setdefault(old_uid, entry.uid)
        return True

    # -- writing -------------------------------------------------------------------------------------------

    def _store(self, entry: _Entry) -> None:
        registry, served = self._registry, entry.served
        assert served is not None
        try:
            obj = self._revive(entry, served)
        except Invalid as problem:
            causes = "; ".join(f"{cause.field}: {cause.message}" for cause in problem.causes)
            self._problem(entry, causes or problem.message, left_out=True)
            return
        except ApiError as problem:
            self._problem(entry, problem.message, left_out=True)
            return
        ordered = in_wire_order(served, obj)
        namespace = str(obj["metadata"].get("namespace") or "")
        key = registry.key(served, namespace, obj["metadata"]["name"])
        if registry.store.get(served.bucket, key) is None:
            stored = registry.store.create(served.bucket, key, ordered)
        else:
            stored = registry.store.update(served.bucket, key, ordered)
        registry.custom_resources.after_write(served, stored.obj)
        self.report.restored[served.type.qualified_name] += 1
        if (entry.group, entry.kind) == _NAMESPACE:
            self._namespaces[obj["metadata"]["name"]] = None
        elif namespace:
            self._namespaces[namespace] = None

    def _revive(self, entry: _Entry, served: Served) -> JsonObject:
        """The object as it will be stored."""
        registry = self._registry
        kind = registry.kind_of(served)
        obj, warnings = read_body(registry, served, _without_server_fields(entry.source), _WARN)
        for warning in warnings:
            self._problem(entry, f"{warning} is left out", left_out=False)
        meta: JsonObject = obj["metadata"]
        was_served = bool(entry.meta.get("uid"))
        context = registry.write_context(IN_PROCESS)
        meta.setdefault("creationTimestamp", timeformat.format_time(context.now))
        if kind.tracks_generation:
            meta.setdefault("generation", 1)
        if not registry.tracks_managed_fields:
            meta.pop("managedFields", None)
        is_definition = (entry.group, entry.kind) == _CRD
        if is_definition or not was_served:
            # Names of a CRD are accepted by this server, whatever another one said about them.
            status = None if kind.keeps_status_on_create or is_definition else obj.pop("status", None)
            kind.prepare_create(obj, context)
            if status:
                obj["status"] = status
        if self._new_uids:
            _replace_uids(obj, self._new_uids)
        # Not before: with the same seed a new uid may well be another object's old one.
        obj["metadata"]["uid"] = entry.uid
        self._link_owners(entry, obj)
        errors = FieldErrors()
        validate_metadata(obj, kind, namespaced=served.namespaced, errors=errors)
        if was_served:
            kind.validate_update(obj, obj, errors)
        else:
            kind.validate(obj, errors)
        if errors:
            raise invalid(served.group, served.kind, meta["name"], errors.causes)
        return obj

    def _link_owners(self, entry: _Entry, obj: JsonObject) -> None:
        for owner in obj["metadata"].get("ownerReferences") or ():
            uid = self._owner_uid(owner, entry.namespace)
            if uid:
                owner["uid"] = uid
                continue
            title = _title(owner.get("kind", ""), "", owner.get("name", ""))
            self._problem(
                entry, f"its owner {title} is missing; a garbage collector would delete it", left_out=False
            )

    def _owner_uid(self, owner: Mapping[str, Any], namespace: str) -> str:
        group = _group_and_version(str(owner.get("apiVersion") or ""))[0]
        kind, name = str(owner.get("kind") or ""), str(owner.get("name") or "")
        for space in dict.fromkeys((namespace, "")):
            entry = self._by_identity.get((group, kind, space, name))
            if entry is not None:
                return entry.uid
        served = self._registry.table.by_kind(group, kind)
        if served is None:
            return ""
        space = namespace if served.namespaced else ""
        found = self._registry.find(group, served.plural, space, name)
        return str(found["metadata"]["uid"]) if found is not None else ""

    # -- namespaces ----------------------------------------------------------------------------------------

    async def complete_namespaces(self) -> None:
        """Make the namespaces that objects live in, and the service account that pods need there."""
        registry = self._registry
        namespaces = registry.resolve("", "v1", "namespaces")
        accounts = registry.resolve("", "v1", "serviceaccounts")
        for name in self._namespaces:
            if registry.find("", "namespaces", "", name) is None:
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await registry.create(namespaces, "", body)
                self.report.added_namespaces.append(name)
            space = registry.find("", "namespaces", "", name)
            if space is None or space["metadata"].get("deletionTimestamp"):
                continue
            if registry.find("", "serviceaccounts", name, "default") is None:
                body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
                try:
                    await registry.create(accounts, name, body)
                except AlreadyExists:
                    continue

    def _problem(self, entry: _Entry, message: str, *, left_out: bool) -> None:
        self.report.problems.append(Problem(entry.index, str(entry), message, left_out))


def _entry(index: int, obj: Any) -> _Entry | Problem:
    """What an object says of itself, or why it is none."""
    if not isinstance(obj, Mapping):
        return Problem(index, f"object {index + 1}", f"a {type(obj).__name__}, not a Kubernetes object", True)
    kind, api_version, meta = obj.get("kind"), obj.get("apiVersion"), obj.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    title = f"{kind or 'object'} {name or index + 1}"
    for field_name, value in (("kind", kind), ("apiVersion", api_version), ("metadata.name", name)):
        if not isinstance(value, str) or not value:
            return Problem(index, title, f"{field_name} is missing, so it is not a Kubernetes object", True)
    group, version = _group_and_version(str(api_version))
    return _Entry(index, dict(obj), group, version, str(kind))


def _group_and_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _title(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _without_server_fields(source: JsonObject) -> JsonObject:
    meta = {
        key: value
        for key, value in source["metadata"].items()
        if key not in ("uid", "resourceVersion", "selfLink") and value is not None
    }
    return {**source, "metadata": meta}


def _replace_uids(value: Any, new_uids: Mapping[str, str]) -> None:
    """Change every mention of an old uid, in place: owners, volume claims, events, labels of jobs.

    A uid is unique in the world, so a string that equals one means it.
    """
    items: Iterable[tuple[Any, Any]]
    put: Callable[[Any, Any], None] = value.__setitem__
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, part in items:
        if isinstance(part, str):
            if len(part) == 36 and part in new_uids:
                put(key, new_uids[part])
        elif isinstance(part, (dict, list)):
            _replace_uids(part, new_uids)
