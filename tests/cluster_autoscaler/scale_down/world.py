"""Small clusters for the tests of scale-down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance, ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import Deletions, ScaleDownInput
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

NOW_S = 1_780_000_000.0
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1"}


def make_pod(
    name: str,
    node: str = "",
    *,
    cpu: str = "100m",
    memory: str = "100Mi",
    namespace: str = "default",
    owner: tuple[str, str] | None = ("ReplicaSet", "rs"),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    age_s: float = 60.0,
    phase: str = "Running",
    extra: dict[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    """A pod that a controller made, unless told otherwise."""
    metadata: JsonObject = {
        "name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": labels or {"app": "a"},
        "creationTimestamp": format_time(NOW_S - age_s),
    }  # fmt: skip
    if annotations:
        metadata["annotations"] = annotations
    if owner is not None:
        kind, owner_name = owner
        metadata["ownerReferences"] = [{
            "apiVersion": API_VERSIONS.get(kind, "apps/v1"), "kind": kind, "name": owner_name,
            "uid": f"{kind}-{owner_name}", "controller": True,
        }]  # fmt: skip
    requests = {"cpu": cpu, "memory": memory, **(extra or {})}
    body: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec}
    if node:
        body["nodeName"] = node
    return {"kind": "Pod", "metadata": metadata, "spec": body, "status": {"phase": phase}}


def make_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    ready: bool = True,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: Sequence[JsonObject] = (),
    extra: dict[str, str] | None = None,
) -> JsonObject:
    """A node of the ordinary size."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", **(extra or {})}
    return {
        "kind": "Node",
        "metadata": {
            "name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": {"providerID": f"test:{name}", "taints": list(taints)},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }  # fmt: skip


def make_group(
    group_id: str = "ng", *, size: int | None = 3, min_size: int = 0, members: Iterable[str] = (), **options: Any
) -> GroupView:
    """A group with the given settings of its own."""
    return GroupView(
        group_id, min_size, 100, size, GroupOptions(**options),
        instances=tuple(Instance(f"test:{name}") for name in members),
    )  # fmt: skip


def make_pdb(name: str = "pdb", *, app: str = "a", allowed: int = 1, namespace: str = "default") -> JsonObject:
    """A disruption budget for the pods of an app."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def controllers_of(pods: Iterable[JsonObject]) -> dict[tuple[str, str, str], JsonObject]:
    """The controllers that pods name, all of them there and large."""
    return {
        (owner["kind"], pod["metadata"]["namespace"], owner["name"]): {
            "metadata": {"name": owner["name"], "namespace": pod["metadata"]["namespace"]},
            "spec": {"replicas": 100},
        }
        for pod in pods
        for owner in pod["metadata"].get("ownerReferences", ())
    }


def make_context(*pdbs: JsonObject, now_s: float = NOW_S, controllers: Any = None, **options: Any) -> DrainContext:
    """What drain rules look at."""
    return DrainContext(now_s, AutoscalerOptions(**options), PdbTracker(pdbs), controllers)


class World:
    """A cluster that one planner looks at turn by turn."""

    def __init__(
        self, nodes: Iterable[JsonObject], pods: Iterable[JsonObject] = (), *, groups: Iterable[GroupView] = ()
    ) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.pods = list(pods)
        members = tuple(self.nodes)
        self.groups = {group.id: group for group in groups} or {
            "ng": make_group(size=len(members), members=members)
        }
        first = next(iter(self.groups))
        self.group_of_node = dict.fromkeys(self.nodes, first)
        self.pdbs: list[JsonObject] = []
        self.daemon_sets: list[JsonObject] = []
        self.deletions = Deletions()
        self.evicted: tuple[JsonObject, ...] = ()
        self.limiter = ResourceLimiter()
        self.snapshot = ClusterSnapshot()
        self.now_s = NOW_S

    def look(self, after_s: float = 0.0, **more: Any) -> ScaleDownInput:
        """The cluster as it is some time later."""
        self.now_s += after_s
        controllers = controllers_of(self.pods)
        observation = Observation(
            self.now_s, tuple(self.nodes.values()), tuple(self.pods), tuple(self.daemon_sets), tuple(self.pdbs),
            controllers, group_of_node=self.group_of_node,
        )  # fmt: skip
        self.daemon_sets = [found for (kind, *_), found in controllers.items() if kind == "DaemonSet"]
        self.snapshot.set_cluster_state(self.nodes.values(), [pod for pod in self.pods if pod["spec"].get("nodeName")])
        return ScaleDownInput(
            observation, self.snapshot, self.groups, self.deletions, self.evicted, self.limiter, **more
        )
