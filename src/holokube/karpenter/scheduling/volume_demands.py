"""What the volumes of a pod ask of its node: where it must be, and room to attach them.

Where: each volume may have several alternatives (terms of a PersistentVolume's node affinity, or allowed topologies of
a StorageClass); a pod with several volumes has all combinations that do not exclude each other. These narrow the node,
but they are not part of the pod's own affinity, so spread constraints do not count by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.karpenter.scheduling.pod_facts import claim_keys
from holokube.karpenter.scheduling.problem import Storage
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.types import JsonObject

Volumes = Mapping[str, frozenset[str]]
"""Claims to be attached, by CSI driver."""

_EMPTY: Final[Mapping[str, Any]] = {}
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_EBS_DRIVER: Final = "ebs.csi.aws.com"
_CSI_NAMES: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": _EBS_DRIVER,
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""Old built-in provisioners and the CSI drivers they became."""


class VolumeReader:
    """Answers questions about the volumes of pods from the storage objects of a problem."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def alternatives(self, pod: Mapping[str, Any]) -> tuple[Requirements, ...]:
        """Where the volumes can be mounted; empty if anywhere. LookupError, saying what is missing."""
        found: list[Requirements] | None = None
        for key in claim_keys(pod):
            of_volume = self._alternatives_of_claim(key)
            if not of_volume:
                continue
            if found is None:
                found = of_volume
                continue
            compatible = [a.merged(b) for a in found for b in of_volume if a.intersects(b)]
            # If every combination contradicts itself, they are kept: no node will do, and the pod stays pending.
            found = compatible or [a.merged(b) for a in found for b in of_volume]
        return tuple(found or ())

    def _alternatives_of_claim(self, key: str) -> list[Requirements]:
        claim = self._storage.claims.get(key)
        if claim is None:
            raise LookupError(f"PersistentVolumeClaim {key} not found")
        spec = claim.get("spec") or _EMPTY
        if spec.get("volumeName"):
            return self._of_volume(spec["volumeName"])
        if spec.get("storageClassName"):
            return self._of_class(spec["storageClassName"])
        return []

    def _of_volume(self, name: str) -> list[Requirements]:
        volume = self._storage.volumes.get(name)
        if volume is None:
            raise LookupError(f"PersistentVolume {name} not found")
        spec = volume.get("spec") or _EMPTY
        required = (spec.get("nodeAffinity") or _EMPTY).get("required") or _EMPTY
        is_local = spec.get("local") is not None or spec.get("hostPath") is not None
        found = []
        for term in required.get("nodeSelectorTerms") or ():
            expressions = list(term.get("matchExpressions") or ())
            wanted = [e for e in expressions if not (is_local and e.get("key") == HOSTNAME_LABEL)]
            # Another node means another hostname, so a term about nothing else leaves the choice free.
            if wanted or (is_local and expressions):
                found.append(Requirements.from_json(wanted))
        return found

    def _of_class(self, name: str) -> list[Requirements]:
        storage_class = self._storage.classes.get(name)
        if storage_class is None:
            raise LookupError(f"StorageClass {name} not found")
        found = []
        for term in storage_class.get("allowedTopologies") or ():
            expressions = term.get("matchLabelExpressions") or ()
            wanted = Requirements(Requirement.new(e.get("key", ""), "In", e.get("values") or ()) for e in expressions)
            if expressions:
                found.append(wanted)
        return found

    def attached(self, pod: Mapping[str, Any]) -> Volumes:
        """The claims that count against limits; a claim that is gone, or has no driver, does not."""
        found: dict[str, set[str]] = {}
        for key in claim_keys(pod):
            claim = self._storage.claims.get(key)
            driver = self._driver(claim) if claim is not None else ""
            if driver:
                found.setdefault(driver, set()).add(key)
        return {driver: frozenset(keys) for driver, keys in found.items()}

    def _driver(self, claim: JsonObject) -> str:
        spec = claim.get("spec") or _EMPTY
        if spec.get("volumeName"):
            volume = (self._storage.volumes.get(spec["volumeName"]) or _EMPTY).get("spec") or _EMPTY
            if volume.get("csi"):
                return str(volume["csi"].get("driver", ""))
            return _EBS_DRIVER if volume.get("awsElasticBlockStore") is not None else ""
        storage_class = self._storage.classes.get(spec.get("storageClassName") or "") or _EMPTY
        provisioner = str(storage_class.get("provisioner") or "")
        return _CSI_NAMES.get(provisioner, provisioner)

    def limits_of_node(self, node_name: str, of_type: Mapping[str, int]) -> dict[str, int]:
        """How many volumes a node can attach by driver: what its CSINode says, else what its type is known for."""
        limits = dict(of_type)
        csi_node = self._storage.csi_nodes.get(node_name) or _EMPTY
        for driver in (csi_node.get("spec") or _EMPTY).get("drivers") or ():
            count = (driver.get("allocatable") or _EMPTY).get("count")
            if count is None:
                limits.pop(driver["name"], None)
            else:
                limits[driver["name"]] = int(count)
        return limits

    def why_unusable(self, pod: Mapping[str, Any]) -> str:
        """Why nothing can be done for a pod because of its claims; empty if they are fine."""
        for key in claim_keys(pod):
            why = self._why_claim_unusable(key)
            if why:
                return why
        return ""

    def _why_claim_unusable(self, key: str) -> str:
        claim = self._storage.claims.get(key)
        if claim is None:
            return f"PersistentVolumeClaim {key} not found"
        metadata, spec = claim.get("metadata") or _EMPTY, claim.get("spec") or _EMPTY
        if metadata.get("deletionTimestamp"):
            return f"PersistentVolumeClaim {key} is being deleted"
        if (claim.get("status") or _EMPTY).get("phase") == "Lost":
            return f"PersistentVolumeClaim {key} is bound to a PersistentVolume that does not exist"
        name, class_name = spec.get("volumeName"), spec.get("storageClassName")
        if name:
            volume = self._storage.volumes.get(name)
            if volume is None:
                return f"PersistentVolume {name} of PersistentVolumeClaim {key} not found"
            if (volume.get("metadata") or _EMPTY).get("deletionTimestamp"):
                return f"PersistentVolume {name} of PersistentVolumeClaim {key} is being deleted"
            if _BIND_COMPLETED not in (metadata.get("annotations") or _EMPTY):
                return f"PersistentVolumeClaim {key} counts as unbound: annotation {_BIND_COMPLETED} is missing"
            return ""
        if not class_name:
            return f"PersistentVolumeClaim {key} is not bound and names no StorageClass"
        storage_class = self._storage.classes.get(class_name)
        if storage_class is None:
            return f"StorageClass {class_name} of PersistentVolumeClaim {key} not found"
        if storage_class.get("volumeBindingMode") == "Immediate":
            return f"PersistentVolumeClaim {key} has Immediate binding and must be bound before its pod can be placed"
        return ""
