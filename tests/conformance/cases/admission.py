"""What admission adds or refuses, and how events of both groups are one."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, delete, get, merge, post, put
from tests.conformance.objects import (
    claim,
    config_map,
    container,
    deployment,
    namespace,
    node,
    plain_pod,
    pod,
    priority_class,
    service,
    thing,
)

cases = Cases()

cases(
    "admission/terminating-namespace",
    delete("/api/v1/namespaces/{ns}"),
    post("configmaps", config_map(), 403, "Forbidden", ("NamespaceTerminating", "metadata.namespace")),
)
cases(
    "admission/terminating-namespace-allows-updates",
    post("configmaps", config_map()),
    delete("/api/v1/namespaces/{ns}"),
    merge("configmaps/cm", {"data": {"a": "b"}}),
    delete("configmaps/cm"),
)
cases("admission/protected-namespace", delete("/api/v1/namespaces/kube-system", None, 403, "Forbidden"))
cases("admission/protected-default-namespace", delete("/api/v1/namespaces/default", None, 403, "Forbidden"))
cases(
    "admission/namespace-name-label-is-restored",
    post(
        "namespaces",
        namespace("{u}", {"labels": {"kubernetes.io/metadata.name": "x"}}),
        take=["metadata.labels"],
    ),
)

cases(
    "admission/priority-zero-without-class",
    post("pods", plain_pod(), take=["spec.priority", "spec.preemptionPolicy"]),
)
cases(
    "admission/unknown-priority-class",
    post("pods", plain_pod(priorityClassName="{u}-none"), 403, "Forbidden"),
)
cases(
    "admission/priority-of-its-class",
    post("priorityclasses", priority_class(value=77, preemptionPolicy="Never")),
    post(
        "pods",
        plain_pod(priorityClassName="{u}"),
        poll=True,
        take=["spec.priority", "spec.preemptionPolicy", "spec.priorityClassName"],
    ),
)
cases("admission/priority-number-given", post("pods", plain_pod(priority=5), 403, "Forbidden"))
cases("admission/priority-number-matching-zero", post("pods", plain_pod(priority=0), take=["spec.priority"]))
cases(
    "admission/system-priority-class",
    post(
        "pods",
        plain_pod(priorityClassName="system-cluster-critical"),
        poll=True,
        take=["spec.priority", "spec.priorityClassName"],
    ),
)
cases(
    "admission/template-with-unknown-priority-class-is-stored",
    post(
        "deployments",
        deployment(
            template={
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [container()], "priorityClassName": "{u}-none"},
            }
        ),
    ),
)
cases("admission/default-tolerations", post("pods", plain_pod(), take=["spec.tolerations"]))
cases(
    "admission/default-tolerations-not-doubled",
    post(
        "pods",
        plain_pod(
            tolerations=[
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
            ]
        ),
        take=["spec.tolerations"],
    ),
)
cases(
    "admission/extended-resource-adds-no-toleration",
    post(
        "pods",
        plain_pod(containers=[container(resources={"limits": {"example.com/gpu": 1}})]),
        take=["spec.tolerations"],
    ),
)
cases("admission/new-node-gets-not-ready-taint", post("nodes", node(), take=["spec.taints"]))
cases(
    "admission/new-node-taint-not-doubled",
    post(
        "nodes",
        node(
            spec={
                "taints": [
                    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                    {"key": "a", "effect": "NoSchedule"},
                ]
            }
        ),
        take=["spec.taints"],
    ),
)
cases(
    "admission/updated-node-gets-no-taint",
    post("nodes", node()),
    merge("nodes/{u}", {"spec": {"taints": None}}, take=["spec.taints"]),
)
cases("admission/service-account-default", post("pods", pod(), take=["spec"]))
cases("admission/service-account-missing", post("pods", pod(serviceAccountName="none"), 403, "Forbidden"))
cases(
    "admission/service-account-of-old-name",
    post(
        "pods",
        pod(serviceAccount="default", automountServiceAccountToken=False),
        take=["spec.serviceAccountName", "spec.serviceAccount"],
    ),
)
cases(
    "admission/service-account-without-mount",
    post("serviceaccounts", thing("v1", "ServiceAccount", "sa", automountServiceAccountToken=False)),
    post("pods", pod(serviceAccountName="sa"), take=["spec.volumes", "spec.containers[0].volumeMounts"]),
)
cases(
    "admission/service-account-pull-secrets",
    post("serviceaccounts", thing("v1", "ServiceAccount", "sa", imagePullSecrets=[{"name": "x"}])),
    post("pods", pod(serviceAccountName="sa"), take=["spec.imagePullSecrets"]),
)
cases(
    "admission/service-account-own-mount-is-kept",
    post(
        "pods",
        pod(
            containers=[
                container(
                    volumeMounts=[{"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
                )
            ],
            volumes=[{"name": "v", "emptyDir": {}}],
        ),
        take=["spec.volumes", "spec.containers[0].volumeMounts"],
    ),
)
cases(
    "admission/mirror-pod-with-service-account",
    post(
        "pods",
        pod(
            "p",
            {"annotations": {"kubernetes.io/config.mirror": "x"}},
            serviceAccountName="default",
            nodeName="n",
        ),
        403,
        "Forbidden",
    ),
)


def limits(*items: dict[str, Any]) -> Any:
    return post("limitranges", thing("v1", "LimitRange", "lr", spec={"limits": list(items)}))


def sized(cpu: str = "", **more: Any) -> dict[str, Any]:
    return plain_pod(containers=[container(resources={"requests": {"cpu": cpu}} if cpu else {})], **more)


RES = ["spec.containers[0].resources", "metadata.annotations"]
DEFAULTED = limits(
    {
        "type": "Container",
        "default": {"cpu": "500m", "memory": "1Gi"},
        "defaultRequest": {"cpu": "100m"},
        "max": {"cpu": "2"},
        "min": {"cpu": "50m"},
    }
)
cases("admission/limitrange-fills-in", DEFAULTED, post("pods", sized(), take=RES))
cases(
    "admission/limitrange-keeps-what-is-set",
    DEFAULTED,
    post("pods", plain_pod(containers=[container(resources={"limits": {"cpu": "1"}})]), take=RES),
)
cases(
    "admission/limitrange-max",
    DEFAULTED,
    post(
        "pods",
        plain_pod(containers=[container(resources={"limits": {"cpu": "3"}, "requests": {"cpu": "1"}})]),
        403,
        "Forbidden",
    ),
)
cases("admission/limitrange-min", DEFAULTED, post("pods", sized("10m"), 403, "Forbidden"))
cases(
    "admission/limitrange-ratio",
    limits({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
    post(
        "pods",
        plain_pod(containers=[container(resources={"limits": {"cpu": "3"}, "requests": {"cpu": "1"}})]),
        403,
        "Forbidden",
    ),
)
cases(
    "admission/limitrange-of-pod",
    limits({"type": "Pod", "max": {"cpu": "2"}}),
    post(
        "pods",
        plain_pod(containers=[container(n, resources={"limits": {"cpu": "1500m"}}) for n in "ab"]),
        403,
        "Forbidden",
    ),
)
cases(
    "admission/limitrange-max-without-limit",
    limits({"type": "Pod", "max": {"cpu": "2"}}),
    post("pods", sized(), 403, "Forbidden"),
)
cases(
    "admission/limitrange-of-claims",
    limits({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}),
    post("persistentvolumeclaims", claim(resources={"requests": {"storage": "2Gi"}}), 403, "Forbidden"),
)
cases(
    "admission/limitrange-defaults-itself",
    limits({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}),
    get("limitranges/lr", take=["spec"]),
)


def quota(hard: dict[str, str], **spec: Any) -> tuple[Any, ...]:
    """A quota whose usage has been counted once, as the controller would."""
    body = thing("v1", "ResourceQuota", "rq", spec={"hard": hard, **spec})
    return (
        post("resourcequotas", body),
        put("resourcequotas/rq/status", {**body, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}),
    )


def waits(path: str, body: dict[str, Any]) -> Any:
    """Upstream's admission sees a new quota a moment later; a dry run shows when."""
    return post(f"{path}?dryRun=All", body, 403, "Forbidden", poll=True)


