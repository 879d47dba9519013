"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import APPLY_PATCH, MANAGED, Cases, get, json_patch, merge, post, strategic
from tests.conformance.objects import config_map, container, deployment, node, plain_pod, service, template

cases = Cases()
INVALID = "FieldValueInvalid"
CM = post("configmaps", config_map(a="1", b="2"))
DATA = ["data", "metadata.resourceVersion"]


def ops(*items: dict[str, Any]) -> Any:
    return list(items)


for name, patch in (
    ("add", ops({"op": "add", "path": "/data/c", "value": "3"})),
    ("add-over-existing", ops({"op": "add", "path": "/data/a", "value": "3"})),
    ("replace", ops({"op": "replace", "path": "/data/a", "value": "9"})),
    ("remove", ops({"op": "remove", "path": "/data/a"})),
    ("copy", ops({"op": "copy", "from": "/data/a", "path": "/data/z"})),
    ("move", ops({"op": "move", "from": "/data/a", "path": "/data/z"})),
    (
        "test-then-replace",
        ops(
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "5"},
        ),
    ),
    # Upstream's JSON patch library is more lenient than RFC 6902 in these two.
    ("replace-missing", ops({"op": "replace", "path": "/data/x", "value": "1"})),
    ("copy-from-missing", ops({"op": "copy", "from": "/data/x", "path": "/data/y"})),
    ("empty", ops()),
    ("replace-object", ops({"op": "replace", "path": "/data", "value": {"z": "1"}})),
    (
        "escaped-key",
        ops(
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/example.com~1x", "value": "v"},
        ),
    ),
):
    cases(f"patch/json-{name}", CM, json_patch("configmaps/cm", patch, take=[*DATA, "metadata.annotations"]))
for name, patch, code, reason in (
    ("test-fails", ops({"op": "test", "path": "/data/a", "value": "7"}), 422, "Invalid"),
    ("test-of-missing-path", ops({"op": "test", "path": "/data/x", "value": "7"}), 422, "Invalid"),
    ("remove-missing", ops({"op": "remove", "path": "/data/x"}), 422, "Invalid"),
    (
        "add-under-missing-parent",
        ops({"op": "add", "path": "/metadata/labels/x", "value": "1"}),
        422,
        "Invalid",
    ),
    ("unknown-operation", ops({"op": "frob", "path": "/data/x"}), 422, "Invalid"),
    ("not-a-list", {"op": "add"}, 400, "BadRequest"),
    ("not-json", b"[{", 400, "BadRequest"),
    ("result-of-wrong-type", ops({"op": "add", "path": "/data/c", "value": 3}), 422, "Invalid"),
):
    cases(
        f"patch/json-{name}",
        CM,
        json_patch("configmaps/cm", patch, code, reason),
        get("configmaps/cm", take=DATA),
    )
cases(
    "patch/json-list-index",
    post("pods", plain_pod()),
    json_patch(
        "pods/p",
        ops({"op": "replace", "path": "/spec/containers/0/image", "value": "x:2"}),
        take=["spec.containers[0].image"],
    ),
)
cases(
    "patch/json-list-append",
    post("nodes", node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})),
    json_patch(
        "nodes/{u}",
        ops({"op": "add", "path": "/spec/taints/-", "value": {"key": "b", "effect": "NoExecute"}}),
        take=["spec.taints"],
    ),
    json_patch(
        "nodes/{u}",
        ops({"op": "add", "path": "/spec/taints/0", "value": {"key": "0", "effect": "NoExecute"}}),
        take=["spec.taints"],
    ),
)
cases(
    "patch/json-list-index-out-of-range",
    post("nodes", node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})),
    json_patch("nodes/{u}", ops({"op": "remove", "path": "/spec/taints/7"}), 422, "Invalid"),
)
cases(
    "patch/json-cannot-rename",
    CM,
    json_patch(
        "configmaps/cm", ops({"op": "replace", "path": "/metadata/name", "value": "other"}), 400, "BadRequest"
    ),
)
cases(
    "patch/json-cannot-change-kind",
    CM,
    json_patch("configmaps/cm", ops({"op": "replace", "path": "/kind", "value": "Secret"}), 422, "Invalid"),
)

