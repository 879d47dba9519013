from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from holokube.workloads import volume_controller
from tests.builders import node, pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def storage_class(name: str, mode: str = "Immediate", **more: Any) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "disk.example.com", "volumeBindingMode": mode, "reclaimPolicy": "Delete", **more,
    }  # fmt: skip


def claim(name: str = "c", class_name: str | None = "fast", size: str = "10Gi", **annotations: str) -> JsonObject:
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if class_name is not None:
        spec["storageClassName"] = class_name
    meta: JsonObject = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def volume(name: str, size: str, class_name: str = "", policy: str = "Retain", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class_name,
            "persistentVolumeReclaimPolicy": policy, "hostPath": {"path": "/tmp"}, **spec,
        },
    }  # fmt: skip


def house(*objects: JsonObject, **options: Any) -> House:
    nodes = [node(name, **{ZONE: zone}) for name, zone in (("n1", "a"), ("n2", "b"))]
    classes = [storage_class("fast"), storage_class("late", "WaitForFirstConsumer")]
    return House(
        volume_controller.build, volume_controller.build_reclaimer, objects=[*nodes, *classes, *objects], **options
    )


def bound_to(home: House, name: str = "c") -> str:
    found = home.get(PERSISTENT_VOLUME_CLAIMS, name)
    if (found.get("status") or {}).get("phase") != "Bound":
        return ""
    return str(found["spec"]["volumeName"])


def phase(home: House, name: str) -> str:
    return str(home.get(PERSISTENT_VOLUMES, name)["status"]["phase"])


def test_an_immediate_claim_gets_a_volume_in_some_zone() -> None:
    with house() as home:
        made = home.create(PERSISTENT_VOLUME_CLAIMS, claim())
        home.pass_time(1)
        name = f"pvc-{made['metadata']['uid']}"
        assert bound_to(home) == name and phase(home, name) == "Bound"
        found = home.get(PERSISTENT_VOLUMES, name)
        (term,) = found["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"][0] in ("a", "b")
        assert found["spec"]["csi"]["driver"] == "disk.example.com"
        assert found["spec"]["capacity"] == {"storage": "10Gi"}
        assert found["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "disk.example.com"
        status = home.get(PERSISTENT_VOLUME_CLAIMS, "c")["status"]
        assert (status["capacity"], status["accessModes"]) == ({"storage": "10Gi"}, ["ReadWriteOnce"])
        assert ("c", "ProvisioningSucceeded", f"Successfully provisioned volume {name}") in home.events()


def test_a_claim_that_waits_gets_its_volume_where_its_pod_goes() -> None:
    with house() as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name="late"))
        home.pass_time(40)
        assert bound_to(home) == ""
        message = "waiting for first consumer to be created before binding"
        assert ("c", "WaitForFirstConsumer", message) in home.events()
        annotations = {"volume.kubernetes.io/selected-node": "n2"}
        home.patch(PERSISTENT_VOLUME_CLAIMS, "c", {"metadata": {"annotations": annotations}})
        home.pass_time(1)
        found = home.get(PERSISTENT_VOLUMES, bound_to(home))
        assert found["metadata"]["labels"] == {ZONE: "b"}


def test_a_claim_takes_the_smallest_volume_that_fits() -> None:
    volumes = [volume("small", "5Gi"), volume("big", "50Gi"), volume("fits", "20Gi"), volume("fast", "10Gi", "fast")]
    with house(*volumes) as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name=""))
        home.pass_time(1)
        assert bound_to(home) == "fits"
        assert [phase(home, name) for name in ("fits", "small", "big")] == ["Bound", "Available", "Available"]
        home.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        home.pass_time(1)
        assert phase(home, "fits") == "Released", "what is retained is not given to anybody else"


def test_a_volume_reserved_for_a_claim_goes_to_it() -> None:
    reserved = volume("mine", "50Gi", claimRef={"namespace": "default", "name": "c"})
    with house(reserved, volume("fits", "10Gi")) as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim("other", class_name=""))
        home.create(PERSISTENT_VOLUME_CLAIMS, claim(class_name=""))
        home.pass_time(1)
        assert (bound_to(home), bound_to(home, "other")) == ("mine", "fits")


def test_a_claim_without_a_match_says_why_and_gets_what_comes_later() -> None:
    with house() as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim("static", class_name=""))
        home.create(PERSISTENT_VOLUME_CLAIMS, claim("unknown", class_name="none"))
        home.pass_time(1)
        said = {name: message for name, _, message in home.events()}
        assert said["static"] == "no persistent volumes available for this claim and no storage class is set"
        assert said["unknown"] == 'storageclass.storage.k8s.io "none" not found'
        home.create(PERSISTENT_VOLUMES, volume("v", "10Gi"))
        home.pass_time(1)
        assert bound_to(home, "static") == "v"


def test_a_made_up_volume_is_deleted_with_its_claim_but_not_while_a_pod_uses_it() -> None:
    with house() as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim())
        mount = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
        home.create(PODS, pod(node="n1", volumes=[mount]))
        home.pass_time(1)
        name = bound_to(home)
        home.delete(PERSISTENT_VOLUME_CLAIMS, "c")
        home.pass_time(30)
        assert home.exists(PERSISTENT_VOLUME_CLAIMS, "c") and home.exists(PERSISTENT_VOLUMES, name)
        home.delete(PODS, "p", grace_s=0)
        home.pass_time(1)
        assert not home.exists(PERSISTENT_VOLUME_CLAIMS, "c") and not home.exists(PERSISTENT_VOLUMES, name)


def test_a_bound_volume_cannot_be_deleted_and_a_lost_one_is_noticed() -> None:
    with house() as home:
        home.create(PERSISTENT_VOLUME_CLAIMS, claim())
        home.pass_time(1)
        name = bound_to(home)
        home.delete(PERSISTENT_VOLUMES, name)
        home.pass_time(30)
        assert home.exists(PERSISTENT_VOLUMES, name)
        home.patch(PERSISTENT_VOLUMES, name, {"metadata": {"finalizers": None}})
        home.pass_time(1)
        assert home.get(PERSISTENT_VOLUME_CLAIMS, "c")["status"]["phase"] == "Lost"
        assert [reason for _, reason, _ in home.events("ClaimLost")] == ["ClaimLost"]


@pytest.mark.parametrize("seed", range(3))
def test_every_claim_gets_one_volume_whatever_the_network_does(seed: int) -> None:
    with house(*(volume(f"v{n}", "10Gi") for n in range(5)), faults=STORM, seed=seed) as home:
        for n in range(10):
            home.create(PERSISTENT_VOLUME_CLAIMS, claim(f"c{n}", class_name="fast" if n % 2 else ""))
            home.pass_time(5)
        for n in (0, 1):
            home.delete(PERSISTENT_VOLUME_CLAIMS, f"c{n}")
        home.pass_time(100)
        home.calm()
        home.pass_time(1100)
        bound = [bound_to(home, f"c{n}") for n in range(2, 10)]
        assert all(bound) and len(set(bound)) == 8
        phases = sorted(phase(home, name) for name in home.names(PERSISTENT_VOLUMES))
        assert phases.count("Bound") == 8 and len(phases) == 9
        assert home.faulty.injected.total() > 5
