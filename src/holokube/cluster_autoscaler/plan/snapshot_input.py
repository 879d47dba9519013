"""A snapshot of a cluster as the input of a plan: the objects that count, and the node groups in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from holokube.base.clock import DEFAULT_START
from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.cloud.kwok.grouping import (
    SUFFIX,
    Grouping,
    GroupPlan,
    Template,
    plan_groups,
)
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, NodeInfo
from holokube.cluster_autoscaler.objects import labels_of, name_of, node_name_of, provider_id, time_s
from holokube.cluster_autoscaler.plan.provider import GroupSpec
from holokube.cluster_autoscaler.plan.scenario_objects import provider_id_of
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.kube.workload_pods import missing_pods

KINDS = frozenset({
    "Namespace", "Node", "Pod", "ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Deployment",
    "PodDisruptionBudget", "PriorityClass", "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode",
    "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "ConfigMap",
})  # fmt: skip
"""What decisions can depend on; the rest of a snapshot is not looked at."""
_CONTROLLERS = ("ReplicaSet", "StatefulSet", "Job", "ReplicationController")
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_STAMPS = ("lastTransitionTime", "lastHeartbeatTime")


@dataclass(slots=True)
class SnapshotInput:
    """What a plan starts from."""

    objects: list[JsonObject]
    groups: list[GroupSpec]
    group_of: dict[str, str]
    """The group of each node that has one, by the node's name."""
    now: datetime
    sources: dict[str, str] = field(default_factory=dict)
    """Where each group comes from."""
    notes: list[str] = field(default_factory=list)


def read_snapshot(
    objects: Sequence[Any],
    *,
    templates: Sequence[Template] = (),
    sizes: Sequence[str] = (),
    defaults: GroupOptions,
) -> SnapshotInput:
    """The input of a plan from the objects of a snapshot.

    ``templates`` are nodes of further groups, ``sizes`` are ``MIN:MAX:NAME`` as ``--nodes`` has them: if any are given,
    only the groups that they name are autoscaled.
    """
    kept, notes = _kept(objects)
    now = _now(kept)
    problems = Problems()
    plans, group_of_node = _groups(kept, templates, problems, notes)
    problems.raise_errors("the node groups cannot be told", "Correct the nodes or templates that are named.")
    notes += problems.warnings
    limits = _limits(sizes, plans)
    members = Counter(group_of_node.values())
    specs = [
        _spec(plan, name, members[name], limits.get(name), defaults)
        for name, plan in plans.items() if not limits or name in limits
    ]
    managed = {spec.id for spec in specs}
    group_of_node = {node: name for node, name in group_of_node.items() if name in managed}
    return SnapshotInput(
        [_ready_for_the_copy(obj, group_of_node, now) for obj in kept], specs, group_of_node, now,
        {name: plan.source for name, plan in plans.items() if name in managed}, notes)


def _kept(objects: Sequence[Any]) -> tuple[list[JsonObject], list[str]]:
    """The objects that count, each once, and what the user should know about the others."""
    kept: dict[tuple[str, str, str], JsonObject] = {}
    ignored: Counter[str] = Counter()
    for obj in objects:
        kind = obj.get("kind") if isinstance(obj, Mapping) else None
        meta = obj.get("metadata") if isinstance(obj, Mapping) else None
        if not isinstance(kind, str) or not isinstance(meta, Mapping) or not meta.get("name"):
            raise UsageError(
                f"an object of the snapshot has no kind or no metadata.name: {str(obj)[:80]}",
                hint="Give what `holokube snapshot` or `kubectl get ... -o yaml` wrote, or a scenario.")
        if kind in KINDS:
            kept[kind, str(meta.get("namespace") or ""), str(meta["name"])] = dict(obj)
        else:
            ignored[kind] += 1
    found = list(kept.values())
    planned = missing_pods(found)
    found += planned
    counts = Counter(obj["kind"] for obj in found)
    if not counts["Node"] and not counts["Pod"]:
        raise UsageError("the snapshot has neither nodes nor pods",
                         hint="Include them: kubectl get nodes,pods -A -o yaml")
    notes = []
    pods = sum(obj["kind"] == "Pod" for obj in planned)
    if pods:
        notes.append(f"{pods} pods that workloads want and do not have are planned for as well")
    if ignored:
        notes.append(f"not looked at: {', '.join(f'{count} {kind}' for kind, count in sorted(ignored.items()))}")
    if counts["Pod"] and not any(counts[kind] for kind in _CONTROLLERS):
        notes.append("the snapshot has no controllers (replicasets, statefulsets, jobs): their pods block their nodes "
                     "as ControllerNotFound")
    return found, notes


