"""Random storage: classes, volumes and claims in every state of binding, CSI limits, capacities, attachments."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import JsonObject
from tests.parity.draws import HOSTNAME, REGION, ZONE, ZONES, Draws
from tests.parity.random_nodes import OLD_ZONE

DRIVER = "csi.example"
STOCKED = "stocked.example"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
HOLD = "example.com/hold"
"""A finalizer: with it, a deleted object stays, marked as deleted."""


class Storage:
    """The storage objects of one cluster, grown as pods ask for volumes."""

    def __init__(self, draws: Draws, node_names: Sequence[str]) -> None:
        self._draws = draws
        self._nodes = node_names
        self._count = 0
        self.objects: list[JsonObject] = [*self._classes(), *self._spare_volumes(), *self._csi_nodes()]
        self.objects += self._capacities()

    def add_volumes(self, pod: JsonObject, *, is_bound: bool) -> None:
        """Give a pod one or two volumes."""
        draws, spec = self._draws, pod["spec"]
        volumes = []
        for i in range(draws.between(1, 2)):
            name = f"v{i}"
            if draws.chance(0.2):
                volumes.append({"name": name, **self._disk()})
            elif not is_bound and draws.chance(0.05):
                template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
                volumes.append({"name": name, "ephemeral": {"volumeClaimTemplate": template}})
            else:
                claim = self._claim(pod["metadata"]["namespace"], is_bound)
                volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        spec["volumes"] = volumes

    def _disk(self) -> JsonObject:
        draws = self._draws
        read_only = draws.chance(0.5)
        return draws.one((
            {"gcePersistentDisk": {"pdName": draws.one(("pd1", "pd2")), "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": draws.one(("vol1", "vol2")), "readOnly": read_only}},
            {"iscsi": {"targetPortal": "10.0.0.9", "iqn": "iqn.2026-01.example:disk", "lun": 0, "readOnly": read_only}},
            {"rbd": {"monitors": draws.some(("m1", "m2", "m3"), 1, 2), "image": "foo", "pool": "rbd",
                     "readOnly": read_only}},
        ))  # fmt: skip

    def _claim(self, namespace: str, is_bound: bool) -> str:
        draws = self._draws
        shared = [
            obj["metadata"]["name"] for obj in self.objects
            if obj["kind"] == "PersistentVolumeClaim" and obj["metadata"]["namespace"] == namespace
            and "finalizers" not in obj["metadata"]
        ]  # fmt: skip
        if shared and draws.chance(0.35):
            return draws.one(shared)
        self._count += 1
        name = f"claim-{self._count}"
        kinds = ("affinity", "zone", "csi", "csi", "exclusive")
        if not is_bound:
            kinds += ("delayed", "zonal", "zonal", "manual", "manual", "stocked", "stocked", "chosen")
            # These leave no node to any pod, so they are rarer.
            if draws.chance(0.4):
                kinds += ("absent", "orphan", "immediate", "dying", "classless", "lost")
        kind = draws.one(kinds)
        if kind != "absent":
            self._make_claim(kind, name, namespace)
        return name

    def _make_claim(self, kind: str, name: str, namespace: str) -> None:
        draws = self._draws
        modes = ["ReadWriteOncePod"] if kind == "exclusive" else ["ReadWriteOnce"]
        size = draws.one(("1Gi", "3Gi", "8Gi"))
        spec: JsonObject = {"accessModes": modes, "resources": {"requests": {"storage": size}}}
        metadata: JsonObject = {"name": name, "namespace": namespace}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        classes = {
            "immediate": "immediate", "delayed": "delayed", "zonal": "zonal", "manual": "manual", "stocked": "stocked",
            "chosen": "delayed", "dying": "delayed", "classless": "", "lost": "immediate",
        }  # fmt: skip
        if kind in classes:
            spec["storageClassName"] = classes[kind]
            if kind == "chosen":
                chosen = draws.one((*self._nodes, "gone"))
                metadata["annotations"] = {"volume.kubernetes.io/selected-node": chosen}
            elif kind == "dying":
                metadata["finalizers"] = [HOLD]
            elif kind == "lost":
                spec["volumeName"] = "vanished"
                metadata["annotations"] = BOUND
                claim["status"] = {"phase": "Lost"}
            elif kind == "manual" and draws.chance(0.3):
                spec["selector"] = {"matchLabels": {"grade": draws.one(("gold", "iron"))}}
        else:
            metadata["annotations"] = BOUND
            spec["storageClassName"] = "immediate"
            spec["volumeName"] = "vanished" if kind == "orphan" else f"pv-{name}"
            if kind != "orphan":
                self.objects.append(self._bound_volume(kind, name, namespace, modes))
            claim["status"] = {"phase": "Bound"}
        self.objects.append(claim)

    def _bound_volume(self, kind: str, name: str, namespace: str, modes: list[str]) -> JsonObject:
        draws = self._draws
        volume = _volume(f"pv-{name}", "8Gi", "immediate", modes)
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": namespace}
        volume["spec"]["claimRef"] = reference
        volume["status"] = {"phase": "Bound"}
        if kind == "affinity":
            volume["spec"]["nodeAffinity"] = self._node_affinity()
        elif kind == "zone":
            key, values = draws.one(((ZONE, ZONES), (REGION, ("r1", "r2")), (OLD_ZONE, ZONES)))
            value = "__".join(draws.some(values, 1, 2))
            volume["metadata"]["labels"] = {key: value}
        return volume

    def _node_affinity(self) -> JsonObject:
        draws = self._draws
        key, values = draws.one(((ZONE, ZONES), (HOSTNAME, self._nodes)))
        expression = {"key": key, "operator": "In", "values": draws.some(values, 1, 2)}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}

    def _classes(self) -> list[JsonObject]:
        draws = self._draws
        zones = [{"key": ZONE, "values": draws.some(ZONES, 1, 2)}]
        return [
            _storage_class("immediate", DRIVER, "Immediate"),
            _storage_class("delayed", DRIVER, "WaitForFirstConsumer"),
            _storage_class("zonal", DRIVER, "WaitForFirstConsumer", [{"matchLabelExpressions": zones}]),
            _storage_class("manual", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            _storage_class("stocked", STOCKED, "WaitForFirstConsumer"),
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": STOCKED},
             "spec": {"storageCapacity": True}},
        ]  # fmt: skip

    def _spare_volumes(self) -> list[JsonObject]:
        draws = self._draws
        volumes = []
        for i in range(draws.between(0, 4)):
            volume = _volume(f"spare-{i}", draws.one(("2Gi", "5Gi", "10Gi")), "manual", ["ReadWriteOnce"])
            if draws.chance(0.8):
                volume["spec"]["nodeAffinity"] = self._node_affinity()
            if draws.chance(0.5):
                volume["metadata"]["labels"] = {"grade": draws.one(("gold", "iron"))}
            volume["status"] = {"phase": draws.one(("Available", "Available", "Available", "Released"))}
            volumes.append(volume)
        return volumes

    def _csi_nodes(self) -> list[JsonObject]:
        draws = self._draws
        found = []
        for name in self._nodes:
            if draws.chance(0.6):
                driver: JsonObject = {"name": DRIVER, "nodeID": name, "topologyKeys": None}
                if draws.chance(0.8):
                    driver["allocatable"] = {"count": draws.between(0, 3)}
                found.append({
                    "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                    "spec": {"drivers": [driver]},
                })  # fmt: skip
        return found

    def _capacities(self) -> list[JsonObject]:
        draws = self._draws
        found = []
        for i in range(draws.between(0, 2)):
            capacity: JsonObject = {
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
                "metadata": {"name": f"stock-{i}", "namespace": "parity-a"},
                "storageClassName": "stocked", "capacity": draws.one(("2Gi", "20Gi")),
            }  # fmt: skip
            if draws.chance(0.8):
                capacity["nodeTopology"] = {"matchLabels": {ZONE: draws.one(ZONES)}}
            if draws.chance(0.3):
                capacity["maximumVolumeSize"] = "2Gi"
            found.append(capacity)
        return found


def attachments(draws: Draws, objects: Sequence[JsonObject], node_names: Sequence[str]) -> list[JsonObject]:
    """Records that some volumes are attached to some nodes already."""
    volumes = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "PersistentVolume"]
    return [
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": f"at-{volume}"},
            "spec": {"attacher": DRIVER, "nodeName": draws.one(node_names),
                     "source": {"persistentVolumeName": volume}},
        }
        for volume in volumes if draws.chance(0.15)
    ]  # fmt: skip


def _volume(name: str, size: str, storage_class: str, modes: list[str]) -> JsonObject:
    spec: JsonObject = {
        "capacity": {"storage": size}, "accessModes": modes, "storageClassName": storage_class,
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{name}"},
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _storage_class(
    name: str, provisioner: str, mode: str, topologies: list[JsonObject] | None = None
) -> JsonObject:
    made: JsonObject = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode,
    }  # fmt: skip
    if topologies:
        made["allowedTopologies"] = topologies
    return made
