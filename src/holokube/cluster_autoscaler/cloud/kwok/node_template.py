"""From a Node object to the template of a group, and from that to the nodes of the group.

Upstream takes the object's versions and uid off and copies everything else. What tells of one machine's identity or
past (addresses, pod CIDR, host name, conditions, images, cordons, taints of the node's state) is taken off here as
well: copied into every node, it made all nodes of a group share one host name and one address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holokube.cluster_autoscaler.cloud.kwok.marks import FAKE, GROUP_NAME, provider_id
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.kube import quantity
from holokube.kube.types import JsonObject

HOSTNAME = "kubernetes.io/hostname"
KWOK_TAINT: JsonObject = {"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}
"""Upstream's: keeps the pods of a real cluster away from nodes where nothing really runs."""
METRICS_PATH = "metrics.k8s.io/resource-metrics-path"
KUBELET_VERSION = "fake"
DEFAULT_PODS = "110"
KUBE_PROXY_CPU = "100m"
_SYSTEM_CLUSTER_CRITICAL = 2_000_000_000

_NAME_SPACE = 57
"""A host name is a label value of at most 63 characters; six go to the dash and the letters."""

_PASSING_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "csi.volume.kubernetes.io/nodeid",
    METRICS_PATH,
)
_SET_LABEL = "holokube.dev/node-set"
"""Of nodes that ``holokube scale`` counts and removes as its own."""
_OF_THE_MOMENT = (
    "holokube.dev/fault",
    "holokube.dev/reboot",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled",
)
"""Labels and annotations that in a file are meant for all nodes, and on a live node for that one."""
_STATE_TAINT_PREFIX = "node.kubernetes.io/"
_AUTOSCALER_TAINTS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")
_MACHINE_INFO = ("machineID", "systemUUID", "bootID")


def check_node(node: Any, who: str, problems: Problems) -> bool:
    """Whether an object has the shape of a Node; what is not said so is a problem."""
    before = len(problems.errors)
    if not isinstance(node.get("metadata") or {}, Mapping):
        problems.error(f"{who}: metadata must be an object")
        return False
    meta = node.get("metadata") or {}
    for name in ("labels", "annotations"):
        entries = meta.get(name) or {}
        if not isinstance(entries, Mapping):
            problems.error(f"{who}: metadata.{name} must be an object")
            continue
        for key, value in entries.items():
            if not isinstance(value, str):
                problems.error(f"{who}: metadata.{name}[{key}] is {value!r}, not a string: write it in quotes")
    for name, kind in (("spec", Mapping), ("status", Mapping)):
        if not isinstance(node.get(name) or {}, kind):
            problems.error(f"{who}: {name} must be an object")
    if len(problems.errors) > before:
        return False
    if not isinstance((node.get("spec") or {}).get("taints") or [], Sequence):
        problems.error(f"{who}: spec.taints must be a list")
    return len(problems.errors) == before


def sanitised(node: JsonObject, group: str, who: str, problems: Problems, *, taint: bool, live: bool) -> JsonObject:
    """The template of a group. ``live`` objects come from the cluster itself, faults of the moment included."""
    meta, spec = node.get("metadata") or {}, node.get("spec") or {}
    name = f"kwok-fake-{meta.get('name') or group}"
    passing = (*_PASSING_ANNOTATIONS, *(_OF_THE_MOMENT if live else ()))
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if key not in passing}
    labels = {
        key: text
        for key, text in (meta.get("labels") or {}).items()
        if key != _SET_LABEL and not (live and key in _OF_THE_MOMENT)
    }
    taints = [dict(each) for each in spec.get("taints") or () if not _is_passing_taint(each)]
    if taint and not any(each.get("key") == KWOK_TAINT["key"] for each in taints):
        taints.append(dict(KWOK_TAINT))
    template: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, HOSTNAME: name},
            "annotations": {**annotations, FAKE[0]: FAKE[1], GROUP_NAME: group},
        },
        "spec": {"providerID": provider_id(name), **({"taints": taints} if taints else {})},
        "status": _status(node.get("status") or {}, who, problems),
    }
    return template


def _status(status: Mapping[str, Any], who: str, problems: Problems) -> JsonObject:
    capacity = dict(status.get("capacity") or status.get("allocatable") or {})
    allocatable = dict(status.get("allocatable") or capacity)
    for field, amounts in (("capacity", capacity), ("allocatable", allocatable)):
        for name, amount in amounts.items():
            try:
                negative = quantity.parse(amount).sign() < 0
            except (ValueError, TypeError) as error:
                problems.error(f"{who}: status.{field}.{name} is {amount!r}: {error}")
            else:
                if negative:
                    problems.error(f"{who}: status.{field}.{name} is negative")
    for name in ("cpu", "memory"):
        if name not in allocatable:
            problems.error(f"{who}: status.allocatable has no {name}, so no pod would ever fit")
    if "pods" not in allocatable:
        problems.warn(f"{who}: status.allocatable has no pods; {DEFAULT_PODS} are taken")
        capacity.setdefault("pods", DEFAULT_PODS)
        allocatable["pods"] = capacity["pods"]
    info = {key: text for key, text in (status.get("nodeInfo") or {}).items() if key not in _MACHINE_INFO}
    cleaned: JsonObject = {
        "capacity": capacity,
        "allocatable": allocatable,
        "nodeInfo": {**info, "kubeletVersion": KUBELET_VERSION},
    }
    return cleaned


def _is_passing_taint(taint: Mapping[str, Any]) -> bool:
    """Whether a taint tells of the state of one machine rather than of its kind."""
    key = str(taint.get("key", ""))
    return key.startswith(_STATE_TAINT_PREFIX) or key in _AUTOSCALER_TAINTS


def node_of(template: JsonObject, name: str) -> JsonObject:
    """A node of the group, as it is created; its fleet tells the rest of the status."""
    meta = template["metadata"]
    path = f"/metrics/nodes/{name}/metrics/resource"
    return {
        **template,
        "metadata": {
            "name": name,
            "labels": {**meta["labels"], HOSTNAME: name},
            "annotations": {**meta["annotations"], METRICS_PATH: path},
        },
        "spec": {**template["spec"], "providerID": provider_id(name)},
    }


def node_info(template: JsonObject, group: str, *, kube_proxy: bool) -> NodeInfo:
    """A node just after boot; with the static pod that upstream counts on every machine, if wanted."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    }
    node = {**template, "status": {**template["status"], "conditions": [ready]}}
    return NodeInfo(node, (_kube_proxy(group, template["metadata"]["name"]),) if kube_proxy else ())


def _kube_proxy(group: str, node_name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"kube-proxy-{group}",
            "namespace": "kube-system",
            "uid": f"kube-proxy-{group}",
            "annotations": {"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "1234567890abcdef"},
            "labels": {"component": "kube-proxy", "tier": "node"},
        },
        "spec": {
            "nodeName": node_name,
            "priority": _SYSTEM_CLUSTER_CRITICAL,
            "containers": [
                {"name": "kube-proxy", "image": "kubeproxy", "resources": {"requests": {"cpu": KUBE_PROXY_CPU}}}
            ],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def name_prefix(group: str) -> str:
    """What names of nodes begin with: the group's name as far as names may be so."""
    text = re.sub(r"[^a-z0-9.-]+", "-", group.lower())
    # Labels of a name, too, begin and end with a letter or digit, and a cut may fall anywhere.
    return re.sub(r"[.-]*\.[.-]*", ".", text)[:_NAME_SPACE].strip("-.") or "kwok"
