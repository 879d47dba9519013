"""What may change in a pod that exists: the ordinary update, resize, and ephemeral containers."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.annotation_validation import (
    MIRROR,
    validate_annotation_changes,
    validate_pod_annotations,
)
from holokube.apiserver.kinds.pod_defaults import share_service_account_name
from holokube.apiserver.kinds.pod_validation import validate_pod
from holokube.apiserver.kinds.scheduling_validation import (
    validate_only_added_tolerations,
    validate_only_removed_gates,
)
from holokube.kube import names
from holokube.kube.resources import qos_class
from holokube.kube.types import JsonObject

_MAX_INT32 = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_RESTARTS_ON_RESIZE = (
    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
)
_RESIZABLE = frozenset({"cpu", "memory"})


def validate_pod_update(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidatePodUpdate."""
    validate_pod(new, errors)
    _validate_annotation_changes(new, old, errors)
    after, before = new["spec"], old["spec"]
    for key in ("containers", "initContainers"):
        if not _validate_same_containers(after.get(key) or [], before.get(key) or [], f"spec.{key}", errors):
            return
    if not _validate_deadline(
        after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errors
    ):
        return
    validate_only_added_tolerations(
        after.get("tolerations") or [], before.get("tolerations") or [], "spec.tolerations", errors
    )
    validate_only_removed_gates(
        after.get("schedulingGates") or [],
        before.get("schedulingGates") or [],
        "spec.schedulingGates",
        errors,
    )
    if after != before:
        _validate_rest_unchanged(after, before, errors)


