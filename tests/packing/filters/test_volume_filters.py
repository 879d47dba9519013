"""VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from tests.packing.filters.tables import feasible, state_of, why
from tests.packing.objects import claim, make_node, make_pod, storage_class, volume

JsonObject = dict[str, Any]
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def two_zones() -> list[JsonObject]:
    return [make_node("a", {"zone": "1"}), make_node("b", {"zone": "2"})]


@pytest.mark.parametrize(
    ("storage", "refusal"),
    [
        ((), 'persistentvolumeclaim "data" not found'),
        ((claim("data"),), "pod has unbound immediate PersistentVolumeClaims"),
        ((claim("data", storage_class="slow"), storage_class("slow", delayed=False)),
         "pod has unbound immediate PersistentVolumeClaims"),
        (({**claim("data", volume="v"), "status": {"phase": "Lost"}},),
         'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"'),
        ((claim("data", volume="v"),), 'persistentvolume "v" not found'),
    ],
)  # fmt: skip
def test_claims_that_cannot_be_used_refuse_the_pod_as_a_whole(storage: tuple[JsonObject, ...], refusal: str) -> None:
    state = state_of(*two_zones(), storage=storage)
    cls = state.class_of(make_pod(claims=["data"]))
    assert not state.feasible(cls).any()
    assert state.diagnose(cls).refusal == refusal
    assert state.explain(cls) == {refusal: 2}


def test_a_claim_that_is_going_away_is_not_used() -> None:
    going = claim("data", volume="v")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    state = state_of(*two_zones(), storage=(going, volume("v")))
    assert why(state, make_pod(claims=["data"]), "a") == ('persistentvolumeclaim "data" is being deleted',)


def test_a_bound_volume_is_reached_from_its_zone_only() -> None:
    state = state_of(*two_zones(), storage=(claim("data", volume="v"), volume("v", zone="2")))
    assert feasible(state, make_pod(claims=["data"])) == {"b"}
    assert why(state, make_pod(claims=["data"]), "a") == ("node(s) didn't match PersistentVolume's node affinity",)


def test_a_claim_bound_later_makes_the_pod_feasible() -> None:
    state = state_of(*two_zones(), storage=(claim("data"), volume("v", zone="2")))
    pod = make_pod(claims=["data"])
    assert feasible(state, pod) == set()
    with state.trial():
        state.put_storage(claim("data", volume="v"))
        assert feasible(state, pod) == {"b"}
    assert feasible(state, pod) == set()


@pytest.mark.parametrize(
    ("label", "node_labels", "comes"),
    [
        ({ZONES[0]: "1"}, {ZONES[0]: "1"}, True),
        ({ZONES[0]: "1"}, {ZONES[0]: "2"}, False),
        ({ZONES[0]: "1__2"}, {ZONES[0]: "2"}, True),
        ({ZONES[1]: "1"}, {ZONES[0]: "1"}, True),
        ({ZONES[1]: "1"}, {ZONES[0]: "2"}, False),
        ({ZONES[0]: "1"}, {ZONES[1]: "1"}, False),
        ({ZONES[0]: "1"}, {}, True),
        ({}, {ZONES[0]: "2"}, True),
    ],
)
def test_zone_labels_of_volumes_must_be_the_nodes(label: JsonObject, node_labels: JsonObject, comes: bool) -> None:
    state = state_of(make_node("n", node_labels), storage=(claim("data", volume="v"), volume("v", labels=label)))
    expected = () if comes else ("node(s) had no available volume zone",)
    assert why(state, make_pod(claims=["data"]), "n") == expected


def test_a_waiting_claim_goes_where_its_class_can_make_volumes() -> None:
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["1"]}]}]
    delayed = claim("data", storage_class="fast")
    anywhere = state_of(*two_zones(), storage=(delayed, storage_class("fast")))
    assert feasible(anywhere, make_pod(claims=["data"])) == {"a", "b"}
    zonal = state_of(*two_zones(), storage=(delayed, storage_class("fast", allowedTopologies=topologies)))
    assert feasible(zonal, make_pod(claims=["data"])) == {"a"}
    unbindable = ("node(s) didn't find available persistent volumes to bind",)
    assert why(zonal, make_pod(claims=["data"]), "b") == unbindable


def test_without_a_provisioner_a_waiting_claim_needs_a_volume_that_is_there() -> None:
    local = storage_class("local", provisioner="kubernetes.io/no-provisioner")
    small, large = claim("small", storage_class="local"), claim("large", storage_class="local", size="5Gi")
    volumes = (
        volume("v1", zone="1", storage_class="local"), volume("v2", zone="2", storage_class="local", size="10Gi"),
        volume("v3", zone="2", storage_class="local", phase="Bound"),
    )  # fmt: skip
    state = state_of(*two_zones(), storage=(local, small, large, *volumes))
    assert feasible(state, make_pod(claims=["small"])) == {"a", "b"}
    assert feasible(state, make_pod(claims=["large"])) == {"b"}
    assert feasible(state, make_pod(claims=["small", "large"])) == set()
    state.put_storage(volume("v3", zone="2", storage_class="local"))
    assert feasible(state, make_pod(claims=["small", "large"])) == {"b"}


def test_a_claim_whose_node_is_chosen_goes_there() -> None:
    chosen = claim("data", storage_class="fast", **{"volume.kubernetes.io/selected-node": "b"})
    state = state_of(*two_zones(), storage=(chosen, storage_class("fast")))
    assert feasible(state, make_pod(claims=["data"])) == {"b"}


def test_storage_must_be_large_enough_where_the_driver_tells() -> None:
    driver = {"kind": "CSIDriver", "metadata": {"name": "csi.example"}, "spec": {"storageCapacity": True}}
    stock = {
        "kind": "CSIStorageCapacity", "metadata": {"name": "s", "namespace": "kube-system"}, "capacity": "2Gi",
        "storageClassName": "fast", "nodeTopology": {"matchLabels": {"zone": "1"}},
    }  # fmt: skip
    objects = (driver, stock, storage_class("fast"), claim("data", storage_class="fast"),
               claim("huge", storage_class="fast", size="3Gi"))  # fmt: skip
    state = state_of(*two_zones(), storage=objects)
    assert feasible(state, make_pod(claims=["data"])) == {"a"}
    assert why(state, make_pod(claims=["data"]), "b") == ("node(s) did not have enough free storage",)
    assert feasible(state, make_pod(claims=["huge"])) == set()


def test_an_exclusive_claim_is_used_by_one_pod_in_the_cluster() -> None:
    storage = (claim("data", volume="v", modes=("ReadWriteOncePod",)), volume("v"))
    state = state_of(*two_zones(), pods=(make_pod("first", node="a", claims=["data"]),), storage=storage)
    reason = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod"
    )
    assert why(state, make_pod(claims=["data"]), "b") == (reason,)
    state.remove_pod("default/first")
    assert feasible(state, make_pod(claims=["data"])) == {"a", "b"}


@pytest.mark.parametrize(
    ("mounted", "wanted", "comes"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, False),
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
         {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, True),
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "e"}}, True),
        ({"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
         {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}, False),
        ({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q", "readOnly": True}}, False),
        ({"rbd": {"monitors": ["a", "b"], "pool": "p", "image": "i"}},
         {"rbd": {"monitors": ["b"], "pool": "p", "image": "i"}}, False),
        ({"rbd": {"monitors": ["a"], "pool": "p", "image": "i"}},
         {"rbd": {"monitors": ["b"], "pool": "p", "image": "i"}}, True),
    ],
)  # fmt: skip
def test_disks_are_mounted_once_per_node(mounted: JsonObject, wanted: JsonObject, comes: bool) -> None:
    other = make_pod("other", node="n", volumes=[{"name": "v", **mounted}])
    state = state_of(make_node("n"), pods=(other,))
    expected = () if comes else ("node(s) had no available disk",)
    assert why(state, make_pod(volumes=[{"name": "v", **wanted}]), "n") == expected


def test_a_node_attaches_only_as_many_volumes_as_its_driver_says() -> None:
    csi_node = {
        "kind": "CSINode", "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "csi.example", "allocatable": {"count": 2}}]},
    }  # fmt: skip
    claims = [claim(f"c{i}", volume=f"v{i}") for i in range(4)]
    volumes = [volume(f"v{i}", driver="csi.example") for i in range(4)]
    state = state_of(*two_zones(), pods=(make_pod("p", node="a", claims=["c0", "c1"]),),
                     storage=(csi_node, *claims, *volumes))  # fmt: skip
    assert feasible(state, make_pod(claims=["c2"])) == {"b"}
    assert why(state, make_pod(claims=["c2"]), "a") == ("node(s) exceed max volume count",)
    assert feasible(state, make_pod(claims=["c0"])) == {"a", "b"}
    state.remove_pod("default/p")
    assert feasible(state, make_pod(claims=["c2"])) == {"a", "b"}
    attachment = {
        "kind": "VolumeAttachment", "metadata": {"name": "att"},
        "spec": {"attacher": "csi.example", "nodeName": "a", "source": {"persistentVolumeName": "v3"}},
    }  # fmt: skip
    state.put_storage(attachment)
    assert feasible(state, make_pod(claims=["c0", "c1"])) == {"b"}
    state.remove_storage(attachment)
    assert feasible(state, make_pod(claims=["c0", "c1"])) == {"a", "b"}


def test_an_ephemeral_volume_waits_for_the_claim_of_its_own_pod() -> None:
    pod = make_pod("web", volumes=[{"name": "tmp", "ephemeral": {}}])
    pod["metadata"]["uid"] = "u1"
    state = state_of(*two_zones(), storage=(storage_class("fast"),))
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-tmp"'
    assert why(state, pod, "a") == (waiting,)
    foreign = claim("web-tmp", storage_class="fast")
    state.put_storage(foreign)
    strange = "PVC default/web-tmp was not created for pod default/web (pod is not owner)"
    assert why(state, pod, "a") == (strange,)
    owner = [{"kind": "Pod", "name": "web", "uid": "u1", "controller": True}]
    state.put_storage({**foreign, "metadata": {**foreign["metadata"], "ownerReferences": owner}})
    assert feasible(state, pod) == {"a", "b"}
