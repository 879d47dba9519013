"""A node and a pod that use as many kinds of fields as can be."""

from __future__ import annotations

from holokube.kube.types import JsonObject


def full_node(name: str = "pool-a-x7k2p") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "z-1", "empty": ""},
            "annotations": {"kwok.x-k8s.io/node": "fake", "note": "größer"},
            "finalizers": ["example.com/hold"],
        },
        "spec": {
            "podCIDR": "10.4.7.0/24",
            "podCIDRs": ["10.4.7.0/24"],
            "providerID": f"kwok:{name}",
            "unschedulable": True,
            "taints": [
                {"key": "kwok-provider", "value": "true", "effect": "NoSchedule"},
                {"key": "late", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
            ],
        },
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
            "allocatable": {"cpu": "7910m", "memory": "31Gi", "pods": "110", "nvidia.com/gpu": "2"},
            "conditions": [
                {
                    "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
                    "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:01Z",
                }
            ],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "Linux",
                "containerRuntimeVersion": "containerd://2.0", "kubeletVersion": "fake", "kubeProxyVersion": "fake",
                "operatingSystem": "linux", "architecture": "arm64",
            },
            "images": [{"names": ["registry.example/a:1", "registry.example/a@sha256:1"], "sizeBytes": 5_000_000_000}],
        },
    }  # fmt: skip


def full_pod(name: str = "web-0", namespace: str = "default") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": "web"},
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1",
                    "controller": True, "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "initContainers": [
                {
                    "name": "first", "image": "busybox", "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "10m"}},
                }
            ],
            "containers": [
                {
                    "name": "web",
                    "image": "nginx",
                    "args": ["-v", ""],
                    "env": [
                        {"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
                    ],
                    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
                    "resources": {
                        "requests": {"cpu": "900m", "memory": "1Gi", "ephemeral-storage": "2Gi"},
                        "limits": {"memory": "1Gi"},
                    },
                    "livenessProbe": {
                        "httpGet": {"path": "/", "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 3,
                        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
                    },
                    "readinessProbe": {
                        "tcpSocket": {"port": 80}, "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
                        "failureThreshold": 3,
                    },
                    "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": False},
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                }
            ],
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                {"name": "host", "hostPath": {"path": "/var", "type": ""}},
            ],
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
            "tolerations": [
                {"key": "kwok-provider", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 0,
                },
            ],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "mem", "operator": "Gt", "values": ["7"]}]}
                        ]
                    }
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "podAffinityTerm": {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"app": "web"}},
                            },
                        }
                    ]
                },
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "schedulerName": "default-scheduler",
            "hostNetwork": False,
        },
    }  # fmt: skip
