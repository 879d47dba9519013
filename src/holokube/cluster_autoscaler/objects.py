"""Small readings of Pod and Node objects, as upstream reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from holokube.kube import quantity, taints
from holokube.kube.resources import CPU, MEMORY, pod_requests
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

DAEMON_SET_POD_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
SCALE_UP_DELAY_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
SAFE_TO_EVICT_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_TO_EVICT_VOLUMES_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
SOURCE_ANNOTATION: Final = "kubernetes.io/config.source"

RESOURCE_UNREADY: Final = "cluster-autoscaler.kubernetes.io/resource-not-ready"
"""Why a node that says it is ready is not: its accelerators are still missing."""
STARTUP_TAINTED: Final = "cluster-autoscaler.kubernetes.io/startup-taint"
"""Why a node that says it is ready is not: it carries a start-up taint."""

GPU_RESOURCES: Final = ("nvidia.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx")
"""Accelerators, in the order in which upstream looks for them."""
_GPU_RESOURCES: Final = frozenset(GPU_RESOURCES)

TPU_PREFIX: Final = "cloud-tpus.google.com/"

LONG_TERMINATING_S: Final = 30.0
"""How much longer than its grace period a pod may take to die before it counts as dead."""
DEFAULT_GRACE_S: Final = 30

_EMPTY: Final[Mapping[str, Any]] = {}
_NOT_READY_TAINTS: Final = frozenset(
    {taints.NODE_NOT_READY, taints.NODE_DISK_PRESSURE, taints.NODE_NETWORK_UNAVAILABLE}
)


# Any object


def metadata_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of an object."""
    return obj.get("metadata") or _EMPTY


def name_of(obj: Mapping[str, Any]) -> str:
    """The name of an object."""
    name: str = metadata_of(obj).get("name") or ""
    return name


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of an object."""
    return metadata_of(obj).get("labels") or _EMPTY


def annotations_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations of an object."""
    return metadata_of(obj).get("annotations") or _EMPTY


def creation_s(obj: Mapping[str, Any]) -> float:
    """When an object was made, in Unix seconds; one that does not say is as old as can be."""
    return time_s((obj.get("metadata") or _EMPTY).get("creationTimestamp"))


def time_s(text: str | None) -> float:
    """An API time in Unix seconds; a missing one is as long ago as can be, as Go's zero time is."""
    return _parsed_s(text) if text else float("-inf")


@lru_cache(maxsize=65_536)
def _parsed_s(text: str) -> float:
    return parse_time(text).timestamp()


# Pods


