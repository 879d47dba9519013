"""Which machines of a group have become nodes."""

from __future__ import annotations

from collections.abc import Iterable

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.objects import annotations_of, name_of, provider_id
from holokube.kube.types import JsonObject

UPCOMING = "cluster-autoscaler.k8s.io/upcoming-node"
"""The annotation of the fake nodes that stand for machines asked for."""

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def is_upcoming(node: JsonObject) -> bool:
    """Whether a node of the snapshot is only expected."""
    return annotations_of(node).get(UPCOMING) in _TRUE


def registered_nodes(group: GroupView, nodes: Iterable[JsonObject]) -> list[str]:
    """The names of the nodes that are machines of a group; failed machines that never register are not waited for."""
    ids = {instance.id for instance in group.instances}
    return [name_of(node) for node in nodes if provider_id(node) in ids and not is_upcoming(node)]
