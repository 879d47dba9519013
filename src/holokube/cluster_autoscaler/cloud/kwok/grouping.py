"""Which group a template belongs to.

Two rules, as there are two traditions. *Upstream's*: the configuration names one label or annotation, whose value is
the group's name; nodes without it are left out. *The proposal's*, where there is no such configuration: the label of a
known cloud, renamed ``<pool>-kwok`` so that it cannot be taken for the real pool; else the instance type and zone,
renamed likewise; else a name of its own. In both, the annotation ``cluster-autoscaler.kwok.nodegroup/name`` comes
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.kwok.marks import GROUP_NAME, PREFIX, annotations_of, group_of
from holokube.cluster_autoscaler.cloud.kwok.node_template import check_node, sanitised
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems, did_you_mean
from holokube.cluster_autoscaler.cloud.kwok.settings import GroupSettings, read_settings
from holokube.kube.types import JsonObject

SUFFIX = "-kwok"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"

POOL_LABELS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "oci.oraclecloud.com/node-pool-id",
    "oci.oraclecloud.com/instancepool-id",
    "k8s.scaleway.com/pool",
    "kubernetes.civo.com/civo-node-pool",
    "magnum.openstack.org/nodegroup",
    "rke.cattle.io/rke-machine-pool-name",
    "compute.coreweave.com/node-pool",
    "kops.k8s.io/instancegroup",
    "karpenter.sh/nodepool",
    "worker.gardener.cloud/pool",
    "doks.digitalocean.com/node-pool",
    "doks.digitalocean.com/node-pool-id",
    "lke.linode.com/pool-id",
    "vke.vultr.com/node-pool",
    "hcloud/node-group",
    "node.exoscale.net/nodepool-id",
    "alibabacloud.com/nodepool-id",
    "cce.cloud.com/cce-nodepool",
    "ibm-cloud.kubernetes.io/worker-pool-name",
    "yandex.cloud/node-group-id",
    "nodegroup-name",
    "k8s-nodepool",
    "nodepool",
    "pool",
)
"""Labels, or annotations, by which clouds tell the pool of a node; the specific ones first, as some nodes have two."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The key that the configuration names; without one, the proposal's rule holds."""

    label_key: str = ""
    annotation_key: str = ""

    @property
    def key(self) -> str:
        return self.label_key or self.annotation_key

    @property
    def place(self) -> str:
        return "label" if self.label_key else "annotation"

    def value(self, node: Mapping[str, Any]) -> str:
        """What the key says about a node."""
        entries = (node["metadata"].get("labels") or {}) if self.label_key else annotations_of(node)
        return str(entries.get(self.key) or "")


@dataclass(frozen=True, slots=True)
class Template:
    """A Node object to make nodes from."""

    node: Any
    where: str
    """Where it stands, for messages."""

    @property
    def who(self) -> str:
        meta = self.node.get("metadata") if isinstance(self.node, Mapping) else None
        name = meta.get("name") if isinstance(meta, Mapping) else None
        return f"node {name} ({self.where})" if name else self.where


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group as the templates describe it."""

    id: str
    template: JsonObject
    settings: GroupSettings
    source: str
    """The node that it is made from, for messages."""


def plan_groups(
    templates: Sequence[Template], grouping: Grouping, problems: Problems, *, taint: bool, live: bool
) -> list[GroupPlan]:
    """The groups, in the order of their first templates. The first node of a group is its template.

    Of a ``live`` cluster, nodes that a kwok provider made are no templates, unless nothing else is left of their group.
    """
    sound = [each for each in templates if check_node(each.node, each.who, problems)]
    real = [each for each in sound if not (live and group_of(each.node))]
    ours = [each for each in sound if live and group_of(each.node)]
    plans: dict[str, GroupPlan] = {}
    dropped: list[Template] = []
    for index, each in enumerate(real):
        name = _group_name(each, index, grouping)
        if not name:
            dropped.append(each)
        elif name in plans:
            _compare(each, plans[name], problems)
        else:
            plans[name] = _plan(each, name, problems, taint=taint, live=live)
    for each in ours:
        name = group_of(each.node)
        if name not in plans:
            plans[name] = _plan(each, name, problems, taint=taint, live=live)
    _tell_dropped(dropped, plans, grouping, problems)
    return list(plans.values())


def _plan(each: Template, name: str, problems: Problems, *, taint: bool, live: bool) -> GroupPlan:
    settings = read_settings(each.node, each.who, problems)
    template = sanitised(each.node, name, each.who, problems, taint=taint, live=live)
    return GroupPlan(name, template, settings, each.who)


def _group_name(each: Template, index: int, grouping: Grouping) -> str:
    annotations = annotations_of(each.node)
    if grouping.key:
        # Upstream leaves a node out that has no such key, whatever group it names.
        value = grouping.value(each.node)
        return annotations.get(GROUP_NAME) or value if value else ""
    return annotations.get(GROUP_NAME) or _pool_name(each.node) or _own_name(each.node, index)


def _pool_name(node: Mapping[str, Any]) -> str:
    labels, annotations = node["metadata"].get("labels") or {}, annotations_of(node)
    for key in POOL_LABELS:
        value = labels.get(key) or annotations.get(key)
        if value:
            return f"{value}{SUFFIX}"
    kind, zone = labels.get(INSTANCE_TYPE), labels.get(ZONE)
    return "-".join([part for part in (kind, zone) if part]) + SUFFIX if kind else ""


def _own_name(node: Mapping[str, Any], index: int) -> str:
    """Random, but always the same for the same template: after a restart the group must find its nodes again."""
    name = node["metadata"].get("name") or f"template {index}"
    return f"nodegroup-{Rng(f'kwok group of {name}').name_suffix()}"


def _compare(each: Template, plan: GroupPlan, problems: Problems) -> None:
    """A further node of a group adds nothing; that it differs from the first may be a mistake."""
    first = plan.template["metadata"]
    second = each.node["metadata"]
    marks = {key: text for key, text in (second.get("annotations") or {}).items() if key.startswith(PREFIX)}
    for key, text in marks.items():
        if key != GROUP_NAME and first["annotations"].get(key) != text:
            problems.warn(
                f"{each.who}: annotation {key} is ignored: the template of group {plan.id} is {plan.source}"
            )
    kind = (second.get("labels") or {}).get(INSTANCE_TYPE)
    if kind is not None and first["labels"].get(INSTANCE_TYPE) not in (None, kind):
        problems.warn(
            f"{each.who}: has {INSTANCE_TYPE} {kind}, but nodes of group {plan.id} will be as {plan.source}, "
            f"which has {first['labels'][INSTANCE_TYPE]}"
        )


def _tell_dropped(
    dropped: Sequence[Template], plans: Mapping[str, GroupPlan], grouping: Grouping, problems: Problems
) -> None:
    if not dropped:
        return
    known = {
        key
        for each in dropped
        for key in (each.node["metadata"].get("labels" if grouping.label_key else "annotations") or {})
    }
    near = did_you_mean(grouping.key, sorted(known))
    for each in dropped:
        text = f"{each.who}: has no {grouping.place} {grouping.key}, so it makes no group{near}"
        if plans:
            problems.warn(text)
        else:
            problems.error(text)
