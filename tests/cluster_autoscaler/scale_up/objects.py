"""Small clusters for tests of scale-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holokube.cluster_autoscaler.cloud.provider import GroupOptions, NodeInfo
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.option import Batch, Option
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot

JsonObject = dict[str, Any]


class Opinion(NamedTuple):
    """What the registry would say."""

    is_safe: bool = True
    is_healthy: bool = True


def node(name: str, cpu: str = "4", memory: str = "16Gi", *, pods: str = "110", taints: Sequence[JsonObject] = (),
         labels: dict[str, str] | None = None, **extra: str) -> JsonObject:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **extra}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def pod(name: str, cpu: str = "1", memory: str = "1Gi", *, owner: str = "", labels: dict[str, str] | None = None,
        **spec: Any) -> JsonObject:
    metadata: JsonObject = {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        ]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def pods_of(owner: str, count: int, cpu: str = "1", memory: str = "1Gi", **more: Any) -> list[JsonObject]:
    """Pods of one controller."""
    labels = {"app": owner}
    return [pod(f"{owner}-{i}", cpu, memory, owner=owner, labels=labels, **more) for i in range(count)]


def template(name: str, cpu: str = "4", memory: str = "16Gi", **more: Any) -> NodeInfo:
    return NodeInfo(node(f"template-node-for-{name}-1", cpu, memory, **more))


def group(name: str, *, target: int | None = 0, most: int = 10, least: int = 0, exists: bool = True,
          zero_or_max: bool = False) -> GroupView:
    return GroupView(
        id=name, min_size=least, max_size=most, target_size=target, exists=exists, debug=f"{name} ({least}:{most})",
        options=GroupOptions(zero_or_max_node_scaling=zero_or_max),
    )


def snapshot(*nodes: JsonObject, pods: Sequence[JsonObject] = ()) -> ClusterSnapshot:
    made = ClusterSnapshot()
    made.set_cluster_state(nodes, pods)
    return made


def given(groups: Sequence[GroupView], templates: dict[str, NodeInfo], pods: Sequence[JsonObject],
          *, nodes: Sequence[JsonObject] = (), options: AutoscalerOptions | None = None,
          opinions: dict[str, Opinion] | None = None, **more: Any) -> ScaleUpInput:
    said = opinions or {}
    return ScaleUpInput(
        snapshot=snapshot(*nodes), groups=groups, templates=templates, pods=pods, nodes=nodes,
        options=options or AutoscalerOptions(), safety_of=lambda group_id: said.get(group_id, Opinion()), **more,
    )


def option(group_id: str = "a", nodes: int = 1, pods: Sequence[JsonObject] = (), *, cpu: str = "4",
           memory: str = "16Gi", exists: bool = True, similar: tuple[str, ...] = (), info: NodeInfo | None = None,
           ) -> Option:
    return Option(group_id, nodes, tuple(pods), info or template(group_id, cpu, memory), similar, exists=exists,
                  kinds=tuple(Batch(one, 1) for one in pods))
