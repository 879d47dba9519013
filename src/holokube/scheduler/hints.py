"""Which events may help a pod that certain filters refused.

One rule per filter and event, with upstream's meaning (its queueing hints). A rule may say yes in vain, which
costs a try; a wrong no would leave a pod waiting until it is looked at again for its age.

Beyond upstream, changed labels of a namespace wake pods that InterPodAffinity refused. And where there is no node at
all, pods wait for the first one; upstream tries them again and again, every ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from holokube.kube.affinity import PodAffinity, PodAffinityTerm
from holokube.kube.selectors import SelectorError
from holokube.kube.taints import find_untolerated, taints_of
from holokube.kube.types import JsonObject
from holokube.packing.nodes import allocatable_of, labels_of
from holokube.packing.podclass import PodClass, host_ports, relevant_volumes, requests_of
from holokube.scheduler.cluster_events import Change, ClusterEvent

ANY_NODE: Final = "AnyNode"
"""Stands for the filter that refuses every pod while there are no nodes."""
Hint = Callable[[PodClass, ClusterEvent], bool]
_EMPTY: Final[Mapping[str, Any]] = {}


def may_help(event: ClusterEvent, plugins: Collection[str], cls: PodClass) -> bool:
    """Whether an event may let a pod of a class find a place that these filters refused."""
    rules = HINTS.get(event.change, _NO_RULES)
    return any(plugin in rules and rules[plugin](cls, event) for plugin in plugins)


@lru_cache(maxsize=4096)
def concerns(change: Change, plugins: frozenset[str]) -> bool:
    """Whether any pod refused by these filters could be helped by an event of a kind."""
    return not HINTS.get(change, _NO_RULES).keys().isdisjoint(plugins)


def _always(cls: PodClass, event: ClusterEvent) -> bool:
    del cls, event
    return True


# Nodes


def _uncordoned(cls: PodClass, event: ClusterEvent) -> bool:
    del cls
    return not _is_cordoned(event.new) and (event.old is None or _is_cordoned(event.old))


def _is_cordoned(node: JsonObject | None) -> bool:
    return bool(((node or _EMPTY).get("spec") or _EMPTY).get("unschedulable"))


def _tolerated(cls: PodClass, event: ClusterEvent) -> bool:
    assert event.new is not None, "a deleted node helps nobody bear its taints"
    if find_untolerated(taints_of(event.new), cls.tolerations) is not None:
        return False
    return event.old is None or find_untolerated(taints_of(event.old), cls.tolerations) is not None


def _wanted(cls: PodClass, event: ClusterEvent) -> bool:
    assert event.new is not None, "a deleted node matches nothing"
    if not cls.node_affinity.matches_node(event.new):
        return False
    return event.old is None or not cls.node_affinity.matches_node(event.old)


def _large_enough(cls: PodClass, event: ClusterEvent) -> bool:
    assert event.new is not None, "a deleted node has no room"
    offered = allocatable_of(event.new)
    if any(offered.get(name, 0) < milli for name, milli in cls.requests.items()):
        return False
    if event.old is None:
        return True
    before = allocatable_of(event.old)
    return any(offered.get(name, 0) > before.get(name, 0) for name in cls.requests)


def _spread_node(cls: PodClass, event: ClusterEvent) -> bool:
    keys = [constraint.topology_key for constraint in cls.spread]
    old, new = (None if node is None else labels_of(node) for node in (event.old, event.new))
    was = old is not None and all(key in old for key in keys)
    is_ = new is not None and all(key in new for key in keys)
    if old is None or new is None:
        return was or is_
    if event.change is Change.NODE_TAINTS:
        return is_
    return was != is_ or (is_ and any(old[key] != new[key] for key in keys))


def _affine_node(cls: PodClass, event: ClusterEvent) -> bool:
    assert event.new is not None, "a deleted node is near nobody"
    new = labels_of(event.new)
    if event.old is None:
        return True
    old = labels_of(event.old)
    # Terms of other pods against this one may be why it was refused; those have keys that are not known here.
    terms = (*cls.affinity, *cls.anti_affinity)
    return not terms or any(old.get(term.topology_key) != new.get(term.topology_key) for term in terms)


# Pods


def _frees_ports(cls: PodClass, event: ClusterEvent) -> bool:
    freed = host_ports(event.object.get("spec") or _EMPTY)
    wanted = {(port.protocol, port.port) for port in cls.ports}
    return any((port.protocol, port.port) in wanted for port in freed)


def _frees_volumes(cls: PodClass, event: ClusterEvent) -> bool:
    del cls
    return bool(relevant_volumes(event.object.get("spec") or _EMPTY))


def _shrinks(cls: PodClass, event: ClusterEvent) -> bool:
    old, new = event.states
    before, after = (requests_of(pod, use_status=True) for pod in (old, new))
    return any(before.get(name, 0) > after.get(name, 0) for name in cls.requests)


def _spread_pod(cls: PodClass, event: ClusterEvent) -> bool:
    if event.object["metadata"].get("namespace", "") != cls.namespace:
        return False
    seen = [labels_of(pod) for pod in (event.old, event.new) if pod is not None]
    for constraint in cls.spread:
        matched = [constraint.selector.matches(labels) for labels in seen]
        if matched[0] != matched[-1] or (len(matched) == 1 and matched[0]):
            return True
    return False


def _friend_came(cls: PodClass, event: ClusterEvent) -> bool:
    return _all_mean(cls.affinity, event.object)


def _foe_left(cls: PodClass, event: ClusterEvent) -> bool:
    if any(_means(term, event.object) for term in cls.anti_affinity):
        return True
    return _minds(event.object, cls)


def _relations_changed(cls: PodClass, event: ClusterEvent) -> bool:
    old, new = event.states
    if _all_mean(cls.affinity, new) and not _all_mean(cls.affinity, old):
        return True
    return any(_means(term, old) and not _means(term, new) for term in cls.anti_affinity)


def _all_mean(terms: tuple[PodAffinityTerm, ...], pod: JsonObject) -> bool:
    return bool(terms) and all(_means(term, pod) for term in terms)


def _means(term: PodAffinityTerm, pod: JsonObject) -> bool:
    # The namespace's labels are not known here: a namespace picked by label is taken to be meant.
    namespace = pod["metadata"].get("namespace", "")
    picked = namespace in term.namespaces or not term.namespace_selector.matches_nothing
    return picked and term.selector.matches(labels_of(pod))


def _minds(pod: JsonObject, cls: PodClass) -> bool:
    """Whether a pod has anti-affinity against a class."""
    try:
        terms = PodAffinity.of_pod(pod).anti_required
    except SelectorError:
        return True
    return any(
        (cls.namespace in term.namespaces or not term.namespace_selector.matches_nothing)
        and term.selector.matches(cls.labels)
        for term in terms
    )


def _own_spread_labels(cls: PodClass, event: ClusterEvent) -> bool:
    old, new = event.states
    return any(
        constraint.selector.matches(labels_of(old)) != constraint.selector.matches(labels_of(new))
        for constraint in cls.spread
    )


def _own_spread_taints(cls: PodClass, event: ClusterEvent) -> bool:
    del event
    return any(constraint.honor_taints for constraint in cls.spread)


# Storage


def _own_claim(cls: PodClass, event: ClusterEvent) -> bool:
    metadata = event.object["metadata"]
    return metadata.get("namespace", "") == cls.namespace and any(
        use.name == metadata["name"] for use in cls.claims
    )


_NO_RULES: Final[Mapping[str, Hint]] = {}

HINTS: Final[Mapping[Change, Mapping[str, Hint]]] = {
    Change.NODE_ADDED: {
        ANY_NODE: _always,
        "NodeUnschedulable": _uncordoned,
        "NodeName": _always,
        "TaintToleration": _tolerated,
        "NodeAffinity": _wanted,
        "NodePorts": _always,
        "NodeResourcesFit": _large_enough,
        "VolumeRestrictions": _always,
        "VolumeBinding": _always,
        "VolumeZone": _always,
        "PodTopologySpread": _spread_node,
        "InterPodAffinity": _affine_node,
    },
    Change.NODE_DELETED: {"PodTopologySpread": _spread_node},
    Change.NODE_LABELS: {
        "NodeAffinity": _wanted,
        "VolumeBinding": _always,
        "VolumeZone": _always,
        "PodTopologySpread": _spread_node,
        "InterPodAffinity": _affine_node,
    },
    Change.NODE_TAINTS: {
        "NodeUnschedulable": _uncordoned,
        "TaintToleration": _tolerated,
        "PodTopologySpread": _spread_node,
    },
    Change.NODE_ALLOCATABLE: {"NodeResourcesFit": _large_enough},
    Change.POD_ADDED: {"PodTopologySpread": _spread_pod, "InterPodAffinity": _friend_came},
    Change.POD_DELETED: {
        "NodePorts": _frees_ports,
        "NodeResourcesFit": _always,
        "VolumeRestrictions": _frees_volumes,
        "NodeVolumeLimits": _frees_volumes,
        "PodTopologySpread": _spread_pod,
        "InterPodAffinity": _foe_left,
    },
    Change.POD_LABELS: {"PodTopologySpread": _spread_pod, "InterPodAffinity": _relations_changed},
    Change.POD_SCALED_DOWN: {"NodeResourcesFit": _shrinks},
    Change.OWN_LABELS: {"PodTopologySpread": _own_spread_labels, "InterPodAffinity": _always},
    Change.OWN_SCALED_DOWN: {"NodeResourcesFit": _always},
    Change.OWN_TOLERATIONS: {
        "NodeUnschedulable": _always,
        "TaintToleration": _always,
        "PodTopologySpread": _own_spread_taints,
    },
    Change.CLAIM_ADDED: {
        "VolumeRestrictions": _own_claim,
        "NodeVolumeLimits": _own_claim,
        "VolumeBinding": _own_claim,
        "VolumeZone": _own_claim,
    },
    Change.CLAIM_UPDATED: {"VolumeBinding": _own_claim, "VolumeZone": _own_claim},
    Change.VOLUME_ADDED: {"VolumeBinding": _always, "VolumeZone": _always},
    Change.VOLUME_UPDATED: {"VolumeBinding": _always, "VolumeZone": _always},
    Change.STORAGE_CLASS_ADDED: {"VolumeBinding": _always, "VolumeZone": _always},
    Change.STORAGE_CLASS_UPDATED: {"VolumeBinding": _always},
    Change.CSI_NODE_ADDED: {"NodeVolumeLimits": _always, "VolumeBinding": _always},
    Change.CSI_NODE_UPDATED: {"NodeVolumeLimits": _always, "VolumeBinding": _always},
    Change.CSI_DRIVER_UPDATED: {"VolumeBinding": _always},
    Change.CSI_CAPACITY_CHANGED: {"VolumeBinding": _always},
    Change.ATTACHMENT_DELETED: {"NodeVolumeLimits": _always},
    Change.NAMESPACE_LABELS: {"InterPodAffinity": _always},
}
