"""Replacing objects: conflicts, immutable fields, generation, status and main resource kept apart."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import MANAGED, WHOLE, Cases, get, merge, post, put
from tests.conformance.objects import (
    budget,
    config_map,
    container,
    crd,
    daemon_set,
    deployment,
    job,
    lease,
    node,
    plain_pod,
    priority_class,
    replica_set,
    role_binding,
    secret,
    service,
    stateful_set,
    storage_class,
    thing,
)

cases = Cases()
J = dict[str, Any]
INVALID = "FieldValueInvalid"
FORBIDDEN = "FieldValueForbidden"
RV = {"rv": "metadata.resourceVersion"}
CLUSTER_IP = {**RV, "ip": "spec.clusterIP"}


def at(body: J, **metadata: Any) -> J:
    """The object with the saved resourceVersion, and other metadata."""
    return {**body, "metadata": {**body["metadata"], "resourceVersion": "{rv}", **metadata}}


cases(
    "update/configmap",
    post("configmaps", config_map(a="b"), save=RV),
    put("configmaps/cm", at(config_map(a="c")), take=MANAGED),
)
cases(
    "update/stale-version",
    post("configmaps", config_map(a="b"), save=RV),
    merge("configmaps/cm", {"data": {"x": "y"}}),
    put("configmaps/cm", at(config_map(a="c")), 409, "Conflict"),
)
cases(
    "update/stale-version-of-a-group",
    post("deployments", deployment(), save=RV),
    merge("deployments/d", {"spec": {"replicas": 2}}),
    put("deployments/d", at(deployment(replicas=3)), 409, "Conflict"),
)
cases(
    "update/without-version-configmap",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map(a="c")),
)
cases(
    "update/without-version-pod",
    post("pods", plain_pod()),
    put("pods/p", plain_pod("p", {"labels": {"a": "b"}})),
)
cases(
    "update/without-version-service",
    post("services", service(), save={"ip": "spec.clusterIP"}),
    put("services/svc", service(ports=[{"port": 81}]), take=["spec"]),
)
cases(
    "update/without-version-lease",
    post("leases", lease()),
    put("leases/l", lease(holderIdentity="x"), 422, "Invalid", (INVALID, "metadata.resourceVersion")),
)
cases(
    "update/without-version-crd",
    post("customresourcedefinitions", crd()),
    put(
        "customresourcedefinitions/widgets.{u}.example.com",
        crd(),
        422,
        "Invalid",
        (INVALID, "metadata.resourceVersion"),
    ),
)
cases(
    "update/without-version-budget",
    post("poddisruptionbudgets", budget(maxUnavailable=1)),
    put(
        "poddisruptionbudgets/pdb",
        budget(maxUnavailable=2),
        422,
        "Invalid",
        (INVALID, "metadata.resourceVersion"),
    ),
)
cases(
    "update/without-version-storageclass",
    post("storageclasses", storage_class()),
    put("storageclasses/{u}", storage_class(allowVolumeExpansion=True)),
)
cases(
    "update/without-version-priorityclass",
    post("priorityclasses", priority_class()),
    put("priorityclasses/{u}", priority_class(description="x")),
)
cases(
    "update/version-not-a-number",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map("cm", {"resourceVersion": "abc"}), 500),
)
cases(
    "update/version-zero-is-unconditional",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map("cm", {"resourceVersion": "0"}, a="b")),
)
cases("update/missing-object", put("configmaps/none", config_map("none"), 404, "NotFound"))
cases(
    "update/missing-object-with-version",
    put("configmaps/none", config_map("none", {"resourceVersion": "5"}), 404, "NotFound"),
)
cases("update/missing-lease-is-created", put("leases/l", lease(holderIdentity="x"), 201, take=WHOLE))
cases(
    "update/missing-rolebinding-is-created",
    put("rolebindings/rb", role_binding(), 201, take=["metadata.name", "roleRef"]),
)
cases(
    "update/missing-event-is-created",
    put(
        "events/e",
        thing("v1", "Event", "e", involvedObject={"kind": "Pod", "name": "p", "namespace": "{ns}"}),
        201,
        take=["metadata.name"],
    ),
)
cases("update/missing-secret", put("secrets/none", secret("none"), 404, "NotFound"))
cases("update/missing-node", put("nodes/{u}", node(), 404, "NotFound"))
cases(
    "update/name-mismatch",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map("other"), 400, "BadRequest"),
)
cases(
    "update/name-missing",
    post("configmaps", config_map()),
    put("configmaps/cm", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, 400, "BadRequest"),
)
cases(
    "update/namespace-mismatch",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map("cm", {"namespace": "{ns2}"}), 400, "BadRequest"),
)
cases(
    "update/kind-mismatch",
    post("configmaps", config_map()),
    put("configmaps/cm", thing("v1", "Secret", "cm"), 400, "BadRequest"),
)
cases(
    "update/uid-mismatch",
    post("configmaps", config_map()),
    put("configmaps/cm", config_map("cm", {"uid": "other"}), 409, "Conflict"),
)
cases(
    "update/uid-same",
    post("configmaps", config_map(), save={"uid": "metadata.uid"}),
    put("configmaps/cm", config_map("cm", {"uid": "{uid}"}, a="b")),
)
cases(
    "update/creation-time-is-kept",
    post("configmaps", config_map()),
    put(
        "configmaps/cm",
        config_map("cm", {"creationTimestamp": "2001-01-01T00:00:00Z"}, a="b"),
        200,
        take=WHOLE,
    ),
)
cases(
    "update/deletion-time-cannot-be-set",
    post("configmaps", config_map()),
    put(
        "configmaps/cm",
        config_map("cm", {"deletionTimestamp": "2001-01-01T00:00:00Z"}, a="b"),
        422,
        "Invalid",
        (INVALID, "metadata.deletionTimestamp"),
    ),
)
cases(
    "update/generate-name-may-change",
    post("configmaps", config_map("cm", {"generateName": "c"})),
    put("configmaps/cm", config_map("cm", a="b"), take=["metadata.generateName"]),
)

SAME = post("configmaps", config_map(a="b"), take=["metadata.resourceVersion"], save=RV)
cases(
    "update/no-op-keeps-version",
    SAME,
    put("configmaps/cm", config_map(a="b"), take=["metadata.resourceVersion"]),
)
cases(
    "update/no-op-with-version-keeps-version",
    SAME,
    put("configmaps/cm", at(config_map(a="b")), take=["metadata.resourceVersion"]),
)
cases(
    "update/no-op-after-defaulting-keeps-version",
    post("deployments", deployment(), take=["metadata.resourceVersion", "metadata.generation"]),
    put("deployments/d", deployment(), take=["metadata.resourceVersion", "metadata.generation"]),
)
cases(
    "update/no-op-of-pod-keeps-version",
    post("pods", plain_pod(), take=["metadata.resourceVersion"], save={"o": ""}),
    put("pods/p", "{o}", take=["metadata.resourceVersion"]),
)
cases(
    "update/other-manager-without-change",
    SAME,
    put(
        "configmaps/cm?fieldManager=other",
        config_map(a="b"),
        take=["metadata.resourceVersion", "metadata.managedFields"],
    ),
)

GEN = ["metadata.generation", "metadata.resourceVersion"]
cases(
    "update/generation-moves-with-spec",
    post("deployments", deployment(), take=GEN),
    put("deployments/d", deployment(replicas=3), take=GEN),
    put("deployments/d", deployment("d", {"labels": {"a": "b"}}, replicas=3), take=GEN),
    put("deployments/d", deployment("d", {"annotations": {"a": "b"}}, replicas=3), take=GEN),
    put("deployments/d", deployment("d", {"generation": 40}, replicas=4), take=GEN),
)
for plural, body, changed in (
    ("daemonsets", daemon_set(), daemon_set(minReadySeconds=3)),
    ("statefulsets", stateful_set(), stateful_set(replicas=3)),
    ("replicasets", replica_set(), replica_set(replicas=3)),
    ("jobs", job(), job(parallelism=4)),
    ("poddisruptionbudgets", budget(maxUnavailable=1), budget(maxUnavailable=2)),
):
    name = body["metadata"]["name"]
    cases(
        f"update/generation-of-{plural}",
        post(plural, body, take=GEN, save=RV),
        merge(f"{plural}/{name}", {"spec": changed["spec"]}, take=GEN),
        merge(f"{plural}/{name}", {"metadata": {"labels": {"x": "y"}}}, take=GEN),
        merge(f"{plural}/{name}/status", {"status": {"observedGeneration": 1}}, take=GEN),
    )
cases(
    "update/generation-of-annotated-deployment",
    post("deployments", deployment(), take=GEN),
    merge("deployments/d", {"metadata": {"annotations": {"a": "b"}}}, take=GEN),
)
cases(
    "update/generation-of-pod",
    post("pods", plain_pod(), take=GEN),
    merge("pods/p", {"metadata": {"labels": {"a": "b"}}}, take=GEN),
    merge("pods/p", {"spec": {"containers": [container(image="other:2")]}}, take=GEN),
    merge("pods/p/status", {"status": {"phase": "Running"}}, take=GEN),
)
cases(
    "update/generation-of-service-and-configmap",
    post("services", service(), take=GEN),
    merge("services/svc", {"spec": {"sessionAffinity": "ClientIP"}}, take=GEN),
    post("configmaps", config_map(), take=GEN),
    merge("configmaps/cm", {"data": {"a": "b"}}, take=GEN),
)

cases(
    "update/status-is-ignored",
    post("deployments", deployment()),
    put(
        "deployments/d",
        {**deployment(replicas=2), "status": {"replicas": 9}},
        take=["status", "spec.replicas"],
    ),
)
cases(
    "update/pod-status-is-ignored",
    post("pods", plain_pod()),
    put(
        "pods/p", {**plain_pod("p", {"labels": {"a": "b"}}), "status": {"phase": "Running"}}, take=["status"]
    ),
)
cases(
    "update/node-status-is-ignored",
    post("nodes", node()),
    put("nodes/{u}", node(status={"capacity": {"cpu": "4"}}), take=["status"]),
)
cases(
    "update/status-touches-only-status",
    post("deployments", deployment("d", {"labels": {"a": "b"}})),
    put(
        "deployments/d/status",
        {
            **deployment("d", {"labels": {"c": "d"}, "annotations": {"x": "y"}}, replicas=7),
            "status": {"replicas": 3, "observedGeneration": 1},
        },
        take=["metadata.labels", "metadata.annotations", "spec.replicas", "status", "metadata.generation"],
    ),
)
cases(
    "update/pod-status-keeps-spec-and-labels",
    post("pods", plain_pod()),
    put(
        "pods/p/status",
        {
            **plain_pod("p", {"labels": {"c": "d"}, "annotations": {"x": "y"}}, schedulerName="x"),
            "status": {"phase": "Running", "podIP": "1.2.3.4"},
        },
        take=["metadata.labels", "metadata.annotations", "spec.schedulerName", "status"],
    ),
)
cases(
    "update/node-status-keeps-spec",
    post("nodes", node()),
    put(
        "nodes/{u}/status",
        node(
            "{u}",
            {"labels": {"c": "d"}},
            spec={"unschedulable": True},
            status={"capacity": {"cpu": "4", "memory": "8Gi"}},
        ),
        take=["metadata.labels", "spec", "status"],
    ),
)
cases(
    "update/status-stale-version",
    post("deployments", deployment(), save=RV),
    merge("deployments/d", {"spec": {"replicas": 2}}),
    put("deployments/d/status", at({**deployment(), "status": {"replicas": 1}}), 409, "Conflict"),
)
cases("update/status-of-missing-object", put("deployments/d/status", deployment(), 404, "NotFound"))
cases(
    "update/status-no-op-keeps-version",
    post("deployments", deployment(), take=GEN),
    put("deployments/d/status", deployment(), take=GEN),
)
cases(
    "update/status-name-mismatch",
    post("deployments", deployment()),
    put("deployments/d/status", deployment("x"), 400, "BadRequest"),
)
cases(
    "update/status-finalizers-are-not-touched",
    post("jobs", job()),
    put(
        "jobs/j/status",
        {**job("j", {"finalizers": ["example.com/x"]}), "status": {"active": 1}},
        take=["metadata.finalizers", "status"],
    ),
)
cases(
    "update/dry-run",
    post("configmaps", config_map(a="b"), take=["metadata.resourceVersion"]),
    put("configmaps/cm?dryRun=All", config_map(a="c"), take=["data", "metadata.resourceVersion"]),
    get("configmaps/cm", take=["data", "metadata.resourceVersion"]),
)
cases(
    "update/unknown-field-strict",
    post("configmaps", config_map()),
    put("configmaps/cm?fieldValidation=Strict", {**config_map(), "frob": 1}, 400, "BadRequest"),
)
