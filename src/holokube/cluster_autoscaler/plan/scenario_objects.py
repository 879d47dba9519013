"""The Kubernetes objects that a scenario stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.cluster_autoscaler.plan.scenario import LONG_AGO_S, Group, Node, Pod, Scenario, Template
from holokube.kube import quantity
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

PROVIDER_SCHEME = "plan://"
_API_VERSIONS = {
    "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1",
    "Job": "batch/v1", "ReplicationController": "v1",
}  # fmt: skip


def template_node(group: Group) -> JsonObject:
    """The node that the provider would make."""
    template = group.template
    name = f"{group.id}-template"
    return _node(
        name, template.labels, {}, template.taints, _capacity(template), provider_id=provider_id_of(group.id, name),
        created=None, ready=True)


def objects_of(scenario: Scenario, now_s: float) -> list[JsonObject]:
    """Everything the cluster holds."""
    nodes = [
        _node(
            node.name, node.labels, node.annotations, node.taints, _capacity(node),
            provider_id=provider_id_of(node.group, node.name), created=format_time(now_s - node.age_seconds),
            ready=node.ready)
        for node in scenario.nodes
    ]
    pods = [_pod(pod, name, now_s) for pod in scenario.pods for name in pod.names]
    given = [
        *(_typed(obj, "apps/v1", "DaemonSet") for obj in scenario.daemon_sets),
        *(_typed(obj, "policy/v1", "PodDisruptionBudget") for obj in scenario.pdbs),
        *(_typed(obj, "v1", "ConfigMap") for obj in scenario.config_maps),
    ]
    return [*nodes, *given, *_owners(scenario, now_s), *pods]


def provider_id_of(group_id: str, node_name: str) -> str:
    """What the provider knows a node by."""
    return f"{PROVIDER_SCHEME}{group_id or '-'}/{node_name}"


def _capacity(item: Template | Node) -> dict[str, str]:
    given = {"cpu": item.cpu, "memory": item.memory, "pods": item.pods, **item.extra}
    return {name: quantity.canonical(amount) for name, amount in given.items()}


def _node(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], taints: list[dict[str, Any]],
    capacity: dict[str, str], *, provider_id: str, created: str | None, ready: bool,
) -> JsonObject:  # fmt: skip
    metadata: JsonObject = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    if not ready:
        condition |= {"status": "False", "reason": "KubeletNotReady"}
    if created is not None:
        metadata["creationTimestamp"] = created
        condition |= {"lastTransitionTime": created, "lastHeartbeatTime": created}
    spec: JsonObject = {"providerID": provider_id}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec,
        "status": {"capacity": capacity, "allocatable": dict(capacity), "conditions": [condition]},
    }


def _pod(pod: Pod, name: str, now_s: float) -> JsonObject:
    created = format_time(now_s - pod.age_seconds)
    metadata: JsonObject = {
        "name": name, "namespace": pod.namespace, "creationTimestamp": created, "uid": f"pod-{pod.namespace}-{name}"}
    if pod.labels:
        metadata["labels"] = dict(pod.labels)
    if pod.annotations:
        metadata["annotations"] = dict(pod.annotations)
    if pod.owner_kind:
        metadata["ownerReferences"] = [{
            "apiVersion": _API_VERSIONS.get(pod.owner_kind, "example.com/v1"), "kind": pod.owner_kind,
            "name": pod.owner_name, "uid": _owner_uid(pod), "controller": True,
        }]
    spec = _pod_spec(pod)
    scheduled: JsonObject = {"type": "PodScheduled", "status": "True", "lastTransitionTime": created}
    if pod.node:
        spec["nodeName"] = pod.node
        status: JsonObject = {"phase": "Running", "conditions": [scheduled]}
    else:
        scheduled |= {"status": "False", "reason": "Unschedulable"}
        status = {"phase": "Pending", "conditions": [scheduled]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _pod_spec(pod: Pod) -> JsonObject:
    requests = {"cpu": pod.cpu, "memory": pod.memory, **pod.extra}
    asked = {name: quantity.canonical(amount) for name, amount in requests.items() if quantity.parse(amount)}
    resources: JsonObject = {"requests": asked}
    extended = {name: amount for name, amount in asked.items() if "/" in name}
    if extended:
        resources["limits"] = extended
    spec: JsonObject = {"containers": [{"name": "main", "image": "registry.k8s.io/pause", "resources": resources}]}
    optional = {
        "priority": pod.priority, "nodeSelector": pod.node_selector, "tolerations": pod.tolerations,
        "affinity": pod.affinity, "topologySpreadConstraints": pod.topology_spread_constraints,
        "volumes": pod.volumes,
    }
    return spec | {name: value for name, value in optional.items() if value not in (None, {}, [])}


def _owner_uid(pod: Pod) -> str:
    return f"{pod.owner_kind}-{pod.namespace}-{pod.owner_name}".lower()


def _owners(scenario: Scenario, now_s: float) -> list[JsonObject]:
    """The controllers that pods name, with as many replicas as they have pods."""
    counts: dict[tuple[str, str, str], int] = {}
    first: dict[tuple[str, str, str], Pod] = {}
    for pod in scenario.pods:
        key = pod.owner_kind, pod.namespace, pod.owner_name
        if pod.owner_kind in _API_VERSIONS:
            counts[key] = counts.get(key, 0) + len(pod.names)
            first.setdefault(key, pod)
    given = {obj.get("metadata", {}).get("name") for obj in scenario.daemon_sets}
    return [
        _owner(first[key], count, now_s) for key, count in counts.items()
        if not (key[0] == "DaemonSet" and key[2] in given)
    ]


def _owner(pod: Pod, replicas: int, now_s: float) -> JsonObject:
    labels = pod.labels or {"app": pod.owner_name}
    template: JsonObject = {"metadata": {"labels": dict(labels)}, "spec": _pod_spec(pod)}
    spec: JsonObject = {"selector": {"matchLabels": dict(labels)}, "template": template}
    if pod.owner_kind == "ReplicationController":
        spec["selector"] = dict(labels)
    if pod.owner_kind == "Job":
        spec = {"template": template, "parallelism": replicas, "completions": replicas, "manualSelector": True} | spec
        template["spec"]["restartPolicy"] = "OnFailure"
    elif pod.owner_kind != "DaemonSet":
        spec["replicas"] = replicas
    if pod.owner_kind == "StatefulSet":
        spec["serviceName"] = pod.owner_name
    return {
        "apiVersion": _API_VERSIONS[pod.owner_kind], "kind": pod.owner_kind, "spec": spec,
        "metadata": {
            "name": pod.owner_name, "namespace": pod.namespace, "uid": _owner_uid(pod),
            "creationTimestamp": format_time(now_s - LONG_AGO_S),
        },
    }


def _typed(obj: JsonObject, api_version: str, kind: str) -> JsonObject:
    typed = {"apiVersion": api_version, "kind": kind, **obj}
    metadata = dict(typed.get("metadata") or {})
    metadata.setdefault("namespace", "default")
    return {**typed, "metadata": metadata}
