"""Claims and volumes: which volume a claim gets, what a made-up volume looks like, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holokube.kube.affinity import NodeSelector
from holokube.kube.quantity import parse
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.pod_status import is_terminated

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Bind:
    """The claim gets a volume that is there."""

    volume: JsonObject


@dataclass(frozen=True, slots=True)
class Provision:
    """A volume is made up for the claim, in a zone if nodes have any."""

    storage_class: JsonObject
    zones: tuple[str, ...]
    """The zones to choose from; none for a volume that any node can use."""


@dataclass(frozen=True, slots=True)
class WaitForVolume:
    """Nothing can be done now; the event says why."""

    type: str
    reason: str
    message: str


Plan = Bind | Provision | WaitForVolume


def class_of(obj: Mapping[str, Any]) -> str | None:
    """The storage class that a claim or a volume names; None when a claim leaves it open."""
    name = (obj.get("spec") or {}).get("storageClassName")
    return None if name is None else str(name)


def request_of(claim: Mapping[str, Any]) -> str:
    resources = (claim.get("spec") or {}).get("resources") or {}
    return str((resources.get("requests") or {}).get("storage") or "0")


def plan(
    claim: JsonObject,
    volumes: Iterable[JsonObject],
    storage_class: JsonObject | None,
    nodes: Sequence[JsonObject],
    selected_node: JsonObject | None,
) -> Plan:
    """What to do for a claim without a volume. ``selected_node`` is where the scheduler wants its pod."""
    waits = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    listed = list(volumes)
    reserved = [volume for volume in listed if _is_reserved_for(volume, claim)]
    if reserved:
        return Bind(reserved[0])
    if waits and selected_node is None:
        return WaitForVolume(
            "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        )
    found = find_volume(claim, listed, selected_node)
    if found is not None:
        return Bind(found)
    name = class_of(claim)
    if not name:
        message = "no persistent volumes available for this claim and no storage class is set"
        return WaitForVolume("Normal", "FailedBinding", message)
    if storage_class is None:
        return WaitForVolume("Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
    if storage_class.get("provisioner") == NO_PROVISIONER:
        message = "no volume plugin matched name: kubernetes.io/no-provisioner"
        return WaitForVolume("Warning", "ProvisioningFailed", message)
    return Provision(storage_class, _zones(storage_class, nodes, selected_node))


def find_volume(
    claim: JsonObject, volumes: Iterable[JsonObject], selected_node: Mapping[str, Any] | None
) -> JsonObject | None:
    """The smallest free volume that fits a claim."""
    spec = claim["spec"]
    selector = LabelSelector.from_json(spec["selector"]) if spec.get("selector") else LabelSelector.everything()
    wanted, modes = parse(request_of(claim)), set(spec.get("accessModes") or ())
    fitting = [
        volume for volume in volumes
        if not volume["spec"].get("claimRef") and not volume["metadata"].get("deletionTimestamp")
        and (volume["spec"].get("storageClassName") or "") == (class_of(claim) or "")
        and (volume["spec"].get("volumeMode") or "Filesystem") == (spec.get("volumeMode") or "Filesystem")
        and modes <= set(volume["spec"].get("accessModes") or ())
        and parse(volume["spec"]["capacity"]["storage"]) >= wanted
        and selector.matches(volume["metadata"].get("labels") or {})
        and (selected_node is None or is_usable_from(volume, selected_node))
    ]  # fmt: skip
    return min(
        fitting,
        key=lambda volume: (parse(volume["spec"]["capacity"]["storage"]), volume["metadata"]["name"]),
        default=None,
    )


def is_usable_from(volume: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    meta = node["metadata"]
    return required is None or NodeSelector.from_json(required).matches(meta.get("labels"), meta["name"])


def _is_reserved_for(volume: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    reference = volume["spec"].get("claimRef") or {}
    meta = claim["metadata"]
    same = (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])
    return same and reference.get("uid") in (None, "", meta["uid"])


def _zones(
    storage_class: Mapping[str, Any], nodes: Sequence[JsonObject], selected_node: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """The selected node's zone, or all zones that have nodes and that the class allows."""
    if selected_node is not None:
        zone = (selected_node["metadata"].get("labels") or {}).get(ZONE_LABEL)
        return (zone,) if zone else ()
    zones = {(node["metadata"].get("labels") or {}).get(ZONE_LABEL) for node in nodes} - {None}
    allowed = {
        value
        for term in storage_class.get("allowedTopologies") or ()
        for expression in term.get("matchLabelExpressions") or ()
        if expression.get("key") == ZONE_LABEL
        for value in expression.get("values") or ()
    }
    return tuple(sorted((zones & allowed) or allowed if allowed else zones))


