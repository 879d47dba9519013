"""Creating objects: names, metadata the server owns, bodies that do not fit, dry runs, unknown fields."""

from __future__ import annotations

from tests.conformance.model import MANAGED, WHOLE, Cases, get, post
from tests.conformance.objects import (
    claim,
    config_map,
    container,
    cron_job,
    daemon_set,
    deployment,
    ingress,
    job,
    lease,
    namespace,
    node,
    pod,
    priority_class,
    replica_set,
    role,
    secret,
    service,
    stateful_set,
    thing,
    volume,
)

cases = Cases()
INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"

cases("create/configmap-whole", post("configmaps", config_map(a="b"), take=MANAGED))
cases(
    "create/secret-with-string-data",
    post("secrets", secret(stringData={"a": "b"}, data={"c": "ZA=="}), take=MANAGED),
)
cases("create/pod-generation-and-phase", post("pods", pod(), take=["metadata.generation", "status"]))
cases(
    "create/deployment-generation", post("deployments", deployment(), take=["metadata.generation", "status"])
)
cases("create/configmap-has-no-generation", post("configmaps", config_map(), take=["metadata.generation"]))
cases(
    "create/generate-name",
    post(
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "cm-"}},
        take=WHOLE,
        save={"made": "metadata.name"},
    ),
    get("configmaps/{made}", take=["metadata.name"]),
)
cases(
    "create/generate-name-cut-to-fit",
    post(
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c" * 70}},
        has={"metadata.generateName": "c" * 70},
    ),
)
cases(
    "create/generate-name-invalid",
    post(
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "Bad_"}},
        422,
        "Invalid",
        (INVALID, "metadata.generateName"),
        (INVALID, "metadata.name"),
        take=["reason", "details.kind"],
    ),
)
cases(
    "create/name-and-generate-name",
    post("configmaps", config_map("both", {"generateName": "cm-"}), has={"metadata.name": "both"}),
)
cases(
    "create/name-missing",
    post(
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
        422,
        "Invalid",
        (REQUIRED, "metadata.name"),
    ),
)
cases(
    "create/metadata-missing",
    post(
        "configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}, 422, "Invalid", (REQUIRED, "metadata.name")
    ),
)
cases(
    "create/existing",
    post("configmaps", config_map()),
    post("configmaps", config_map(), 409, "AlreadyExists"),
)
cases(
    "create/existing-of-a-group",
    post("deployments", deployment()),
    post("deployments", deployment(), 409, "AlreadyExists"),
)
cases(
    "create/validation-beats-existing",
    post("pods", pod()),
    post("pods", pod(containers=[]), 422, "Invalid", (REQUIRED, "spec.containers")),
)
cases(
    "create/namespace-missing", post("/api/v1/namespaces/{u}-none/configmaps", config_map(), 404, "NotFound")
)
cases(
    "create/namespace-mismatch",
    post("configmaps", config_map("cm", {"namespace": "{ns2}"}), 400, "BadRequest"),
)
cases("create/namespace-filled-in", post("configmaps", config_map(), has={"metadata.namespace": "{ns}"}))
cases(
    "create/namespace-on-cluster-scoped-object-is-dropped",
    post("nodes", node("{u}", {"namespace": "default"}), take=["metadata.namespace"]),
)
cases("create/kind-mismatch", post("configmaps", thing("v1", "Secret", "x"), 400, "BadRequest"))
cases(
    "create/api-version-mismatch",
    post("deployments", thing("apps/v1beta1", "Deployment", "x"), 400, "BadRequest"),
)
cases("create/unknown-kind", post("configmaps", thing("v1", "Frob", "x"), 400, "BadRequest"))
cases(
    "create/kind-missing-is-filled-in",
    post("configmaps", {"apiVersion": "v1", "metadata": {"name": "cm"}}, take=["kind", "apiVersion"]),
)
cases(
    "create/api-version-missing-is-filled-in",
    post("configmaps", {"kind": "ConfigMap", "metadata": {"name": "cm"}}, take=["kind", "apiVersion"]),
)
cases(
    "create/type-missing-entirely",
    post("configmaps", {"metadata": {"name": "cm"}}, take=["kind", "apiVersion"]),
)
cases(
    "create/deployment-type-missing-entirely",
    post(
        "deployments", {"metadata": {"name": "d"}, "spec": deployment()["spec"]}, take=["kind", "apiVersion"]
    ),
)
cases("create/resource-version-set", post("configmaps", config_map("cm", {"resourceVersion": "5"}), 500))
cases("create/resource-version-zero", post("configmaps", config_map("cm", {"resourceVersion": "0"}), 201))
cases(
    "create/uid-set-is-replaced",
    post("configmaps", config_map("cm", {"uid": "fixed"}), take=["metadata.uid"]),
)
cases(
    "create/server-owned-metadata-is-replaced",
    post(
        "configmaps",
        config_map(
            "cm",
            {
                "creationTimestamp": "2001-01-01T00:00:00Z",
                "generation": 9,
                "selfLink": "/x",
                "deletionTimestamp": "2001-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 4,
            },
        ),
        take=WHOLE,
    ),
)
cases(
    "create/deployment-generation-given",
    post("deployments", deployment("d", {"generation": 7}), has={"metadata.generation": 1}),
)
cases(
    "create/bad-label-key",
    post(
        "configmaps",
        config_map("cm", {"labels": {"-bad-": "x"}}),
        422,
        "Invalid",
        (INVALID, "metadata.labels"),
    ),
)
cases(
    "create/bad-label-value",
    post(
        "configmaps",
        config_map("cm", {"labels": {"a": "not ok"}}),
        422,
        "Invalid",
        (INVALID, "metadata.labels"),
    ),
)
cases(
    "create/label-value-too-long",
    post(
        "configmaps",
        config_map("cm", {"labels": {"a": "x" * 64}}),
        422,
        "Invalid",
        (INVALID, "metadata.labels"),
    ),
)
cases(
    "create/bad-annotation-key",
    post(
        "configmaps",
        config_map("cm", {"annotations": {"a b": "x"}}),
        422,
        "Invalid",
        (INVALID, "metadata.annotations"),
    ),
)
cases(
    "create/annotations-too-long",
    post(
        "configmaps",
        config_map("cm", {"annotations": {"a": "x" * (256 * 1024 + 1)}}),
        422,
        "Invalid",
        ("FieldValueTooLong", "metadata.annotations"),
    ),
)
cases(
    "create/bad-finalizer",
    post(
        "configmaps",
        config_map("cm", {"finalizers": ["not qualified!"]}),
        422,
        "Invalid",
        (INVALID, "metadata.finalizers"),
        (INVALID, "metadata.finalizers[0]"),
    ),
)
cases(
    "create/unqualified-finalizer",
    post(
        "configmaps",
        config_map("cm", {"finalizers": ["plain"]}),
        422,
        "Invalid",
        (INVALID, "metadata.finalizers[0]"),
    ),
)
cases(
    "create/owner-reference-incomplete",
    post("configmaps", config_map("cm", {"ownerReferences": [{"kind": "Pod"}]}), 422, "Invalid"),
)
cases(
    "create/two-controllers",
    post(
        "configmaps",
        config_map(
            "cm",
            {
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "ab"
                ]
            },
        ),
        422,
        "Invalid",
        (INVALID, "metadata.ownerReferences"),
    ),
)
cases(
    "create/owned-by-an-event",
    post(
        "configmaps",
        config_map(
            "cm", {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "e"}]}
        ),
        422,
        "Invalid",
    ),
)
cases(
    "create/bad-managed-fields-are-replaced",
    post(
        "configmaps",
        config_map("cm", {"managedFields": [{"manager": "x", "operation": "Frob"}]}),
        take=MANAGED,
    ),
)

