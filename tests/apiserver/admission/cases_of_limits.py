"""What limit ranges, quotas and classes do; every answer is a real server's."""

from __future__ import annotations

from typing import Any

from .cases_of_pods import DEFAULT_TOLERATIONS
from .steps import case, delete, get, pod_refused, post, put, refused, try_pod

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def limits(**item: Any) -> Any:
    return post(
        "limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": [{"type": "Container", **item}]}}
    )


def sized(limit: str = "", request: str = "") -> dict[str, Any]:
    resources = {"limits": {"cpu": limit} if limit else {}, "requests": {"cpu": request} if request else {}}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


def claim(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": "pvc"}, "spec": body}


LIMITS = [
    case(
        "defaults are filled in",
        limits(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1", "memory": "1Gi"}),
        try_pod(
            {},
            spec__containers__0__resources={
                "limits": {"cpu": "2", "memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"},
            },
            metadata__annotations={
                "kubernetes.io/limit-ranger": "LimitRanger plugin set: "
                "cpu, memory request for container c; cpu, memory limit for container c"
            },
        ),
    ),
    case(
        "init containers are filled in, too",
        limits(default={"cpu": "2"}, defaultRequest={"cpu": "1"}),
        try_pod(
            {"initContainers": [{"name": "i", "image": "i"}]},
            metadata__annotations={
                "kubernetes.io/limit-ranger": "LimitRanger plugin set: "
                "cpu request for container c; cpu limit for container c; "
                "cpu request for init container i; cpu limit for init container i"
            },
        ),
    ),
    case(
        "too large a limit",
        limits(max={"cpu": "2"}),
        try_pod(sized("3", "1"), **pod_refused("maximum cpu usage per Container is 2, but limit is 3")),
    ),
    case(
        "too small a request",
        limits(min={"cpu": "500m"}),
        try_pod(
            sized("3", "100m"), **pod_refused("minimum cpu usage per Container is 500m, but request is 100m")
        ),
    ),
    case(
        "too small a limit and request",
        limits(min={"cpu": "500m"}),
        try_pod(
            sized("100m", "100m"),
            **pod_refused("minimum cpu usage per Container is 500m, but request is 100m"),
        ),
    ),
    case(
        "too wide a ratio",
        limits(maxLimitRequestRatio={"cpu": "2"}),
        try_pod(
            sized("3", "1"),
            **pod_refused(
                "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"
            ),
        ),
    ),
    case(
        "no ratio without a request",
        limits(maxLimitRequestRatio={"cpu": "2"}),
        try_pod(
            {},
            **pod_refused(
                "cpu max limit to request ratio per Container is 2, but no request is specified "
                "or request is 0"
            ),
        ),
    ),
    case(
        "a pod as a whole",
        limits(type="Pod", max={"cpu": "2"}),
        try_pod(
            {
                "containers": [
                    {"name": n, "image": "i", "resources": {"limits": {"cpu": "1500m"}}} for n in "ab"
                ]
            },
            **pod_refused("maximum cpu usage per Pod is 2, but limit is 3"),
        ),
    ),
    case(
        "a pod as a whole needs a limit",
        limits(type="Pod", max={"cpu": "2"}),
        try_pod({}, **pod_refused("maximum cpu usage per Pod is 2.  No limit is specified")),
    ),
    case(
        "a claim",
        limits(type="PersistentVolumeClaim", max={"storage": "1Gi"}),
        post(
            "persistentvolumeclaims?dryRun=All",
            claim("2Gi"),
            **refused(
                "persistentvolumeclaims",
                "pvc",
                "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi",
            ),
        ),
    ),
]


def quota(hard: dict[str, str], **spec: Any) -> tuple[Any, ...]:
    body = {"metadata": {"name": "rq"}, "spec": {"hard": hard, **spec}}
    used = {**body, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    return post("resourcequotas", body), put("resourcequotas/rq/status", used)


def exceeded(requested: str, used: str, limited: str) -> str:
    return f"exceeded quota: rq, requested: {requested}, used: {used}, limited: {limited}"


QUOTAS = [
    case(
        "pods are counted and sized",
        *quota({"pods": "1", "requests.cpu": "2", "limits.cpu": "4"}),
        try_pod(
            sized("5", "3"),
            **pod_refused(
                exceeded(
                    "limits.cpu=5,requests.cpu=3",
                    "limits.cpu=0,requests.cpu=0",
                    "limits.cpu=4,requests.cpu=2",
                )
            ),
        ),
        post("pods", {"metadata": {"name": "q"}, "spec": {**sized("1", "500m"), "nodeName": "none"}}),
        get("resourcequotas/rq", status__used={"pods": "1", "requests.cpu": "500m", "limits.cpu": "1"}),
        try_pod(sized("1", "1"), **pod_refused(exceeded("pods=1", "pods=1", "pods=1"))),
    ),
    case(
        "every container must say what it needs",
        *quota({"requests.cpu": "2", "limits.memory": "1Gi"}),
        try_pod(
            {}, **pod_refused("failed quota: rq: must specify limits.memory for: c; requests.cpu for: c")
        ),
    ),
    case(
        "a quota that was never counted allows nothing",
        post("resourcequotas", {"metadata": {"name": "rq"}, "spec": {"hard": {"services": "5"}}}),
        put("resourcequotas/rq/status", {"metadata": {"name": "rq"}, "status": {"hard": {"services": "5"}}}),
        post(
            "services?dryRun=All",
            {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}},
            **refused("services", "s", "status unknown for quota: rq, resources: services"),
        ),
    ),
    case(
        "services by type",
        *quota({"services.nodeports": "1", "services.loadbalancers": "0"}),
        post(
            "services?dryRun=All",
            {
                "metadata": {"name": "s"},
                "spec": {
                    "type": "LoadBalancer",
                    "ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}],
                },
            },
            **refused(
                "services",
                "s",
                exceeded(
                    "services.loadbalancers=1,services.nodeports=2",
                    "services.loadbalancers=0,services.nodeports=0",
                    "services.loadbalancers=0,services.nodeports=1",
                ),
            ),
        ),
    ),
    case(
        "storage by class",
        *quota({"gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "requests.storage": "9Gi"}),
        post(
            "persistentvolumeclaims?dryRun=All",
            claim("2Gi", storageClassName="gold"),
            **refused(
                "persistentvolumeclaims",
                "pvc",
                exceeded(
                    *(f"gold.storageclass.storage.k8s.io/requests.storage={n}" for n in ("2Gi", "0", "1Gi"))
                ),
            ),
        ),
        post("persistentvolumeclaims?dryRun=All", claim("2Gi", storageClassName="silver")),
    ),
    case(
        "any kind can be counted",
        *quota({"count/leases.coordination.k8s.io": "0"}),
        post(
            "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases?dryRun=All",
            {"metadata": {"name": "l"}},
            **refused(
                "leases.coordination.k8s.io",
                "l",
                exceeded(*(f"count/leases.coordination.k8s.io={n}" for n in ("1", "0", "0"))),
            ),
        ),
    ),
    case(
        "scope best effort",
        *quota({"pods": "0"}, scopes=["BestEffort"]),
        try_pod({}, **pod_refused(exceeded("pods=1", "pods=0", "pods=0"))),
        try_pod(sized("1", "1")),
    ),
    case(
        "scope terminating",
        *quota({"pods": "0"}, scopes=["Terminating"]),
        try_pod({"activeDeadlineSeconds": 5}, **pod_refused(exceeded("pods=1", "pods=0", "pods=0"))),
        try_pod({}),
    ),
    case(
        "scope by priority class",
        *quota(
            {"pods": "0"},
            scopeSelector={
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
                ]
            },
        ),
        try_pod(
            {"priorityClassName": "system-node-critical"},
            **pod_refused(exceeded("pods=1", "pods=0", "pods=0")),
        ),
        try_pod({}),
    ),
    case(
        "extended resources",
        *quota({"requests.example.com/gpu": "1"}),
        try_pod(
            {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "2"}}}]},
            **pod_refused(exceeded(*(f"requests.example.com/gpu={n}" for n in ("2", "0", "1")))),
        ),
    ),
]

