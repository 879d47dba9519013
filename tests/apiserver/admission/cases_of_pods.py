"""What the plugins for namespaces, nodes and pods do; every answer is a real server's."""

from __future__ import annotations

from typing import Any

from .steps import ABSENT, case, delete, pod_refused, post, refused, try_pod

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
DEFAULT_TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for key in ("not-ready", "unreachable")
]
NO_TOKEN: dict[str, Any] = {"automountServiceAccountToken": False}


NAMESPACES = [
    case(
        "a missing namespace is not found",
        post(
            "/api/v1/namespaces/{u}-none/configmaps",
            {"metadata": {"name": "c"}},
            404,
            'namespaces "{u}-none" not found',
            reason="NotFound",
            details={"name": "{u}-none", "kind": "namespaces"},
        ),
    ),
    case(
        "a terminating namespace takes nothing new",
        delete("/api/v1/namespaces/{ns}"),
        post(
            "configmaps",
            {"metadata": {"name": "c"}},
            **refused(
                "configmaps",
                "c",
                "unable to create new content in namespace {ns} because it is being terminated",
            ),
            details__causes=[
                {
                    "reason": "NamespaceTerminating",
                    "message": "namespace {ns} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        ),
    ),
    case(
        "generated names are refused by their prefix",
        delete("/api/v1/namespaces/{ns}"),
        post(
            "configmaps",
            {"metadata": {"generateName": "c-"}},
            **refused(
                "configmaps",
                "c-",
                "unable to create new content in namespace {ns} because it is being terminated",
            ),
        ),
    ),
    *(
        case(
            f"{name} cannot be deleted",
            delete(
                f"/api/v1/namespaces/{name}",
                **refused("namespaces", name, "this namespace may not be deleted"),
            ),
        )
        for name in ("default", "kube-system", "kube-public")
    ),
]

PRIORITIES = [
    case(
        "no class is priority zero",
        try_pod(
            {},
            spec__priority=0,
            spec__preemptionPolicy="PreemptLowerPriority",
            spec__priorityClassName=ABSENT,
        ),
    ),
    case(
        "a class gives its value",
        post(PRIORITY_CLASSES, {"metadata": {"name": "{u}"}, "value": 77, "preemptionPolicy": "Never"}),
        try_pod({"priorityClassName": "{u}"}, spec__priority=77, spec__preemptionPolicy="Never"),
    ),
    case(
        "a class must exist",
        try_pod({"priorityClassName": "{u}"}, **pod_refused("no PriorityClass with name {u} was found")),
    ),
    case(
        "a number must be the class's",
        try_pod(
            {"priority": 5},
            **pod_refused(
                "the integer value of priority (5) must not be provided in pod spec; priority admission "
                "controller computed 0 from the given PriorityClass name"
            ),
        ),
    ),
    case(
        "a policy must be the class's",
        try_pod(
            {"preemptionPolicy": "Never"},
            **pod_refused(
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority "
                "admission controller computed PreemptLowerPriority from the given PriorityClass name"
            ),
        ),
    ),
    case(
        "system classes are there",
        try_pod({"priorityClassName": "system-node-critical"}, spec__priority=2000001000),
    ),
]

# These change what every pod gets, so each has a server of its own.
DEFAULT_PRIORITIES = [
    case(
        "there is one default class, and pods get it",
        post(PRIORITY_CLASSES, {"metadata": {"name": "{u}"}, "value": 9, "globalDefault": True}),
        try_pod(
            {}, spec__priority=9, spec__priorityClassName="{u}", spec__preemptionPolicy="PreemptLowerPriority"
        ),
        post(
            f"{PRIORITY_CLASSES}?dryRun=All",
            {"metadata": {"name": "{u}-b"}, "value": 1, "globalDefault": True},
            403,
            'priorityclasses.scheduling.k8s.io "{u}-b" is forbidden: PriorityClass {u} is already marked '
            "as default. "
            "Only one default can exist",
        ),
        delete(f"{PRIORITY_CLASSES}/{{u}}"),
    ),
]

TOLERATIONS = [
    case("pods tolerate five minutes", try_pod({}, spec__tolerations=DEFAULT_TOLERATIONS)),
    case(
        "own tolerations come first",
        try_pod(
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            spec__tolerations=[{"key": "a", "operator": "Exists"}, *DEFAULT_TOLERATIONS],
        ),
    ),
    case(
        "own words on a taint count",
        try_pod(
            {
                "tolerations": [
                    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
                ]
            },
            spec__tolerations=[
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
                DEFAULT_TOLERATIONS[0],
            ],
        ),
    ),
    case(
        "another effect does not count",
        try_pod(
            {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]},
            spec__tolerations=[{"operator": "Exists", "effect": "NoSchedule"}, *DEFAULT_TOLERATIONS],
        ),
    ),
    case(
        "tolerating everything is enough",
        try_pod({"tolerations": [{"operator": "Exists"}]}, spec__tolerations=[{"operator": "Exists"}]),
    ),
]

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
NODES = [
    case(
        "a new node is tainted",
        post("/api/v1/nodes?dryRun=All", {"metadata": {"name": "{u}"}}, spec__taints=[NOT_READY]),
    ),
    case(
        "other taints stay",
        post(
            "/api/v1/nodes?dryRun=All",
            {"metadata": {"name": "{u}"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            spec__taints=[{"key": "a", "effect": "NoSchedule"}, NOT_READY],
        ),
    ),
    case(
        "no taint is doubled",
        post(
            "/api/v1/nodes?dryRun=All",
            {"metadata": {"name": "{u}"}, "spec": {"taints": [NOT_READY]}},
            spec__taints=[NOT_READY],
        ),
    ),
    case(
        "a pod created on a node gets its zone",
        post(
            "/api/v1/nodes",
            {
                "metadata": {
                    "name": "{u}",
                    "labels": {
                        "topology.kubernetes.io/zone": "z",
                        "topology.kubernetes.io/region": "r",
                        "other": "o",
                    },
                }
            },
        ),
        try_pod(
            {
                "metadata": {"name": "p", "labels": {"topology.kubernetes.io/zone": "mine", "a": "b"}},
                "nodeName": "{u}",
            },
            metadata__labels={
                "a": "b",
                "topology.kubernetes.io/zone": "z",
                "topology.kubernetes.io/region": "r",
            },
        ),
    ),
]


def account(**more: Any) -> Any:
    return post(
        "serviceaccounts", {"metadata": {"name": "sa", "annotations": more.pop("annotations", {})}, **more}
    )


MIRROR = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
SECRET_ONLY = {"kubernetes.io/enforce-mountable-secrets": "true"}
UNMOUNTABLE = "is not allowed because service account sa does not reference that"
ACCOUNTS = [
    case(
        "the default account", try_pod({}, spec__serviceAccountName="default", spec__serviceAccount="default")
    ),
    case(
        "a token is mounted",
        try_pod(
            {},
            spec__containers__0__volumeMounts__0__mountPath=TOKEN_PATH,
            spec__containers__0__volumeMounts__0__readOnly=True,
            spec__volumes__0__projected={
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {
                        "configMap": {
                            "name": "kube-root-ca.crt",
                            "items": [{"key": "ca.crt", "path": "ca.crt"}],
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "namespace",
                                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                                }
                            ]
                        }
                    },
                ],
            },
        ),
    ),
    case(
        "a volume of that name is used",
        try_pod(
            {"volumes": [{"name": "kube-api-access-x", "emptyDir": {}}]},
            spec__containers__0__volumeMounts=[
                {"name": "kube-api-access-x", "mountPath": TOKEN_PATH, "readOnly": True}
            ],
            spec__volumes=[{"name": "kube-api-access-x", "emptyDir": {}}],
        ),
    ),
    case(
        "an account must exist",
        try_pod(
            {"serviceAccountName": "none"},
            **pod_refused('error looking up service account {ns}/none: serviceaccount "none" not found'),
        ),
    ),
    case("the pod says no to a token", try_pod(NO_TOKEN, spec__volumes=ABSENT)),
    case(
        "the account says no to a token",
        account(**NO_TOKEN),
        try_pod({"serviceAccountName": "sa"}, spec__volumes=ABSENT),
    ),
    case(
        "pull secrets come from the account",
        account(imagePullSecrets=[{"name": "x"}]),
        try_pod({"serviceAccountName": "sa"}, spec__imagePullSecrets=[{"name": "x"}]),
    ),
    case(
        "own pull secrets stay",
        account(imagePullSecrets=[{"name": "x"}]),
        try_pod(
            {"serviceAccountName": "sa", "imagePullSecrets": [{"name": "y"}]},
            spec__imagePullSecrets=[{"name": "y"}],
        ),
    ),
    case(
        "a mirror pod has no account",
        try_pod(
            {"metadata": MIRROR, "serviceAccountName": "default", "nodeName": "n"},
            **pod_refused("a mirror pod may not reference service accounts"),
        ),
    ),
    case(
        "a mirror pod has no secrets",
        try_pod(
            {"metadata": MIRROR, "nodeName": "n", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            **pod_refused("a mirror pod may not reference secrets"),
        ),
    ),
    case(
        "a mirror pod has no token",
        try_pod(
            {
                "metadata": MIRROR,
                "nodeName": "n",
                "volumes": [
                    {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
                ],
            },
            **pod_refused("a mirror pod may not use ServiceAccountToken volume projections"),
        ),
    ),
    case(
        "secrets can be limited in volumes",
        account(annotations=SECRET_ONLY),
        try_pod(
            {"serviceAccountName": "sa", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            **pod_refused(f'volume with secret.secretName="s" {UNMOUNTABLE} secret'),
        ),
    ),
    case(
        "secrets can be limited in variables",
        account(annotations=SECRET_ONLY),
        try_pod(
            {
                "serviceAccountName": "sa",
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                    }
                ],
            },
            **pod_refused(
                f'container c with envVar E referencing secret.secretName="s" {UNMOUNTABLE} secret'
            ),
        ),
    ),
    case(
        "pull secrets can be limited",
        account(annotations=SECRET_ONLY),
        try_pod(
            {"serviceAccountName": "sa", "imagePullSecrets": [{"name": "s"}]},
            **pod_refused(f'imagePullSecrets[0].name="s" {UNMOUNTABLE} imagePullSecret'),
        ),
    ),
]