def _validate_annotation_changes(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    annotations = new["metadata"].get("annotations") or {}
    known = old["metadata"].get("annotations") or {}
    if annotations or known:
        validate_annotation_changes(annotations, known, "metadata.annotations", errors)
        validate_pod_annotations(annotations, new["spec"], "metadata.annotations", errors)


def _validate_same_containers(
    new: list[JsonObject], old: list[JsonObject], path: str, errors: FieldErrors
) -> bool:
    if len(new) != len(old):
        errors.forbidden(path, "pod updates may not add or remove containers")
        return False
    for index, container in enumerate(new):
        image = container.get("image", "")
        if not image:
            errors.required(f"{path}[{index}].image")
        if image != image.strip():
            detail = "must not have leading or trailing whitespace"
            errors.invalid(f"{path}[{index}].image", image, detail)
    return True


def _validate_deadline(new: int | None, old: int | None, errors: FieldErrors) -> bool:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.invalid(path, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= new <= _MAX_INT32:
        errors.invalid(path, new, names.inclusive_range_error(0, _MAX_INT32))
        return False
    if old is not None and old < new:
        errors.invalid(path, new, "must be less than or equal to previous value")
        return False
    return True


def _validate_rest_unchanged(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    """With everything that may change put back, the specs must be equal."""
    munged = dict(after)
    for key in ("containers", "initContainers"):
        if munged.get(key):
            pairs = zip(munged[key], before[key], strict=True)
            munged[key] = [_with_image_of(container, known) for container, known in pairs]
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _put_back(munged, before, key)
    if (
        before.get("terminationGracePeriodSeconds", 0) < 0
        and munged.get("terminationGracePeriodSeconds") == 1
    ):
        _put_back(munged, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        _allow_narrowing(munged, before, errors)
    if munged != before:
        changed = sorted(key for key in munged.keys() | before.keys() if munged.get(key) != before.get(key))
        listed = "".join(f"  spec.{key}\n" for key in changed)
        detail = f"pod updates may not change fields other than {_UPDATABLE}\nchanged here:\n{listed}"
        errors.forbidden("spec", detail)


def _with_image_of(container: JsonObject, known: JsonObject) -> JsonObject:
    munged = dict(container)
    _put_back(munged, known, "image")
    return munged


def _put_back(munged: JsonObject, before: JsonObject, key: str) -> None:
    if key in before:
        munged[key] = before[key]
    else:
        munged.pop(key, None)


def _allow_narrowing(munged: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    """A pod that waits behind a gate may still be confined to fewer nodes."""
    selector, known = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if selector != known:
        if any(selector.get(key) != value for key, value in known.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.invalid("spec.nodeSelector", selector or None, detail)
        _put_back(munged, before, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), before.get("affinity")
    node = (affinity or {}).get("nodeAffinity")
    old_node = (old_affinity or {}).get("nodeAffinity")
    if node == old_node:
        return
    _validate_node_affinity_change(node, old_node, errors)
    rest = {key: value for key, value in (affinity or {}).items() if key != "nodeAffinity"}
    if old_node is not None:
        rest["nodeAffinity"] = old_node
    if rest or old_affinity is not None:
        munged["affinity"] = rest
    else:
        munged.pop("affinity", None)


def _validate_node_affinity_change(
    new: JsonObject | None, old: JsonObject | None, errors: FieldErrors
) -> None:
    if old is None or old.get(_REQUIRED) is None:
        return
    known = old[_REQUIRED].get("nodeSelectorTerms") or []
    terms = ((new or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if known and len(known) != len(terms):
        errors.invalid(
            path, terms or None, "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        )
        return
    for index, (term, old_term) in enumerate(zip(terms, known, strict=False)):
        if not _only_adds(term, old_term):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.invalid(f"{path}[{index}]", term, detail)


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(old.get(key) for key in keys):
        # An empty term matches nothing, so that any requirement would widen it.
        return not any(new.get(key) for key in keys)
    for key in keys:
        known = old.get(key) or []
        if (new.get(key) or [])[: len(known)] != known:
            return False
    return True


def prepare_resize(new: JsonObject, old: JsonObject) -> None:
    """Keep nothing of ``new`` but resources and resize policies; upstream's dropNonResizeUpdates."""
    after, before = new["spec"], old["spec"]
    for key in ("containers", "initContainers"):
        if len(after.get(key) or ()) != len(before.get(key) or ()):
            return
    spec = dict(before)
    for key in ("containers", "initContainers"):
        if after.get(key):
            spec[key] = _with_resources_of(after[key], before[key])
    _put_back(spec, after, "resources")
    new["spec"] = spec
    if "status" in old:
        new["status"] = old["status"]
    keep_only_bookkeeping(new, old)


def keep_only_bookkeeping(new: JsonObject, old: JsonObject) -> None:
    """These subresources change no labels, annotations, finalizers or owners."""
    meta, known = new["metadata"], old["metadata"]
    for key in ("deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"):
        _put_back(meta, known, key)


def _with_resources_of(new: list[JsonObject], old: list[JsonObject]) -> list[JsonObject]:
    merged = []
    for container, known in zip(new, old, strict=True):
        if container.get("name") != known.get("name"):
            return new
        kept = dict(known)
        for key in ("resources", "resizePolicy"):
            _put_back(kept, container, key)
        merged.append(kept)
    return merged


def validate_pod_resize(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidatePodResize: cpu and memory may change, and nothing else."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        errors.forbidden("", "static pods cannot be resized")
        return
    after, before = new["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        errors.forbidden("", "windows pods cannot be resized")
        return
    validate_pod(new, errors)
    status = old.get("status") or {}
    if (status.get("qosClass") or qos_class(old)) != qos_class(new):
        shown = (new.get("status") or {}).get("qosClass", "")
        errors.invalid("spec", shown, "Pod QOS Class may not change as a result of resizing")
    if not _node_can_resize(status):
        errors.forbidden("spec", "Pod running on node without support for resize")
    _validate_pod_level_resize(after, before, errors)
    if not _validate_container_order(after, before, errors):
        return
    for key in ("initContainers", "containers"):
        for index, (container, known) in enumerate(
            zip(after.get(key) or (), before.get(key) or (), strict=True)
        ):
            at = f"spec.{key}[{index}].resources"
            for part in ("requests", "limits"):
                if not _names(known, part) <= _names(container, part):
                    errors.forbidden(f"{at}.{part}", f"resource {part} cannot be removed")
    _validate_only_resources(after, before, errors)


def _names(container: JsonObject, part: str) -> set[str]:
    return set((container.get("resources") or {}).get(part) or ())


def _node_can_resize(status: JsonObject) -> bool:
    """A kubelet that can resize reports the resources of what runs."""
    for container in status.get("containerStatuses") or ():
        if "running" in (container.get("state") or {}):
            return container.get("resources") is not None
    return True


def _validate_pod_level_resize(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    new, old = after.get("resources"), before.get("resources")
    if old is None and new is None:
        return
    if old is not None and new is None:
        errors.forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for part in ("requests", "limits"):
        if not set((old or {}).get(part) or ()) <= set((new or {}).get(part) or ()):
            errors.forbidden(f"spec.resources.{part}", f"pod-level resource {part} cannot be removed")
    if _without_resizable(new) != _without_resizable(old):
        errors.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _without_resizable(resources: JsonObject | None) -> JsonObject:
    rest: JsonObject = {}
    for part, amounts in (resources or {}).items():
        if part in ("requests", "limits"):
            amounts = {name: text for name, text in amounts.items() if name not in _RESIZABLE}
        if amounts:
            rest[part] = amounts
    return rest


def _validate_container_order(after: JsonObject, before: JsonObject, errors: FieldErrors) -> bool:
    found = len(errors.causes)
    for key in ("containers", "initContainers"):
        new, old = after.get(key) or [], before.get(key) or []
        if len(new) != len(old):
            errors.forbidden(f"spec.{key}", f"{key} may not be added or removed on resize")
            continue
        for index, known in enumerate(old):
            if new[index].get("name") != known.get("name"):
                detail = f"{key} may not be renamed or reordered on resize"
                errors.forbidden(f"spec.{key}[{index}].name", detail)
    return len(errors.causes) == found


def _validate_only_resources(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    found = len(errors.causes)
    for container, known in zip(after.get("containers") or (), before.get("containers") or (), strict=True):
        if _without_resizable_container(container) != _without_resizable_container(known):
            errors.forbidden("spec", "only cpu and memory resources are mutable")
    pairs = zip(after.get("initContainers") or (), before.get("initContainers") or (), strict=True)
    for index, (container, known) in enumerate(pairs):
        at = f"spec.initContainers[{index}]"
        if _without_resizable_container(container) != _without_resizable_container(known):
            errors.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
        if container != known and container.get("restartPolicy") != "Always":
            for policy in container.get("resizePolicy") or ():
                if policy.get("restartPolicy") == "RestartContainer":
                    errors.forbidden(at, _RESTARTS_ON_RESIZE)
    if len(errors.causes) > found:
        return
    kept = ("containers", "initContainers", "resources")
    if {k: v for k, v in after.items() if k not in kept} != {
        k: v for k, v in before.items() if k not in kept
    }:
        errors.forbidden("spec", "only cpu and memory resources are mutable")


def _without_resizable_container(container: JsonObject) -> JsonObject:
    return {**container, "resources": _without_resizable(container.get("resources"))}


def prepare_ephemeral_containers(new: JsonObject, old: JsonObject) -> None:
    """Keep nothing of ``new`` but its ephemeral containers."""
    added = new["spec"].get("ephemeralContainers")
    new["spec"] = dict(old["spec"])
    if added:
        new["spec"]["ephemeralContainers"] = added
    else:
        new["spec"].pop("ephemeralContainers", None)
    if "status" in old:
        new["status"] = old["status"]
    keep_only_bookkeeping(new, old)


def validate_ephemeral_containers(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidatePodEphemeralContainersUpdate: ephemeral containers are only ever added."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        errors.forbidden("", "static pods do not support ephemeral containers")
        return
    validate_pod(new, errors)
    _validate_annotation_changes(new, old, errors)
    present = {c.get("name"): c for c in new["spec"].get("ephemeralContainers") or ()}
    for known in old["spec"].get("ephemeralContainers") or ():
        name = known.get("name")
        if name not in present:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.forbidden("spec.ephemeralContainers", detail)
        elif present[name] != known:
            detail = f'existing ephemeral containers "{name}" may not be changed\n'
            errors.forbidden("spec.ephemeralContainers", detail)


def share_names(pod: JsonObject) -> None:
    """Admission sets only the newer of the two service account fields."""
    spec = pod["spec"]
    if spec.get("serviceAccountName") != spec.get("serviceAccount"):
        share_service_account_name(spec)
