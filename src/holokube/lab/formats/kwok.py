"""kwokctl's recordings: YAML documents, first the objects that were there, then one ``ResourcePatch`` per change.

::

    apiVersion: action.kwok.x-k8s.io/v1alpha1
    kind: ResourcePatch
    resource: {group: apps, version: v1, resource: deployments}
    target: {name: web, namespace: default}
    durationNanosecond: 1500000000        # since the recording began
    method: create | patch | delete
    template: {...}                       # the object, or a strategic merge patch

Times within objects are written relative to the beginning, as ``$(time-offset-nanosecond N)``. Whoever replays a
recording puts the objects into etcd as they are, past the API server, so only complete objects are of use there.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

from holokube.apiserver.resources import ResourceTable
from holokube.apiserver.types import TypeCatalog
from holokube.base.errors import UsageError
from holokube.kube.patch import PatchError
from holokube.kube.patch.merge_patch import apply_merge_patch, create_merge_patch
from holokube.kube.patch.strategic import apply_strategic
from holokube.kube.patch.strategic_diff import create_two_way
from holokube.kube.schema import Schema
from holokube.kube.timeformat import TimeFormatError, parse_time
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import YamlError, dump_document, load_documents
from holokube.lab.formats.timeline import Change, Ref, Timeline, check_object, ref_of

API_VERSION: Final = "action.kwok.x-k8s.io/v1alpha1"
KIND: Final = "ResourcePatch"
DEFAULT_BASE_S: Final = 1_767_571_200.0
"""What offsets count from when nobody says when a recording is to begin: 2026-01-05T00:00:00Z."""

_HINT: Final = "Give a file as `kwokctl snapshot record` (or `kectl snapshot record`) writes it."
_OFFSET: Final = re.compile(r"\$\(time-offset-nanosecond (-?\d+)\)")
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})")
_NANO: Final = 1_000_000_000
_GZIP_MAGIC: Final = b"\x1f\x8b"


@cache
def _table() -> ResourceTable:
    return ResourceTable(TypeCatalog())


def read_kwok(path: Path, *, base_s: float = DEFAULT_BASE_S) -> Timeline:
    """A recording; offsets of time within objects are counted from ``base_s``."""
    documents, is_relative = _documents(path, base_s)
    objects: list[JsonObject] = []
    patches: list[tuple[int, JsonObject]] = []
    for number, document in enumerate(documents, 1):
        where = f"{path}: document {number}"
        if isinstance(document, dict) and document.get("kind") == KIND:
            version = document.get("apiVersion")
            if version != API_VERSION:
                raise UsageError(f"{where}: apiVersion is {version!r}, not {API_VERSION}", hint=_HINT)
            patches.append((number, document))
        elif patches:
            raise UsageError(f"{where}: a plain object after the first {KIND}", hint=_HINT)
        else:
            objects.extend(_flat(document, where))
    if not objects and not patches:
        raise UsageError(f"{path} holds no objects", hint=_HINT)
    timed = [(_duration_ns(patch, f"{path}: document {number}"), number, patch) for number, patch in patches]
    # Recorders watch every resource for itself, so that changes may be slightly out of order.
    timed.sort(key=lambda entry: (entry[0], entry[1]))
    reader = _Reader(objects, str(path))
    # Nanoseconds may be there only to tell the order of changes at one moment; see `write_kwok`.
    changes = tuple(reader.change(round(at_ns / _NANO, 6), number, patch) for at_ns, number, patch in timed)
    start_s = base_s if is_relative else None
    return Timeline(tuple(objects), changes, (), start_s, changes[-1].at_s if changes else 0.0)


def _documents(path: Path, base_s: float) -> tuple[list[Any], bool]:
    try:
        raw = path.read_bytes()
        if raw.startswith(_GZIP_MAGIC):
            raw = gzip.decompress(raw)
        text = raw.decode()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {path}: {why}", hint="Check the name of the file, or copy it again.") from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} is not text: {error}", hint=f"{_HINT} Snapshots of etcd (.db) are none.") from error
    absolute, count = _OFFSET.subn(lambda match: _absolute(int(match[1]), base_s), text)
    try:
        documents = load_documents(absolute.encode())
    except YamlError as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}", hint=_HINT) from error
    return [document for document in documents if document is not None], count > 0


def _absolute(offset_ns: int, base_s: float) -> str:
    moment = datetime.fromtimestamp(base_s, UTC) + timedelta(microseconds=offset_ns // 1000)
    spec = "microseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=spec)[:-6] + "Z"


def _flat(document: Any, where: str) -> Iterator[JsonObject]:
    items = document.get("items") if isinstance(document, dict) else None
    if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
        for number, item in enumerate(items):
            yield check_object(item, f"{where}, items[{number}]")
    else:
        yield check_object(document, where)


def _duration_ns(patch: Mapping[str, Any], where: str) -> int:
    nanoseconds = patch.get("durationNanosecond", 0)
    if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, int) or nanoseconds < 0:
        raise UsageError(f"{where}: durationNanosecond is {nanoseconds!r}, not a whole number from 0 on", hint=_HINT)
    return nanoseconds


class _Reader:
    """Turns patches into whole objects."""

    def __init__(self, objects: Iterable[JsonObject], path: str) -> None:
        self._path = path
        self._present = {ref_of(obj): obj for obj in objects}
        self._kinds: dict[tuple[str, str], str] = {}
        for obj in self._present.values():
            self._learn(obj)

    def _learn(self, obj: JsonObject) -> None:
        """A CustomResourceDefinition says how its kind is called in the plural."""
        if obj["kind"] == "CustomResourceDefinition":
            spec = obj.get("spec") or {}
            names = spec.get("names") or {}
            self._kinds[spec.get("group", ""), names.get("plural", "")] = names.get("kind", "")

    def change(self, at_s: float, number: int, patch: Mapping[str, Any]) -> Change:
        where = f"{self._path}: document {number}"
        method, template = patch.get("method"), patch.get("template")
        ref = self._target(patch, where)
        if method == "delete":
            gone = self._present.pop(ref, None)
            return Change(at_s, "delete", gone if gone is not None else _named(ref))
        if not isinstance(template, dict):
            raise UsageError(f"{where}: {method} of {ref} has no template", hint=_HINT)
        if method == "create":
            obj = check_object({"apiVersion": ref.api_version, "kind": ref.kind, **template}, where)
            self._learn(obj)
        elif method == "patch":
            before = self._present.get(ref)
            if before is None:
                return Change(at_s, "patch", _with_name(template, ref))
            obj = _patched(before, template, f"{where}: {ref}")
        else:
            raise UsageError(f"{where}: method is {method!r}, not create, patch or delete", hint=_HINT)
        self._present[ref] = obj
        return Change(at_s, "apply", obj)

    def _target(self, patch: Mapping[str, Any], where: str) -> Ref:
        resource, target = patch.get("resource"), patch.get("target")
        if not isinstance(resource, dict) or not isinstance(target, dict):
            raise UsageError(f"{where}: resource and target are needed", hint=_HINT)
        group, version, plural = (str(resource.get(key) or "") for key in ("group", "version", "resource"))
        name = target.get("name")
        if not version or not plural or not isinstance(name, str) or not name:
            raise UsageError(f"{where}: resource.version, resource.resource or target.name is missing", hint=_HINT)
        api_version = f"{group}/{version}" if group else version
        template = patch.get("template")
        kind = template.get("kind") if isinstance(template, dict) else None
        kind = kind or self._kind(group, version, plural, api_version)
        if not kind:
            raise UsageError(
                f"{where}: nothing says which kind {plural}.{group} are",
                hint="Put their CustomResourceDefinition, or one of them, before the first change.",
            )
        return Ref(api_version, str(kind), str(target.get("namespace") or ""), name)

    def _kind(self, group: str, version: str, plural: str, api_version: str) -> str:
        served = _table().find(group, version, plural)
        if served is not None:
            return served.kind
        known = self._kinds.get((group, plural))
        if known:
            return known
        for ref in self._present:
            if ref.api_version == api_version and plural in _plurals(ref.kind):
                self._kinds[group, plural] = ref.kind
                return ref.kind
        return ""


def _plurals(kind: str) -> tuple[str, ...]:
    singular = kind.lower()
    return (f"{singular}s", f"{singular}es", f"{singular.removesuffix('y')}ies", singular)


def _schema(api_version: str, kind: str) -> Schema | None:
    group, _, version = api_version.rpartition("/")
    return _table().catalog.schema_of_kind(group, version, kind)


def _patched(before: JsonObject, patch: JsonObject, where: str) -> JsonObject:
    schema = _schema(before["apiVersion"], before["kind"])
    try:
        return apply_merge_patch(before, patch) if schema is None else apply_strategic(before, patch, schema)
    except PatchError as error:
        raise UsageError(
            f"{where}: the patch does not fit: {error}", hint="A change before it is missing; record it again."
        ) from error


def _named(ref: Ref) -> JsonObject:
    return _with_name({}, ref)


def _with_name(patch: JsonObject, ref: Ref) -> JsonObject:
    meta = {**(patch.get("metadata") or {}), "name": ref.name}
    if ref.namespace:
        meta["namespace"] = ref.namespace
    return {**patch, "apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta}


def write_kwok(timeline: Timeline) -> Iterator[str]:
    """The text of a recording, piece by piece.

    No two changes are at the same nanosecond: a replay sorts them by time alone, and would patch what is not there yet.
    """
    base_s = DEFAULT_BASE_S if timeline.start_s is None else timeline.start_s
    present: dict[Ref, JsonObject] = {}
    plurals = _custom_plurals(timeline)
    for obj in timeline.objects:
        clean = _clean(obj)
        present[ref_of(obj)] = clean
        yield "---\n" + _relative(dump_document(clean), base_s)
    last_ns = -1
    for change in timeline.changes:
        document = _document(change, present, plurals)
        if document is not None:
            last_ns = document["durationNanosecond"] = max(last_ns + 1, document["durationNanosecond"])
            yield "---\n" + _relative(dump_document(document), base_s)


def _custom_plurals(timeline: Timeline) -> dict[tuple[str, str], str]:
    """What CustomResourceDefinitions say of group and kind."""
    found: dict[tuple[str, str], str] = {}
    for obj in (*timeline.objects, *(change.object for change in timeline.changes if change.method == "apply")):
        if obj["kind"] == "CustomResourceDefinition":
            names = obj["spec"]["names"]
            found[obj["spec"]["group"], names["kind"]] = names["plural"]
    return found


def _document(
    change: Change, present: dict[Ref, JsonObject], plurals: Mapping[tuple[str, str], str]
) -> JsonObject | None:
    ref = ref_of(change.object)
    group, _, version = ref.api_version.rpartition("/")
    served = _table().by_kind(group, ref.kind)
    plural = served.plural if served is not None else plurals.get((group, ref.kind)) or _plurals(ref.kind)[0]
    resource = {"group": group, "version": version, "resource": plural}
    target = {"name": ref.name, "namespace": ref.namespace}
    document: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "resource": {key: value for key, value in resource.items() if value},
        "target": {key: value for key, value in target.items() if value},
        "durationNanosecond": round(change.at_s * _NANO),
    }
    if change.method == "delete":
        present.pop(ref, None)
        return {**document, "method": "delete"}
    if change.method == "patch":
        return {**document, "method": "patch", "template": change.object}
    clean = _clean(change.object)
    before = present.get(ref)
    present[ref] = clean
    if before is None:
        return {**document, "method": "create", "template": clean}
    schema = _schema(ref.api_version, ref.kind)
    patch = create_merge_patch(before, clean) if schema is None else create_two_way(before, clean, schema)
    return {**document, "method": "patch", "template": patch} if patch else None


def _clean(obj: JsonObject) -> JsonObject:
    """Without the version, as kwokctl has it, and without who owns which field, which would fill half of the file."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": meta}


def _relative(text: str, base_s: float) -> str:
    base = datetime.fromtimestamp(base_s, UTC)

    def offset(match: re.Match[str]) -> str:
        try:
            delta = parse_time(match[0]) - base
        except TimeFormatError:
            return match[0]
        microseconds = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        return f"$(time-offset-nanosecond {microseconds * 1000})"

    return _TIME.sub(offset, text)