for kind, path, body in (
    ("configmap", "configmaps", config_map("Bad_Name")),
    ("configmap-path-like", "configmaps", config_map("a/b")),
    ("configmap-dots", "configmaps", config_map("..")),
    ("configmap-too-long", "configmaps", config_map("c" * 254)),
    ("pod", "pods", pod("Bad_Name")),
    ("pod-too-long", "pods", pod("p" * 254)),
    ("service-with-dot", "services", service("a.b")),
    ("service-too-long", "services", service("s" * 64)),
    ("namespace-with-dot", "namespaces", namespace("{u}.b")),
    ("namespace-too-long", "namespaces", namespace("n" * 64)),
    ("node", "nodes", node("{u}_x")),
    ("deployment", "deployments", deployment("Bad_Name")),
    ("replicaset", "replicasets", replica_set("Bad_Name")),
    ("statefulset", "statefulsets", stateful_set("Bad_Name")),
    ("daemonset", "daemonsets", daemon_set("Bad_Name")),
    ("job-too-long", "jobs", job("j" * 64)),
    ("cronjob-too-long", "cronjobs", cron_job("j" * 53)),
    ("lease", "leases", lease("Bad_Name")),
    ("priorityclass", "priorityclasses", priority_class("{u}_X")),
    ("priorityclass-reserved-prefix", "priorityclasses", priority_class("system-{u}")),
    ("secret", "secrets", secret("Bad_Name")),
    ("ingress", "ingresses", ingress("Bad_Name")),
    ("claim", "persistentvolumeclaims", claim("Bad_Name")),
    ("volume", "persistentvolumes", volume("{u}_X")),
):
    cases(f"create/bad-name-{kind}", post(path, body, 422, "Invalid"))