def pod_key(pod: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def pod_uid(pod: Mapping[str, Any]) -> str:
    """The uid of a pod; empty if it has none."""
    uid: str = pod["metadata"].get("uid") or ""
    return uid


def pod_identity(pod: Mapping[str, Any]) -> str:
    """What a pod is remembered by: its uid, or ``namespace/name`` if it has none."""
    return pod["metadata"].get("uid") or pod_key(pod)


def controller_of(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner reference that is the controller's."""
    for owner in (pod.get("metadata") or _EMPTY).get("ownerReferences") or ():
        if owner.get("controller"):
            found: Mapping[str, Any] = owner
            return found
    return None


def is_mirror(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is only the reflection of one that a kubelet runs from a file."""
    return MIRROR_ANNOTATION in annotations_of(pod)


def is_static(pod: Mapping[str, Any]) -> bool:
    """Whether the pod came to its kubelet other than through the API server."""
    source = annotations_of(pod).get(SOURCE_ANNOTATION)
    return source is not None and source != "api"


def is_daemon_set_pod(pod: Mapping[str, Any]) -> bool:
    """Whether the pod belongs to a DaemonSet, or asks to be treated as if."""
    metadata = pod.get("metadata") or _EMPTY
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            if owner.get("kind") == "DaemonSet":
                return True
            break
    annotations = metadata.get("annotations")
    return annotations is not None and annotations.get(DAEMON_SET_POD_ANNOTATION) == "true"


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Whether somebody has asked for the pod's deletion."""
    return bool((pod.get("metadata") or _EMPTY).get("deletionTimestamp"))


def is_long_terminating(pod: Mapping[str, Any], now_s: float) -> bool:
    """Whether the pod should have been gone for a while."""
    deleted = metadata_of(pod).get("deletionTimestamp")
    if not deleted:
        return False
    grace_s = (pod.get("spec") or _EMPTY).get("terminationGracePeriodSeconds")
    return time_s(deleted) + (DEFAULT_GRACE_S if grace_s is None else grace_s) + LONG_TERMINATING_S < now_s


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Whether the pod ran to its end, well or badly. It weighs nothing and blocks nobody."""
    return (pod.get("status") or _EMPTY).get("phase") in ("Succeeded", "Failed")


def is_terminal(pod: Mapping[str, Any]) -> bool:
    """Whether the pod will not be started again."""
    phase = (pod.get("status") or _EMPTY).get("phase")
    restart_policy = (pod.get("spec") or _EMPTY).get("restartPolicy")
    return phase == "Failed" or (phase == "Succeeded" and restart_policy in ("Never", "OnFailure"))


def priority_of(pod: Mapping[str, Any]) -> int | None:
    """The priority of a pod; None if nobody gave it one."""
    priority: int | None = (pod.get("spec") or _EMPTY).get("priority")
    return priority


def node_name_of(pod: Mapping[str, Any]) -> str:
    """The node a pod is bound to; empty if it waits for one."""
    return (pod.get("spec") or _EMPTY).get("nodeName") or ""


def condition_of(obj: Mapping[str, Any], condition_type: str) -> Mapping[str, Any] | None:
    """A condition of a pod or a node; the first if there are several."""
    for condition in (obj.get("status") or _EMPTY).get("conditions") or ():
        if condition.get("type") == condition_type:
            found: Mapping[str, Any] = condition
            return found
    return None


def without_node(pod: JsonObject) -> JsonObject:
    """The pod as it was before it was bound; the pod itself if it was not."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName"):
        return pod
    return {**pod, "spec": {name: value for name, value in spec.items() if name != "nodeName"}}


def requests_gpu(pod: Mapping[str, Any]) -> bool:
    """Whether the pod asks for an accelerator."""
    spec = pod.get("spec") or _EMPTY
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            requests = (container.get("resources") or _EMPTY).get("requests")
            if requests and not _GPU_RESOURCES.isdisjoint(requests):
                return True
    return False


def has_tpu_requests(pod: Mapping[str, Any]) -> bool:
    """Whether a container of the pod asks for TPUs by the old way."""
    for container in (pod.get("spec") or _EMPTY).get("containers") or ():
        for name in (container.get("resources") or _EMPTY).get("requests") or ():
            if name.startswith(TPU_PREFIX):
                return True
    return False


def requests_milli(pod: Mapping[str, Any]) -> Mapping[str, int]:
    """What a pod requests in all, in milli-units; a pod in the middle of a resize counts with the larger size."""
    return pod_requests(pod, use_status=True)


# Nodes


class Readiness(NamedTuple):
    """Whether a node can run pods, and since when that is so."""

    is_ready: bool
    changed_s: float
    """The last change of anything that readiness depends on; minus infinity if no time was given."""
    reason: str
    """Why the Ready condition is not true."""


_UNKNOWN_READINESS: Final = Readiness(False, float("-inf"), "")


def readiness_of(node: Mapping[str, Any]) -> Readiness:
    """Whether a node can run pods. One that says nothing about it cannot."""
    found, is_ready, changed_s, reason = False, True, float("-inf"), ""
    for condition in (node.get("status") or _EMPTY).get("conditions") or ():
        kind, value = condition.get("type"), condition.get("status")
        if kind == "Ready":
            found = True
            if value in ("False", "Unknown"):
                is_ready, reason = False, condition.get("reason") or ""
        elif kind in ("DiskPressure", "NetworkUnavailable"):
            is_ready = is_ready and value != "True"
        else:
            continue
        changed_s = max(changed_s, time_s(condition.get("lastTransitionTime")))
    if not found:
        return _UNKNOWN_READINESS
    for taint in (node.get("spec") or _EMPTY).get("taints") or ():
        if taint.get("key") in _NOT_READY_TAINTS:
            is_ready = False
            changed_s = max(changed_s, time_s(taint.get("timeAdded")))
    return Readiness(is_ready, changed_s, reason)


def node_is_ready(node: Mapping[str, Any]) -> bool:
    """Whether a node can run pods."""
    return readiness_of(node).is_ready


def is_cordoned(node: Mapping[str, Any]) -> bool:
    """Whether somebody keeps new pods away from the node."""
    return bool((node.get("spec") or _EMPTY).get("unschedulable"))


def is_ready_and_schedulable(node: Mapping[str, Any]) -> bool:
    """Whether a node counts among the ready ones: it is, and nobody cordoned it."""
    return not is_cordoned(node) and node_is_ready(node)


def provider_id(node: Mapping[str, Any]) -> str:
    """What the provider knows the machine by."""
    return (node.get("spec") or _EMPTY).get("providerID") or ""


def unready_copy(node: JsonObject, reason: str) -> JsonObject:
    """The node with a Ready condition that says it is not, since it was made."""
    status = node.get("status") or {}
    ready: JsonObject = {"type": "Ready", "status": "False", "reason": reason}
    created = metadata_of(node).get("creationTimestamp")
    if created:
        ready["lastTransitionTime"] = created
    others = [condition for condition in status.get("conditions") or () if condition.get("type") != "Ready"]
    return {**node, "status": {**status, "conditions": [ready, *others]}}


def gpu_allocatable(node: Mapping[str, Any]) -> int:
    """How many accelerators a node offers: those of the first kind it has any of."""
    allocatable = (node.get("status") or _EMPTY).get("allocatable") or _EMPTY
    for name in GPU_RESOURCES:
        if name in allocatable:
            devices = quantity.parse(allocatable[name]).value()
            if devices:
                return devices
    return 0


def gpu_resource_name(node: Mapping[str, Any]) -> str:
    """The accelerators a node offers; Nvidia's if it offers none yet."""
    allocatable = (node.get("status") or _EMPTY).get("allocatable") or _EMPTY
    for name in GPU_RESOURCES:
        if name in allocatable and quantity.parse(allocatable[name]).value():
            return name
    return GPU_RESOURCES[0]


def has_gpu(node: Mapping[str, Any], gpu_label: str) -> bool:
    """Whether a node has accelerators, working or not yet."""
    return gpu_label in labels_of(node) or gpu_allocatable(node) > 0


def cores_and_memory(node: Mapping[str, Any]) -> tuple[int, int]:
    """The whole cores (rounded up) and the bytes of a node's capacity; what is negative or missing is none."""
    capacity = (node.get("status") or _EMPTY).get("capacity") or _EMPTY
    cores, memory_bytes = (
        max(quantity.parse(capacity[name]).value(), 0) if name in capacity else 0 for name in (CPU, MEMORY)
    )
    return cores, memory_bytes


def without_unready_gpus(
    nodes: Iterable[JsonObject], ready: Iterable[JsonObject], gpu_label: str
) -> tuple[list[JsonObject], list[JsonObject]]:
    """All nodes and the ready ones, once ready nodes whose accelerators are still missing are taken for unready."""
    unready: dict[str, JsonObject] = {}
    still_ready = []
    for node in ready:
        if gpu_label in labels_of(node) and not gpu_allocatable(node):
            unready[name_of(node)] = unready_copy(node, RESOURCE_UNREADY)
        else:
            still_ready.append(node)
    return [unready.get(name_of(node), node) for node in nodes], still_ready