def made_up_volume(claim: JsonObject, storage_class: JsonObject, zone: str) -> JsonObject:
    """A volume as the class's driver would make it; nothing stands behind it."""
    meta, spec = claim["metadata"], claim["spec"]
    name, driver = f"pvc-{meta['uid']}", storage_class["provisioner"]
    volume: JsonObject = {
        "capacity": {"storage": request_of(claim)},
        "accessModes": spec.get("accessModes") or [],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": storage_class["metadata"]["name"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        # Provisioners from before CSI, and many since, have a slash in their name, which no driver may have.
        "csi": {"driver": driver.replace("/", "."), "volumeHandle": name},
        "claimRef": claim_reference(claim),
    }
    if storage_class.get("mountOptions"):
        volume["mountOptions"] = storage_class["mountOptions"]
    labels = {}
    if zone:
        labels = {ZONE_LABEL: zone}
        expression = {"key": ZONE_LABEL, "operator": "In", "values": [zone]}
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    volume_meta: JsonObject = {"name": name, "annotations": {PROVISIONED_BY: driver}}
    if labels:
        volume_meta["labels"] = labels
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": volume_meta, "spec": volume}


def claim_reference(claim: Mapping[str, Any]) -> JsonObject:
    meta = claim["metadata"]
    reference = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta["namespace"],
        "name": meta["name"], "uid": meta["uid"],
    }  # fmt: skip
    if meta.get("resourceVersion"):
        reference["resourceVersion"] = meta["resourceVersion"]
    return reference


def reserved_volume(volume: JsonObject, claim: JsonObject) -> JsonObject | None:
    """The volume with its claim written into it; None when it is."""
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") == claim["metadata"]["uid"]:
        return None
    annotations = volume["metadata"].get("annotations") or {}
    if not reference:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    meta = {**volume["metadata"], "annotations": annotations} if annotations else volume["metadata"]
    return {**volume, "metadata": meta, "spec": {**volume["spec"], "claimRef": claim_reference(claim)}}


def bound_claim(claim: JsonObject, volume: Mapping[str, Any]) -> JsonObject | None:
    """The claim with its volume written into it; None when it is."""
    annotations = claim["metadata"].get("annotations") or {}
    named = claim["spec"].get("volumeName")
    if named == volume["metadata"]["name"] and BIND_COMPLETED in annotations:
        return None
    more = {BIND_COMPLETED: "yes"} if named else {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    meta = {**claim["metadata"], "annotations": {**annotations, **more}}
    return {**claim, "metadata": meta, "spec": {**claim["spec"], "volumeName": volume["metadata"]["name"]}}


def bound_status(claim: Mapping[str, Any], volume: Mapping[str, Any]) -> JsonObject:
    spec = volume["spec"]
    return {
        **(claim.get("status") or {}), "phase": "Bound", "accessModes": spec.get("accessModes") or [],
        "capacity": spec["capacity"],
    }  # fmt: skip


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """Keys of the claims that a pod uses, its own generic ephemeral ones too."""
    volumes = (pod.get("spec") or {}).get("volumes")
    if not volumes:
        return []
    meta = pod["metadata"]
    names = []
    for volume in volumes:
        if volume.get("persistentVolumeClaim"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{meta['name']}-{volume['name']}")
    return [f"{meta['namespace']}/{name}" for name in names]


def is_in_use(pods: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of a claim's pods may still have it open."""
    return any(not is_terminated(pod) and (pod.get("spec") or {}).get("nodeName") for pod in pods)


def volume_phase(volume: Mapping[str, Any], claim: Mapping[str, Any] | None) -> str:
    """The phase of a volume, given the claim of the name that it refers to."""
    reference = volume["spec"].get("claimRef")
    if not reference:
        return "Available"
    if not reference.get("uid"):
        return "Available"
    if claim is None or claim["metadata"]["uid"] != reference["uid"]:
        return "Released"
    if claim["spec"].get("volumeName") == volume["metadata"]["name"]:
        return "Bound"
    return str((volume.get("status") or {}).get("phase") or "Pending")
