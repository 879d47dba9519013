"""What a new node of each group will look like.

The best model is a node of the group that has been ready for a while; the next best is such a node of former times,
then what the provider says, then a node that is not well. Whatever it is modelled on, the template has a name of its
own, no taints that tell of a passing state, and only the pods that a node has from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.node_facts import NodeFacts, NodeReadings
from holokube.cluster_autoscaler.objects import (
    controller_of,
    is_daemon_set_pod,
    is_mirror,
    is_terminating,
    name_of,
)
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.taints import TaintConfig, sanitised_taints, taints_of
from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.daemons import with_daemon_tolerations
from holokube.kube.sizing import sized_pod
from holokube.kube.taints import find_untolerated, tolerations_of
from holokube.kube.taints import taints_of as parsed_taints_of
from holokube.kube.types import JsonObject

TEMPLATE_LABEL: Final = "cluster-autoscaler.kubernetes.io/template-node"
UPCOMING_ANNOTATION: Final = "cluster-autoscaler.k8s.io/upcoming-node"
STABLE_S: Final = 60.0
"""How long nothing about a node's readiness may have changed before it is a model for others."""

_HOSTNAME: Final = "kubernetes.io/hostname"
_DEPRECATED_LABELS: Final = (
    ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)
_MODELS_MAX: Final = 256
_EMPTY: Final[Mapping[str, Any]] = {}


class _Remembered(NamedTuple):
    template: NodeInfo
    since_s: float


class _Model(NamedTuple):
    snapshot: ClusterSnapshot
    mark: int
    info: NodeInfo


