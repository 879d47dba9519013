"""One pod for each DaemonSet, as a new node would get it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.kube.types import JsonObject

BY_DAEMON_SET: Final = "karpenter/daemon-set"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def daemon_sets_of(pod: JsonObject) -> Iterable[str]:
    """For an index of pods: the uid of the DaemonSet that controls it."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "DaemonSet":
            return (str(owner["uid"]),)
    return ()


def daemon_pod(daemon_set: JsonObject, live: Iterable[JsonObject]) -> JsonObject:
    """The newest live pod, which shows what admission made of it; without one, the template.

    The DaemonSet controller ties each of its pods to a node by affinity, so the template's own is put back.
    """
    template = daemon_set["spec"].get("template") or {}
    newest = max(live, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""), default=None)
    pod = newest if newest is not None else _from_template(daemon_set, template)
    required = (((template.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key not in ("nodeName", "affinity")}
    affinity = dict((pod.get("spec") or {}).get("affinity") or {})
    node_affinity = {k: v for k, v in (affinity.pop("nodeAffinity", None) or {}).items() if k != _REQUIRED}
    if required is not None:
        node_affinity[_REQUIRED] = required
    if node_affinity:
        affinity["nodeAffinity"] = node_affinity
    if affinity:
        spec["affinity"] = affinity
    return {**pod, "spec": spec}


def _from_template(daemon_set: JsonObject, template: JsonObject) -> JsonObject:
    metadata = daemon_set["metadata"]
    owner = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": metadata["name"], "uid": metadata.get("uid", ""),
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **(template.get("metadata") or {}),
            "name": metadata["name"], "namespace": metadata.get("namespace", ""), "ownerReferences": [owner],
        },
        "spec": template.get("spec") or {},
    }  # fmt: skip
