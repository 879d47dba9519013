"""A cluster that lives, inside the test: what its parts do together, and what happens when one is left out."""

from __future__ import annotations

import pytest

from holokube.base.errors import HolokubeError
from holokube.client.client import PatchType
from holokube.client.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STORAGE_CLASSES,
)
from holokube.cluster import LivingOptions, Part
from holokube.cluster.components import CONTROLLERS
from holokube.hollow.node_life import Fault
from holokube.hollow.node_template import ZONE
from holokube.hollow.profile import named_profile
from holokube.kube.types import JsonObject
from holokube.testing.cluster import Cluster
from tests.builders import deployment, pod


def phases(cluster: Cluster) -> list[str]:
    return [pod["status"]["phase"] for pod in cluster.run(cluster.client.list(PODS)).items]


def test_a_deployment_becomes_running_pods() -> None:
    with Cluster(nodes=3) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment(replicas=5)))
        cluster.pass_time(30)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 5
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 3


def test_events_carry_the_names_of_upstreams_components() -> None:
    with Cluster(options=LivingOptions(profile=named_profile("kubelet")), nodes=1) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        cluster.pass_time(60)
        events = cluster.run(cluster.client.list(EVENTS)).items
        sources = {event["source"].get("component") or event["reportingComponent"] for event in events}
        assert {"deployment-controller", "replicaset-controller", "default-scheduler", "kubelet"} <= sources


def test_writes_are_owned_by_the_component_that_made_them() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        cluster.pass_time(30)
        (found,) = cluster.run(cluster.client.list(PODS)).items
        managers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
        assert managers == {"kube-controller-manager", "kubelet"}


def test_without_a_scheduler_pods_wait_for_somebody_elses() -> None:
    parts = frozenset({Part.CONTROLLERS, Part.FLEET})
    with Cluster(nodes=1, options=LivingOptions(parts=parts)) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        cluster.pass_time(30)
        (found,) = cluster.run(cluster.client.list(PODS)).items
        assert "nodeName" not in found["spec"]
        cluster.run(cluster.client.bind("default", found["metadata"]["name"], "node-0"))
        cluster.pass_time(30)
        assert phases(cluster) == ["Running"]


def test_without_controllers_a_deployment_stays_alone_and_nodes_are_ready_all_the_same() -> None:
    with Cluster(nodes=1, options=LivingOptions(parts=frozenset({Part.FLEET}))) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment()))
        cluster.pass_time(30)
        assert phases(cluster) == []


def test_without_a_fleet_nodes_are_made_and_nobody_waits_for_them() -> None:
    with Cluster(nodes=2, options=LivingOptions(parts=frozenset({Part.CONTROLLERS}))) as cluster:
        assert len(cluster.run(cluster.client.list(NODES)).items) == 2


def test_nodes_are_scaled_up_and_down_and_take_zones_in_turn() -> None:
    with Cluster(nodes=4, options=LivingOptions(zones=("a", "b"))) as cluster:
        assert cluster.living is not None
        labels = [node["metadata"]["labels"][ZONE] for node in cluster.run(cluster.client.list(NODES)).items]
        assert labels == ["a", "b", "a", "b"]
        cluster.run(cluster.living.scale_nodes(1))
        names = [node["metadata"]["name"] for node in cluster.run(cluster.client.list(NODES)).items]
        assert names == ["node-0"]


def test_pods_of_a_silent_node_are_evicted_and_run_elsewhere() -> None:
    with Cluster(nodes=2) as cluster:
        assert cluster.living is not None
        assert cluster.living.fleet is not None
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment(replicas=1)))
        cluster.pass_time(30)
        (before,) = cluster.run(cluster.client.list(PODS)).items
        cluster.living.fleet.inject(before["spec"]["nodeName"], Fault.SILENT)
        # Lease and grace period run out, then the five minutes that pods tolerate it.
        cluster.pass_time(40 + 50 + 300 + 60)
        others = [
            found for found in cluster.run(cluster.client.list(PODS)).items
            if found["spec"].get("nodeName") not in (None, before["spec"]["nodeName"])
        ]  # fmt: skip
        assert [found["status"]["phase"] for found in others] == ["Running"]


def test_a_claim_without_a_class_gets_a_volume_when_a_pod_uses_it() -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    mounted = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    with Cluster(nodes=1) as cluster:
        cluster.run(cluster.client.create(PERSISTENT_VOLUME_CLAIMS, claim))
        cluster.pass_time(10)
        pending = cluster.run(cluster.client.get(PERSISTENT_VOLUME_CLAIMS, "data", "default"))
        assert pending["status"]["phase"] == "Pending"
        cluster.run(cluster.client.create(PODS, mounted))
        cluster.pass_time(10)
        assert phases(cluster) == ["Running"]
        bound = cluster.run(cluster.client.get(PERSISTENT_VOLUME_CLAIMS, "data", "default"))
        assert (bound["status"]["phase"], bound["spec"]["storageClassName"]) == ("Bound", "standard")


def test_storage_classes_that_are_there_are_enough() -> None:
    own = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "own"},
        "provisioner": "example.com/disk",
    }  # fmt: skip
    with Cluster(nodes=0, objects=[own]) as cluster:
        names = [found["metadata"]["name"] for found in cluster.run(cluster.client.list(STORAGE_CLASSES)).items]
        assert names == ["own"]


def test_an_autoscaler_follows_what_pods_seem_to_use() -> None:
    web = deployment("web", replicas=1)
    template: JsonObject = web["spec"]["template"]
    template["metadata"]["annotations"] = {"holokube.dev/usage-cpu": "steps(0s=50m, 5m=400m)"}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
    autoscaler = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 4,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                            "averageUtilization": 50}}}
            ],
        },
    }  # fmt: skip
    with Cluster(nodes=2) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, web))
        cluster.run(cluster.client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler))
        cluster.pass_time(200)
        assert len(phases(cluster)) == 1
        cluster.pass_time(600)
        assert len(phases(cluster)) == 4


def test_the_authority_reaches_every_namespace() -> None:
    with Cluster(options=LivingOptions(root_ca="PEM")) as cluster:
        cluster.pass_time(5)
        found = cluster.run(cluster.client.get(CONFIG_MAPS, "kube-root-ca.crt", "default"))
        assert found["data"] == {"ca.crt": "PEM"}


def test_every_controller_has_a_name_of_its_own() -> None:
    names = [name for name, _ in CONTROLLERS]
    assert len(set(names)) == len(names)


def test_a_cluster_starts_once() -> None:
    with Cluster(nodes=0) as cluster:
        assert cluster.living is not None
        with pytest.raises(HolokubeError, match="runs already"):
            cluster.run(cluster.living.start())


def test_components_survive_the_end_of_every_watch() -> None:
    with Cluster(nodes=2) as cluster:
        assert cluster.living is not None
        cluster.pass_time(1200)
        cluster.run(cluster.client.create(DEPLOYMENTS, deployment(replicas=2)))
        cluster.pass_time(30)
        assert phases(cluster) == ["Running", "Running"]
        patch = {"spec": {"replicas": 0}}
        cluster.run(cluster.client.patch(DEPLOYMENTS, "d", patch, namespace="default", type=PatchType.MERGE))
        cluster.pass_time(60)
        assert phases(cluster) == []
        assert all(status.restarts == 0 for status in cluster.living.app.status())
