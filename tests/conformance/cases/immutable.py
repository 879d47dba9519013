"""Fields that may not change, and those near them that may."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import Cases, get, merge, post, put
from tests.conformance.objects import (
    claim,
    config_map,
    container,
    crd,
    daemon_set,
    deployment,
    job,
    namespace,
    node,
    plain_pod,
    priority_class,
    replica_set,
    role_binding,
    secret,
    service,
    stateful_set,
    storage_class,
    template,
    volume,
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


IMMUTABLE: list[tuple[str, str, J, J, str, str]] = [
    (
        "deployment-selector",
        "deployments/d",
        deployment(),
        deployment(selector={"matchLabels": {"app": "b"}}, template=template({"app": "b"})),
        INVALID,
        "spec.selector",
    ),
    (
        "replicaset-selector",
        "replicasets/rs",
        replica_set(),
        replica_set(selector={"matchLabels": {"app": "b"}}, template=template({"app": "b"})),
        INVALID,
        "spec.selector",
    ),
    (
        "daemonset-selector",
        "daemonsets/ds",
        daemon_set(),
        daemon_set(selector={"matchLabels": {"app": "b"}}, template=template({"app": "b"})),
        INVALID,
        "spec.selector",
    ),
    (
        "statefulset-service-name",
        "statefulsets/sts",
        stateful_set(),
        stateful_set(serviceName="z"),
        FORBIDDEN,
        "spec",
    ),
    (
        "statefulset-pod-management",
        "statefulsets/sts",
        stateful_set(),
        stateful_set(podManagementPolicy="Parallel"),
        FORBIDDEN,
        "spec",
    ),
    ("pod-node-name", "pods/p", plain_pod(), plain_pod(nodeName="n"), FORBIDDEN, "spec"),
    ("pod-scheduler", "pods/p", plain_pod(), plain_pod(schedulerName="n"), FORBIDDEN, "spec"),
    (
        "pod-env",
        "pods/p",
        plain_pod(),
        plain_pod(containers=[container(env=[{"name": "A", "value": "b"}])]),
        FORBIDDEN,
        "spec",
    ),
    (
        "pod-new-container",
        "pods/p",
        plain_pod(),
        plain_pod(containers=[container(), container("d")]),
        FORBIDDEN,
        "spec.containers",
    ),
    (
        "configmap-made-immutable",
        "configmaps/cm",
        {**config_map(a="b"), "immutable": True},
        {**config_map(a="c"), "immutable": True},
        FORBIDDEN,
        "data",
    ),
    (
        "configmap-unmade-immutable",
        "configmaps/cm",
        {**config_map(a="b"), "immutable": True},
        config_map(a="b"),
        FORBIDDEN,
        "immutable",
    ),
    ("secret-type", "secrets/s", secret(), secret(type="example.com/x"), INVALID, "type"),
    (
        "claim-spec",
        "persistentvolumeclaims/pvc",
        claim(),
        claim(accessModes=["ReadOnlyMany"]),
        FORBIDDEN,
        "spec",
    ),
    (
        "claim-shrunk",
        "persistentvolumeclaims/pvc",
        claim(),
        claim(resources={"requests": {"storage": "1Mi"}}),
        FORBIDDEN,
        "spec",
    ),
    (
        "volume-source",
        "persistentvolumes/{u}",
        volume(),
        volume(hostPath={"path": "/tmp/y"}),
        FORBIDDEN,
        "spec.persistentvolumesource",
    ),
    (
        "storageclass-provisioner",
        "storageclasses/{u}",
        storage_class(),
        storage_class(provisioner="example.com/y"),
        INVALID,
        "provisioner",
    ),
    (
        "storageclass-parameters",
        "storageclasses/{u}",
        storage_class(parameters={"a": "b"}),
        storage_class(parameters={"a": "c"}),
        INVALID,
        "parameters",
    ),
    (
        "priorityclass-value",
        "priorityclasses/{u}",
        priority_class(),
        priority_class(value=7),
        FORBIDDEN,
        "value",
    ),
    (
        "rolebinding-ref",
        "rolebindings/rb",
        role_binding(),
        role_binding(roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "z"}),
        INVALID,
        "roleRef",
    ),
    (
        "node-provider-id",
        "nodes/{u}",
        node(spec={"providerID": "a://b"}),
        node(spec={"providerID": "a://c"}),
        FORBIDDEN,
        "spec.providerID",
    ),
    (
        "node-pod-cidr",
        "nodes/{u}",
        node(spec={"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
        node(spec={"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}),
        FORBIDDEN,
        "spec.podCIDRs",
    ),
]
for name, path, old, new, reason, field in IMMUTABLE:
    collection = path.split("/")[0]
    cases(
        f"update/immutable-{name}",
        post(collection, old, save=RV),
        put(path, at(new), 422, "Invalid", (reason, field)),
    )
cases(
    "update/immutable-job-template",
    post("jobs", job()),
    merge(
        "jobs/j",
        {"spec": {"template": {"spec": {"priorityClassName": "x"}}}},
        422,
        "Invalid",
        (INVALID, "spec.template"),
    ),
)
cases(
    "update/immutable-job-completions",
    post("jobs", job(completions=2)),
    merge("jobs/j", {"spec": {"completions": 3}}, 422, "Invalid", (INVALID, "spec.completions")),
)
cases(
    "update/job-replaced-without-generated-selector",
    post("jobs", job(), save=RV),
    put("jobs/j", at(job(parallelism=2)), 422, "Invalid"),
)
cases(
    "update/immutable-crd-scope",
    post("customresourcedefinitions", crd()),
    get(
        "customresourcedefinitions/widgets.{u}.example.com",
        poll=True,
        has={"status.conditions.*.status": ["True", "True"]},
    ),
    merge(
        "customresourcedefinitions/widgets.{u}.example.com",
        {"spec": {"scope": "Cluster"}},
        422,
        "Invalid",
        (INVALID, "spec.scope"),
    ),
)
cases(
    "update/immutable-service-cluster-ip",
    post("services", service(), save=CLUSTER_IP),
    put("services/svc", at(service(clusterIP="10.96.250.250")), 422, "Invalid"),
)
cases(
    "update/service-type-to-external-name",
    post("services", service(), save=CLUSTER_IP),
    put("services/svc", at(service(type="ExternalName", externalName="x.example.com")), take=["spec"]),
)
cases(
    "update/service-type-to-node-port",
    post("services", service(), save=CLUSTER_IP),
    put("services/svc", at(service(type="NodePort")), take=["spec"]),
)
cases(
    "update/pod-image-and-tolerations-may-change",
    post("pods", plain_pod(), save=RV),
    put(
        "pods/p",
        plain_pod(
            containers=[container(image="x:2")],
            activeDeadlineSeconds=5,
            tolerations=[
                {"key": "a", "operator": "Exists"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
        ),
        take=["spec.containers[0].image", "spec.tolerations"],
    ),
)
cases(
    "update/pod-scheduling-gate-may-go",
    post("pods", plain_pod(schedulingGates=[{"name": "example.com/g"}]), take=["status"]),
    merge("pods/p", {"spec": {"schedulingGates": []}}, take=["spec.schedulingGates", "status"]),
    merge("pods/p", {"spec": {"schedulingGates": [{"name": "example.com/h"}]}}, 422, "Invalid"),
)
cases(
    "update/gated-pod-node-selector-may-narrow",
    post("pods", plain_pod(schedulingGates=[{"name": "example.com/g"}])),
    merge("pods/p", {"spec": {"nodeSelector": {"a": "b"}}}, take=["spec.nodeSelector"]),
    merge("pods/p", {"spec": {"nodeSelector": {"a": None}}}, 422, "Invalid"),
)
cases(
    "update/suspended-job-scheduling-may-change",
    post("jobs", job(suspend=True)),
    merge("jobs/j", {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}),
    merge(
        "jobs/j", {"spec": {"suspend": False, "parallelism": 3}}, take=["spec.suspend", "spec.parallelism"]
    ),
)
cases(
    "update/statefulset-allowed-fields",
    post("statefulsets", stateful_set()),
    merge(
        "statefulsets/sts",
        {
            "spec": {
                "replicas": 4,
                "minReadySeconds": 2,
                "template": {"metadata": {"labels": {"x": "y"}}},
                "updateStrategy": {"rollingUpdate": {"partition": 2}},
            }
        },
        take=["spec.replicas"],
    ),
)
cases(
    "update/namespace-labels",
    merge("/api/v1/namespaces/{ns}", {"metadata": {"labels": {"a": "b"}}}, take=["metadata.labels"]),
    merge(
        "/api/v1/namespaces/{ns}",
        {"metadata": {"labels": {"kubernetes.io/metadata.name": "z"}}},
        take=["metadata.labels"],
    ),
)
cases(
    "update/namespace-spec-finalizers-are-kept",
    post("namespaces", namespace()),
    put("namespaces/{u}", namespace(spec={"finalizers": []}), take=["spec"]),
)
cases(
    "update/node-taints-and-cordon",
    post("nodes", node()),
    merge(
        "nodes/{u}",
        {"spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]}},
        take=["spec"],
    ),
)
