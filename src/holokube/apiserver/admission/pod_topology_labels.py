"""PodTopologyLabels: a pod carries the zone and the region of its node, for the downward API."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.admission.base import PODS, Attributes, Plugin
from holokube.kube.types import JsonObject

LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    resources = frozenset({PODS})
    subresources = frozenset({"", "binding"})
    looks_at = frozenset()
    goes_by_spec = True

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:
        spec = (attributes.obj or {}).get("spec") or {}
        return None if spec.get("nodeName") else self.looks_at

    def mutate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None:
            return
        if attributes.subresource:
            target = obj.get("target") or {}
            node_name = target.get("name") if target.get("kind") == "Node" else ""
        else:
            node_name = (obj.get("spec") or {}).get("nodeName")
        if not node_name:
            return
        node = attributes.lookup.find("", "nodes", "", node_name)
        labels = (node["metadata"].get("labels") or {}) if node is not None else {}
        copied = topology_of(labels)
        if copied:
            meta: JsonObject = obj.setdefault("metadata", {})
            # The node's word counts, whatever the pod or the binding says.
            meta["labels"] = {**(meta.get("labels") or {}), **copied}


def topology_of(labels: JsonObject) -> JsonObject:
    """The labels of a node that its pods get."""
    return {key: labels[key] for key in LABELS if key in labels}
