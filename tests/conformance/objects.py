"""The smallest valid objects of each kind; cases change what they are about."""

from __future__ import annotations

from typing import Any

J = dict[str, Any]
IMAGE = "registry.example/pause:1"


def meta(name: str, **more: Any) -> J:
    return {"name": name, **more}


def thing(api_version: str, kind: str, name: str, /, metadata: J | None = None, **more: Any) -> J:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **more}


def container(name: str = "c", **more: Any) -> J:
    return {"name": name, "image": IMAGE, **more}


def pod(name: str = "p", metadata: J | None = None, **spec: Any) -> J:
    return thing("v1", "Pod", name, metadata, spec={"containers": [container()], **spec})


def plain_pod(name: str = "p", metadata: J | None = None, **spec: Any) -> J:
    """A pod that can be replaced: no token volume with a random name is added to it."""
    return pod(name, metadata, serviceAccountName="default", automountServiceAccountToken=False, **spec)


def template(labels: J | None = None, **spec: Any) -> J:
    return {"metadata": {"labels": labels or {"app": "a"}}, "spec": {"containers": [container()], **spec}}


def selector(labels: J | None = None) -> J:
    return {"matchLabels": labels or {"app": "a"}}


def deployment(name: str = "d", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "apps/v1", "Deployment", name, metadata, spec={"selector": selector(), "template": template(), **spec}
    )


def replica_set(name: str = "rs", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "apps/v1", "ReplicaSet", name, metadata, spec={"selector": selector(), "template": template(), **spec}
    )


def stateful_set(name: str = "sts", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "apps/v1",
        "StatefulSet",
        name,
        metadata,
        spec={"selector": selector(), "serviceName": "s", "template": template(), **spec},
    )


def daemon_set(name: str = "ds", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "apps/v1", "DaemonSet", name, metadata, spec={"selector": selector(), "template": template(), **spec}
    )


def replication_controller(name: str = "rc", metadata: J | None = None, **spec: Any) -> J:
    return thing("v1", "ReplicationController", name, metadata, spec={"template": template(), **spec})


def job(name: str = "j", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "batch/v1",
        "Job",
        name,
        metadata,
        spec={"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}, **spec},
    )


def cron_job(name: str = "cj", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "batch/v1",
        "CronJob",
        name,
        metadata,
        spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": job()["spec"]}, **spec},
    )


def config_map(name: str = "cm", metadata: J | None = None, **data: str) -> J:
    return thing("v1", "ConfigMap", name, metadata, **({"data": data} if data else {}))


def secret(name: str = "s", metadata: J | None = None, **more: Any) -> J:
    return thing("v1", "Secret", name, metadata, **more)


def service(name: str = "svc", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "v1", "Service", name, metadata, spec={"selector": {"app": "a"}, "ports": [{"port": 80}], **spec}
    )


def node(name: str = "{u}", metadata: J | None = None, **more: Any) -> J:
    return thing("v1", "Node", name, metadata, **more)


def namespace(name: str = "{u}", metadata: J | None = None, **more: Any) -> J:
    return thing("v1", "Namespace", name, metadata, **more)


def claim(name: str = "pvc", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "v1",
        "PersistentVolumeClaim",
        name,
        metadata,
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
    )


def volume(name: str = "{u}", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "v1",
        "PersistentVolume",
        name,
        metadata,
        spec={
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/tmp/x"},
            **spec,
        },
    )


def budget(name: str = "pdb", metadata: J | None = None, **spec: Any) -> J:
    return thing("policy/v1", "PodDisruptionBudget", name, metadata, spec={"selector": selector(), **spec})


def autoscaler(name: str = "hpa", metadata: J | None = None, **spec: Any) -> J:
    return thing(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        name,
        metadata,
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 3,
            **spec,
        },
    )


def lease(name: str = "l", metadata: J | None = None, **spec: Any) -> J:
    return thing("coordination.k8s.io/v1", "Lease", name, metadata, spec=spec)


def priority_class(name: str = "{u}", metadata: J | None = None, **more: Any) -> J:
    return thing("scheduling.k8s.io/v1", "PriorityClass", name, metadata, **{"value": 100, **more})


def storage_class(name: str = "{u}", metadata: J | None = None, **more: Any) -> J:
    return thing(
        "storage.k8s.io/v1", "StorageClass", name, metadata, **{"provisioner": "example.com/x", **more}
    )


def ingress(name: str = "ing", metadata: J | None = None, **spec: Any) -> J:
    backend = {"service": {"name": "svc", "port": {"number": 80}}}
    return thing("networking.k8s.io/v1", "Ingress", name, metadata, spec={"defaultBackend": backend, **spec})


def network_policy(name: str = "np", metadata: J | None = None, **spec: Any) -> J:
    return thing("networking.k8s.io/v1", "NetworkPolicy", name, metadata, spec={"podSelector": {}, **spec})


def role(name: str = "r", metadata: J | None = None, **more: Any) -> J:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    return thing("rbac.authorization.k8s.io/v1", "Role", name, metadata, **{"rules": rules, **more})


def role_binding(name: str = "rb", metadata: J | None = None, **more: Any) -> J:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    subjects = [
        {"kind": "User", "name": "jane"},
        {"kind": "ServiceAccount", "name": "default", "namespace": "{ns}"},
    ]
    return thing(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        name,
        metadata,
        **{"roleRef": ref, "subjects": subjects, **more},
    )


def crd(schema: J | None = None, version: J | None = None, **spec: Any) -> J:
    """widgets.{u}.example.com with one version v1; `version` adds to that version, `spec` to the whole."""
    open_schema = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return thing(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.{u}.example.com",
        spec={
            "group": "{u}.example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": open_schema},
                    **(version or {}),
                }
            ],
            **spec,
        },
    )


WIDGETS = "/apis/{u}.example.com/v1/namespaces/{ns}/widgets"


def widget(name: str = "w", metadata: J | None = None, /, **more: Any) -> J:
    return thing("{u}.example.com/v1", "Widget", name, metadata, **more)