USED = get("resourcequotas/rq", take=["status"])
cases(
    "admission/quota-counts-pods",
    *quota({"pods": "1", "requests.cpu": "2"}),
    waits("pods", sized("3")),
    post("pods", sized("1500m")),
    USED,
    post("pods", {**sized("100m"), "metadata": {"name": "q"}}, 403, "Forbidden"),
)
cases(
    "admission/quota-needs-requests",
    *quota({"requests.cpu": "2", "limits.memory": "1Gi"}),
    waits("pods", plain_pod()),
)
cases(
    "admission/quota-of-objects",
    *quota({"configmaps": "1", "count/deployments.apps": "0"}),
    waits("deployments", deployment()),
    post("configmaps", config_map()),
    USED,
    post("configmaps", config_map("b"), 403, "Forbidden"),
    delete("configmaps/cm"),
    USED,
)
cases(
    "admission/quota-of-services",
    *quota({"services": "2", "services.nodeports": "0"}),
    waits("services", service(type="NodePort")),
    post("services", service()),
    USED,
)
cases(
    "admission/quota-of-claims",
    *quota({"persistentvolumeclaims": "5", "requests.storage": "3Gi"}),
    waits("persistentvolumeclaims", claim(resources={"requests": {"storage": "4Gi"}})),
    post("persistentvolumeclaims", claim()),
    USED,
)
cases(
    "admission/quota-scope-best-effort",
    *quota({"pods": "0"}, scopes=["BestEffort"]),
    waits("pods", plain_pod()),
    post("pods", sized("1")),
    USED,
)
cases(
    "admission/quota-dry-run-counts-nothing",
    *quota({"pods": "5", "count/deployments.apps": "0"}),
    waits("deployments", deployment()),
    post("pods?dryRun=All", plain_pod()),
    USED,
)