cases(
    "patch/merge-adds-changes-removes",
    CM,
    merge(
        "configmaps/cm",
        {"data": {"a": None, "b": "3", "c": "4"}, "metadata": {"labels": {"x": "y"}}},
        take=[*DATA, "metadata.labels", "metadata.managedFields"],
    ),
)
cases(
    "patch/merge-replaces-lists",
    post("pods", plain_pod(containers=[container("a"), container("b")])),
    merge(
        "pods/p",
        {"spec": {"containers": [container("a")]}},
        422,
        "Invalid",
        ("FieldValueForbidden", "spec.containers"),
    ),
)
cases(
    "patch/merge-no-op-keeps-version",
    CM,
    merge("configmaps/cm", {"data": {"a": "1"}}, take=DATA),
    merge("configmaps/cm", {"data": {"a": "1"}}, take=DATA),
)
cases("patch/merge-empty", CM, merge("configmaps/cm", {}, take=DATA))
cases("patch/merge-not-an-object", CM, merge("configmaps/cm", b"[1]", 400, "BadRequest"))
cases("patch/merge-not-json", CM, merge("configmaps/cm", b"{", 400, "BadRequest"))
cases("patch/merge-null-body", CM, merge("configmaps/cm", b"null", 400, "BadRequest"))
cases(
    "patch/merge-wrong-type",
    CM,
    merge("configmaps/cm", {"data": {"a": 5}}, 422, "Invalid", (INVALID, "patch")),
)
cases("patch/merge-missing-object", merge("configmaps/none", {"data": {}}, 404, "NotFound"))
cases("patch/json-missing-object", json_patch("configmaps/none", [], 404, "NotFound"))
cases("patch/strategic-missing-object", strategic("configmaps/none", {}, 404, "NotFound"))
cases(
    "patch/merge-stale-version",
    CM,
    merge("configmaps/cm", {"metadata": {"resourceVersion": "1"}, "data": {"a": "3"}}, 409, "Conflict"),
)
cases(
    "patch/merge-current-version",
    post("configmaps", config_map(a="1"), save={"rv": "metadata.resourceVersion"}),
    merge("configmaps/cm", {"metadata": {"resourceVersion": "{rv}"}, "data": {"a": "3"}}, take=["data"]),
)
cases(
    "patch/merge-other-uid",
    CM,
    merge("configmaps/cm", {"metadata": {"uid": "other"}}, 422, "Invalid", (INVALID, "metadata.uid")),
)
cases(
    "patch/merge-cannot-rename",
    CM,
    merge("configmaps/cm", {"metadata": {"name": "other"}}, 400, "BadRequest"),
)
cases(
    "patch/merge-cannot-move",
    CM,
    merge("configmaps/cm", {"metadata": {"namespace": "{ns2}"}}, 400, "BadRequest"),
)
cases(
    "patch/merge-immutable-field",
    post("deployments", deployment()),
    merge("deployments/d", {"spec": {"selector": {"matchLabels": {"app": "z"}}}}, 422, "Invalid"),
)
cases(
    "patch/merge-unknown-field-strict",
    CM,
    merge("configmaps/cm?fieldValidation=Strict", {"frob": 1}, 422, "Invalid"),
)
cases(
    "patch/merge-unknown-field-warn", CM, merge("configmaps/cm?fieldValidation=Warn", {"frob": 1}, take=DATA)
)
cases(
    "patch/merge-dry-run",
    CM,
    merge("configmaps/cm?dryRun=All", {"data": {"a": "3"}}, take=DATA),
    get("configmaps/cm", take=DATA),
)
cases(
    "patch/merge-field-manager",
    CM,
    merge("configmaps/cm?fieldManager=me", {"data": {"c": "3"}}, take=["metadata.managedFields"]),
)
cases(
    "patch/merge-force-not-allowed",
    CM,
    merge("configmaps/cm?force=true", {"data": {"c": "3"}}, 422, "Invalid", ("FieldValueForbidden", "force")),
)
cases(
    "patch/merge-status-on-main-is-ignored",
    post("deployments", deployment()),
    merge(
        "deployments/d",
        {"status": {"replicas": 3}},
        take=["status", "metadata.generation", "metadata.resourceVersion"],
    ),
)
cases(
    "patch/merge-spec-on-status-is-ignored",
    post("deployments", deployment()),
    merge(
        "deployments/d/status",
        {"spec": {"replicas": 3}, "status": {"replicas": 3}},
        take=["status", "spec.replicas", "metadata.generation"],
    ),
)
cases(
    "patch/merge-labels-on-status",
    post("pods", plain_pod()),
    merge(
        "pods/p/status",
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "status": {"message": "m"}},
        take=["metadata.labels", "metadata.annotations", "status.message"],
    ),
)
cases(
    "patch/merge-finalizers",
    CM,
    merge("configmaps/cm", {"metadata": {"finalizers": ["example.com/x"]}}, take=["metadata.finalizers"]),
)
cases(
    "patch/yaml-merge-is-unsupported",
    CM,
    merge(
        "configmaps/cm",
        b"data: {a: x}",
        415,
        "UnsupportedMediaType",
        content_type="application/merge-patch+yaml",
    ),
)

