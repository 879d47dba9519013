"""Whole objects as the server stores them: defaults, canonical forms, conversions between versions."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, get, post
from tests.conformance.objects import (
    autoscaler,
    budget,
    claim,
    container,
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
    pod,
    priority_class,
    replica_set,
    replication_controller,
    secret,
    selector,
    service,
    stateful_set,
    template,
    thing,
    volume,
)

cases = Cases()


def stored(name: str, path: str, body: dict[str, Any]) -> None:
    cases(f"defaults/{name}", post(path, body, take=WHOLE))


stored("pod", "pods", pod())
stored("pod-plain", "pods", plain_pod())
stored(
    "pod-latest-image-is-always-pulled",
    "pods",
    plain_pod(containers=[container(image="x:latest"), container("d", image="y")]),
)
stored("pod-digest-image", "pods", plain_pod(containers=[container(image="x@sha256:" + "a" * 64)]))
PROBE = {"httpGet": {"port": 80}}
stored(
    "pod-probes",
    "pods",
    plain_pod(
        containers=[
            container(
                livenessProbe=PROBE,
                readinessProbe={"tcpSocket": {"port": "web"}},
                startupProbe={"exec": {"command": ["x"]}},
                ports=[{"containerPort": 80, "name": "web"}],
                lifecycle={"preStop": {"httpGet": {"port": 80}}, "postStart": {"exec": {"command": ["y"]}}},
            )
        ]
    ),
)
stored("pod-grpc-probe", "pods", plain_pod(containers=[container(livenessProbe={"grpc": {"port": 80}})]))
stored(
    "pod-requests-from-limits",
    "pods",
    plain_pod(
        containers=[container(resources={"limits": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": 1}})]
    ),
)
stored(
    "pod-partial-requests",
    "pods",
    plain_pod(
        containers=[
            container(resources={"limits": {"cpu": "0.5", "memory": "1Gi"}, "requests": {"cpu": "100m"}})
        ]
    ),
)
stored(
    "pod-level-resources",
    "pods",
    plain_pod(
        resources={"limits": {"cpu": "2"}}, containers=[container(resources={"requests": {"cpu": "1"}})]
    ),
)
stored(
    "pod-init-containers",
    "pods",
    plain_pod(
        initContainers=[
            container("i"),
            container("side", restartPolicy="Always", resources={"requests": {"cpu": "1"}}),
        ]
    ),
)
stored(
    "pod-volumes",
    "pods",
    plain_pod(
        volumes=[
            {"name": "a", "emptyDir": {}},
            {"name": "b", "configMap": {"name": "x"}},
            {"name": "c", "secret": {"secretName": "x"}},
            {"name": "d", "hostPath": {"path": "/x"}},
            {"name": "e", "persistentVolumeClaim": {"claimName": "x"}},
            {
                "name": "f",
                "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {
                "name": "g",
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "y"}}]
                },
            },
            {
                "name": "h",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            },
            {"name": "i"},
            {"name": "j", "csi": {"driver": "x.example.com"}},
        ]
    ),
)
stored(
    "pod-env-references",
    "pods",
    plain_pod(
        containers=[
            container(
                env=[
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}},
                    {"name": "D"},
                ]
            )
        ]
    ),
)
stored(
    "pod-host-network-ports",
    "pods",
    plain_pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])]),
)
stored(
    "pod-spread-and-affinity",
    "pods",
    plain_pod(
        "p",
        {"labels": {"app": "a", "rev": "1"}},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector(),
                "matchLabelKeys": ["rev"],
            }
        ],
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": selector()}
                ]
            }
        },
    ),
)
stored(
    "pod-own-tolerations",
    "pods",
    plain_pod(
        tolerations=[
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 5,
            }
        ]
    ),
)
stored("pod-tolerates-everything", "pods", plain_pod(tolerations=[{"operator": "Exists"}]))
stored("pod-toleration-operator-is-left-alone", "pods", plain_pod(tolerations=[{"key": "a", "value": "b"}]))
stored(
    "pod-security-context",
    "pods",
    plain_pod(securityContext={"runAsUser": 5}, containers=[container(securityContext={"privileged": True})]),
)
stored("deployment", "deployments", deployment())
stored("deployment-recreate", "deployments", deployment(strategy={"type": "Recreate"}))
stored(
    "deployment-partial-rolling-update",
    "deployments",
    deployment(strategy={"rollingUpdate": {"maxSurge": 3}}),
)
stored("deployment-zero-replicas", "deployments", deployment(replicas=0))
stored("replicaset", "replicasets", replica_set())
stored("statefulset", "statefulsets", stateful_set())
stored(
    "statefulset-with-claims",
    "statefulsets",
    stateful_set(
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim()["spec"]}],
        template=template(containers=[container(volumeMounts=[{"name": "data", "mountPath": "/d"}])]),
    ),
)
stored("statefulset-partition", "statefulsets", stateful_set(updateStrategy={"type": "OnDelete"}))
stored("daemonset", "daemonsets", daemon_set())
stored("daemonset-on-delete", "daemonsets", daemon_set(updateStrategy={"type": "OnDelete"}))
stored("replicationcontroller", "replicationcontrollers", replication_controller())
stored("job", "jobs", job())
stored("job-parallel", "jobs", job(parallelism=3))
stored(
    "job-indexed", "jobs", job(completionMode="Indexed", completions=3, parallelism=2, backoffLimitPerIndex=1)
)
stored(
    "job-manual-selector",
    "jobs",
    job(
        manualSelector=True,
        selector=selector(),
        template={
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [container()], "restartPolicy": "OnFailure"},
        },
    ),
)
stored(
    "job-pod-failure-policy",
    "jobs",
    job(
        podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    ),
)
stored("cronjob", "cronjobs", cron_job())
stored("cronjob-time-zone", "cronjobs", cron_job(timeZone="Europe/Berlin", concurrencyPolicy="Forbid"))
stored("service", "services", service())
stored("service-node-port", "services", service(type="NodePort", ports=[{"port": 80, "targetPort": "web"}]))
stored("service-load-balancer", "services", service(type="LoadBalancer"))
stored("service-headless", "services", service(clusterIP="None"))
stored(
    "service-external-name",
    "services",
    thing("v1", "Service", "svc", spec={"type": "ExternalName", "externalName": "x.example.com"}),
)
stored("service-client-ip-affinity", "services", service(sessionAffinity="ClientIP"))
stored("service-without-selector", "services", thing("v1", "Service", "svc", spec={"ports": [{"port": 80}]}))
stored(
    "service-several-ports",
    "services",
    service(ports=[{"port": 80, "name": "a"}, {"port": 53, "name": "b", "protocol": "UDP"}]),
)
stored("claim", "persistentvolumeclaims", claim())
stored("claim-block", "persistentvolumeclaims", claim(volumeMode="Block", storageClassName="fast"))
stored("volume", "persistentvolumes", volume())
stored(
    "volume-reclaim-delete",
    "persistentvolumes",
    volume(
        persistentVolumeReclaimPolicy="Delete", storageClassName="x", claimRef={"name": "a", "namespace": "b"}
    ),
)
stored("horizontalpodautoscaler", "horizontalpodautoscalers", autoscaler())
stored(
    "horizontalpodautoscaler-behavior",
    "horizontalpodautoscalers",
    autoscaler(
        behavior={"scaleDown": {"stabilizationWindowSeconds": 5}},
        metrics=[
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1000Mi"}},
            }
        ],
    ),
)
stored("poddisruptionbudget", "poddisruptionbudgets", budget(maxUnavailable="50%"))
stored("ingress", "ingresses", ingress())
stored(
    "ingress-rules",
    "ingresses",
    ingress(
        rules=[
            {
                "host": "x.example.com",
                "http": {
                    "paths": [
                        {
                            "path": "/",
                            "pathType": "Prefix",
                            "backend": {"service": {"name": "s", "port": {"name": "web"}}},
                        }
                    ]
                },
            }
        ],
        tls=[{"hosts": ["x.example.com"], "secretName": "t"}],
    ),
)
stored("networkpolicy", "networkpolicies", network_policy())
stored(
    "networkpolicy-egress",
    "networkpolicies",
    network_policy(egress=[{"ports": [{"port": 53}], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
)
stored("priorityclass", "priorityclasses", priority_class())
stored(
    "lease",
    "leases",
    lease(
        holderIdentity="x",
        leaseDurationSeconds=15,
        renewTime="2020-01-01T00:00:00.000000Z",
        acquireTime="2020-01-01T00:00:00.123456Z",
        leaseTransitions=2,
    ),
)
stored("lease-empty", "leases", lease())
stored("namespace", "namespaces", namespace())
stored("node", "nodes", node())
stored(
    "node-with-status",
    "nodes",
    node(
        "{u}",
        {"labels": {"a": "b"}},
        spec={"podCIDR": "10.1.0.0/24"},
        status={
            "capacity": {"cpu": "4000m", "memory": "8192Mi", "pods": 110},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    ),
)
stored("secret", "secrets", secret())
stored("secret-tls", "secrets", secret(type="kubernetes.io/tls", data={"tls.crt": "", "tls.key": ""}))
stored(
    "configmap-binary", "configmaps", thing("v1", "ConfigMap", "cm", binaryData={"a": "AAE="}, data={"b": ""})
)
stored(
    "serviceaccount",
    "serviceaccounts",
    thing("v1", "ServiceAccount", "sa", automountServiceAccountToken=False),
)
stored(
    "endpoints",
    "endpoints",
    thing(
        "v1",
        "Endpoints",
        "e",
        subsets=[{"addresses": [{"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}], "ports": [{"port": 80}]}],
    ),
)
stored(
    "limitrange",
    "limitranges",
    thing(
        "v1",
        "LimitRange",
        "lr",
        spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "default": {"memory": "1Gi"}}]},
    ),
)
stored(
    "resourcequota",
    "resourcequotas",
    thing("v1", "ResourceQuota", "rq", spec={"hard": {"pods": "5", "cpu": "2000m"}}),
)
stored("podtemplate", "podtemplates", thing("v1", "PodTemplate", "pt", template=template()))
stored(
    "controllerrevision",
    "controllerrevisions",
    thing("apps/v1", "ControllerRevision", "cr", revision=1, data={"spec": {"x": 1}}),
)
CPU = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    }
]
V1 = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
cases(
    "defaults/horizontalpodautoscaler-v2-read-as-v1",
    post("horizontalpodautoscalers", autoscaler(metrics=CPU)),
    get(V1 + "/hpa", take=WHOLE),
)
cases(
    "defaults/horizontalpodautoscaler-v1-read-as-v2",
    post(V1, {**autoscaler(targetCPUUtilizationPercentage=70), "apiVersion": "autoscaling/v1"}, take=WHOLE),
    get("horizontalpodautoscalers/hpa", take=WHOLE),
)
cases(
    "defaults/horizontalpodautoscaler-other-metrics-as-v1-annotation",
    post(
        "horizontalpodautoscalers",
        autoscaler(
            metrics=[
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "m"},
                        "target": {"type": "AverageValue", "averageValue": "5"},
                    },
                }
            ]
        ),
    ),
    get(V1 + "/hpa", take=WHOLE),
)
cases(
    "defaults/horizontalpodautoscaler-v1-list",
    post("horizontalpodautoscalers", autoscaler()),
    get(V1, take=["kind", "apiVersion", "items.*.spec"]),
)
