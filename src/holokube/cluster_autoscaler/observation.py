"""What one turn sees of the cluster: everything decisions may look at, as it was when the turn began."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from holokube.kube.types import JsonObject

ControllerKey = tuple[str, str, str]
"""(kind, namespace, name)"""


@dataclass(frozen=True, slots=True)
class Observation:
    """The objects of the cluster, in the order the API lists them."""

    now_s: float
    """When the turn began, in Unix seconds: ages and unneeded times are counted from here."""
    nodes: tuple[JsonObject, ...] = ()
    """All nodes, those that only look ready already replaced by their unready copies."""
    pods: tuple[JsonObject, ...] = ()
    """All pods; left out in turns, which keep books of them."""
    daemon_sets: tuple[JsonObject, ...] = ()
    pdbs: tuple[JsonObject, ...] = ()
    controllers: Mapping[ControllerKey, JsonObject] = field(default_factory=dict)
    """ReplicationControllers, ReplicaSets, Jobs and StatefulSets."""
    namespaces: tuple[JsonObject, ...] = ()
    storage: tuple[JsonObject, ...] = ()
    """Claims, volumes, classes, drivers and what nodes say of them, for ``put_storage``."""
    config_maps: Mapping[str, JsonObject] = field(default_factory=dict)
    """Those of the autoscaler's own namespace, by name."""
    group_of_node: Mapping[str, str] = field(default_factory=dict)
    """The id of the group of each node that has one. A node without is not ours and is left alone."""
    pods_on: Callable[[Collection[str]], Sequence[JsonObject]] | None = None
    """The pods bound to some nodes that have not finished, where somebody keeps books; else see ``pods``."""