TWO = post(
    "pods",
    plain_pod(containers=[container("a"), container("b")], tolerations=[{"key": "k", "operator": "Exists"}]),
)
cases(
    "patch/strategic-merges-containers-by-name",
    TWO,
    strategic(
        "pods/p",
        {"spec": {"containers": [{"name": "b", "image": "x:2"}]}},
        take=["spec.containers.*.name", "spec.containers.*.image"],
    ),
)
D = post(
    "deployments",
    deployment(
        template=template(
            containers=[
                container(
                    "a",
                    env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    ports=[{"containerPort": 80, "name": "web"}],
                ),
                container("b"),
            ],
            volumes=[{"name": "v", "emptyDir": {}}],
            tolerations=[{"key": "k", "operator": "Exists"}],
            nodeSelector={"a": "b"},
        )
    ),
)


def in_pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


POD = "spec.template.spec."
for name, patch, fields in (
    (
        "env-by-name",
        in_pod(containers=[{"name": "a", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]),
        ["containers[0].env"],
    ),
    (
        "ports-by-number",
        in_pod(containers=[{"name": "a", "ports": [{"containerPort": 81, "name": "x"}]}]),
        ["containers[0].ports"],
    ),
    ("new-container-goes-in-front", in_pod(containers=[container("z")]), ["containers.*.name"]),
    ("delete-container", in_pod(containers=[{"name": "a", "$patch": "delete"}]), ["containers.*.name"]),
    ("replace-containers", in_pod(containers=[{"$patch": "replace"}, container("n")]), ["containers.*.name"]),
    ("replace-object", in_pod(nodeSelector={"$patch": "replace", "x": "y"}), ["nodeSelector"]),
    ("delete-object", in_pod(nodeSelector={"$patch": "delete"}), ["nodeSelector"]),
    ("merge-object", in_pod(nodeSelector={"x": "y", "a": None}), ["nodeSelector"]),
    ("atomic-list-is-replaced", in_pod(tolerations=[{"key": "z", "operator": "Exists"}]), ["tolerations"]),
    ("null-removes-list", in_pod(tolerations=None), ["tolerations"]),
    (
        "element-order",
        in_pod(
            **{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            containers=[{"name": "a", "image": "q:1"}],
        ),
        ["containers.*.name", "containers.*.image"],
    ),
    (
        "retain-keys-of-volume",
        in_pod(volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "cm"}}]),
        ["volumes"],
    ),
    (
        "delete-env",
        in_pod(containers=[{"name": "a", "env": [{"name": "A", "$patch": "delete"}]}]),
        ["containers[0].env"],
    ),
    (
        "volume-merge-keeps-both-sources",
        in_pod(volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}]),
        ["volumes"],
    ),
):
    cases(
        f"patch/strategic-{name}",
        D,
        strategic("deployments/d", patch, take=[POD + field for field in fields]),
    )
