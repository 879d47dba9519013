"""A small world for the registry: nodes, machines and groups in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, GroupOptions, Instance, InstanceError, InstanceState
from holokube.cluster_autoscaler.cluster_state.readiness import Readiness
from holokube.cluster_autoscaler.cluster_state.registry import ClusterFacts, ClusterStateRegistry, Consequences
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

START_S = 1_767_225_600.0


def node(name: str, group: str = "g", *, ready: bool = True, age_s: float = 86_400, reason: str = "",
         **more: Any) -> JsonObject:
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "reason": reason},
                  *more.pop("conditions", ())]
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"group": group}, "creationTimestamp": format_time(START_S - age_s)},
        "spec": {"providerID": f"cloud://{name}", **more}, "status": {"conditions": conditions},
    }


def machine(
    name: str, state: InstanceState | None = InstanceState.RUNNING, error: InstanceError | None = None
) -> Instance:
    return Instance(f"cloud://{name}", state, error)


def failed(name: str, code: str = "QUOTA", message: str = "no quota left") -> Instance:
    return machine(name, InstanceState.CREATING, InstanceError(ErrorClass.OUT_OF_RESOURCES, code, message))


def group(group_id: str = "g", target: int = 0, machines: Sequence[Instance] = (), **more: Any) -> GroupView:
    return GroupView(group_id, more.pop("min_size", 0), more.pop("max_size", 100), target,
                     more.pop("options", GroupOptions()), instances=tuple(machines), **more)


class World:
    """A registry and the time."""

    def __init__(self, **options: Any) -> None:
        self.registry = ClusterStateRegistry(AutoscalerOptions(**options))
        self.now_s = START_S

    def of(self, group_id: str) -> Readiness:
        """The readiness of a group that has machines."""
        found = self.registry.readiness(group_id)
        assert found is not None
        return found

    def see(
        self, nodes: Sequence[JsonObject] = (), groups: Sequence[GroupView] = (), *, after_s: float = 0.0,
        deleted: Sequence[str] = (), disowned: Sequence[str] = (), templates: Sequence[str] | None = None,
    ) -> Consequences:
        """Let time pass and show the registry what there is now."""
        self.now_s += after_s
        ids = {view.id for view in groups}
        return self.registry.update(ClusterFacts(
            nodes=nodes, groups=groups,
            group_of_node={
                one["metadata"]["name"]: one["metadata"]["labels"]["group"] for one in nodes
                if one["metadata"]["labels"]["group"] in ids
            },
            group_of_instance={
                one.id: view.id for view in groups for one in view.instances if one.id not in disowned
            },
            deleted=frozenset(deleted), templates=ids if templates is None else templates,
        ), self.now_s)
