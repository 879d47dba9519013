"""Keeps the server's resources in step with the CustomResourceDefinitions in its store.

Upstream does this with half a dozen controllers; here it happens within the write itself, so that a resource is
served by the time the answer to the creation of its CRD arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from holokube.apiserver import conversion
from holokube.apiserver.bodies import cannot_handle
from holokube.apiserver.crds.custom_kind import CustomKind
from holokube.apiserver.crds.definitions import Definition, compile_definition, is_established, is_terminating
from holokube.apiserver.crds.kept_parts import KeptParts
from holokube.apiserver.crds.naming import (
    BUCKET,
    CLEANUP_FINALIZER,
    GROUP,
    PLURAL,
    accept_names,
    set_terminating,
)
from holokube.apiserver.crds.shaping import EmbeddedProblem, apply_defaults, private, shape
from holokube.apiserver.decode import DecodeError
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.scale import ScalePaths
from holokube.apiserver.types import OBJECT_META
from holokube.kube import timeformat
from holokube.kube.errors import BadRequest, NotFound
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_SHOWN_BYTES = 30


class CustomResources:
    """Serves what the CRDs in the store describe, and reads and checks objects of custom resources."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._definitions: dict[tuple[str, str], Definition] = {}
        self._compiled_from: dict[tuple[str, str], JsonObject] = {}
        self.load_all()

    def load_all(self) -> None:
        """Serve the CRDs that the store holds already (a data folder, a snapshot); needed again if it was refilled."""
        for crd in self._registry.objects(GROUP, PLURAL):
            self._serve(crd)
            if is_terminating(crd):
                self._clean_up(crd)
        for definition in list(self._definitions.values()):
            self._update_stored(definition)

    # -- what the registry asks ------------------------------------------------------------------------------------

    def kind_for(self, served: Served) -> CustomKind:
        """The rules of a custom resource in one version."""
        definition = self._definitions.get((served.group, served.plural))
        if definition is None or served.version not in definition.kinds:
            raise NotFound("the server could not find the requested resource", details={})
        return definition.kinds[served.version]

    def scale_paths(self, served: Served) -> ScalePaths:
        """Where objects of a resource keep their replicas."""
        return self.kind_for(served).rules.scale or ScalePaths()

    def read(
        self,
        served: Served,
        value: Any,
        options: WriteOptions,
        duplicates: tuple[str, ...],
        known: JsonObject | None = None,
        *,
        settled: bool = False,
    ) -> tuple[JsonObject, list[str]]:
        """Decode a custom object: prune, default. Returns a private object and warnings.

        ``known`` is the stored object that was patched. What the value shares with it has been read before: the record
        of who owns what, which is never changed, and, if it is ``settled``, the spec and a status that has a door of
        its own, are taken over as they are.
        """
        _check_type_meta(served, value)
        rules = self.kind_for(served).rules
        held = _held(served, value, known) if settled and known is not None else ()
        entries = _same_entries(value, known)
        try:
            obj: JsonObject = private(_without(value, held, entries=entries is not None))
            unknown = shape(obj, rules.node, self._registry.catalog.schema(OBJECT_META))
        except (DecodeError, EmbeddedProblem) as problem:
            raise cannot_handle(served, str(problem)) from None
        if entries is not None:
            obj["metadata"]["managedFields"] = entries
        if held:
            obj = {key: value[key] if key in held else obj[key] for key in value if key in held or key in obj}
        obj["apiVersion"], obj["kind"] = served.api_version, served.kind
        warnings = _field_warnings(served, unknown, duplicates, options)
        apply_defaults(obj, rules.node, held)
        return conversion.to_storage(served, obj), warnings

    def read_status(self, served: Served, before: JsonObject, value: Any) -> JsonObject | None:
        """A status that is to be put into a stored object whose spec is settled; None where there is something to say
        about it."""
        rules = self.kind_for(served).rules
        node = rules.node.properties.get("status")
        if type(value) is not dict or node is None:
            return None
        known = before.get("status")
        kept = KeptParts(value, known if type(known) is dict else {}, node)
        try:
            obj: JsonObject = {"apiVersion": served.api_version, "kind": served.kind, "status": private(kept.others)}
            if kept.others and shape(obj, rules.node, self._registry.catalog.schema(OBJECT_META)):
                return None
        except (DecodeError, EmbeddedProblem):
            return None
        status = kept.with_others(obj["status"])
        apply_defaults(status, node)
        return status

    def after_write(self, served: Served, obj: JsonObject) -> None:
        """Called after each write of any resource; a CRD that changed changes what is served."""
        if served.bucket == BUCKET:
            self._serve(obj)
            if is_terminating(obj):
                self._clean_up(obj)
            else:
                self._reconsider_names(obj)

    def after_delete(self, served: Served, obj: JsonObject) -> None:
        """Called after each removal of any resource."""
        if served.bucket == BUCKET:
            self._forget(obj)
            self._reconsider_names(obj)
        elif served.type.custom:
            stored = self._registry.store.get(BUCKET, f"{served.plural}.{served.group}")
            if stored is not None and is_terminating(stored.obj):
                self._clean_up(stored.obj)

    # -- serving ---------------------------------------------------------------------------------------------------

    def _serve(self, crd: JsonObject) -> None:
        if not is_established(crd):
            return
        key = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        relevant = {
            "spec": crd["spec"],
            "names": crd["status"].get("acceptedNames"),
            "ends": is_terminating(crd),
        }
        before = self._compiled_from.get(key)
        if before == relevant:
            return
        definition = compile_definition(crd, self._registry.catalog)
        self._definitions[key] = definition
        for _, stored in self._registry.store.list(definition.type.bucket).items:
            # Another schema may prune and default in another way.
            stored.settled = False
        self._compiled_from[key] = relevant
        if definition.type.versions:
            self._registry.table.add(definition.type)
        else:
            self._registry.table.remove(*key)
        if before is not None and before["spec"]["versions"] != crd["spec"]["versions"]:
            self._update_stored(definition)

    def _update_stored(self, definition: Definition) -> None:
        """Bring stored objects to the storage version, and give them the defaults that a CRD has gained.

        Upstream does both whenever it reads an object. Objects here are handed out as they are stored, so that it
        happens once, now. Fields that the schema has lost stay until the next write of the object.
        """
        store, resource = self._registry.store, definition.type
        node = definition.kinds[resource.storage_version].rules.node
        api_version = resource.api_version(resource.storage_version)
        for key, stored in store.list(resource.bucket).items:
            if not node.has_defaults and stored.obj["apiVersion"] == api_version:
                continue
            obj: JsonObject = {**private(stored.obj), "apiVersion": api_version}
            apply_defaults(obj, node)
            if obj != stored.obj:
                store.update(resource.bucket, key, obj, expected=stored.revision)

    def _forget(self, crd: JsonObject) -> None:
        key = (crd["spec"]["group"], crd["spec"]["names"]["plural"])
        if self._definitions.pop(key, None) is not None:
            self._compiled_from.pop(key, None)
            self._registry.table.remove(*key)

    def _reconsider_names(self, changed: JsonObject) -> None:
        """Names that a CRD gave up may be what another of its group is waiting for."""
        registry = self._registry
        now = timeformat.format_time(registry.clock.now())
        for crd in registry.objects(GROUP, PLURAL):
            if crd["spec"]["group"] != changed["spec"]["group"]:
                continue
            name = crd["metadata"]["name"]
            if name == changed["metadata"]["name"] or crd["spec"]["names"] == crd["status"].get(
                "acceptedNames"
            ):
                continue
            status = accept_names(crd, registry.objects(GROUP, PLURAL), now)
            if status != crd["status"]:
                stored = registry.store.update(BUCKET, name, {**crd, "status": status})
                self._serve(stored.obj)

    # -- deletion --------------------------------------------------------------------------------------------------

    def _clean_up(self, crd: JsonObject) -> None:
        """Delete the objects of a CRD that is being deleted, and let go of it when none is left."""
        if CLEANUP_FINALIZER not in (crd["metadata"].get("finalizers") or []):
            return
        registry = self._registry
        now = timeformat.format_time(registry.clock.now())
        bucket = crd["metadata"]["name"]
        if is_established(crd) and self._delete_objects(bucket, now):
            waiting = set_terminating(crd, "True", "InstanceDeletionInProgress", now)
            if waiting is not crd:
                registry.store.update(BUCKET, bucket, waiting)
            return
        reason = "InstanceDeletionCompleted" if is_established(crd) else "NeverEstablished"
        done = set_terminating(crd, "False", reason, now)
        finalizers = [name for name in done["metadata"]["finalizers"] if name != CLEANUP_FINALIZER]
        meta: JsonObject = {**done["metadata"], "finalizers": finalizers}
        if finalizers:
            stored = registry.store.update(BUCKET, bucket, {**done, "metadata": meta})
            self._serve(stored.obj)
            return
        del meta["finalizers"]
        gone = registry.store.delete(BUCKET, bucket, final={**done, "metadata": meta})
        self._forget(gone.obj)
        self._reconsider_names(gone.obj)

    def _delete_objects(self, bucket: str, now: str) -> int:
        """Delete what nobody holds back, mark the rest; returns how many are left."""
        store = self._registry.store
        left = 0
        for key, stored in store.list(bucket).items:
            meta: JsonObject = stored.obj["metadata"]
            if not meta.get("finalizers"):
                store.delete(bucket, key)
                continue
            left += 1
            if not meta.get("deletionTimestamp"):
                marked = {
                    **meta, "deletionTimestamp": now, "deletionGracePeriodSeconds": 0,
                    "generation": meta.get("generation", 0) + 1,
                }  # fmt: skip
                store.update(bucket, key, {**stored.obj, "metadata": marked})
        return left


