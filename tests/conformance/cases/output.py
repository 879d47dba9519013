"""Tables and metadata-only answers, as kubectl asks for them."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import PARTIAL, PARTIAL_LIST, TABLE, WHOLE, Cases, delete, get, merge, post
from tests.conformance.objects import (
    autoscaler,
    budget,
    claim,
    config_map,
    container,
    crd,
    cron_job,
    daemon_set,
    deployment,
    ingress,
    job,
    lease,
    namespace,
    network_policy,
    node,
    plain_pod,
    priority_class,
    replica_set,
    replication_controller,
    role,
    role_binding,
    secret,
    service,
    stateful_set,
    storage_class,
    thing,
    volume,
)

cases = Cases()
AS_TABLE = {"Accept": TABLE + ",application/json"}
SHAPE = [
    "kind",
    "apiVersion",
    "columnDefinitions",
    "rows.*.cells",
    "rows[0].object.kind",
    "rows[0].object.metadata.name",
]


def table(name: str, plural: str, body: dict[str, Any], *between: Any) -> None:
    object_name = body["metadata"]["name"]
    cases(
        f"table/{name}",
        post(plural, body),
        *between,
        get(f"{plural}/{object_name}", headers=AS_TABLE, take=SHAPE),
    )


table("configmap", "configmaps", config_map(a="1", b="2"))
table("secret", "secrets", secret(data={"a": "eA=="}))
table("serviceaccount", "serviceaccounts", thing("v1", "ServiceAccount", "sa", secrets=[{"name": "x"}]))
table("namespace", "namespaces", namespace())
table("pod-pending", "pods", plain_pod(containers=[container("a"), container("b")]))
RUNNING = {
    "phase": "Running",
    "podIP": "10.0.0.1",
    "podIPs": [{"ip": "10.0.0.1"}],
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [
        {"name": "c", "ready": True, "restartCount": 3, "image": "i", "imageID": "", "state": {"running": {}}}
    ],
}
table("pod-running", "pods", plain_pod(nodeName="n"), merge("pods/p/status", {"status": RUNNING}))
table(
    "pod-succeeded",
    "pods",
    plain_pod(nodeName="n"),
    merge(
        "pods/p/status",
        {
            "status": {
                "phase": "Succeeded",
                "containerStatuses": [
                    {
                        "name": "c",
                        "ready": False,
                        "restartCount": 0,
                        "image": "i",
                        "imageID": "",
                        "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
                    }
                ],
            }
        },
    ),
)
table(
    "pod-crash-looping",
    "pods",
    plain_pod(nodeName="n"),
    merge(
        "pods/p/status",
        {
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {
                        "name": "c",
                        "ready": False,
                        "restartCount": 5,
                        "image": "i",
                        "imageID": "",
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    }
                ],
            }
        },
    ),
)
table(
    "pod-failed-with-signal",
    "pods",
    plain_pod(nodeName="n"),
    merge(
        "pods/p/status",
        {
            "status": {
                "phase": "Failed",
                "containerStatuses": [
                    {
                        "name": "c",
                        "ready": False,
                        "restartCount": 0,
                        "image": "i",
                        "imageID": "",
                        "state": {"terminated": {"exitCode": 137, "signal": 9}},
                    }
                ],
            }
        },
    ),
)
table(
    "pod-evicted",
    "pods",
    plain_pod(nodeName="n"),
    merge("pods/p/status", {"status": {"phase": "Failed", "reason": "Evicted"}}),
)
table(
    "pod-initialising",
    "pods",
    plain_pod(nodeName="n", initContainers=[container("i"), container("j")]),
    merge(
        "pods/p/status",
        {
            "status": {
                "phase": "Pending",
                "initContainerStatuses": [
                    {
                        "name": "i",
                        "ready": False,
                        "restartCount": 0,
                        "image": "i",
                        "imageID": "",
                        "state": {"running": {}},
                    }
                ],
            }
        },
    ),
)
table("pod-gated", "pods", plain_pod(schedulingGates=[{"name": "example.com/g"}]))
table(
    "pod-nominated",
    "pods",
    plain_pod(readinessGates=[{"conditionType": "example.com/ok"}]),
    merge("pods/p/status", {"status": {"nominatedNodeName": "m"}}),
)
cases(
    "table/pod-terminating",
    post("pods", plain_pod(nodeName="n", terminationGracePeriodSeconds=60)),
    merge("pods/p/status", {"status": RUNNING}),
    delete("pods/p"),
    get("pods/p", headers=AS_TABLE, take=["rows.*.cells"]),
)
table(
    "node",
    "nodes",
    node(
        "{u}",
        {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "x"}},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0",
                "osImage": "OS",
                "kernelVersion": "6",
                "containerRuntimeVersion": "cri://1",
            },
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    ),
)
table(
    "node-cordoned-not-ready",
    "nodes",
    node(spec={"unschedulable": True}, status={"conditions": [{"type": "Ready", "status": "False"}]}),
)
table("node-unknown", "nodes", node())
table("service", "services", service(clusterIP="None"))
cases(
    "table/service-load-balancer",
    post("services", service(type="LoadBalancer", allocateLoadBalancerNodePorts=False, ports=[{"port": 80}])),
    merge("services/svc/status", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
    get("services/svc", headers=AS_TABLE, take=["rows[0].cells[1]", "rows[0].cells[3]", "rows[0].cells[4]"]),
)
table(
    "endpoints",
    "endpoints",
    thing(
        "v1",
        "Endpoints",
        "e",
        subsets=[{"addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}], "ports": [{"port": 80}]}],
    ),
)
table(
    "event",
    "events",
    thing(
        "v1",
        "Event",
        "e",
        involvedObject={"kind": "Pod", "name": "p", "namespace": "{ns}"},
        reason="R",
        message="m",
        type="Normal",
    ),
)
table("replicationcontroller", "replicationcontrollers", replication_controller(replicas=2))
table("persistentvolume", "persistentvolumes", volume())
table("persistentvolumeclaim", "persistentvolumeclaims", claim())
table("limitrange", "limitranges", thing("v1", "LimitRange", "lr", spec={"limits": []}))
table("resourcequota", "resourcequotas", thing("v1", "ResourceQuota", "rq", spec={"hard": {"pods": "5"}}))
table(
    "podtemplate",
    "podtemplates",
    thing(
        "v1",
        "PodTemplate",
        "pt",
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
    ),
)
table(
    "deployment",
    "deployments",
    deployment(replicas=3),
    merge(
        "deployments/d/status",
        {"status": {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 1}},
    ),
)
table("replicaset", "replicasets", replica_set(replicas=3))
table("statefulset", "statefulsets", stateful_set(replicas=3))
table("daemonset", "daemonsets", daemon_set())
table(
    "controllerrevision",
    "controllerrevisions",
    thing("apps/v1", "ControllerRevision", "cr", revision=4, data={}),
)
table("job", "jobs", job(completions=3), merge("jobs/j/status", {"status": {"succeeded": 1, "active": 1}}))
table("job-without-start", "jobs", job(parallelism=2))
table("cronjob", "cronjobs", cron_job())
table(
    "horizontalpodautoscaler",
    "horizontalpodautoscalers",
    autoscaler(
        metrics=[
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            }
        ]
    ),
)
table("poddisruptionbudget", "poddisruptionbudgets", budget(minAvailable="50%"))
table("priorityclass", "priorityclasses", priority_class())
table("lease", "leases", lease(holderIdentity="me"))
table("storageclass", "storageclasses", storage_class())
table("csinode", "csinodes", thing("storage.k8s.io/v1", "CSINode", "{u}", spec={"drivers": []}))
table("csidriver", "csidrivers", thing("storage.k8s.io/v1", "CSIDriver", "{u}", spec={}))
table("runtimeclass", "runtimeclasses", thing("node.k8s.io/v1", "RuntimeClass", "{u}", handler="h"))
table("ingress", "ingresses", ingress(ingressClassName="x", rules=[{"host": "a.example.com"}]))
table(
    "ingressclass",
    "ingressclasses",
    thing("networking.k8s.io/v1", "IngressClass", "{u}", spec={"controller": "example.com/c"}),
)
table("networkpolicy", "networkpolicies", network_policy())
table(
    "endpointslice",
    "endpointslices",
    thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "es",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
)
table("role", "roles", role())
table("rolebinding", "rolebindings", role_binding())
table("clusterrole", "clusterroles", thing("rbac.authorization.k8s.io/v1", "ClusterRole", "{u}", rules=[]))
table(
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    thing("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "{u}", webhooks=[]),
)
table(
    "validatingadmissionpolicy",
    "validatingadmissionpolicies",
    thing(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "{u}",
        spec={
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["none.example.com"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["things"],
                    }
                ]
            },
            "validations": [{"expression": "true"}],
        },
    ),
)
# The last column is a condition that upstream fills in from a controller, some time later.
cases(
    "table/flowschema",
    post(
        "flowschemas",
        thing(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            "{u}",
            spec={"priorityLevelConfiguration": {"name": "global-default"}},
        ),
    ),
    get(
        "flowschemas/{u}",
        headers=AS_TABLE,
        take=["columnDefinitions", *(f"rows[0].cells[{n}]" for n in range(4))],
    ),
)
table(
    "resourceclaim",
    "resourceclaims",
    thing(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "rc",
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
    ),
)
table("deviceclass", "deviceclasses", thing("resource.k8s.io/v1", "DeviceClass", "{u}", spec={}))
cases(
    "table/customresourcedefinition",
    post("customresourcedefinitions", crd()),
    get(
        "customresourcedefinitions/widgets.{u}.example.com",
        headers=AS_TABLE,
        take=["columnDefinitions", "rows[0].cells[0]"],
    ),
)

TWO = (post("configmaps", config_map("a", {"labels": {"x": "y"}})), post("configmaps", config_map("b")))
cases("table/list", *TWO, get("configmaps", headers=AS_TABLE, take=WHOLE))
cases("table/list-empty", get("leases", headers=AS_TABLE, take=WHOLE))
cases("table/include-none", *TWO, get("configmaps?includeObject=None", headers=AS_TABLE, take=["rows"]))
cases(
    "table/include-metadata", *TWO, get("configmaps?includeObject=Metadata", headers=AS_TABLE, take=["rows"])
)
cases("table/include-object", *TWO, get("configmaps?includeObject=Object", headers=AS_TABLE, take=["rows"]))
cases(
    "table/include-unknown", *TWO, get("configmaps?includeObject=Frob", 400, "BadRequest", headers=AS_TABLE)
)
cases(
    "table/list-pages", *TWO, get("configmaps?limit=1", headers=AS_TABLE, take=["metadata", "rows.*.cells"])
)
cases("table/selector", *TWO, get("configmaps?labelSelector=x%3Dy", headers=AS_TABLE, take=["rows.*.cells"]))
cases(
    "table/beta-version",
    *TWO,
    get(
        "configmaps",
        headers={"Accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"},
        take=["apiVersion", "kind", "rows[0].object.apiVersion"],
    ),
)
cases("table/of-a-missing-object", get("configmaps/none", 404, "NotFound", headers=AS_TABLE))
cases("table/created", post("configmaps", config_map(), 201, headers=AS_TABLE, take=["kind", "rows.*.cells"]))
cases(
    "table/patched",
    post("configmaps", config_map()),
    merge("configmaps/cm", {"data": {"a": "b"}}, headers=AS_TABLE, take=["kind", "rows.*.cells"]),
)
cases(
    "table/of-a-scale",
    post("deployments", deployment()),
    get("deployments/d/scale", headers=AS_TABLE, take=["kind"]),
)

cases(
    "partial/object",
    post("deployments", deployment("d", {"labels": {"a": "b"}})),
    get("deployments/d", headers={"Accept": PARTIAL}, take=WHOLE),
)
cases("partial/list", *TWO, get("configmaps", headers={"Accept": PARTIAL_LIST}, take=WHOLE))
cases("partial/list-asked-as-object", *TWO, get("configmaps", 406, headers={"Accept": PARTIAL}))
cases("partial/object-asked-as-list", *TWO, get("configmaps/a", 406, headers={"Accept": PARTIAL_LIST}))
cases(
    "partial/patched",
    post("configmaps", config_map()),
    merge("configmaps/cm", {"metadata": {"labels": {"a": "b"}}}, headers={"Accept": PARTIAL}, take=WHOLE),
)
cases("partial/created", post("configmaps", config_map(a="b"), 201, headers={"Accept": PARTIAL}, take=WHOLE))
cases("partial/missing", get("configmaps/none", 404, "NotFound", headers={"Accept": PARTIAL}))
cases(
    "partial/list-pages",
    *TWO,
    get("configmaps?limit=1", headers={"Accept": PARTIAL_LIST}, take=["kind", "metadata"]),
)
