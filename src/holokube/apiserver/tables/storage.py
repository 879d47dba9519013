"""Volumes, claims, storage classes and CSI objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holokube.apiserver.tables.cells import annotations_of, is_deleting, name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, UNSET, Ages, Layout, column, wide
from holokube.kube.types import JsonObject

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def volume_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        (spec.get("capacity") or {}).get("storage") or "0",
        _access_modes(spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy") or "",
        "Terminating" if is_deleting(obj) else status.get("phase") or "",
        f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim is not None else "",
        _class_name(obj),
        _or_unset(spec, "volumeAttributesClassName"),
        status.get("reason") or "",
        ages.of(obj),
        _or_unset(spec, "volumeMode"),
    ]


def claim_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    bound = spec.get("volumeName") or ""
    return [
        name_of(obj),
        "Terminating" if is_deleting(obj) else status.get("phase") or "",
        bound,
        ((status.get("capacity") or {}).get("storage") or "0") if bound else "",
        _access_modes(status.get("accessModes") or ()) if bound else "",
        _class_name(obj),
        _or_unset(spec, "volumeAttributesClassName"),
        ages.of(obj),
        _or_unset(spec, "volumeMode"),
    ]


def _access_modes(modes: Iterable[str]) -> str:
    given = set(modes)
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in given)


def _class_name(obj: JsonObject) -> str:
    """The annotation that storage classes began with still wins."""
    annotated = annotations_of(obj).get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else spec_of(obj).get("storageClassName") or ""


def _or_unset(holder: JsonObject, field: str) -> str:
    value = holder.get(field)
    return UNSET if value is None else value


def storage_class_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    name = name_of(obj)
    if any(annotations_of(obj).get(key) == "true" for key in _DEFAULT_ANNOTATIONS):
        name += " (default)"
    return [
        name,
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        ages.of(obj),
    ]


def attributes_class_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), obj.get("driverName") or "", ages.of(obj)]


def attachment_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("attacher") or "",
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        bool(status_of(obj).get("attached")),
        ages.of(obj),
    ]


def csi_node_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), len(spec_of(obj).get("drivers") or ()), ages.of(obj)]


def csi_driver_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    tokens = spec.get("tokenRequests")
    audiences = UNSET if tokens is None else ",".join(token.get("audience") or "" for token in tokens)
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        audiences,
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        ages.of(obj),
    ]


_STORAGE_CLASS = column("StorageClass", "Storage class.")
_ATTRIBUTES_CLASS = column("VolumeAttributesClass", "Volume attributes class.")
_VOLUME_MODE = wide("VolumeMode", "Filesystem or Block.")

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "persistentvolumes"): Layout(
        (
            NAME,
            column("Capacity", "Size of the volume."),
            column("Access Modes", "How the volume may be mounted."),
            column("Reclaim Policy", "What becomes of the volume once its claim is gone."),
            column("Status", "Available, Bound, Released, Failed or Terminating."),
            column("Claim", "Claim the volume is bound to."),
            _STORAGE_CLASS,
            _ATTRIBUTES_CLASS,
            column("Reason", "Why the volume is in this state."),
            AGE,
            _VOLUME_MODE,
        ),
        volume_cells,
    ),
    ("", "persistentvolumeclaims"): Layout(
        (
            NAME,
            column("Status", "Pending, Bound, Lost or Terminating."),
            column("Volume", "Volume the claim is bound to."),
            column("Capacity", "Size of that volume."),
            column("Access Modes", "How that volume may be mounted."),
            _STORAGE_CLASS,
            _ATTRIBUTES_CLASS,
            AGE,
            _VOLUME_MODE,
        ),
        claim_cells,
    ),
    ("storage.k8s.io", "storageclasses"): Layout(
        (
            NAME,
            column("Provisioner", "Who makes the volumes."),
            column("ReclaimPolicy", "Reclaim policy of these volumes."),
            column("VolumeBindingMode", "When claims are bound."),
            column("AllowVolumeExpansion", "Whether volumes can grow."),
            AGE,
        ),
        storage_class_cells,
    ),
    ("storage.k8s.io", "volumeattributesclasses"): Layout(
        (NAME, column("DriverName", "CSI driver the class is for."), AGE), attributes_class_cells
    ),
    ("storage.k8s.io", "volumeattachments"): Layout(
        (
            NAME,
            column("Attacher", "Driver that attaches the volume.", format="name"),
            column("PV", "Volume to attach."),
            column("Node", "Node to attach it to."),
            column("Attached", "Whether it is attached.", type="boolean"),
            AGE,
        ),
        attachment_cells,
    ),
    ("storage.k8s.io", "csinodes"): Layout(
        (NAME, column("Drivers", "CSI drivers on the node.", type="integer"), AGE), csi_node_cells
    ),
    ("storage.k8s.io", "csidrivers"): Layout(
        (
            NAME,
            column("AttachRequired", "Whether volumes are attached before they are mounted.", type="boolean"),
            column("PodInfoOnMount", "Whether the driver is told about the pod.", type="boolean"),
            column("StorageCapacity", "Whether the scheduler looks at free capacity.", type="boolean"),
            column("TokenRequests", "Audiences of the tokens the driver gets."),
            column("RequiresRepublish", "Whether volumes are published again and again.", type="boolean"),
            column("Modes", "Kinds of volumes the driver offers."),
            AGE,
        ),
        csi_driver_cells,
    ),
}
