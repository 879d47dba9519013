"""What the objects of both clusters say about hollow nodes. All pure.

A machine is a pod of the external cluster, its request a ReplicationController with one replica, and its node has the
pod's name. Labels alone say what belongs together, so that nothing is lost with the process that made it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from holokube.cluster_autoscaler.cloud.provider import Instance, InstanceState
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject

NAMESPACE: Final = "kubemark"
GROUP_LABEL: Final = "autoscaling.k8s.io/nodegroup"
NAME_LABEL: Final = "name"
"""Label of a pod with the name of its ReplicationController."""
ID_PREFIX: Final = "kubemark://"


def group_of(obj: Mapping[str, Any]) -> str:
    """The group of a controller, pod or node; empty if it has none."""
    return str((obj["metadata"].get("labels") or {}).get(GROUP_LABEL, ""))


def instance_id(machine: str) -> str:
    """The id of the machine with a pod of that name."""
    return ID_PREFIX + machine


def machine_of(node: Mapping[str, Any]) -> str:
    """The name of a node's machine, by its provider id, which fake nodes have too; empty if it is not kubemark's."""
    provider_id = str((node.get("spec") or {}).get("providerID") or "")
    return provider_id.removeprefix(ID_PREFIX) if provider_id.startswith(ID_PREFIX) else ""


def is_leaving(obj: Mapping[str, Any]) -> bool:
    """Whether the object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_live(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is, or will be, a machine: a controller replaces pods that end or leave."""
    return not is_leaving(pod) and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")


def replicas_of(controller: Mapping[str, Any]) -> int:
    """How many machines a controller stands for; one without any is a template."""
    replicas = (controller.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def controller_of(pod: Mapping[str, Any]) -> str:
    """The name of the ReplicationController of a pod."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "ReplicationController":
            return str(owner["name"])
    return str((pod["metadata"].get("labels") or {}).get(NAME_LABEL, ""))


def instance_of(pod: Mapping[str, Any], nodes: Collection[str]) -> Instance | None:
    """The machine that a pod is; None of one that has ended."""
    name = pod["metadata"]["name"]
    if is_leaving(pod):
        return Instance(instance_id(name), InstanceState.DELETING)
    if not is_live(pod):
        return None
    return Instance(instance_id(name), InstanceState.RUNNING if name in nodes else InstanceState.CREATING)


def is_not_ready(node: Mapping[str, Any]) -> bool:
    """Whether the control plane knows that the kubelet is gone; a node that never reported is not known to be."""
    ready = get_condition(node, "Ready")
    return ready is not None and ready.get("status") != "True"


def is_left_behind(node: Mapping[str, Any], groups: Collection[str], removed: Collection[str]) -> bool:
    """Whether a Node would have to go if its machine is gone: it is ours, and its kubelet is silent.

    Ours are nodes that carry the label of one of the groups, and those that were removed by name.
    """
    name = node["metadata"]["name"]
    return machine_of(node) == name and (group_of(node) in groups or name in removed) and is_not_ready(node)


def cancellable(
    controllers: Iterable[JsonObject], pods: Mapping[str, Sequence[JsonObject]], nodes: Collection[str]
) -> list[JsonObject]:
    """The controllers none of whose machines has become a node, the least advanced first.

    ``pods`` are those of each controller by its name, ``nodes`` the names of the nodes that there are.
    """
    ranked: list[tuple[int, JsonObject]] = []
    for controller in controllers:
        if replicas_of(controller) != 1:
            continue
        own = pods.get(controller["metadata"]["name"], ())
        if any(pod["metadata"]["name"] in nodes for pod in own):
            continue
        ranked.append((max(map(_progress, own), default=0), controller))
    ranked.sort(key=lambda entry: entry[0])
    return [controller for _, controller in ranked]


def _progress(pod: JsonObject) -> int:
    if (pod.get("status") or {}).get("phase") == "Running":
        return 3
    return 2 if (pod.get("spec") or {}).get("nodeName") else 1
