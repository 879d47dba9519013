"""Which nodes a DaemonSet's pods belong on, and the pod for one node."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.daemons import with_daemon_tolerations
from holokube.kube.taints import find_untolerated, taints_of, tolerations_of
from holokube.kube.types import JsonObject
from holokube.workloads.controller_history import REVISION_HASH
from holokube.workloads.ownership import controller_of
from holokube.workloads.pod_control import pod_from_template

DAEMON_NODE_INDEX = "daemon-node"
TEMPLATE_GENERATION = "pod-template-generation"
_TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"


def template_generation(daemon_set: Mapping[str, Any]) -> str:
    """The count of template changes, by which very old pods are labelled; empty if there is none."""
    text = (daemon_set["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION_ANNOTATION, "")
    return text if text.isdecimal() else ""


def is_updated(pod: Mapping[str, Any], digest: str, generation: str) -> bool:
    """Whether a pod is of the present template."""
    labels = pod["metadata"].get("labels") or {}
    by_hash = bool(digest) and labels.get(REVISION_HASH) == digest
    return by_hash or (bool(generation) and labels.get(TEMPLATE_GENERATION) == generation)


def daemon_pod(daemon_set: JsonObject, node: str, digest: str) -> JsonObject:
    """The pod for one node, tied to it by affinity to the node's name; the scheduler binds it."""
    template = daemon_set["spec"]["template"]
    pod = pod_from_template(template, daemon_set)
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    generation = template_generation(daemon_set)
    if generation:
        labels[TEMPLATE_GENERATION] = generation
    labels[REVISION_HASH] = digest
    pod["metadata"]["labels"] = labels
    pod["spec"] = with_daemon_tolerations(template.get("spec") or {})
    affinity = dict(pod["spec"].get("affinity") or {})
    on_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity["nodeAffinity"] = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [on_node]}]},
    }
    pod["spec"]["affinity"] = affinity
    return pod


def target_node(pod: Mapping[str, Any]) -> str:
    """The node a pod is on or meant for; empty if it does not say."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                values = field.get("values") or []
                return str(values[0]) if len(values) == 1 else ""
    return ""


def daemon_node_index(pod: JsonObject) -> list[str]:
    """Lists daemon pods under the node they are on or meant for."""
    reference = controller_of(pod)
    if reference is None or reference.get("kind") != "DaemonSet":
        return []
    node = target_node(pod)
    return [node] if node else []


class Eligibility:
    """Answers, for one state of a DaemonSet's template, which nodes it may run on.

    Answers are kept as long as a node's labels and taints stay the same, since nodes report their status far
    more often than those change.
    """

    def __init__(self, daemon_set: JsonObject) -> None:
        spec = daemon_set["spec"]["template"].get("spec") or {}
        self._node_name = str(spec.get("nodeName") or "")
        pod = {"spec": with_daemon_tolerations(spec)}
        self._affinity = RequiredNodeAffinity.of_pod(pod)
        self._tolerations = tolerations_of(pod)
        self._known: dict[str, tuple[Any, Any, tuple[bool, bool]]] = {}

    def of(self, node: JsonObject) -> tuple[bool, bool]:
        """Whether a pod should be started there, and whether one that runs there may stay."""
        meta = node["metadata"]
        labels, taints = meta.get("labels"), (node.get("spec") or {}).get("taints")
        known = self._known.get(meta["name"])
        if known is not None and known[0] == labels and known[1] == taints:
            return known[2]
        answer = self._decide(node)
        self._known[meta["name"]] = (labels, taints, answer)
        return answer

    def forget_all_but(self, nodes: Collection[str]) -> None:
        """Drops answers on nodes that are gone, once they are the most."""
        if len(self._known) > 2 * len(nodes) + 64:
            self._known = {name: known for name, known in self._known.items() if name in nodes}

    def _decide(self, node: JsonObject) -> tuple[bool, bool]:
        if self._node_name and self._node_name != node["metadata"]["name"]:
            return False, False
        if not self._affinity.matches_node(node):
            return False, False
        taints = taints_of(node)
        if find_untolerated(taints, self._tolerations) is None:
            return True, True
        return False, find_untolerated(taints, self._tolerations, effects=("NoExecute",)) is None
