"""Status and scale of every kind that has them, tokens, finalize, proxies."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, delete, get, json_patch, merge, post, put, strategic
from tests.conformance.objects import (
    autoscaler,
    budget,
    claim,
    cron_job,
    daemon_set,
    deployment,
    ingress,
    job,
    namespace,
    node,
    plain_pod,
    replica_set,
    replication_controller,
    service,
    stateful_set,
    thing,
    volume,
)

cases = Cases()
INVALID = "FieldValueInvalid"

for plural, body, status in (
    ("deployments", deployment(), {"replicas": 2, "readyReplicas": 1, "observedGeneration": 1}),
    ("replicasets", replica_set(), {"replicas": 2, "fullyLabeledReplicas": 2}),
    ("statefulsets", stateful_set(), {"replicas": 2, "currentRevision": "x"}),
    (
        "daemonsets",
        daemon_set(),
        {"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 0},
    ),
    ("replicationcontrollers", replication_controller(), {"replicas": 3}),
    ("jobs", job(), {"active": 1, "startTime": "2020-01-01T00:00:00Z"}),
    ("cronjobs", cron_job(), {"lastScheduleTime": "2020-01-01T00:00:00Z"}),
    ("horizontalpodautoscalers", autoscaler(), {"currentReplicas": 1, "desiredReplicas": 2}),
    (
        "poddisruptionbudgets",
        budget(maxUnavailable=1),
        {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1},
    ),
    ("services", service(type="LoadBalancer"), {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}),
    ("ingresses", ingress(), {"loadBalancer": {"ingress": [{"hostname": "x.example.com"}]}}),
    ("persistentvolumeclaims", claim(), {"phase": "Bound", "capacity": {"storage": "1Gi"}}),
    ("persistentvolumes", volume(), {"phase": "Available"}),
    ("namespaces", namespace(), {"phase": "Active", "conditions": [{"type": "X", "status": "True"}]}),
    ("nodes", node(), {"capacity": {"cpu": "4"}, "nodeInfo": {"kubeletVersion": "v1"}}),
    (
        "pods",
        plain_pod(),
        {
            "phase": "Running",
            "containerStatuses": [
                {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": ""}
            ],
        },
    ),
):
    name = body["metadata"]["name"]
    cases(
        f"status/of-{plural}",
        post(plural, body),
        merge(f"{plural}/{name}/status", {"status": status}, take=["status"]),
        get(f"{plural}/{name}/status", take=["kind", "status"]),
    )
cases(
    "status/negative-replicas",
    post("deployments", deployment()),
    merge(
        "deployments/d/status",
        {"status": {"replicas": -1}},
        422,
        "Invalid",
        *(
            (INVALID, f"status.{field}")
            for field in ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")
        ),
    ),
)
cases(
    "status/ready-more-than-replicas",
    post("deployments", deployment()),
    merge(
        "deployments/d/status",
        {"status": {"replicas": 1, "readyReplicas": 2}},
        422,
        "Invalid",
        (INVALID, "status.readyReplicas"),
    ),
)
cases(
    "status/pod-condition-without-type",
    post("pods", plain_pod()),
    merge(
        "pods/p/status",
        {"status": {"conditions": [{"status": "True"}]}},
        422,
        "Invalid",
        (INVALID, "status.conditions[0].Type"),
    ),
)
cases(
    "status/node-negative-capacity",
    post("nodes", node()),
    merge("nodes/{u}/status", {"status": {"capacity": {"cpu": "-1"}}}, 422, "Invalid"),
)
cases(
    "status/dry-run",
    post("deployments", deployment()),
    merge("deployments/d/status?dryRun=All", {"status": {"replicas": 1}}, take=["status"]),
    get("deployments/d", take=["status"]),
)


def scale(replicas: int, name: str = "d", **metadata: Any) -> dict[str, Any]:
    return thing(
        "autoscaling/v1", "Scale", name, {"namespace": "{ns}", **metadata}, spec={"replicas": replicas}
    )


for plural, body in (
    ("deployments", deployment(replicas=2)),
    ("replicasets", replica_set(replicas=2)),
    ("statefulsets", stateful_set(replicas=2)),
    ("replicationcontrollers", replication_controller(replicas=2)),
):
    name = body["metadata"]["name"]
    cases(f"scale/get-{plural}", post(plural, body), get(f"{plural}/{name}/scale", take=WHOLE))
    cases(
        f"scale/put-{plural}",
        post(plural, body),
        put(f"{plural}/{name}/scale", scale(5, name), take=WHOLE),
        get(f"{plural}/{name}", take=["spec.replicas", "metadata.generation"]),
    )
    cases(
        f"scale/patch-{plural}",
        post(plural, body),
        merge(f"{plural}/{name}/scale", {"spec": {"replicas": 7}}, take=["spec"]),
        get(f"{plural}/{name}", take=["spec.replicas"]),
    )
cases(
    "scale/negative",
    post("deployments", deployment()),
    put("deployments/d/scale", scale(-1), 422, "Invalid", (INVALID, "spec.replicas")),
)
cases("scale/missing", get("deployments/none/scale", 404, "NotFound"))
cases("scale/put-missing", put("deployments/none/scale", scale(1, "none"), 404, "NotFound"))
cases(
    "scale/stale-version",
    post("deployments", deployment(), save={"rv": "metadata.resourceVersion"}),
    merge("deployments/d", {"spec": {"replicas": 3}}),
    put("deployments/d/scale", scale(4, resourceVersion="{rv}"), 409, "Conflict"),
)
cases(
    "scale/wrong-kind",
    post("deployments", deployment()),
    put("deployments/d/scale", deployment(), 400, "BadRequest"),
)
cases(
    "scale/name-mismatch",
    post("deployments", deployment()),
    put("deployments/d/scale", scale(1, "x"), 400, "BadRequest"),
)
cases(
    "scale/json-patch",
    post("deployments", deployment()),
    json_patch(
        "deployments/d/scale", [{"op": "replace", "path": "/spec/replicas", "value": 3}], take=["spec"]
    ),
)
cases(
    "scale/strategic-patch",
    post("deployments", deployment()),
    strategic("deployments/d/scale", {"spec": {"replicas": 3}}, take=["spec"]),
)
cases(
    "scale/same-replicas-still-moves-the-version",
    post("deployments", deployment(replicas=2), take=["metadata.resourceVersion"]),
    put("deployments/d/scale", scale(2), take=["metadata.resourceVersion"]),
)
cases(
    "scale/status-selector-of-set-expressions",
    post(
        "deployments",
        deployment(selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}),
    ),
    get("deployments/d/scale", take=["status"]),
)
cases("scale/of-daemonset", post("daemonsets", daemon_set()), get("daemonsets/ds/scale", 404, "NotFound"))
cases(
    "scale/dry-run",
    post("deployments", deployment()),
    put("deployments/d/scale?dryRun=All", scale(9), take=["spec"]),
    get("deployments/d", take=["spec.replicas"]),
)


def token_request(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


cases(
    "token/create",
    post(
        "serviceaccounts/default/token",
        token_request(),
        take=["kind", "apiVersion", "spec", "status.expirationTimestamp", "status.keys()", "metadata"],
    ),
)
cases(
    "token/expiration",
    post("serviceaccounts/default/token", token_request(expirationSeconds=7200), take=["spec"]),
)
cases(
    "token/expiration-too-short",
    post(
        "serviceaccounts/default/token",
        token_request(expirationSeconds=5),
        422,
        "Invalid",
        (INVALID, "spec.expirationSeconds"),
    ),
)
cases(
    "token/expiration-too-long",
    post(
        "serviceaccounts/default/token",
        token_request(expirationSeconds=2**33),
        422,
        "Invalid",
        (INVALID, "spec.expirationSeconds"),
    ),
)
cases(
    "token/audiences",
    post("serviceaccounts/default/token", token_request(audiences=["a", "b"]), take=["spec"]),
)
cases("token/missing-account", post("serviceaccounts/none/token", token_request(), 404, "NotFound"))
cases(
    "token/bound-to-a-pod",
    post("pods", plain_pod(), save={"uid": "metadata.uid"}),
    post(
        "serviceaccounts/default/token",
        token_request(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "{uid}"}),
        take=["spec"],
    ),
)
cases(
    "token/bound-to-a-missing-pod",
    post(
        "serviceaccounts/default/token",
        token_request(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "x"}),
        404,
        "NotFound",
    ),
)
cases(
    "token/bound-to-other-uid",
    post("pods", plain_pod()),
    post(
        "serviceaccounts/default/token",
        token_request(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "z"}),
        409,
        "Conflict",
    ),
)
cases(
    "token/bound-to-unsupported-kind",
    post(
        "serviceaccounts/default/token",
        token_request(boundObjectRef={"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}),
        400,
        "BadRequest",
    ),
)
cases(
    "token/is-accepted",
    post("serviceaccounts/default/token", token_request(), save={"t": "status.token"}),
    post(
        "selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
        headers={"Authorization": "Bearer {t}"},
        has={"status.userInfo.username": "system:serviceaccount:{ns}:default"},
        take=["status.userInfo.groups"],
    ),
)

cases(
    "finalize/namespace-goes-with-its-finalizers",
    post("namespaces", namespace(), save={"o": ""}),
    delete("namespaces/{u}"),
    put(
        "namespaces/{u}/finalize",
        namespace(spec={"finalizers": []}),
        take=["spec", "status.phase", "metadata.name"],
    ),
    get("namespaces/{u}", 404, "NotFound"),
)
cases(
    "finalize/active-namespace-keeps-living",
    post("namespaces", namespace()),
    put(
        "namespaces/{u}/finalize",
        namespace(spec={"finalizers": ["example.com/f"]}),
        take=["spec", "status.phase"],
    ),
    get("namespaces/{u}", take=["spec"]),
)
cases("finalize/missing-namespace", put("namespaces/{u}/finalize", namespace(), 404, "NotFound"))
cases(
    "finalize/bad-finalizer",
    post("namespaces", namespace()),
    put("namespaces/{u}/finalize", namespace(spec={"finalizers": ["no good"]}), 422, "Invalid"),
)
cases("proxy/missing-node", get("/api/v1/nodes/{u}/proxy/pods", 404, "NotFound"))
cases("proxy/missing-pod", get("pods/none/proxy/", 404, "NotFound"))
cases("exec/get-without-upgrade", post("pods", plain_pod()), get("pods/p/exec?command=x", 400, "BadRequest"))