class TemplateNodes:
    """The templates of all groups, and the memory of those that were modelled on good nodes."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._keep_s = options.node_info_cache_expire_time_s
        self._force_daemon_sets = options.force_ds
        self._size_daemons = options.size_daemons
        self._remembered: dict[str, _Remembered] = {}
        self._models: dict[str, _Model] = {}
        self._made = 0

    def compute(
        self,
        groups: Sequence[GroupView],
        nodes: Iterable[JsonObject],
        daemon_sets: Sequence[JsonObject],
        taints: TaintConfig,
        now_s: float,
        *,
        snapshot: ClusterSnapshot,
        group_of_node: Mapping[str, str],
        readings: NodeReadings | None = None,
    ) -> dict[str, NodeInfo]:
        """The template of every group for which there is anything to go by, by the group's id.

        ``nodes`` are in the snapshot, as are their pods. ``group_of_node`` has the id of the group of each node that
        has one.
        """
        found: dict[str, NodeInfo] = {}
        bad: list[NodeFacts] = []
        of = (readings if readings is not None else NodeReadings()).of
        wanted = set(group_of_node.values())
        for node in nodes:
            if not wanted:
                # Every group that has nodes has a model.
                break
            facts = of(node)
            if not _is_good(facts, now_s):
                bad.append(facts)
                continue
            group_id = group_of_node.get(facts.name)
            if group_id in wanted:
                template = self._modelled_on(self._model(snapshot, facts.name), group_id, daemon_sets, taints)
                found[group_id] = template
                self._remembered[group_id] = _Remembered(template, now_s)
                wanted.discard(group_id)
        for group in groups:
            if group.id not in found:
                fallback = self._recall(group.id, now_s) or self._from_provider(group, daemon_sets, taints)
                if fallback is not None:
                    found[group.id] = fallback
        known = {group.id for group in groups}
        self._remembered = {group_id: item for group_id, item in self._remembered.items() if group_id in known}
        for facts in bad:
            group_id = group_of_node.get(facts.name)
            if group_id is not None and group_id not in found:
                found[group_id] = self._modelled_on(self._model(snapshot, facts.name), group_id, daemon_sets, taints)
        return found

    def _model(self, snapshot: ClusterSnapshot, name: str) -> NodeInfo:
        """A node with those of its pods that others like it have: turn after turn the same, mostly with no news."""
        mark, known = snapshot.mark(name), self._models.get(name)
        if known is not None and known.snapshot is snapshot and known.mark == mark:
            return known.info
        pods = [pod for pod in snapshot.pods_on(name) if is_mirror(pod) or is_daemon_set_pod(pod)]
        info = NodeInfo(snapshot.node(name), tuple(pods))
        if mark is not None:
            if len(self._models) >= _MODELS_MAX:
                self._models.clear()
            self._models[name] = _Model(snapshot, mark, info)
        return info

    def _recall(self, group_id: str, now_s: float) -> NodeInfo | None:
        item = self._remembered.get(group_id)
        if item is None:
            return None
        if now_s - item.since_s > self._keep_s:
            del self._remembered[group_id]
            return None
        return item.template

    def _from_provider(
        self, group: GroupView, daemon_sets: Sequence[JsonObject], taints: TaintConfig
    ) -> NodeInfo | None:
        if group.template is None:
            return None
        template = self._modelled_on(group.template, group.id, daemon_sets, taints, force_daemon_sets=True)
        labels = dict(template.node["metadata"]["labels"])
        for stable, deprecated in _DEPRECATED_LABELS:
            if stable in labels:
                labels[deprecated] = labels[stable]
        metadata = {**template.node["metadata"], "labels": labels}
        return replace(template, node={**template.node, "metadata": metadata})

    def _modelled_on(
        self,
        model: NodeInfo,
        group_id: str,
        daemon_sets: Sequence[JsonObject],
        taints: TaintConfig,
        *,
        force_daemon_sets: bool = False,
    ) -> NodeInfo:
        self._made += 1
        suffix = str(self._made)
        node = _node_like(model.node, f"template-node-for-{group_id}-{suffix}", taints)
        metadata = node["metadata"]
        node["metadata"] = {**metadata, "labels": {**metadata["labels"], TEMPLATE_LABEL: "true"}}
        pods = [pod for pod in model.pods if not is_terminating(pod)]
        kept = [_pod_like(pod, name_of(node), suffix) for pod in pods if is_mirror(pod) or is_daemon_set_pod(pod)]
        running = {
            owner.get("uid")
            for pod in pods
            if (owner := controller_of(pod)) is not None and owner.get("kind") == "DaemonSet"
        }
        pending = [daemon_set for daemon_set in daemon_sets if daemon_set["metadata"].get("uid") not in running]
        added = daemon_pods(node, pending, size_daemons=self._size_daemons)
        if not (force_daemon_sets or self._force_daemon_sets):
            added = [pod for pod in added if _takes_its_place(pod)]
        return NodeInfo(node, (*kept, *(_pod_like(pod, name_of(node), suffix) for pod in added)))


def is_good_model(node: JsonObject, now_s: float) -> bool:
    """Whether new nodes of the group can be expected to look like this one."""
    return _is_good(NodeFacts(node), now_s)


def _is_good(facts: NodeFacts, now_s: float) -> bool:
    return (
        facts.is_ready
        and facts.readiness.changed_s + STABLE_S < now_s
        and not facts.is_cordoned
        and not facts.is_to_be_deleted
    )


def daemon_pods(node: JsonObject, daemon_sets: Iterable[JsonObject], *, size_daemons: bool = False) -> list[JsonObject]:
    """The pods that DaemonSets will start on a node, whether there is room for them or not."""
    pods = []
    for daemon_set in daemon_sets:
        pod = _daemon_pod(daemon_set, name_of(node))
        if _may_run(daemon_set, pod, node):
            pods.append(sized_pod(pod, node) if size_daemons else pod)
    return pods


def _daemon_pod(daemon_set: JsonObject, node_name: str) -> JsonObject:
    metadata, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    owner = {"kind": "DaemonSet", "uid": metadata.get("uid", ""), "name": metadata["name"], "controller": True}
    spec = with_daemon_tolerations(template.get("spec") or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **(template.get("metadata") or {}),
            "name": f"{metadata['name']}-pod",
            "namespace": metadata.get("namespace", ""),
            "ownerReferences": [owner],
        },
        "spec": {**spec, "nodeName": node_name},
    }


def _may_run(daemon_set: JsonObject, pod: JsonObject, node: JsonObject) -> bool:
    bound_to = (daemon_set["spec"]["template"].get("spec") or _EMPTY).get("nodeName") or ""
    if bound_to and bound_to != name_of(node):
        return False
    if not RequiredNodeAffinity.of_pod(pod).matches_node(node):
        return False
    return find_untolerated(parsed_taints_of(node), tolerations_of(pod)) is None


def _takes_its_place(pod: JsonObject) -> bool:
    """Whether a daemon will come to its node even if that is full, because it may push others out."""
    spec = pod["spec"]
    if spec.get("priorityClassName") != "system-node-critical":
        return False
    return spec.get("preemptionPolicy") in (None, "PreemptLowerPriority")


def fresh_copy(template: NodeInfo, suffix: str, annotations: Mapping[str, str] = _EMPTY) -> NodeInfo:
    """A node and pods like a template's that can be put beside others made of it: only the names differ."""
    node_name = f"{name_of(template.node)}-{suffix}"
    node = _node_like(template.node, node_name, None)
    if annotations:
        metadata = node["metadata"]
        node["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
    return NodeInfo(node, tuple([_pod_like(pod, node_name, suffix) for pod in template.pods]))


def upcoming_copy(template: NodeInfo, suffix: str) -> NodeInfo:
    """The same for a node that was asked for and has not come yet."""
    return fresh_copy(template, suffix, {UPCOMING_ANNOTATION: "true"})


def _node_like(node: JsonObject, name: str, taints: TaintConfig | None) -> JsonObject:
    metadata = {key: value for key, value in node["metadata"].items() if key != "uid"}
    metadata["name"] = name
    metadata["labels"] = {**(metadata.get("labels") or {}), _HOSTNAME: name}
    copy = {**node, "metadata": metadata}
    if taints is not None:
        dropped = ("taints", "unschedulable") if taints.scale_from_unschedulable else ("taints",)
        spec = {key: value for key, value in (node.get("spec") or {}).items() if key not in dropped}
        kept = sanitised_taints(taints_of(node), taints)
        if kept:
            spec["taints"] = kept
        copy["spec"] = spec
    return copy


def _pod_like(pod: JsonObject, node_name: str, suffix: str) -> JsonObject:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "uid"}
    metadata["name"] = f"{metadata['name']}-{suffix}"
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node_name}}