def _same_entries(value: JsonObject, known: JsonObject | None) -> Any:
    """The record of who owns what, if it is the very one that is stored."""
    meta = value.get("metadata")
    if known is None or type(meta) is not dict:
        return None
    entries = meta.get("managedFields")
    return entries if entries is not None and entries is known["metadata"].get("managedFields") else None


def _held(served: Served, value: JsonObject, known: JsonObject) -> tuple[str, ...]:
    """The fields that are the very ones that are stored."""
    names = ("spec", "status") if "status" in served.info.subresources else ("spec",)
    return tuple(name for name in names if type(value.get(name)) is dict and value[name] is known.get(name))


def _without(value: JsonObject, held: tuple[str, ...], *, entries: bool) -> JsonObject:
    if held:
        value = {key: part for key, part in value.items() if key not in held}
    if entries:
        meta = {key: part for key, part in value["metadata"].items() if key != "managedFields"}
        value = {**value, "metadata": meta}
    return value


def _check_type_meta(served: Served, value: JsonObject) -> None:
    """Custom objects must say what they are; nothing is filled in for them."""
    if not value.get("kind"):
        text = orjson.dumps(value).decode()
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {served.kind}): Object 'Kind' is missing in "
            f"'{text}' ({text[:_SHOWN_BYTES]} ...)"
        )
    if not value.get("apiVersion"):
        raise BadRequest(
            f"the API version in the data () does not match the expected API version ({served.api_version})"
        )


def _field_warnings(
    served: Served, unknown: list[str], duplicates: tuple[str, ...], options: WriteOptions
) -> list[str]:
    """What ``fieldValidation`` makes of unknown and duplicate fields; here duplicates come first."""
    if options.field_validation == "Ignore" or not (unknown or duplicates):
        return []
    found = [f'duplicate field "{path}"' for path in duplicates] + [
        f'unknown field "{path}"' for path in unknown
    ]
    if options.field_validation == "Strict":
        raise cannot_handle(served, f"strict decoding error: {', '.join(found)}")
    return found
