"""Rules for volumes of a pod."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.claim_validation import validate_claim_template
from holokube.apiserver.kinds.container_validation import validate_pull_policy
from holokube.apiserver.kinds.paths import validate_descending, validate_file_mode, validate_no_backsteps
from holokube.apiserver.kinds.projected_validation import (
    validate_downward_items,
    validate_key_paths,
    validate_projected,
)
from holokube.kube import names, quantity
from holokube.kube.types import JsonObject

_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
# In Go, "$" is the end of the text and the pattern for iqn may start anywhere.
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\s]+)\Z", re.ASCII).search,
    "eui": re.compile(r"eui.[a-zA-Z0-9]{16}\Z", re.ASCII).match,
    "naa": re.compile(r"naa.[a-zA-Z0-9]{32}\Z", re.ASCII).match,
}
_AZURE_MANAGED_URI = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_AZURE_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_CSI_DRIVER_MAX_LENGTH = 63
_ISCSI_ALIAS_MAX_LENGTH = 64
_QUOBYTE_TENANT_MAX_LENGTH = 64
_HOST_PORTS = "must be a host:port pair or multiple pairs separated by commas"

Check = Callable[[JsonObject, str, FieldErrors], None]


def validate_volumes(
    volumes: list[JsonObject] | None, pod_name: str, path: str, errors: FieldErrors, *, is_pod: bool
) -> dict[str, JsonObject]:
    """Check the volumes; returns the good ones by name, which is what containers may mount."""
    found: dict[str, JsonObject] = {}
    if not volumes:
        return found
    created = {f"{pod_name}-{v.get('name', '')}" for v in volumes if "ephemeral" in v} if pod_name else ()
    for index, volume in enumerate(volumes):
        before = len(errors.causes)
        name = volume.get("name", "")
        at = f"{path}[{index}]"
        _validate_source(volume, name, pod_name, at, errors, is_pod=is_pod)
        if not name:
            errors.required(f"{at}.name")
        else:
            problems = names.is_dns1123_label(name)
            if problems:
                errors.all_invalid(f"{at}.name", name, problems)
        if name in found:
            errors.duplicate(f"{at}.name", name)
        if len(errors.causes) == before:
            found[name] = volume
        claim = volume.get("persistentVolumeClaim")
        if created and claim and claim.get("claimName") in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.invalid(f"{at}.persistentVolumeClaim.claimName", claim["claimName"], detail)
    return found


def _validate_source(
    volume: JsonObject, name: str, pod_name: str, path: str, errors: FieldErrors, *, is_pod: bool
) -> None:
    present = [key for key in volume if key in _CHECKS]
    if not present:
        errors.required(path, "must specify a volume type")
        return
    if len(present) > 1:
        present.sort(key=_ORDER.__getitem__)
        for key in present[1:]:
            shown = _SHOWN_WHEN_SECOND.get(key, key)
            errors.forbidden(f"{path}.{shown}", "may not specify more than 1 volume type")
    key = present[0]
    # The path of a GCE disk lacks its beginning upstream.
    _CHECKS[key](volume[key], f"{path}.{'persistentDisk' if key == 'gcePersistentDisk' else key}", errors)
    if "iscsi" in volume and "initiatorName" in volume["iscsi"]:
        alias = f"{name}:{volume['iscsi'].get('targetPortal', '')}"
        if len(alias) > _ISCSI_ALIAS_MAX_LENGTH:
            detail = (
                "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
                "if iscsi.initiatorName is specified."
            )
            errors.invalid(f"{path}.name", name, detail)
    if key == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        for problem in names.is_dns1123_subdomain(claim):
            errors.invalid(f"{path}.name", name, f'PVC name "{claim}": {problem}')
    if key == "image" and is_pod and not volume["image"].get("reference"):
        errors.required(f"{path}.image.reference")


def _required(*fields: str) -> Check:
    """A source of which these fields must be set, and nothing else is checked."""

    def check(source: JsonObject, path: str, errors: FieldErrors) -> None:
        for field in fields:
            if not source.get(field):
                errors.required(f"{path}.{field}")

    return check


def _disk(field: str) -> Check:
    def check(source: JsonObject, path: str, errors: FieldErrors) -> None:
        if not source.get(field):
            errors.required(f"{path}.{field}")
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.invalid(f"{path}.partition", partition, names.inclusive_range_error(1, 255))

    return check


def _empty_dir(source: JsonObject, path: str, errors: FieldErrors) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.parse(limit).sign() < 0:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: JsonObject, path: str, errors: FieldErrors) -> None:
    where = source.get("path")
    if not where:
        errors.required(f"{path}.path")
        return
    validate_no_backsteps(where, f"{path}.path", errors)
    kind = source.get("type", "")
    if kind not in _HOST_PATH_TYPES:
        errors.not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _git_repo(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("repository"):
        errors.required(f"{path}.repository")
    validate_descending(source.get("directory", ""), f"{path}.directory", errors)


def _secret(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("secretName"):
        errors.required(f"{path}.secretName")
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    validate_key_paths(source.get("items") or (), f"{path}.items", errors)


def _config_map(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("name"):
        errors.required(f"{path}.name")
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    validate_key_paths(source.get("items") or (), f"{path}.items", errors)


def _downward_api(source: JsonObject, path: str, errors: FieldErrors) -> None:
    validate_file_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    validate_downward_items(source.get("items") or (), path, errors)


def _nfs(source: JsonObject, path: str, errors: FieldErrors) -> None:
    _required("server", "path")(source, path, errors)
    where = source.get("path", "")
    if not where.startswith("/"):
        errors.invalid(f"{path}.path", where, "must be an absolute path")


def _iscsi(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("targetPortal"):
        errors.required(f"{path}.targetPortal")
    target = source.get("iqn")
    if not target:
        errors.required(f"{path}.iqn")
    else:
        _iscsi_name(target, f"{path}.iqn", errors)
    lun = source.get("lun", 0)
    if not 0 <= lun <= 255:
        errors.invalid(f"{path}.lun", lun, names.inclusive_range_error(0, 255))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
        errors.required(f"{path}.secretRef")
    initiator = source.get("initiatorName")
    if initiator is not None:
        _iscsi_name(initiator, f"{path}.initiatorname", errors)


def _iscsi_name(name: str, path: str, errors: FieldErrors) -> None:
    pattern = _ISCSI_NAMES.get(name[:3])
    if pattern is None:
        errors.invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not pattern(name):
        errors.invalid(path, name, "must be valid format")


def _fibre_channel(source: JsonObject, path: str, errors: FieldErrors) -> None:
    targets, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    if not targets and not ids:
        errors.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.invalid(f"{path}.targetWWNs", targets, detail)
    if targets:
        lun = source.get("lun")
        if lun is None:
            errors.required(f"{path}.lun", "lun is required if targetWWNs is specified")
        elif not 0 <= lun <= 255:
            errors.invalid(f"{path}.lun", lun, names.inclusive_range_error(0, 255))


def _flocker(source: JsonObject, path: str, errors: FieldErrors) -> None:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        errors.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        errors.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        errors.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _with_secret(field: str) -> Check:
    def check(source: JsonObject, path: str, errors: FieldErrors) -> None:
        if not source.get(field):
            errors.required(f"{path}.{field}")
        secret = source.get("secretRef")
        if secret is not None and not secret.get("name"):
            errors.required(f"{path}.secretRef.name")

    return check


def _quobyte(source: JsonObject, path: str, errors: FieldErrors) -> None:
    registry = source.get("registry", "")
    if not registry:
        errors.required(f"{path}.registry", _HOST_PORTS)
    elif len(source.get("tenant", "")) > _QUOBYTE_TENANT_MAX_LENGTH:
        errors.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            host, colon, port = pair.rpartition(":")
            bracketed = host.startswith("[") and host.endswith("]")
            if not colon or ":" in port or (":" in host and not bracketed):
                errors.invalid(f"{path}.registry", registry, _HOST_PORTS)
    if not source.get("volume"):
        errors.required(f"{path}.volume")


def _flex_volume(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source.get("driver"):
        errors.required(f"{path}.driver")
    for key in source.get("options") or ():
        namespace = f".{key.partition('/')[0].lower()}"
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.invalid(f"{path}.options[{key}]", key, detail)


def _azure_disk(source: JsonObject, path: str, errors: FieldErrors) -> None:
    _required("diskName", "diskURI")(source, path, errors)
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if caching is not None and caching not in ("None", "ReadOnly", "ReadWrite"):
        errors.not_supported(f"{path}.cachingMode", caching, ("None", "ReadOnly", "ReadWrite"))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        errors.not_supported(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.not_supported(f"{path}.diskURI", uri, (_AZURE_MANAGED_URI,))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        errors.not_supported(f"{path}.diskURI", uri, (_AZURE_BLOB_URI,))


def _storage_os(source: JsonObject, path: str, errors: FieldErrors) -> None:
    name, namespace = source.get("volumeName"), source.get("volumeNamespace")
    if not name:
        errors.required(f"{path}.volumeName")
    else:
        errors.all_invalid(f"{path}.volumeName", name, names.is_dns1123_label(name))
    if namespace:
        errors.all_invalid(f"{path}.volumeNamespace", namespace, names.is_dns1123_label(namespace))
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        errors.required(f"{path}.secretRef.name")


def _csi(source: JsonObject, path: str, errors: FieldErrors) -> None:
    driver = source.get("driver")
    if not driver:
        errors.required(f"{path}.driver")
    else:
        if len(driver) > _CSI_DRIVER_MAX_LENGTH:
            errors.too_long(f"{path}.driver", driver, _CSI_DRIVER_MAX_LENGTH)
        errors.all_invalid(f"{path}.driver", driver, names.is_dns1123_subdomain(driver.lower()))
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name")
        if not name:
            errors.required(f"{path}.nodePublishSecretRef.name")
        else:
            errors.all_invalid(f"{path}.name", name, names.is_dns1123_subdomain(name))


def _ephemeral(source: JsonObject, path: str, errors: FieldErrors) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        errors.required(f"{path}.volumeClaimTemplate")
    else:
        validate_claim_template(template, f"{path}.volumeClaimTemplate", errors)


def _image(source: JsonObject, path: str, errors: FieldErrors) -> None:
    validate_pull_policy(source.get("pullPolicy", ""), f"{path}.pullPolicy", errors)


# In upstream's order: of two sources in one volume, the first is the one that counts.
_CHECKS: Mapping[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _required("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _required("claimName"),
    "rbd": _required("monitors", "image"),
    "cinder": _with_secret("volumeID"),
    "cephfs": _required("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": _downward_api,
    "fc": _fibre_channel,
    "flexVolume": _flex_volume,
    "configMap": _config_map,
    "azureFile": _required("secretName", "shareName"),
    "vsphereVolume": _required("volumePath"),
    "photonPersistentDisk": _required("pdID"),
    "portworxVolume": _required("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": validate_projected,
    "scaleIO": _required("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_ORDER = {key: index for index, key in enumerate(_CHECKS)}
_SHOWN_WHEN_SECOND = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
