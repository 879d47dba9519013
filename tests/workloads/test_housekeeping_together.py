"""All housekeeping controllers in one cluster: they share informers and must not step on each other."""

from __future__ import annotations

from functools import partial

from holokube.client.resources import (
    ENDPOINT_SLICES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
)
from holokube.workloads import (
    disruption_controller,
    endpoint_controller,
    garbage_controller,
    namespace_controller,
    node_lifecycle_controller,
    pod_cleaning_controller,
    quota_controller,
    service_account_controller,
    taint_eviction_controller,
    volume_controller,
)
from tests.workloads.housekeeping import House
from tests.workloads.test_endpoint_controller import service
from tests.workloads.test_node_lifecycle_controller import ready_node, running_pod
from tests.workloads.test_quota_controller import quota
from tests.workloads.test_volume_controller import claim, storage_class

ALL = (
    garbage_controller.build, namespace_controller.build, service_account_controller.build,
    partial(service_account_controller.build_root_ca, root_ca="PEM"), node_lifecycle_controller.build,
    taint_eviction_controller.build, pod_cleaning_controller.build, disruption_controller.build,
    disruption_controller.build_stale, endpoint_controller.build, endpoint_controller.build_endpoints,
    volume_controller.build, volume_controller.build_reclaimer, quota_controller.build,
)  # fmt: skip


def test_a_node_that_dies_takes_its_pods_along_and_a_namespace_its_content() -> None:
    lost = running_pod("p", "n1", tolerations=[])
    with House(*ALL, objects=[ready_node("n1"), storage_class("fast"), lost]) as home:
        home.create(NAMESPACES, {"metadata": {"name": "shop"}})
        home.pass_time(5)
        for resource, obj in (
            (SERVICES, service()), (PERSISTENT_VOLUME_CLAIMS, claim()), (RESOURCE_QUOTAS, quota(pods="5")),
        ):  # fmt: skip
            home.create(resource, {**obj, "metadata": {**obj["metadata"], "namespace": "shop"}})
        home.pass_time(5)
        assert len(home.names(PERSISTENT_VOLUMES)) == 1 and len(home.names(ENDPOINT_SLICES, "shop")) == 1
        home.delete(NODES, "n1")
        home.delete(NAMESPACES, "shop")
        home.pass_time(120)
        assert home.names(PODS) == [] and home.names(PERSISTENT_VOLUMES) == []
        assert not home.exists(NAMESPACES, "shop")
