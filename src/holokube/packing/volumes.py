"""Storage objects as far as placement depends on them, and which node's pods mount what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.kube.affinity import NodeSelector
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject
from holokube.packing.errors import PackingError
from holokube.packing.nodes import labels_of
from holokube.packing.podclass import ClaimUse, Disk, PodClass

CLAIMS: Final = "PersistentVolumeClaim"
VOLUMES: Final = "PersistentVolume"
STORAGE_CLASSES: Final = "StorageClass"
CSI_NODES: Final = "CSINode"
CSI_DRIVERS: Final = "CSIDriver"
CSI_CAPACITIES: Final = "CSIStorageCapacity"
ATTACHMENTS: Final = "VolumeAttachment"
KINDS: Final = (CLAIMS, VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_CAPACITIES, ATTACHMENTS)

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_ZONE_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_EMPTY: Final[Mapping[str, Any]] = {}


def storage_key(obj: JsonObject) -> tuple[str, str]:
    """The kind and the key by which an object is known."""
    kind, metadata = obj.get("kind", ""), obj["metadata"]
    if kind not in KINDS:
        raise PackingError(f'"{kind}" is not a kind that placement depends on', hint=f"Give one of {', '.join(KINDS)}.")
    namespace = metadata.get("namespace")
    return kind, f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def annotation(obj: Mapping[str, Any], name: str) -> str | None:
    """One annotation of any object."""
    found: str | None = ((obj.get("metadata") or _EMPTY).get("annotations") or _EMPTY).get(name)
    return found


def storage_class_name(obj: Mapping[str, Any]) -> str:
    """The storage class of a claim or a volume; the old annotation still goes first."""
    by_annotation = annotation(obj, _CLASS_ANNOTATION)
    if by_annotation is not None:
        return by_annotation
    return (obj.get("spec") or _EMPTY).get("storageClassName") or ""


@dataclass(frozen=True, slots=True)
class ZoneDemand:
    """A topology label of a volume, and the values (several zones for regional disks) that will do."""

    key: str
    values: frozenset[str]


@dataclass(slots=True)
class VolumePlan:
    """What the claims of a class mean with the storage objects as they are."""

    refusal: str = ""
    """Why no node will do, such as a claim that does not exist."""
    refused_by: str = ""
    volume_affinities: list[NodeSelector] = field(default_factory=list)
    volume_missing: bool = False
    delayed: list[JsonObject] = field(default_factory=list)
    """Claims whose volume is chosen once the node is known."""
    zones: list[ZoneDemand] = field(default_factory=list)
    exclusive: list[str] = field(default_factory=list)
    """Keys of claims that one pod alone may use (ReadWriteOncePod)."""
    attachables: dict[str, str] = field(default_factory=dict)
    """CSI volumes to attach: their driver by unique name."""


class VolumeCatalog:
    """The storage objects of the cluster."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, JsonObject]] = {kind: {} for kind in KINDS}
        self.version = 0

    def get(self, kind: str, key: str) -> JsonObject | None:
        """An object by its name, or ``namespace/name``."""
        return self._objects[kind].get(key)

    def all(self, kind: str) -> Mapping[str, JsonObject]:
        """All objects of a kind by key."""
        return self._objects[kind]

    def put(self, kind: str, key: str, obj: JsonObject | None) -> JsonObject | None:
        """Store or (None) drop an object; returns what was there."""
        self.version += 1
        objects = self._objects[kind]
        old = objects.pop(key, None)
        if obj is not None:
            objects[key] = obj
        return old

    def plan(self, cls: PodClass) -> VolumePlan:
        """What the claims of a class demand; the order of checks is upstream's, plugin by plugin."""
        plan = VolumePlan()
        claims = {use.name: self.get(CLAIMS, f"{cls.namespace}/{use.name}") for use in cls.claims}
        for refused_by, check in (("VolumeRestrictions", self._missing), ("VolumeBinding", self._unusable)):
            for use in cls.claims:
                plan.refusal = check(use, claims[use.name], cls)
                if plan.refusal:
                    plan.refused_by = refused_by
                    return plan
        known = [(use, claim) for use in cls.claims if (claim := claims[use.name]) is not None]
        for use, claim in known:
            self._bind(plan, claim)
            if not use.ephemeral_of and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                plan.exclusive.append(f"{cls.namespace}/{use.name}")
            attachable = self.attachable(claim)
            if attachable is not None:
                plan.attachables[attachable[0]] = attachable[1]
        if not plan.refusal:
            self._find_zones(plan, known)
        return plan

    @staticmethod
    def _missing(use: ClaimUse, claim: JsonObject | None, cls: PodClass) -> str:
        del cls
        if claim is None and not use.ephemeral_of:
            return f"persistentvolumeclaim {go_quote(use.name)} not found"
        return ""

    @staticmethod
    def _unusable(use: ClaimUse, claim: JsonObject | None, cls: PodClass) -> str:
        if claim is None:
            return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {go_quote(use.name)}"
        if (claim.get("status") or _EMPTY).get("phase") == "Lost":
            volume = go_quote((claim.get("spec") or _EMPTY).get("volumeName") or "")
            return f"persistentvolumeclaim {go_quote(use.name)} bound to non-existent persistentvolume {volume}"
        if (claim.get("metadata") or _EMPTY).get("deletionTimestamp"):
            return f"persistentvolumeclaim {go_quote(use.name)} is being deleted"
        if use.ephemeral_of:
            pod_name, _, uid = use.ephemeral_of.rpartition("/")
            owners = (claim.get("metadata") or _EMPTY).get("ownerReferences") or ()
            if not any(owner.get("controller") and owner.get("uid") == uid for owner in owners):
                where = cls.namespace
                return f"PVC {where}/{use.name} was not created for pod {where}/{pod_name} (pod is not owner)"
        return ""

    def _bind(self, plan: VolumePlan, claim: JsonObject) -> None:
        volume_name = claim["spec"].get("volumeName") or ""
        if volume_name and annotation(claim, _BIND_COMPLETED) is not None:
            volume = self.get(VOLUMES, volume_name)
            if volume is None:
                plan.volume_missing = True
            elif (required := (volume["spec"].get("nodeAffinity") or _EMPTY).get("required")) is not None:
                plan.volume_affinities.append(NodeSelector.from_json(required))
        elif not volume_name and self.is_delayed(claim):
            plan.delayed.append(claim)
        else:
            plan.refusal = "pod has unbound immediate PersistentVolumeClaims"
            plan.refused_by = "VolumeBinding"

    def _find_zones(self, plan: VolumePlan, known: list[tuple[ClaimUse, JsonObject]]) -> None:
        for use, claim in known:
            volume_name = claim["spec"].get("volumeName") or ""
            if use.ephemeral_of or not volume_name:
                continue
            volume = self.get(VOLUMES, volume_name)
            if volume is None:
                plan.refusal = f"persistentvolume {go_quote(volume_name)} not found"
                plan.refused_by = "VolumeZone"
                return
            labels = labels_of(volume)
            for key in _ZONE_LABELS:
                if key in labels:
                    values = frozenset(value.strip() for value in labels[key].split("__"))
                    if "" not in values:
                        plan.zones.append(ZoneDemand(key, values))

    def is_delayed(self, claim: JsonObject) -> bool:
        """Whether a claim waits for its first consumer."""
        storage_class = self.get(STORAGE_CLASSES, storage_class_name(claim))
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def attachable(self, claim: JsonObject) -> tuple[str, str] | None:
        """The unique name and the driver of a claim's CSI volume, existing or to come; None for other kinds."""
        volume = self.get(VOLUMES, (claim.get("spec") or _EMPTY).get("volumeName") or "")
        if volume is not None:
            csi = volume["spec"].get("csi")
            if not csi or not csi.get("driver") or not csi.get("volumeHandle"):
                return None
            return f"{csi['driver']}/{csi['volumeHandle']}", csi["driver"]
        storage_class = self.get(STORAGE_CLASSES, storage_class_name(claim))
        if storage_class is None or not storage_class.get("provisioner"):
            return None
        driver: str = storage_class["provisioner"]
        metadata = claim["metadata"]
        # No volume handle has a space in front, so a volume that is yet to come is never taken for another.
        return f"{driver}/ {metadata.get('namespace', '')}/{metadata['name']}", driver

    def limits_of(self, node_name: str) -> Iterator[tuple[str, int]]:
        """How many volumes of each driver a node can attach, where its CSINode says so."""
        csi_node = self.get(CSI_NODES, node_name)
        for driver in ((csi_node or _EMPTY).get("spec") or _EMPTY).get("drivers") or ():
            count = (driver.get("allocatable") or _EMPTY).get("count")
            if count is not None:
                yield driver["name"], count

    def attached_by_record(self) -> dict[str, dict[str, str]]:
        """What VolumeAttachments say: by node name, the driver by unique volume name."""
        found: dict[str, dict[str, str]] = {}
        for attachment in self.all(ATTACHMENTS).values():
            spec = attachment.get("spec") or _EMPTY
            volume = self.get(VOLUMES, (spec.get("source") or _EMPTY).get("persistentVolumeName") or "")
            csi = volume["spec"].get("csi") if volume is not None else None
            if csi and spec.get("attacher"):
                unique = f"{spec['attacher']}/{csi.get('volumeHandle', '')}"
                found.setdefault(spec.get("nodeName", ""), {})[unique] = spec["attacher"]
        return found


class VolumeUsage:
    """Claims and disks mounted by the pods that are there."""

    def __init__(self) -> None:
        self.version = 0
        self.claims_on: dict[int, Counter[str]] = {}
        """By row: how many pods mount each claim, ephemeral ones included."""
        self.claims: Counter[str] = Counter()
        """How many mounts each ordinary claim has in the whole cluster."""
        self.disks_on: dict[int, Counter[Disk]] = {}

    def add(self, cls: PodClass, row: int, pods: int) -> None:
        """A pod came to a node (1) or left it (-1)."""
        if not cls.claims and not cls.disks:
            return
        self.version += 1
        for use in cls.claims:
            key = f"{cls.namespace}/{use.name}"
            _count(self.claims_on.setdefault(row, Counter()), key, pods)
            if not use.ephemeral_of:
                _count(self.claims, key, pods)
        for disk in cls.disks:
            _count(self.disks_on.setdefault(row, Counter()), disk, pods)
        for where in (self.claims_on, self.disks_on):
            if row in where and not where[row]:
                del where[row]


def _count(counter: Counter[Any], key: Any, pods: int) -> None:
    counter[key] += pods
    if not counter[key]:
        del counter[key]