cases("create/service-name-may-start-with-a-digit", post("services", service("1svc"), take=["metadata.name"]))
cases("create/role-name-may-hold-colons", post("roles", role("system:x:Y"), 201, take=["metadata.name"]))
cases("create/role-name-with-slash", post("roles", role("a/b"), 422, "Invalid", (INVALID, "metadata.name")))

STATUS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
cases("create/pod-status-is-reset", post("pods", {**pod(), "status": STATUS}, take=["status"]))
cases(
    "create/node-status-is-kept",
    post(
        "nodes",
        node(status={"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}),
        take=["status", "spec"],
    ),
)
cases(
    "create/deployment-status-is-dropped",
    post("deployments", {**deployment(), "status": {"replicas": 3}}, take=["status"]),
)
cases(
    "create/namespace-status-is-reset",
    post("namespaces", namespace(status={"phase": "Terminating"}), has={"status.phase": "Active"}),
)
cases(
    "create/service-status-is-dropped",
    post(
        "services",
        {**service(), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        take=["status"],
    ),
)
cases(
    "create/claim-status-is-reset",
    post("persistentvolumeclaims", {**claim(), "status": {"phase": "Bound"}}, take=["status"]),
)

cases(
    "create/dry-run",
    post("configmaps?dryRun=All", config_map(a="b"), 201, take=WHOLE, drop=["metadata.uid"]),
    get("configmaps/cm", 404, "NotFound"),
)
cases(
    "create/dry-run-pod",
    post("pods?dryRun=All", pod(), 201, take=["status", "metadata.name"]),
    get("pods/p", 404, "NotFound"),
)
cases(
    "create/dry-run-of-existing",
    post("configmaps", config_map()),
    post("configmaps?dryRun=All", config_map(), 409, "AlreadyExists"),
)
cases(
    "create/dry-run-invalid-value",
    post("configmaps?dryRun=Some", config_map(), 422, "Invalid", ("FieldValueNotSupported", "dryRun")),
)
cases(
    "create/dry-run-still-validates",
    post("pods?dryRun=All", pod(containers=[]), 422, "Invalid", (REQUIRED, "spec.containers")),
)
cases("create/field-manager", post("configmaps?fieldManager=me", config_map(a="b"), 201, take=MANAGED))
cases(
    "create/field-manager-too-long",
    post(
        "configmaps?fieldManager=" + "m" * 129,
        config_map(),
        422,
        "Invalid",
        ("FieldValueTooLong", "fieldManager"),
    ),
)
cases(
    "create/field-manager-unprintable",
    post("configmaps?fieldManager=a%00b", config_map(), 422, "Invalid", (INVALID, "fieldManager")),
)

EXTRA = {**config_map(a="b"), "frob": 1}
cases("create/unknown-field-strict", post("configmaps?fieldValidation=Strict", EXTRA, 400, "BadRequest"))
cases("create/unknown-field-warn", post("configmaps?fieldValidation=Warn", EXTRA, take=["frob"]))
cases("create/unknown-field-ignore", post("configmaps?fieldValidation=Ignore", EXTRA, take=["frob"]))
cases("create/unknown-field-default-is-warn", post("configmaps", EXTRA, take=["frob"]))
cases(
    "create/field-validation-invalid-value",
    post(
        "configmaps?fieldValidation=Frob",
        EXTRA,
        422,
        "Invalid",
        ("FieldValueNotSupported", "fieldValidation"),
    ),
)
DEEP = pod(containers=[container(frob=1, resources={"x": {}})], frobs=[1])
cases("create/unknown-nested-fields-strict", post("pods?fieldValidation=Strict", DEEP, 400, "BadRequest"))
cases("create/unknown-nested-fields-warn", post("pods?fieldValidation=Warn", DEEP, take=["spec.frobs"]))
TWICE = (
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm","name":"cm"},"data":{"a":"1","a":"2"}}'
)
cases("create/duplicate-field-strict", post("configmaps?fieldValidation=Strict", TWICE, 400, "BadRequest"))
cases("create/duplicate-field-warn", post("configmaps?fieldValidation=Warn", TWICE, take=["data"]))
cases("create/duplicate-field-ignore", post("configmaps?fieldValidation=Ignore", TWICE, take=["data"]))
cases(
    "create/field-name-with-wrong-case-strict",
    post("deployments?fieldValidation=Strict", deployment(Replicas=2), 400, "BadRequest"),
)
cases(
    "create/field-name-with-wrong-case-warn",
    post("deployments", deployment(Replicas=2), take=["spec.replicas"]),
)

for name, path, body in (
    ("string-for-object", "pods", {**pod(), "spec": "x"}),
    ("string-for-list", "pods", pod(containers="x")),
    ("object-for-list", "pods", pod(containers={})),
    ("string-for-integer", "deployments", deployment(replicas="3")),
    ("fraction-for-integer", "deployments", deployment(replicas=1.5)),
    ("integer-for-string", "configmaps", {**config_map(), "data": {"a": 1}}),
    ("integer-for-name", "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 5}}),
    ("string-for-boolean", "pods", pod(hostNetwork="true")),
    ("bad-time", "leases", lease(renewTime="yesterday")),
    ("bad-base64", "secrets", secret(data={"a": "%%"})),
    ("bad-quantity", "pods", pod(containers=[container(resources={"requests": {"cpu": "lots"}})])),
    ("integer-over-32-bits", "deployments", deployment(replicas=2**40)),
    ("list-for-label", "configmaps", config_map("cm", {"labels": {"a": ["x"]}})),
    ("string-for-metadata", "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"}),
):
    cases(f"create/wrong-type-{name}", post(path, body, 400, "BadRequest"))
cases(
    "create/wrong-type-float-with-zero-fraction",
    post(
        "deployments",
        b"""{"apiVersion":"apps/v1","kind":"Deployment",
    "metadata":{"name":"d"},"spec":{"replicas":2.0,"selector":{"matchLabels":{"app":"a"}},
    "template":{"metadata":
    {"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}""",
        400,
        "BadRequest",
    ),
)
cases(
    "create/integer-quantity",
    post(
        "pods",
        pod(containers=[container(resources={"requests": {"cpu": 2}})]),
        has={"spec.containers[0].resources.requests.cpu": "2"},
    ),
)
cases(
    "create/quantity-is-canonical",
    post(
        "pods",
        pod(
            containers=[
                container(
                    resources={
                        "requests": {
                            "cpu": "1000m",
                            "memory": "1024Ki",
                            "ephemeral-storage": "0.5Gi",
                            "example.com/x": "2e0",
                        },
                        "limits": {"example.com/x": "2000m"},
                    }
                )
            ]
        ),
        take=["spec.containers[0].resources"],
    ),
)
cases(
    "create/null-fields-are-absent",
    post("deployments", deployment(replicas=None, strategy=None), take=["spec.replicas", "spec.strategy"]),
)
cases(
    "create/null-list-item",
    post("pods", pod(tolerations=[None]), 422, "Invalid", (INVALID, "spec.tolerations[0].operator")),
)
