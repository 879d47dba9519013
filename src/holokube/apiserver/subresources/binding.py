"""pods/binding: how a scheduler says where a pod runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.admission.pod_topology_labels import PodTopologyLabels, topology_of
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.metadata import validate_labels
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.bodies import read_typed, success
from holokube.base.errors import KeyMissing, RevisionMismatch
from holokube.kube import conditions, names, timeformat
from holokube.kube.errors import OBJECT_WAS_MODIFIED, BadRequest, conflict, invalid
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_ATTEMPTS = 5
_STATUSES_KEPT = 64
_NODES_KEPT = 4096
_META_FIELDS = frozenset({"name", "namespace", "uid"})


async def bind_by_name(
    registry: Registry, namespace: str, body: Any, options: WriteOptions, caller: Caller
) -> WriteResult:
    """The old door: POST to bindings, the pod named in the body."""
    value = body.value if isinstance(body, Body) else body
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise BadRequest("name must be provided")
    return await bind(registry, namespace, name, body, options, caller)


async def bind(
    registry: Registry, namespace: str, name: str, body: Any, options: WriteOptions, caller: Caller
) -> WriteResult:
    """Assign a pod to a node. Whether the node exists is not checked, as upstream does not either."""
    warnings: list[str] = []
    binding = _usual(body, name)
    if binding is None:
        binding, warnings = read_typed(registry, body, "", "v1", "Binding", options)
        given = (binding.get("metadata") or {}).get("name")
        if given and given != name:
            raise BadRequest(f"name in URL does not match name in Binding object: {name} is not {given}")
        _validate(binding, name)
    pods = registry.resolve("", "v1", "pods")
    attributes = Attributes(
        "CREATE", pods, namespace, name, "binding", binding, None, caller, registry, options.dry_run,
        warnings=warnings,
    )  # fmt: skip
    if not registry.admission.admits_at_once(attributes):
        await registry.admission.mutate(attributes)
        await registry.admission.validate(attributes)
    for attempt in range(_ATTEMPTS):
        stored = registry.get_stored(pods, namespace, name)
        _check(stored.obj, binding)
        meta = binding.get("metadata") or {}
        # Admission put the node's zone and region among the labels.
        bound = _bound(
            registry, stored.obj, binding["target"]["name"], meta.get("annotations") or {}, meta.get("labels") or {}
        )
        if options.dry_run:
            break
        try:
            changed = registry.store.update(
                pods.bucket, registry.key(pods, namespace, name), bound, expected=stored.revision, owned=True
            )
        except (RevisionMismatch, KeyMissing):
            if attempt == _ATTEMPTS - 1:
                raise conflict("", "pods/binding", name, "the pod changed while it was being bound") from None
            continue
        changed.checked = stored.checked and _is_plain(binding)
        changed.settled = stored.settled and not names.is_dns1123_subdomain(binding["target"]["name"])
        if not registry.store.is_durable_at_once:
            await registry.store.durable()
        break
    return WriteResult(Stored(success(), 0), created=True, warnings=warnings)


def bind_at_once(registry: Registry, pods: Served, namespace: str, name: str, body: Any) -> bool:
    """As ``bind``, for a binding of the usual form, where nobody has to be waited for and all that admission does is to
    tell where the node is; False, with nothing done, where there is more to do."""
    store = registry.store
    if not (store.is_durable_at_once and _is_usual(body, name)):
        return False
    if not registry.admission.has_no_say(pods, "CREATE", "binding", namespace, PodTopologyLabels):
        return False
    key = f"{namespace}/{name}"
    stored = store.get(pods.bucket, key)
    if stored is None:
        return False
    node_name = body["target"]["name"]
    _check(stored.obj, body)
    node = store.get("nodes", node_name)
    labels, are_valid = registry.subresources.node_labels.copied(node)
    bound = _bound(registry, stored.obj, node_name, {}, labels)
    changed = store.update(pods.bucket, key, bound, owned=True)
    changed.checked = stored.checked and are_valid
    # The name of a node whose metadata was found valid is a valid name of a node.
    is_name = (node is not None and node.checked) or not names.is_dns1123_subdomain(node_name)
    changed.settled = stored.settled and is_name
    return True


def _usual(body: Any, name: str) -> JsonObject | None:
    """A private copy of a binding of the form in which schedulers send it; None if it has to be read field by field."""
    if not _is_usual(body, name):
        return None
    meta, target = body["metadata"].copy(), body["target"].copy()
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}


def _is_usual(body: Any, name: str) -> bool:
    # That there are no other fields is seen by their number.
    if type(body) is not dict or len(body) != 4 or body.get("apiVersion") != "v1" or body.get("kind") != "Binding":
        return False
    meta, target = body.get("metadata"), body.get("target")
    if type(meta) is not dict or type(target) is not dict or meta.get("name") != name:
        return False
    if len(target) != 3 or target.get("kind") != "Node" or not target.get("name"):
        return False
    if type(target["name"]) is not str or type(target.get("apiVersion")) is not str:
        return False
    for key, value in meta.items():  # noqa: SIM110 - all() with a generator costs twice as much
        if key not in _META_FIELDS or type(value) is not str:
            return False
    return True


def _validate(binding: JsonObject, name: str) -> None:
    errors = FieldErrors()
    target = binding.get("target") or {}
    if target.get("kind", "") not in ("", "Node"):
        errors.not_supported("target.kind", target["kind"], ["Node", "<empty>"])
    if not target.get("name"):
        errors.required("target.name")
    if errors:
        raise invalid("", "Binding", name, errors.causes)


def _is_plain(binding: JsonObject) -> bool:
    """Whether what a binding adds to the metadata of a pod is known to be valid there."""
    meta = binding.get("metadata") or {}
    if meta.get("annotations"):
        return False
    errors = FieldErrors()
    validate_labels(meta.get("labels"), "metadata.labels", errors)
    return not errors


def _check(pod: JsonObject, binding: JsonObject) -> None:
    meta, spec = pod["metadata"], pod.get("spec") or {}
    name = meta["name"]
    given = binding.get("metadata") or {}
    if given.get("uid", meta["uid"]) != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {meta['uid']}"
        raise conflict("", "pods", name, why)
    if given.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
        raise conflict("", "pods", name, OBJECT_WAS_MODIFIED)
    if meta.get("deletionTimestamp"):
        raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


def _bound(
    registry: Registry, pod: JsonObject, node_name: str, annotations: JsonObject, labels: JsonObject
) -> JsonObject:
    meta: JsonObject = pod["metadata"].copy()
    if annotations:
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    if labels:
        meta["labels"] = {**(meta.get("labels") or {}), **labels}
    now = timeformat.format_time(registry.clock.now())
    status = registry.subresources.bound_statuses.after(pod.get("status") or {}, meta, now)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}


class NodeLabels:
    """The labels that pods get from their nodes, worked out once for all pods of a node."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[JsonObject, JsonObject, bool]] = {}

    def copied(self, node: Stored | None) -> tuple[JsonObject, bool]:
        """The labels of pods that are bound to a node, not to be changed, and whether they are valid."""
        labels = node.obj["metadata"].get("labels") if node is not None else None
        if not labels:
            return {}, True
        known = self._known.get(id(labels))
        if known is not None and known[0] is labels:
            return known[1], known[2]
        copied = topology_of(labels)
        errors = FieldErrors()
        validate_labels(copied, "metadata.labels", errors)
        if len(self._known) >= _NODES_KEPT:
            self._known.clear()
        self._known[id(labels)] = labels, copied, not errors
        return copied, not errors


class BoundStatuses:
    """The status of pods that were bound. Those that had the very same before share what it becomes at an instant."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Any, str], tuple[JsonObject, JsonObject]] = {}

    def after(self, before: JsonObject, meta: JsonObject, now: str) -> JsonObject:
        """The status of a pod with this metadata that is bound now."""
        generation = meta["generation"] if "observedGeneration" in before else None
        key = (id(before), generation, now)
        known = self._known.get(key)
        if known is not None and known[0] is before:
            return known[1]
        scheduled: JsonObject = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        if "observedGeneration" in before:
            scheduled["observedGeneration"] = generation
        found = conditions.set_condition(before.get("conditions") or [], scheduled, now=now)
        status = {**before, "conditions": found}
        if len(self._known) >= _STATUSES_KEPT:
            self._known.clear()
        self._known[key] = before, status
        return status