cases(
    "admission/quota-not-yet-counted-does-not-bind",
    post("resourcequotas", thing("v1", "ResourceQuota", "rq", spec={"hard": {"pods": "0"}}), take=["status"]),
    post("pods", plain_pod()),
)

OVERHEAD = thing(
    "node.k8s.io/v1",
    "RuntimeClass",
    "{u}",
    handler="h",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]},
)
cases(
    "admission/runtime-class",
    post("runtimeclasses", OVERHEAD),
    post(
        "pods",
        plain_pod(runtimeClassName="{u}"),
        poll=True,
        take=["spec.overhead", "spec.nodeSelector", "spec.tolerations", "spec.runtimeClassName"],
    ),
)
cases(
    "admission/runtime-class-missing", post("pods", plain_pod(runtimeClassName="{u}-none"), 403, "Forbidden")
)
cases(
    "admission/runtime-class-other-overhead",
    post("runtimeclasses", OVERHEAD),
    post("pods", plain_pod(runtimeClassName="{u}", overhead={"cpu": "1"}), 403, "Forbidden", poll=True),
)
cases(
    "admission/claim-gets-protection-finalizer",
    post("persistentvolumeclaims", claim(), take=["metadata.finalizers"]),
)
cases(
    "admission/pod-security-labels-are-honoured",
    merge(
        "/api/v1/namespaces/{ns}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}},
    ),
    post("pods?dryRun=All", plain_pod(hostNetwork=True), 403, "Forbidden", poll=True),
)

EVENT: dict[str, Any] = {
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}", "apiVersion": "v1", "uid": "x"},
    "reason": "R",
    "message": "m",
    "type": "Normal",
    "count": 2,
    "firstTimestamp": "2020-01-01T00:00:00Z",
    "lastTimestamp": "2020-01-01T00:00:05Z",
    "source": {"component": "c", "host": "h"},
}
NEW = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
cases("events/core", post("events", thing("v1", "Event", "e", **EVENT), take=WHOLE))
cases(
    "events/core-read-as-new", post("events", thing("v1", "Event", "e", **EVENT)), get(NEW + "/e", take=WHOLE)
)
MODERN: dict[str, Any] = {
    "eventTime": "2020-01-01T00:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "regarding": EVENT["involvedObject"],
    "note": "n",
    "type": "Warning",
}
cases("events/new", post(NEW, thing("events.k8s.io/v1", "Event", "e", **MODERN), take=WHOLE))
cases(
    "events/new-read-as-core",
    post(NEW, thing("events.k8s.io/v1", "Event", "e", **MODERN)),
    get("events/e", take=WHOLE),
)
cases(
    "events/new-without-time",
    post(
        NEW,
        thing("events.k8s.io/v1", "Event", "e", **{**MODERN, "eventTime": None}),
        422,
        "Invalid",
        ("FieldValueRequired", "eventTime"),
    ),
)
cases(
    "events/new-without-controller",
    post(
        NEW, thing("events.k8s.io/v1", "Event", "e", **{**MODERN, "reportingController": ""}), 422, "Invalid"
    ),
)
cases(
    "events/new-bad-type",
    post(NEW, thing("events.k8s.io/v1", "Event", "e", **{**MODERN, "type": "X"}), 422, "Invalid"),
)
cases(
    "events/new-series",
    post(NEW, thing("events.k8s.io/v1", "Event", "e", **MODERN)),
    merge(
        NEW + "/e",
        {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:09.000000Z"}},
        take=["series"],
    ),
    get("events/e", take=["series", "count"]),
)
cases(
    "events/new-note-is-immutable",
    post(NEW, thing("events.k8s.io/v1", "Event", "e", **MODERN)),
    merge(NEW + "/e", {"note": "z"}, 422, "Invalid", ("FieldValueInvalid", "message")),
)
cases(
    "events/new-field-selector",
    post(NEW, thing("events.k8s.io/v1", "Event", "e", **MODERN)),
    get(NEW + "?fieldSelector=regarding.name%3Dp", take=["kind", "items.*.metadata.name"]),
    get(NEW + "?fieldSelector=involvedObject.name%3Dp", 400, "BadRequest"),
)
cases(
    "events/deleted-through-the-other-group",
    post("events", thing("v1", "Event", "e", **EVENT)),
    delete(NEW + "/e"),
    get("events/e", 404, "NotFound"),
)
cases(
    "events/update-of-core",
    post("events", thing("v1", "Event", "e", **EVENT)),
    put(
        "events/e",
        thing("v1", "Event", "e", **{**EVENT, "count": 3, "message": "z"}),
        take=["count", "message"],
    ),
)
cases(
    "events/without-type",
    post("events", thing("v1", "Event", "e", involvedObject=EVENT["involvedObject"]), take=WHOLE),
)