def _now(objects: Iterable[JsonObject]) -> datetime:
    """When the snapshot was taken: the latest moment that it speaks of."""
    latest_s = float("-inf")
    for obj in objects:
        latest_s = max(latest_s, time_s(obj["metadata"].get("creationTimestamp")))
        for condition in (obj.get("status") or {}).get("conditions") or ():
            latest_s = max([latest_s, *(time_s(condition.get(stamp)) for stamp in _STAMPS)])
    if latest_s == float("-inf"):
        return DEFAULT_START
    # What was noticed last must not look as if it had happened this moment: the autoscaler lets new pods wait a turn.
    return datetime.fromtimestamp(latest_s + 60, UTC)


def _groups(
    objects: Iterable[JsonObject], templates: Sequence[Template], problems: Problems, notes: list[str]
) -> tuple[dict[str, GroupPlan], dict[str, str]]:
    """The groups by name, those of template files first, and the group of each node."""
    plans = {plan.id: plan for plan in plan_groups(templates, Grouping(), problems, taint=False, live=False)}
    group_of_node: dict[str, str] = {}
    for node in objects:
        if node["kind"] != "Node":
            continue
        if any(label in labels_of(node) for label in _CONTROL_PLANE) and not group_of(node):
            notes.append(f"node {name_of(node)} belongs to the control plane and is left alone")
            continue
        found = plan_groups([Template(node, "the snapshot")], Grouping(), problems, taint=False, live=True)
        if not found:
            continue
        # The copy is not the cluster, so a pool may keep the name that everybody knows it by.
        name = found[0].id if group_of(node) else found[0].id.removesuffix(SUFFIX)
        plans.setdefault(name, found[0])
        group_of_node[name_of(node)] = name
    return plans, group_of_node


def _limits(sizes: Sequence[str], plans: Mapping[str, GroupPlan]) -> dict[str, tuple[int, int]]:
    limits: dict[str, tuple[int, int]] = {}
    for text in sizes:
        low, _, rest = text.partition(":")
        high, _, name = rest.partition(":")
        if not (low.isdecimal() and high.isdecimal() and name) or int(high) < int(low):
            raise UsageError(f"--nodes={text}: not MIN:MAX:NAME", hint="Write it like --nodes=1:10:default-pool.")
        if name not in plans:
            raise UsageError(f"--nodes={text}: there is no group {name!r}",
                             hint=f"The groups are {', '.join(plans) or 'none'}.")
        limits[name] = int(low), int(high)
    return limits


def _spec(
    plan: GroupPlan, name: str, members: int, limits: tuple[int, int] | None, defaults: GroupOptions
) -> GroupSpec:
    settings = plan.settings
    low, high = limits or (settings.min_size, max(settings.max_size, members))
    template = plan.template
    spec = {**template["spec"], "providerID": provider_id_of(name, "template")}
    return GroupSpec(
        name, low, high, NodeInfo({**template, "spec": spec}), price_usd_per_hour=settings.price_usd_per_hour,
        options=settings.options(defaults))


def _ready_for_the_copy(obj: JsonObject, group_of_node: Mapping[str, str], now: datetime) -> JsonObject:
    if obj["kind"] == "Node":
        if provider_id(obj):
            return obj
        group = group_of_node.get(name_of(obj), "")
        return {**obj, "spec": {**(obj.get("spec") or {}), "providerID": provider_id_of(group, name_of(obj))}}
    if obj["kind"] == "Pod" and _was_never_tried(obj):
        # Nobody schedules on the copy, so a pod that was only written down is taken for one that found no place.
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": format_time(now),
        }
        status = obj.get("status") or {}
        meta = {"creationTimestamp": format_time(now.timestamp() - 60), **obj["metadata"]}
        return {**obj, "metadata": meta, "status": {
            **status, "phase": status.get("phase") or "Pending",
            "conditions": [*(status.get("conditions") or ()), condition]}}
    return obj


def _was_never_tried(pod: JsonObject) -> bool:
    if node_name_of(pod) or (pod.get("spec") or {}).get("schedulingGates"):
        return False
    status = pod.get("status") or {}
    conditions = status.get("conditions") or ()
    return status.get("phase", "Pending") == "Pending" and not any(
        condition.get("type") == "PodScheduled" for condition in conditions)

