"""The official Python client, sync: typed models, watches, informers, the dynamic client, leader election."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer

from tests.clients import manifests
from tests.clients.conftest import Embedded


def api_client(server: Embedded) -> client.ApiClient:
    return config.new_client_from_config(str(server.kubeconfig()))


@pytest.fixture(scope="module")
def api(embedded: Embedded) -> Iterator[client.ApiClient]:
    with api_client(embedded) as found:
        yield found


def pod(name: str, **labels: str) -> client.V1Pod:
    container = client.V1Container(
        name="main",
        image="registry.example/main:1",
        resources=client.V1ResourceRequirements(requests={"cpu": "100m", "memory": "64Mi"}),
    )
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels or None),
        spec=client.V1PodSpec(containers=[container], node_name="some-node"),
    )


def test_typed_models_are_created_read_changed_and_deleted(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    created = core.create_namespaced_pod(namespace, pod("one", app="a"))
    assert isinstance(created, client.V1Pod)
    assert created.spec.restart_policy == "Always" and created.spec.tolerations[0].toleration_seconds == 300
    assert created.metadata.creation_timestamp.tzinfo is not None
    found = core.read_namespaced_pod("one", namespace)
    assert found.to_dict() == created.to_dict()
    found.metadata.labels["app"] = "b"
    replaced = core.replace_namespaced_pod("one", namespace, found)
    assert int(replaced.metadata.resource_version) > int(created.metadata.resource_version)
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_pod("one", namespace, found)
    assert stale.value.status == 409
    patched = core.patch_namespaced_pod("one", namespace, {"metadata": {"labels": {"tier": "x"}}})
    assert patched.metadata.labels == {"app": "b", "tier": "x"}
    json_patch = [{"op": "remove", "path": "/metadata/labels/tier"}]
    assert core.patch_namespaced_pod("one", namespace, json_patch).metadata.labels == {"app": "b"}
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert core.patch_namespaced_pod_status("one", namespace, status).status.phase == "Running"
    assert "hollow" in core.read_namespaced_pod_log("one", namespace)
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="one", namespace=namespace))
    core.create_namespaced_pod_eviction("one", namespace, eviction)
    core.delete_namespaced_pod("one", namespace, grace_period_seconds=0)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_pod("one", namespace)
    assert gone.value.status == 404 and '"reason":"NotFound"' in gone.value.body


def test_lists_are_selected_and_paged(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    for number in range(7):
        core.create_namespaced_pod(namespace, pod(f"p-{number}", odd=str(number % 2)))
    assert len(core.list_namespaced_pod(namespace, label_selector="odd=1").items) == 3
    assert len(core.list_namespaced_pod(namespace, field_selector="spec.nodeName=some-node").items) == 7
    names: list[str] = []
    token = None
    while token != "":
        page = core.list_namespaced_pod(namespace, limit=3, _continue=token)
        assert page.metadata._continue is None or page.metadata.remaining_item_count
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"p-{number}" for number in range(7)]
    core.delete_collection_namespaced_pod(namespace, label_selector="odd=1", grace_period_seconds=0)
    assert len(core.list_namespaced_pod(namespace).items) == 4
    with pytest.raises(ApiException) as unsupported:
        core.list_namespaced_pod(namespace, field_selector="spec.nothing=1")
    assert unsupported.value.status == 400


def test_errors_carry_the_causes(api: client.ApiClient, namespace: str) -> None:
    bad = pod("Bad_Name")
    with pytest.raises(ApiException) as refused:
        client.CoreV1Api(api).create_namespaced_pod(namespace, bad)
    assert refused.value.status == 422
    assert '"field":"metadata.name"' in refused.value.body.replace(" ", "")
    with pytest.raises(ApiException) as missing:
        client.CoreV1Api(api).create_namespaced_pod("no-such-namespace", pod("a"))
    assert missing.value.status == 404


def test_every_typed_list_deserialises(api: client.ApiClient, namespace: str) -> None:
    """Models raise on a missing required field, so that reading is a check of what the server writes."""
    core, apps, batch = client.CoreV1Api(api), client.AppsV1Api(api), client.BatchV1Api(api)
    for manifest in (manifests.DEPLOYMENT, manifests.STATEFUL_SET, manifests.DAEMON_SET, manifests.CLAIM):
        utils.create_from_yaml(api, yaml_objects=[yaml.safe_load(manifest)], namespace=namespace)
    job = {"metadata": {"name": "once"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip
    batch.create_namespaced_job(namespace, job)
    cron = {"metadata": {"name": "often"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}}}
    batch.create_namespaced_cron_job(namespace, cron)
    core.create_namespaced_service(
        namespace, {"metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
    )
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    client.PolicyV1Api(api).create_namespaced_pod_disruption_budget(namespace, budget)
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    scaler = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}
    client.AutoscalingV2Api(api).create_namespaced_horizontal_pod_autoscaler(namespace, scaler)
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000001Z"}}
    made = client.CoordinationV1Api(api).create_namespaced_lease(namespace, lease)
    assert made.spec.renew_time.year == 2026
    for listed in (
        core.list_namespaced_service(namespace), core.list_namespaced_persistent_volume_claim(namespace),
        core.list_namespace(), core.list_node(), core.list_namespaced_service_account(namespace),
        core.list_namespaced_event(namespace), apps.list_namespaced_deployment(namespace),
        apps.list_namespaced_stateful_set(namespace), apps.list_namespaced_daemon_set(namespace),
        batch.list_namespaced_job(namespace), batch.list_namespaced_cron_job(namespace),
        client.PolicyV1Api(api).list_namespaced_pod_disruption_budget(namespace),
        client.AutoscalingV2Api(api).list_namespaced_horizontal_pod_autoscaler(namespace),
        client.AutoscalingV1Api(api).list_namespaced_horizontal_pod_autoscaler(namespace),
        client.SchedulingV1Api(api).list_priority_class(), client.StorageV1Api(api).list_storage_class(),
        client.RbacAuthorizationV1Api(api).list_cluster_role(),
        client.EventsV1Api(api).list_namespaced_event(namespace),
        client.DiscoveryV1Api(api).list_namespaced_endpoint_slice(namespace),
        client.NetworkingV1Api(api).list_namespaced_ingress(namespace),
        client.ApiextensionsV1Api(api).list_custom_resource_definition(),
    ):  # fmt: skip
        assert listed.metadata.resource_version
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 9
    apps.replace_namespaced_deployment_scale("web", namespace, scale)
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 9
    assert client.VersionApi(api).get_code().major == "1"
    assert "apps" in [group.name for group in client.ApisApi(api).get_api_versions().groups]
    review = client.AuthenticationV1Api(api).create_self_subject_review({})
    assert review.status.user_info.username == "holokube-admin"


def test_watches_start_from_a_resource_version(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_pod(namespace, pod("before"))
    listed = core.list_namespaced_pod(namespace)
    core.create_namespaced_pod(namespace, pod("after", app="x"))
    core.patch_namespaced_pod("after", namespace, {"metadata": {"labels": {"app": "y"}}})
    core.delete_namespaced_pod("after", namespace, grace_period_seconds=0)
    watcher = watch.Watch()
    seen = [
        (event["type"], event["object"].metadata.name)
        for event in watcher.stream(
            core.list_namespaced_pod, namespace, resource_version=listed.metadata.resource_version, timeout_seconds=1
        )
    ]
    # Even a pod that goes at once is first shown with its deletionTimestamp.
    assert seen == [("ADDED", "after"), ("MODIFIED", "after"), ("MODIFIED", "after"), ("DELETED", "after")]
    selected = [
        (event["type"], event["object"].metadata.labels["app"])
        for event in watch.Watch().stream(
            core.list_namespaced_pod, namespace, resource_version=listed.metadata.resource_version,
            label_selector="app=x", timeout_seconds=1,
        )
    ]  # fmt: skip
    # It stopped to match, which to this watcher is a deletion of what it knew.
    assert selected == [("ADDED", "x"), ("DELETED", "x")]


def test_a_watch_from_long_ago_is_told_so(forgetful: Embedded) -> None:
    with api_client(forgetful) as api:
        core = client.CoreV1Api(api)
        old = core.list_namespaced_config_map("default").metadata.resource_version
        for number in range(30):
            core.create_namespaced_config_map("default", {"metadata": {"name": f"c-{number}"}})
        with pytest.raises(ApiException) as gone:
            list(
                watch.Watch().stream(
                    core.list_namespaced_config_map, "default", resource_version=old, timeout_seconds=5
                )
            )
        assert gone.value.status == 410
        first = core.list_namespaced_config_map("default", limit=2)
        for number in range(30):
            core.patch_namespaced_config_map(f"c-{number}", "default", {"data": {"a": "b"}})
        with pytest.raises(ApiException) as expired:
            core.list_namespaced_config_map("default", limit=2, _continue=first.metadata._continue)
        assert expired.value.status == 410 and '"reason":"Expired"' in expired.value.body


def test_the_clients_informer_follows(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "first"}})
    events: queue.Queue[tuple[str, str]] = queue.Queue()
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)

    def listen(kind: str) -> None:
        informer.add_event_handler(kind, lambda obj: events.put((kind, _name(obj))))

    for kind in ("ADDED", "MODIFIED", "DELETED"):
        listen(kind)
    informer.start()
    try:
        assert events.get(timeout=10) == ("ADDED", "first")
        core.create_namespaced_config_map(namespace, {"metadata": {"name": "second"}})
        assert events.get(timeout=10) == ("ADDED", "second")
        core.patch_namespaced_config_map("first", namespace, {"data": {"a": "b"}})
        assert events.get(timeout=10) == ("MODIFIED", "first")
        core.delete_namespaced_config_map("first", namespace)
        assert events.get(timeout=10) == ("DELETED", "first")
        assert [_name(item) for item in informer.cache.list()] == ["second"]
    finally:
        stopper = threading.Thread(target=informer.stop)
        stopper.start()
        # The client's watch only looks at its stop flag when a line comes.
        core.create_namespaced_config_map(namespace, {"metadata": {"name": "third"}})
        stopper.join(timeout=20)
    assert not stopper.is_alive()


def _name(obj: Any) -> str:
    return str(obj["metadata"]["name"] if isinstance(obj, dict) else obj.metadata.name)


def test_the_dynamic_client_discovers_and_applies(api: client.ApiClient, namespace: str) -> None:
    cluster = dynamic.DynamicClient(api)
    pods = cluster.resources.get(api_version="v1", kind="Pod")
    deployments = cluster.resources.get(api_version="apps/v1", kind="Deployment")
    body = yaml.safe_load(manifests.DEPLOYMENT)
    applied = deployments.server_side_apply(body=body, namespace=namespace, field_manager="tests")
    assert applied.spec.replicas == 2 and applied.metadata.managedFields[0].manager == "tests"
    body["spec"]["replicas"] = 5
    with pytest.raises(ApiException) as conflict:
        deployments.server_side_apply(body=body, namespace=namespace, field_manager="other")
    assert conflict.value.status == 409 and 'conflict with \\"tests\\"' in conflict.value.body
    deployments.server_side_apply(body=body, namespace=namespace, field_manager="other", force_conflicts=True)
    assert deployments.get(name="web", namespace=namespace).spec.replicas == 5
    deployments.scale.patch(
        name="web", namespace=namespace, body={"spec": {"replicas": 3}}, content_type="application/merge-patch+json"
    )
    assert deployments.status.get(name="web", namespace=namespace).spec.replicas == 3
    assert pods.get(namespace=namespace).items == []
    seen = [e["type"] for e in deployments.watch(namespace=namespace, timeout=1)]
    assert seen == ["ADDED"]
    deployments.delete(name="web", namespace=namespace)
    assert deployments.get(namespace=namespace).items == []


def test_custom_resources_through_typed_and_dynamic_clients(api: client.ApiClient, namespace: str) -> None:
    group = f"{namespace}.example.com"
    definitions = client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(yaml.safe_load(manifests.widgets(group)))
    try:
        found = definitions.read_custom_resource_definition(f"widgets.{group}")
        assert {c.type for c in found.status.conditions if c.status == "True"} >= {"Established", "NamesAccepted"}
        custom = client.CustomObjectsApi(api)
        where = (group, "v1", namespace, "widgets")
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}}
        assert custom.create_namespaced_custom_object(*where, body)["spec"] == {"size": 2, "color": "red"}
        custom.patch_namespaced_custom_object(*where, "w", {"spec": {"color": "blue"}})
        custom.patch_namespaced_custom_object_status(*where, "w", {"status": {"phase": "On"}})
        assert custom.get_namespaced_custom_object(*where, "w")["status"] == {"phase": "On"}
        assert custom.get_namespaced_custom_object_scale(*where, "w")["spec"]["replicas"] == 2
        with pytest.raises(ApiException) as refused:
            custom.create_namespaced_custom_object(*where, {**body, "metadata": {"name": "x"}, "spec": {"size": 0}})
        assert refused.value.status == 422
        widgets = dynamic.DynamicClient(api).resources.get(api_version=f"{group}/v1", kind="Widget")
        assert [item.metadata.name for item in widgets.get(namespace=namespace).items] == ["w"]
        events = watch.Watch().stream(custom.list_namespaced_custom_object, *where, timeout_seconds=1)
        assert [event["object"]["metadata"]["name"] for event in events] == ["w"]
        custom.delete_namespaced_custom_object(*where, "w")
        assert custom.list_namespaced_custom_object(*where)["items"] == []
    finally:
        definitions.delete_custom_resource_definition(f"widgets.{group}")