cases(
    "patch/strategic-retain-keys-of-strategy",
    D,
    strategic(
        "deployments/d",
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        take=["spec.strategy"],
    ),
)
cases(
    "patch/strategic-strategy-without-retain-keys",
    D,
    strategic("deployments/d", {"spec": {"strategy": {"type": "Recreate"}}}, 422, "Invalid"),
)
cases(
    "patch/strategic-two-volume-sources",
    D,
    strategic("deployments/d", in_pod(volumes=[{"name": "v", "configMap": {"name": "cm"}}]), 422, "Invalid"),
)
cases(
    "patch/strategic-item-without-merge-key",
    D,
    strategic("deployments/d", in_pod(containers=[{"image": "x"}]), 500),
)
cases(
    "patch/strategic-unknown-directive",
    D,
    strategic("deployments/d", in_pod(nodeSelector={"$patch": "frob"}), 500),
)
cases(
    "patch/strategic-finalizers-are-a-set",
    post("configmaps", config_map("cm", {"finalizers": ["example.com/a", "example.com/b"]})),
    strategic(
        "configmaps/cm",
        {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}},
        take=["metadata.finalizers"],
    ),
    strategic(
        "configmaps/cm",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}},
        take=["metadata.finalizers"],
    ),
)
cases(
    "patch/strategic-primitive-order",
    post("configmaps", config_map("cm", {"finalizers": ["example.com/a", "example.com/b"]})),
    strategic(
        "configmaps/cm",
        {
            "metadata": {
                "$setElementOrder/finalizers": ["example.com/b", "example.com/c", "example.com/a"],
                "finalizers": ["example.com/c"],
            }
        },
        take=["metadata.finalizers"],
    ),
)
cases(
    "patch/strategic-service-ports-by-port",
    post("services", service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])),
    strategic(
        "services/svc",
        {"spec": {"ports": [{"port": 81, "name": "c"}, {"port": 82, "name": "d"}]}},
        take=["spec.ports"],
    ),
)
cases(
    "patch/strategic-node-conditions-by-type",
    post(
        "nodes",
        node(
            status={
                "conditions": [
                    {"type": "Ready", "status": "False"},
                    {"type": "MemoryPressure", "status": "False"},
                ]
            }
        ),
    ),
    strategic(
        "nodes/{u}/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "ok"}]}},
        take=["status.conditions"],
    ),
)
cases(
    "patch/strategic-node-addresses-by-type",
    post(
        "nodes",
        node(
            status={
                "addresses": [
                    {"type": "InternalIP", "address": "1.1.1.1"},
                    {"type": "Hostname", "address": "h"},
                ]
            }
        ),
    ),
    strategic(
        "nodes/{u}/status",
        {"status": {"addresses": [{"type": "InternalIP", "address": "2.2.2.2"}]}},
        take=["status.addresses"],
    ),
)
cases(
    "patch/strategic-node-taints-are-replaced",
    post("nodes", node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})),
    strategic(
        "nodes/{u}", {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}, take=["spec.taints"]
    ),
)
cases(
    "patch/strategic-owner-references-by-uid",
    post(
        "configmaps",
        config_map("cm", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a"}]}),
    ),
    strategic(
        "configmaps/cm",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "b"}]}},
        take=["metadata.ownerReferences"],
    ),
    strategic(
        "configmaps/cm",
        {"metadata": {"ownerReferences": [{"uid": "a", "$patch": "delete"}]}},
        take=["metadata.ownerReferences"],
    ),
)
cases(
    "patch/strategic-pod-conditions",
    post("pods", plain_pod()),
    strategic(
        "pods/p/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, take=["status"]
    ),
    strategic(
        "pods/p/status",
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
        take=["status"],
    ),
    strategic(
        "pods/p/status",
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "Ready"}],
                "conditions": [{"type": "Ready", "status": "False"}],
            }
        },
        take=["status"],
    ),
)
cases(
    "patch/strategic-managed-fields",
    D,
    strategic("deployments/d?fieldManager=me", {"spec": {"replicas": 4}}, take=MANAGED),
)
cases("patch/strategic-not-json", D, strategic("deployments/d", b"{", 400, "BadRequest"))
cases(
    "patch/strategic-wrong-type",
    D,
    strategic("deployments/d", {"spec": {"replicas": "x"}}, 422, "Invalid", (INVALID, "patch")),
)
cases(
    "patch/apply-type-with-json-suffix",
    CM,
    merge("configmaps/cm?fieldManager=m", config_map(), 415, content_type="application/apply-patch+json"),
)
cases(
    "patch/managed-fields-can-be-reset",
    CM,
    merge("configmaps/cm", {"metadata": {"managedFields": [{}]}}, take=["metadata.managedFields"]),
)
cases(
    "patch/apply-with-charset",
    merge("configmaps/cm?fieldManager=m", config_map(), 201, content_type=APPLY_PATCH + "; charset=utf-8"),
)
