"""PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    check_immutable,
    go_diff,
    node_term_warnings,
    round_to_milli,
)
from holokube.apiserver.kinds.claim_validation import validate_claim_spec
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.scheduling_validation import validate_node_selector
from holokube.apiserver.kinds.volume_defaults import default_claim_spec
from holokube.kube import names, quantity, timeformat
from holokube.kube.resources import is_native_resource
from holokube.kube.types import JsonObject

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_BETA_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_RESIZE_STATES: Final = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip
# In the order in which upstream looks at them; the names are those of Go's fields.
_SOURCES: Final = {
    "gcePersistentDisk": "GCEPersistentDisk", "awsElasticBlockStore": "AWSElasticBlockStore", "hostPath": "HostPath",
    "glusterfs": "Glusterfs", "nfs": "NFS", "rbd": "RBD", "quobyte": "Quobyte", "iscsi": "ISCSI",
    "flexVolume": "FlexVolume", "cinder": "Cinder", "cephfs": "CephFS", "fc": "FC", "flocker": "Flocker",
    "azureFile": "AzureFile", "vsphereVolume": "VsphereVolume", "azureDisk": "AzureDisk",
    "photonPersistentDisk": "PhotonPersistentDisk", "portworxVolume": "PortworxVolume", "scaleIO": "ScaleIO",
    "local": "Local", "storageos": "StorageOS", "csi": "CSI",
}  # fmt: skip
_CHECK_ORDER: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_REQUIRED_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",), "awsElasticBlockStore": ("volumeID",), "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"), "cephfs": ("monitors",), "cinder": ("volumeID",), "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"), "vsphereVolume": ("volumePath",), "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",), "azureDisk": ("diskName", "diskURI"), "quobyte": ("registry", "volume"),
    "scaleIO": ("gateway", "system", "volumeName"), "iscsi": ("targetPortal", "iqn"), "nfs": ("server",),
}  # fmt: skip
# Sources that know mount options in the annotation of old.
_MOUNTABLE: Final = (
    "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
    "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
)  # fmt: skip
_CSI_SECRETS: Final = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip
_DEPRECATED: Final = (
    ("cephfs", "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "spec.rbd: deprecated in v1.28, non-functional in v1.31+"),
)
_HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


class PersistentVolume(GoKind):
    go_type = "core.v1.PersistentVolume"
    returns_deleted_object = True
    field_labels = frozenset({"metadata.name"})

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        obj["status"].setdefault("phase", "Pending")
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        round_to_milli(spec.get("capacity"))
        _default_source(spec)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timeformat.format_time(context.now)}

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        after, before = new["status"], old.get("status") or {}
        given, known = after.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if after.get("phase") == before.get("phase"):
            if given is None and known is not None:
                after["lastPhaseTransitionTime"] = known
        elif given is None or given == known:
            after["lastPhaseTransitionTime"] = timeformat.format_time(context.now)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        check_volume_spec(new["spec"], "spec", errors)
        annotated = _BETA_MOUNT_OPTIONS in (new["metadata"].get("annotations") or {})
        if annotated and not any(new["spec"].get(source) is not None for source in _MOUNTABLE):
            path = f"metadata.annotations.{_BETA_MOUNT_OPTIONS}"
            errors.forbidden(path, "may not specify mount options for this volume type")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        if errors:
            # Upstream validates the volume as such twice when it changes.
            self.validate(new, errors)
        after, before = new["spec"], old["spec"]
        sources = _sources_of(after), _sources_of(before)
        if _without_new_expand_secret(*sources) != sources[1]:
            shown = go_diff(_go_sources(before), _go_sources(after))
            message = f"spec.persistentvolumesource is immutable after creation\n{shown}"
            errors.forbidden("spec.persistentvolumesource", message)
        check_immutable(after.get("volumeMode"), before.get("volumeMode"), "volumeMode", errors)
        affinity = before.get("nodeAffinity")
        if affinity is not None and after.get("nodeAffinity") != affinity:
            message = "field is immutable, except for updating from beta label to GA"
            errors.invalid("nodeAffinity", _go_affinity(after.get("nodeAffinity")), message)
        if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
            message = "update from non-nil value to nil is forbidden"
            errors.forbidden("spec.volumeAttributesClassName", message)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
        found = []
        if _BETA_CLASS in annotations:
            text = 'deprecated since v1.8; use "storageClassName" attribute instead'
            found.append(f"metadata.annotations[{_BETA_CLASS}]: {text}")
        if _BETA_MOUNT_OPTIONS in annotations:
            text = 'deprecated since v1.31; use "mountOptions" attribute instead'
            found.append(f"metadata.annotations[{_BETA_MOUNT_OPTIONS}]: {text}")
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            found.append(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
                "recommended approach is to use dynamic provisioning."
            )
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or []
        for index, term in enumerate(terms):
            path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
            found += node_term_warnings(term, path)
        return found + [text for source, text in _DEPRECATED if source in spec]


def _default_source(spec: JsonObject) -> None:
    host_path = spec.get("hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")
    rbd = spec.get("rbd")
    if rbd is not None:
        for key, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
            rbd.setdefault(key, value)
    if spec.get("iscsi") is not None:
        spec["iscsi"].setdefault("iscsiInterface", "default")
    scale_io = spec.get("scaleIO")
    if scale_io is not None:
        scale_io.setdefault("storageMode", "ThinProvisioned")
        scale_io.setdefault("fsType", "xfs")
    disk = spec.get("azureDisk")
    if disk is not None:
        for key, default in (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)):
            disk.setdefault(key, default)


def _sources_of(spec: JsonObject) -> JsonObject:
    return {key: spec[key] for key in _SOURCES if spec.get(key) is not None}


def _without_new_expand_secret(after: JsonObject, before: JsonObject) -> JsonObject:
    """A secret for expansion may be added to a volume that had none."""
    csi, known = after.get("csi"), before.get("csi")
    if not csi or not known or "controllerExpandSecretRef" in known:
        return after
    return {**after, "csi": {key: value for key, value in csi.items() if key != "controllerExpandSecretRef"}}


def _go_sources(spec: JsonObject) -> dict[str, Any]:
    """All sources as a message shows them; the fields of CSI, the one in use today, in full."""
    shown = {name: _go_names(spec.get(key)) for key, name in _SOURCES.items()}
    if shown["CSI"] is not None:
        shown["CSI"] = {**_GO_CSI, **shown["CSI"]}
    return shown


_GO_CSI: Final[Mapping[str, Any]] = {
    "Driver": "", "VolumeHandle": "", "ReadOnly": False, "FSType": "", "VolumeAttributes": None,
    "ControllerPublishSecretRef": None, "NodeStageSecretRef": None, "NodePublishSecretRef": None,
    "ControllerExpandSecretRef": None, "NodeExpandSecretRef": None,
}  # fmt: skip


def _go_affinity(affinity: JsonObject | None) -> Any:
    if affinity is None:
        return None
    terms = [
        {"MatchExpressions": _go_names(t.get("matchExpressions")), "MatchFields": _go_names(t.get("matchFields"))}
        for t in (affinity.get("required") or {}).get("nodeSelectorTerms") or ()
    ]
    return {"Required": {"NodeSelectorTerms": terms}}


def _go_names(value: Any) -> Any:
    """A value with the field names of Go's internal types, which messages show."""
    if isinstance(value, dict):
        return {_GO_FIELDS.get(key, key[:1].upper() + key[1:]): _go_names(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_go_names(part) for part in value]
    return value


_GO_FIELDS: Final = {"fsType": "FSType", "nfs": "NFS", "iqn": "IQN", "csi": "CSI"}


def check_volume_spec(spec: JsonObject, path: str, errors: FieldErrors, *, inline: bool = False) -> None:
    """A volume as an object of its own, or inline in a VolumeAttachment."""
    if inline:
        for field in ("claimRef", "capacity"):
            if spec.get(field):
                errors.forbidden(f"{path}.{field}", "may not be specified in the context of inline volumes")
        if spec.get("csi") is None:
            errors.required(f"{path}.csi", "has to be specified in the context of inline volumes")
    _check_access_modes(spec.get("accessModes") or [], path, errors)
    if not inline:
        _check_capacity(spec.get("capacity"), f"{path}.capacity", errors)
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and not inline and policy not in _RECLAIM_POLICIES:
        errors.not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is not None:
            validate_node_selector(affinity["required"], f"{path}.nodeAffinity.required", errors)
        else:
            errors.required(f"{path}.nodeAffinity.required", "must specify required node constraints")
    _check_sources(spec, path, errors)
    host_path = spec.get("hostPath")
    if host_path is not None and policy == "Recycle" and posixpath.normpath(host_path.get("path") or ".") == "/":
        message = "may not be 'recycle' for a hostPath mount of '/'"
        errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", message)
    storage_class = spec.get("storageClassName")
    if storage_class:
        errors.all_invalid(f"{path}.storageClassName", storage_class, names.is_dns1123_subdomain(storage_class))
    mode = spec.get("volumeMode")
    if mode is not None and not inline and mode not in _VOLUME_MODES:
        errors.not_supported(f"{path}.volumeMode", mode, _VOLUME_MODES)
    attributes = spec.get("volumeAttributesClassName")
    if attributes is not None:
        at = f"{path}.volumeAttributesClassName"
        if not attributes:
            errors.required(at, "an empty string is disallowed")
        else:
            errors.all_invalid(at, attributes, names.is_dns1123_subdomain(attributes))
        if spec.get("csi") is None:
            errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _check_access_modes(modes: list[str], path: str, errors: FieldErrors) -> None:
    if not modes:
        errors.required(f"{path}.accessModes")
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.not_supported(f"{path}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(m in ACCESS_MODES and m != "ReadWriteOncePod" for m in modes):
        errors.forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_capacity(capacity: JsonObject | None, path: str, errors: FieldErrors) -> None:
    if not capacity:
        errors.required(path)
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        errors.not_supported(path, dict(sorted(capacity.items())) if capacity else None, ("storage",))
    for name, text in (capacity or {}).items():
        amount = quantity.parse(text)
        if amount.sign() < 0:
            errors.invalid(f"{path}[{name}]", amount.value(), "must be a valid resource quantity")
        if amount.sign() <= 0:
            errors.invalid(f"{path}[{name}]", text, "must be greater than zero")


def _check_sources(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    present = [key for key in _CHECK_ORDER if spec.get(key) is not None]
    if not present:
        errors.required(path, "must specify a volume type")
        return
    for key in present[1:]:
        shown = "cephFS" if key == "cephfs" else key
        errors.forbidden(f"{path}.{shown}", "may not specify more than 1 volume type")
    key = present[0]
    source = spec[key]
    at = f"{path}.persistentDisk" if key == "gcePersistentDisk" else f"{path}.{key}"
    for field in _REQUIRED_FIELDS.get(key, ()):
        if not source.get(field):
            errors.required(f"{at}.{field}")
    check = _SOURCE_CHECKS.get(key)
    if check is not None:
        check(source, at, errors)
    if key == "local" and spec.get("nodeAffinity") is None:
        errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")


def _check_host_path(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("path"):
        errors.required(f"{path}.path")
        return
    _check_no_back_steps(source["path"], f"{path}.path", errors)
    kind = source.get("type") or ""
    if kind not in _HOST_PATH_TYPES:
        errors.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _check_no_back_steps(value: str, path: str, errors: FieldErrors) -> None:
    if ".." in value.split("/"):
        errors.invalid(path, value, "must not contain '..'")


def _check_local(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("path"):
        errors.required(f"{path}.path")
        return
    _check_no_back_steps(source["path"], f"{path}.path", errors)


def _check_nfs(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("path"):
        errors.required(f"{path}.path")
    elif not source["path"].startswith("/"):
        errors.invalid(f"{path}.path", source["path"], "must be an absolute path")


def _check_disk(source: JsonObject, path: str, errors: FieldErrors) -> None:
    partition = source.get("partition", 0)
    if not 0 <= partition <= 255:
        errors.invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive")


def check_csi_driver_name(name: str, path: str, errors: FieldErrors) -> None:
    if not name:
        errors.required(path)
        return
    if len(name) > 63:
        errors.too_long(path, "", 63)
    errors.all_invalid(path, name, names.is_dns1123_subdomain(name.lower()))


def _check_csi(source: JsonObject, path: str, errors: FieldErrors) -> None:
    check_csi_driver_name(source.get("driver", ""), f"{path}.driver", errors)
    if not source.get("volumeHandle"):
        errors.required(f"{path}.volumeHandle")
    for key in _CSI_SECRETS:
        secret = source.get(key)
        if secret is None:
            continue
        for field, rule in (("name", names.is_dns1123_subdomain), ("namespace", names.is_dns1123_label)):
            value = secret.get(field, "")
            if not value:
                errors.required(f"{path}.{key}.{field}")
            else:
                errors.all_invalid(f"{path}.{key}.{field}", value, rule(value))


def _check_azure_disk(source: JsonObject, path: str, errors: FieldErrors) -> None:
    uri, managed = source.get("diskURI", ""), source.get("kind") == "Managed"
    if managed and not uri.startswith("/subscriptions"):
        shown = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
        errors.not_supported(f"{path}.diskURI", uri, (shown,))
    if not managed and not uri.startswith("https://"):
        shown = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        errors.not_supported(f"{path}.diskURI", uri, (shown,))


_SOURCE_CHECKS: Final[Mapping[str, Callable[[JsonObject, str, FieldErrors], None]]] = {
    "hostPath": _check_host_path,
    "local": _check_local,
    "nfs": _check_nfs,
    "gcePersistentDisk": _check_disk,
    "awsElasticBlockStore": _check_disk,
    "azureDisk": _check_azure_disk,
    "csi": _check_csi,
}


class PersistentVolumeClaim(GoKind):
    go_type = "core.v1.PersistentVolumeClaim"
    returns_deleted_object = True

    def set_defaults(self, obj: JsonObject) -> None:
        obj["status"].setdefault("phase", "Pending")
        default_claim_spec(obj["spec"])
        round_to_milli(obj["status"].get("capacity"))

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["status"] = {"phase": "Pending"}
        _settle_source(new["spec"], {})

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        _settle_source(new["spec"], old["spec"])

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        validate_claim_spec(new["spec"], "spec", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        after, before = new["spec"], old["spec"]
        compared, reference = dict(after), dict(before)
        if not before.get("volumeName") and after.get("volumeName"):
            reference["volumeName"] = after["volumeName"]
        annotations = [(o["metadata"].get("annotations") or {}).get(_BETA_CLASS) for o in (new, old)]
        chosen = after.get("storageClassName")
        if annotations[0] != annotations[1] and not (annotations[0] is None and chosen == annotations[1]):
            errors.invalid(f"metadata.annotations[{_BETA_CLASS}]", annotations[0] or "", "field is immutable")
        if before.get("storageClassName") is None and chosen is not None and annotations[1] in (None, chosen):
            # A class may still be given to a claim that was made without one.
            del compared["storageClassName"]
        requested = [_storage(spec) for spec in (after, before)]
        if (new.get("status") or {}).get("phase") == "Bound":
            # A bound claim can be expanded, and its attributes class can change.
            compared["resources"] = {**(after.get("resources") or {}), "requests": _requests(before)}
            if "volumeAttributesClassName" in before:
                compared["volumeAttributesClassName"] = before["volumeAttributesClassName"]
            else:
                compared.pop("volumeAttributesClassName", None)
        if compared != reference:
            shown = go_diff(_go_claim(reference), _go_claim(compared))
            errors.forbidden(
                "spec",
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                f"claims\n{shown}",
            )
        if requested[0] < requested[1]:
            capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
            if requested[0] <= quantity.parse(capacity):
                path = "spec.resources.requests.storage"
                errors.forbidden(path, "field can not be less than status.capacity")
        check_immutable(after.get("volumeMode"), before.get("volumeMode"), "volumeMode", errors)
        _check_attributes_class_change(after, old, errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new["status"]
        for name, text in (status.get("capacity") or {}).items():
            amount = quantity.parse(text)
            if amount.sign() < 0:
                errors.invalid(f"status.capacity[{name}]", amount.value(), "must be a valid resource quantity")
        path = "status.allocatedResourceStatuses"
        for name, state in (status.get("allocatedResourceStatuses") or {}).items():
            _check_claim_resource(name, path, errors)
            if state not in _RESIZE_STATES:
                errors.not_supported(path, name, _RESIZE_STATES)
        path = "status.allocatedResources"
        for name, text in (status.get("allocatedResources") or {}).items():
            if _check_claim_resource(name, path, errors):
                amount = quantity.parse(text)
                if amount.sign() < 0:
                    errors.invalid(f"{path}[{name}]", amount.value(), "must be a valid resource quantity")

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found = []
        if _BETA_CLASS in (new["metadata"].get("annotations") or {}):
            text = 'deprecated since v1.8; use "storageClassName" attribute instead'
            found.append(f"metadata.annotations[{_BETA_CLASS}]: {text}")
        for key in ("requests", "limits"):
            text = ((new["spec"].get("resources") or {}).get(key) or {}).get("storage", "0")
            if quantity.parse(text).milli() % 1000:
                path = f"spec.resources.{key}[storage]"
                found.append(f'{path}: fractional byte value "{text}" is invalid, must be an integer')
        return found


def _settle_source(spec: JsonObject, before: JsonObject) -> None:
    """A claim has one source under two names; whichever is missing follows the other."""
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and "dataSourceRef" not in before:
        # Sources of other namespaces are not switched on by default.
        del spec["dataSourceRef"]
        reference = None
    source = spec.get("dataSource")
    if source is not None and reference is None:
        known = (source.get("kind"), source.get("apiGroup") or "")
        old_kinds = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))
        if known not in old_kinds and "dataSource" not in before and "dataSourceRef" not in before:
            # The old field only ever knew these two; anything else is dropped without a word.
            del spec["dataSource"]
        else:
            spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _requests(spec: JsonObject) -> JsonObject:
    return (spec.get("resources") or {}).get("requests") or {}


def _storage(spec: JsonObject) -> quantity.Quantity:
    return quantity.parse(_requests(spec).get("storage", "0"))


def _go_claim(spec: JsonObject) -> dict[str, Any]:
    resources = spec.get("resources") or {}
    return {
        "AccessModes": spec.get("accessModes"),
        "Selector": spec.get("selector"),
        "Resources": {"Limits": resources.get("limits"), "Requests": resources.get("requests")},
        "VolumeName": spec.get("volumeName", ""),
        "StorageClassName": spec.get("storageClassName"),
        "VolumeMode": spec.get("volumeMode"),
        "DataSource": _go_reference(spec.get("dataSource"), ("APIGroup", "Kind", "Name")),
        "DataSourceRef": _go_reference(spec.get("dataSourceRef"), ("APIGroup", "Kind", "Name", "Namespace")),
        "VolumeAttributesClassName": spec.get("volumeAttributesClassName"),
    }


def _go_reference(reference: JsonObject | None, fields: tuple[str, ...]) -> dict[str, Any] | None:
    if reference is None:
        return None
    keys = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name", "Namespace": "namespace"}
    return {field: reference.get(keys[field]) for field in fields}


def _check_claim_resource(name: str, path: str, errors: FieldErrors) -> bool:
    problems = names.is_qualified_name(name)
    errors.all_invalid(path, name, problems)
    if not problems and is_native_resource(name) and name != "storage":
        errors.not_supported(path, name, ("storage",))
        return False
    return not problems


def _check_attributes_class_change(after: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    now = after.get("volumeAttributesClassName")
    if now == old["spec"].get("volumeAttributesClassName"):
        return
    if (old.get("status") or {}).get("currentVolumeAttributesClassName") is None:
        return
    path, end = "spec.volumeAttributesClassName", "when status.currentVolumeAttributesClassName is not nil"
    if now is None:
        errors.forbidden(path, f"update to nil is forbidden {end}")
    elif not now:
        errors.forbidden(path, f"update to empty string is forbidden {end}")