OVERHEAD = post(
    RUNTIME_CLASSES,
    {
        "metadata": {"name": "{u}"},
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]},
    },
)
CLASSES = [
    case(
        "a runtime class brings overhead and scheduling",
        OVERHEAD,
        try_pod(
            {"runtimeClassName": "{u}"},
            spec__overhead={"cpu": "250m"},
            spec__nodeSelector={"a": "b"},
            spec__tolerations=[*DEFAULT_TOLERATIONS, {"key": "t", "operator": "Exists"}],
        ),
    ),
    case(
        "wider tolerations of a pod swallow those of its class",
        OVERHEAD,
        try_pod(
            {"runtimeClassName": "{u}", "tolerations": [{"operator": "Exists"}]},
            spec__tolerations=[{"operator": "Exists"}],
        ),
    ),
    case(
        "a runtime class must exist",
        try_pod({"runtimeClassName": "{u}"}, **pod_refused('pod rejected: RuntimeClass "{u}" not found')),
    ),
    case(
        "overhead is the class's",
        OVERHEAD,
        try_pod(
            {"runtimeClassName": "{u}", "overhead": {"cpu": "1"}},
            **pod_refused("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        ),
    ),
    case(
        "no overhead without a class",
        try_pod(
            {"overhead": {"cpu": "1"}},
            **pod_refused(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            ),
        ),
    ),
    case(
        "node selectors must agree",
        OVERHEAD,
        try_pod(
            {"runtimeClassName": "{u}", "nodeSelector": {"a": "c"}},
            **pod_refused(
                "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
            ),
        ),
    ),
    case(
        "storage in use is protected",
        post(
            "persistentvolumeclaims?dryRun=All",
            claim(),
            metadata__finalizers=["kubernetes.io/pvc-protection"],
        ),
        post(
            "/api/v1/persistentvolumes?dryRun=All",
            {
                "metadata": {"name": "{u}"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/x"},
                },
            },
            metadata__finalizers=["kubernetes.io/pv-protection"],
        ),
    ),
    case(
        "a claim grows only if its class allows it",
        post(
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": "{u}"}, "provisioner": "p", "allowVolumeExpansion": True},
        ),
        post("persistentvolumeclaims", claim("1Gi", storageClassName="none")),
        put(
            "persistentvolumeclaims/pvc/status",
            {**claim("1Gi", storageClassName="none"), "status": {"phase": "Bound"}},
        ),
        put(
            "persistentvolumeclaims/pvc?dryRun=All",
            claim("2Gi", storageClassName="none"),
            **refused(
                "persistentvolumeclaims",
                "pvc",
                "only dynamically provisioned pvc can be resized and the storageclass "
                "that provisions the pvc must support resize",
            ),
        ),
        post("persistentvolumeclaims", {**claim("1Gi", storageClassName="{u}"), "metadata": {"name": "b"}}),
        put("persistentvolumeclaims/b/status", {"metadata": {"name": "b"}, "status": {"phase": "Bound"}}),
        put(
            "persistentvolumeclaims/b?dryRun=All",
            {**claim("2Gi", storageClassName="{u}"), "metadata": {"name": "b"}},
            spec__resources={"requests": {"storage": "2Gi"}},
        ),
    ),
]

# The default classes are everybody's, so these have a server of their own, too.
DEFAULT_CLASSES = [
    case(
        "claims and ingresses get the default class",
        post(
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "metadata": {
                    "name": "{u}",
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
                "provisioner": "p",
            },
        ),
        post(
            "/apis/networking.k8s.io/v1/ingressclasses",
            {
                "metadata": {
                    "name": "{u}",
                    "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"},
                },
                "spec": {"controller": "example.com/c"},
            },
        ),
        post("persistentvolumeclaims?dryRun=All", claim(), spec__storageClassName="{u}"),
        post("persistentvolumeclaims?dryRun=All", claim(storageClassName=""), spec__storageClassName=""),
        post("persistentvolumeclaims?dryRun=All", claim(storageClassName="x"), spec__storageClassName="x"),
        post(
            "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses?dryRun=All",
            {
                "metadata": {"name": "i"},
                "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}},
            },
            spec__ingressClassName="{u}",
        ),
        delete("/apis/storage.k8s.io/v1/storageclasses/{u}"),
        delete("/apis/networking.k8s.io/v1/ingressclasses/{u}"),
    ),
]
