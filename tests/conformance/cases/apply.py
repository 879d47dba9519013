"""Server-side apply: ownership, conflicts, lists as maps and sets, subresources."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import MANAGED, Cases, apply, get, merge, post, put
from tests.conformance.objects import (
    config_map,
    container,
    deployment,
    lease,
    node,
    plain_pod,
    service,
    template,
    thing,
)

cases = Cases()
CONFLICT = "FieldManagerConflict"
OWNED = ["data", "metadata.labels", "metadata.managedFields"]


def cm(**data: str) -> dict[str, Any]:
    return config_map("cm", None, **data)


A, B = "configmaps/cm?fieldManager=a", "configmaps/cm?fieldManager=b"
cases("apply/creates", apply(A, cm(x="1"), 201, take=MANAGED))
cases(
    "apply/again-changes-nothing",
    apply(A, cm(x="1"), 201, take=["metadata.resourceVersion"]),
    apply(A, cm(x="1"), take=["metadata.resourceVersion", "metadata.managedFields"]),
)
cases("apply/changes-own-field", apply(A, cm(x="1"), 201), apply(A, cm(x="2"), take=OWNED))
cases("apply/removes-own-field", apply(A, cm(x="1", y="2"), 201), apply(A, cm(x="1"), take=OWNED))
cases("apply/second-manager-adds", apply(A, cm(x="1"), 201), apply(B, cm(y="2"), take=OWNED))
cases("apply/second-manager-shares", apply(A, cm(x="1"), 201), apply(B, cm(x="1"), take=OWNED))
cases(
    "apply/shared-field-stays-when-one-leaves",
    apply(A, cm(x="1"), 201),
    apply(B, cm(x="1")),
    apply(A, cm(), take=OWNED),
)
cases(
    "apply/shared-field-goes-with-the-last",
    apply(A, cm(x="1"), 201),
    apply(B, cm(x="1")),
    apply(A, cm()),
    apply(B, cm(), take=OWNED),
)
cases(
    "apply/conflict",
    apply(A, cm(x="1"), 201),
    apply(B, cm(x="2"), 409, "Conflict", (CONFLICT, ".data.x")),
    get("configmaps/cm", take=OWNED),
)
cases(
    "apply/conflict-on-two-fields",
    apply(A, cm(x="1", y="1"), 201),
    apply(B, cm(x="2", y="2"), 409, "Conflict", (CONFLICT, ".data.x"), (CONFLICT, ".data.y")),
)
cases(
    "apply/conflict-with-two-managers",
    apply(A, cm(x="1"), 201),
    apply(B, cm(x="1")),
    apply("configmaps/cm?fieldManager=c", cm(x="2"), 409, "Conflict", (CONFLICT, ".data.x")),
)
cases("apply/conflict-forced", apply(A, cm(x="1"), 201), apply(B + "&force=true", cm(x="2"), take=OWNED))
cases(
    "apply/conflict-with-update",
    post("configmaps", cm(x="1")),
    apply(A, cm(x="2"), 409, "Conflict", (CONFLICT, ".data.x")),
    apply(A, cm(x="1"), take=OWNED),
)
cases(
    "apply/update-takes-ownership",
    apply(A, cm(x="1"), 201),
    put("configmaps/cm", cm(x="2"), take=OWNED),
    apply(A, cm(x="3"), 409, "Conflict", (CONFLICT, ".data.x")),
)
cases(
    "apply/update-of-same-value-shares-nothing",
    apply(A, cm(x="1"), 201),
    put("configmaps/cm", cm(x="1"), take=OWNED),
)
cases(
    "apply/patch-removes-owned-field",
    apply(A, cm(x="1", y="2"), 201),
    merge("configmaps/cm", {"data": {"y": None}}, take=OWNED),
)
cases(
    "apply/without-manager",
    apply("configmaps/cm", cm(x="1"), 422, "Invalid", ("FieldValueRequired", "fieldManager")),
)
cases(
    "apply/with-managed-fields",
    apply(
        A,
        {
            **cm(),
            "metadata": {
                "name": "cm",
                "managedFields": [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}],
            },
        },
        400,
        "BadRequest",
    ),
)
cases("apply/force-maybe", apply(A + "&force=maybe", cm(x="1"), 201))
cases("apply/name-mismatch", apply(A, config_map("other"), 400, "BadRequest"))
cases(
    "apply/name-missing",
    apply(A, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}}, 400, "BadRequest"),
)
cases("apply/kind-missing", apply(A, {"apiVersion": "v1", "metadata": {"name": "cm"}}, 400, "BadRequest"))
cases(
    "apply/api-version-missing",
    apply(A, {"kind": "ConfigMap", "metadata": {"name": "cm"}}, 400, "BadRequest"),
)
cases("apply/kind-mismatch", apply(A, thing("v1", "Secret", "cm"), 400, "BadRequest"))
cases(
    "apply/group-mismatch",
    apply("deployments/d?fieldManager=a", {**deployment(), "apiVersion": "v1"}, 400, "BadRequest"),
)
cases("apply/not-yaml", apply(A, b"{: [", 400, "BadRequest"))
cases(
    "apply/yaml",
    apply(A, b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\ndata:\n  x: 'y'\n", 201, take=OWNED),
)
cases("apply/wrong-type", apply(A, {**cm(), "data": {"x": 1}}, 500))
cases("apply/unknown-field", apply(A, {**cm(), "frob": 1}, 500))
cases("apply/unknown-field-strict", apply(A + "&fieldValidation=Strict", {**cm(), "frob": 1}, 500))
cases(
    "apply/dry-run",
    apply(A + "&dryRun=All", cm(x="1"), 201, take=OWNED),
    get("configmaps/cm", 404, "NotFound"),
)
cases(
    "apply/resource-version-on-create", apply(A, config_map("cm", {"resourceVersion": "5"}), 201, take=OWNED)
)
cases(
    "apply/stale-resource-version",
    apply(A, cm(x="1"), 201),
    apply(A, config_map("cm", {"resourceVersion": "1"}, x="2"), 409, "Conflict"),
)
cases("apply/uid-on-create", apply(A, config_map("cm", {"uid": "x"}), 409, "Conflict"))
cases(
    "apply/labels-of-two-managers",
    apply(A, config_map("cm", {"labels": {"a": "1"}}), 201),
    apply(B, config_map("cm", {"labels": {"b": "1"}}), take=OWNED),
    apply(A, config_map("cm"), take=OWNED),
)
cases("apply/null-value", apply(A, {**cm(), "data": {"x": None}}, 201, take=OWNED))
cases("apply/empty-map", apply(A, {**cm(), "data": {}}, 201, take=OWNED))
cases(
    "apply/finalizers-are-a-set",
    apply(A, config_map("cm", {"finalizers": ["example.com/a"]}), 201),
    apply(
        B,
        config_map("cm", {"finalizers": ["example.com/b"]}),
        take=["metadata.finalizers", "metadata.managedFields"],
    ),
    apply(A, cm(), take=["metadata.finalizers", "metadata.managedFields"]),
)
cases(
    "apply/in-missing-namespace",
    apply("/api/v1/namespaces/{u}-none/configmaps/cm?fieldManager=a", cm(), 404, "NotFound"),
)
cases(
    "apply/invalid-object",
    apply(
        "pods/p?fieldManager=a",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}},
        422,
        "Invalid",
    ),
)

DA, DB = "deployments/d?fieldManager=a", "deployments/d?fieldManager=b"
MF = "metadata.managedFields"
cases("apply/deployment", apply(DA, deployment(replicas=2), 201, take=[MF, "metadata.generation"]))
cases(
    "apply/defaults-are-not-owned",
    apply(DA, deployment(), 201, take=[MF]),
    apply(
        DB,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 5}},
        take=[MF, "spec.replicas"],
    ),
)
cases(
    "apply/replicas-given-up-keep-their-value",
    apply(DA, deployment(replicas=4), 201),
    apply(DA, deployment(), take=["spec.replicas", "metadata.generation"]),
)
cases(
    "apply/scale-subresource-takes-replicas",
    apply(DA, deployment(replicas=4), 201),
    put(
        "deployments/d/scale",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "d", "namespace": "{ns}"},
            "spec": {"replicas": 6},
        },
        take=["spec"],
    ),
    get("deployments/d", take=[MF, "spec.replicas"]),
)
TWO = deployment(
    template=template(containers=[container("a"), container("b", env=[{"name": "X", "value": "1"}])])
)
ONE = deployment(template=template(containers=[container("a")]))
cases(
    "apply/container-dropped-from-the-list",
    apply(DA, TWO, 201),
    apply(DA, ONE, take=["spec.template.spec.containers.*.name"]),
)
cases(
    "apply/second-manager-adds-a-container",
    apply(DA, ONE, 201),
    apply(
        DB,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"template": {"spec": {"containers": [container("z")]}}},
        },
        take=["spec.template.spec.containers.*.name", MF],
    ),
    apply(
        DA,
        deployment(template=template(containers=[container("a", image="x:2")])),
        take=["spec.template.spec.containers.*.name", "spec.template.spec.containers.*.image"],
    ),
)
cases(
    "apply/second-manager-adds-env",
    apply(DA, TWO, 201),
    apply(
        DB,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "template": {"spec": {"containers": [{"name": "b", "env": [{"name": "Y", "value": "2"}]}]}}
            },
        },
        take=["spec.template.spec.containers[1].env", MF],
    ),
)
cases(
    "apply/container-image-conflict",
    apply(DA, ONE, 201),
    apply(
        DB,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "y:1"}]}}},
        },
        409,
        "Conflict",
        (CONFLICT, '.spec.template.spec.containers[name="a"].image'),
    ),
)
cases(
    "apply/duplicate-list-key",
    apply(DA, deployment(template=template(containers=[container("a"), container("a")])), 500),
)
cases(
    "apply/list-item-without-key",
    apply(DA, deployment(template=template(containers=[{"image": "x"}])), 422, "Invalid"),
)
cases(
    "apply/container-order-of-the-applied-list",
    apply(DA, TWO, 201),
    apply(
        DA,
        deployment(template=template(containers=[container("b"), container("n"), container("a")])),
        take=["spec.template.spec.containers.*.name"],
    ),
)
cases(
    "apply/ports-by-number-and-protocol",
    apply(
        "services/svc?fieldManager=a",
        service(ports=[{"port": 53, "name": "t", "protocol": "TCP"}]),
        201,
        take=["spec.ports", MF],
    ),
    apply(
        "services/svc?fieldManager=b",
        thing("v1", "Service", "svc", spec={"ports": [{"port": 53, "name": "u", "protocol": "UDP"}]}),
        take=["spec.ports", MF],
    ),
)
cases(
    "apply/service-ports-without-protocol",
    apply("services/svc?fieldManager=a", service(), 201, take=[MF]),
    apply("services/svc?fieldManager=a", service(ports=[{"port": 81}]), take=["spec.ports"]),
)
cases(
    "apply/pod",
    apply(
        "pods/p?fieldManager=a", plain_pod(tolerations=[{"key": "k", "operator": "Exists"}]), 201, take=[MF]
    ),
)
cases(
    "apply/lease",
    apply("leases/l?fieldManager=a", lease(holderIdentity="x", leaseDurationSeconds=5), 201, take=[MF]),
)
cases(
    "apply/pod-status",
    post("pods", plain_pod()),
    apply(
        "pods/p/status?fieldManager=s",
        thing(
            "v1", "Pod", "p", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        ),
        take=["status", MF],
    ),
)
cases(
    "apply/node-status-conditions-of-two-managers",
    post("nodes", node()),
    apply(
        "nodes/{u}/status?fieldManager=a",
        thing("v1", "Node", "{u}", status={"conditions": [{"type": "A", "status": "True"}]}),
        take=["status.conditions", MF],
    ),
    apply(
        "nodes/{u}/status?fieldManager=b",
        thing("v1", "Node", "{u}", status={"conditions": [{"type": "B", "status": "True"}]}),
        take=["status.conditions", MF],
    ),
    apply(
        "nodes/{u}/status?fieldManager=a",
        thing("v1", "Node", "{u}", status={}),
        take=["status.conditions", MF],
    ),
)
cases(
    "apply/status-on-main-resource-is-not-owned",
    apply(DA, {**deployment(), "status": {"replicas": 3}}, 201, take=["status", MF]),
)
cases(
    "apply/status-of-missing-object",
    apply(
        "deployments/d/status?fieldManager=a", {**deployment(), "status": {"replicas": 1}}, 404, "NotFound"
    ),
)
cases(
    "apply/deployment-status",
    post("deployments", deployment()),
    apply(
        "deployments/d/status?fieldManager=s",
        {**thing("apps/v1", "Deployment", "d"), "status": {"replicas": 2}},
        take=["status", "spec.replicas", MF],
    ),
)
cases(
    "apply/node-taints-are-atomic",
    post("nodes", node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})),
    apply(
        "nodes/{u}?fieldManager=x",
        node(spec={"taints": [{"key": "b", "effect": "NoSchedule"}]}),
        409,
        "Conflict",
    ),
)
cases(
    "apply/to-an-object-made-by-update-then-owned",
    post("deployments", deployment(replicas=3)),
    apply(DA + "&force=true", deployment(replicas=5), take=["spec.replicas", MF]),
    merge("deployments/d?fieldManager=b", {"spec": {"replicas": 7}}, take=[MF]),
    apply(DA, deployment(), take=["spec.replicas", MF]),
)
