"""What happens in a cluster that may let a waiting pod find a place."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from holokube.kube.resources import pod_requests
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject
from holokube.packing.nodes import labels_of

_EMPTY: Final[Mapping[str, Any]] = {}


class Change(Enum):
    """Kinds of events. The pods of ``POD_`` have a node, or one is promised to them; ``OWN_`` is the waiting pod."""

    NODE_ADDED = "NodeAdd"
    NODE_DELETED = "NodeDelete"
    NODE_LABELS = "NodeLabelChange"
    NODE_TAINTS = "NodeTaintChange"
    """Taints, or the cordon, which is the same to pods."""
    NODE_ALLOCATABLE = "NodeAllocatableChange"
    POD_ADDED = "AssignedPodAdd"
    POD_DELETED = "AssignedPodDelete"
    POD_LABELS = "AssignedPodLabelChange"
    POD_SCALED_DOWN = "AssignedPodScaleDown"
    OWN_LABELS = "UnscheduledPodLabelChange"
    OWN_SCALED_DOWN = "UnscheduledPodScaleDown"
    OWN_TOLERATIONS = "UnscheduledPodTolerationChange"
    OWN_GATES = "UnscheduledPodGatesEliminated"
    CLAIM_ADDED = "PvcAdd"
    CLAIM_UPDATED = "PvcUpdate"
    VOLUME_ADDED = "PvAdd"
    VOLUME_UPDATED = "PvUpdate"
    STORAGE_CLASS_ADDED = "StorageClassAdd"
    STORAGE_CLASS_UPDATED = "StorageClassUpdate"
    CSI_NODE_ADDED = "CSINodeAdd"
    CSI_NODE_UPDATED = "CSINodeUpdate"
    CSI_DRIVER_UPDATED = "CSIDriverUpdate"
    CSI_CAPACITY_CHANGED = "CSIStorageCapacityChange"
    ATTACHMENT_DELETED = "VolumeAttachmentDelete"
    NAMESPACE_LABELS = "NamespaceLabelChange"

    # There is one of each, and that of enums is slow.
    __hash__ = object.__hash__


class ClusterEvent(NamedTuple):
    """One change, with the object before (none if it is new) and after (none if it is gone)."""

    change: Change
    old: JsonObject | None
    new: JsonObject | None

    @property
    def object(self) -> JsonObject:
        """The object as it is, or was last."""
        latest = self.new if self.new is not None else self.old
        assert latest is not None, "an event is about an object"
        return latest

    @property
    def states(self) -> tuple[JsonObject, JsonObject]:
        """Both states of an object that changed."""
        assert self.old is not None, "a change has a state before"
        assert self.new is not None, "a change has a state after"
        return self.old, self.new


_STORAGE_CHANGES: Final[Mapping[str, tuple[Change | None, Change | None, Change | None]]] = {
    "PersistentVolumeClaim": (Change.CLAIM_ADDED, Change.CLAIM_UPDATED, None),
    "PersistentVolume": (Change.VOLUME_ADDED, Change.VOLUME_UPDATED, None),
    "StorageClass": (Change.STORAGE_CLASS_ADDED, Change.STORAGE_CLASS_UPDATED, None),
    "CSINode": (Change.CSI_NODE_ADDED, Change.CSI_NODE_UPDATED, None),
    "CSIDriver": (None, Change.CSI_DRIVER_UPDATED, None),
    "CSIStorageCapacity": (Change.CSI_CAPACITY_CHANGED, Change.CSI_CAPACITY_CHANGED, None),
    "VolumeAttachment": (None, None, Change.ATTACHMENT_DELETED),
}


def storage_event(old: JsonObject | None, new: JsonObject | None) -> ClusterEvent | None:
    """The event of a storage object; None if it can help nobody."""
    latest = new if new is not None else old
    assert latest is not None, "an event is about an object"
    added, updated, deleted = _STORAGE_CHANGES[latest["kind"]]
    change = added if old is None else deleted if new is None else updated
    return None if change is None else ClusterEvent(change, old, new)


def node_events(old: JsonObject, new: JsonObject) -> list[ClusterEvent]:
    """What of a node changed that a filter looks at. Heartbeats, conditions and annotations are nothing to pods:
    what a condition means to them comes as a taint."""
    old_spec, new_spec = old.get("spec") or _EMPTY, new.get("spec") or _EMPTY
    changes = []
    if (old.get("status") or _EMPTY).get("allocatable") != (new.get("status") or _EMPTY).get("allocatable"):
        changes.append(Change.NODE_ALLOCATABLE)
    if labels_of(old) != labels_of(new):
        changes.append(Change.NODE_LABELS)
    cordoned = bool(old_spec.get("unschedulable")) != bool(new_spec.get("unschedulable"))
    tainted = old_spec.get("taints") != new_spec.get("taints") and taints_of(old) != taints_of(new)
    if cordoned or tainted:
        changes.append(Change.NODE_TAINTS)
    return [ClusterEvent(change, old, new) for change in changes]


def assigned_pod_events(old: JsonObject, new: JsonObject) -> list[ClusterEvent]:
    """What of a pod that has a node changed that may help another pod."""
    changes = []
    if labels_of(old) != labels_of(new):
        changes.append(Change.POD_LABELS)
    if _is_scaled_down(old, new):
        changes.append(Change.POD_SCALED_DOWN)
    return [ClusterEvent(change, old, new) for change in changes]


def own_events(old: JsonObject, new: JsonObject) -> list[ClusterEvent]:
    """What of a waiting pod changed that may help itself."""
    old_spec, new_spec = old.get("spec") or _EMPTY, new.get("spec") or _EMPTY
    changes = []
    if old["metadata"].get("labels") is not new["metadata"].get("labels") and labels_of(old) != labels_of(new):
        changes.append(Change.OWN_LABELS)
    if _is_scaled_down(old, new):
        changes.append(Change.OWN_SCALED_DOWN)
    if old_spec is new_spec and not changes:
        return []
    if old_spec.get("schedulingGates") and not new_spec.get("schedulingGates"):
        changes.append(Change.OWN_GATES)
    if len(old_spec.get("tolerations") or ()) != len(new_spec.get("tolerations") or ()):
        changes.append(Change.OWN_TOLERATIONS)
    return [ClusterEvent(change, old, new) for change in changes]


def _is_scaled_down(old: JsonObject, new: JsonObject) -> bool:
    if not may_request_other(old, new):
        return False
    before, after = (pod_requests(pod, use_status=True) for pod in (old, new))
    return any(milli > after.get(name, 0) for name, milli in before.items())


def may_request_other(old: JsonObject, new: JsonObject) -> bool:
    """Whether two states of a pod could differ in what they request; quick, and never wrongly no."""
    spec: Mapping[str, Any] = new.get("spec") or _EMPTY
    if old.get("spec") is not spec and old.get("spec") != spec:
        return True
    return may_status_request_other(spec, old.get("status") or _EMPTY, new.get("status") or _EMPTY)


def may_status_request_other(spec: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """The same for two states of the status of a pod, whose spec did not change."""
    if before is after:
        return False
    if before.get("resources") != after.get("resources") or before.get("resize") != after.get("resize"):
        return True
    was, is_ = before.get("containerStatuses"), after.get("containerStatuses")
    if was is not is_ and _deviations(was, spec, "containers") != _deviations(is_, spec, "containers"):
        return True
    was, is_ = before.get("initContainerStatuses"), after.get("initContainerStatuses")
    return was is not is_ and _deviations(was, spec, "initContainers") != _deviations(is_, spec, "initContainers")


def _deviations(
    statuses: list[JsonObject] | None, spec: Mapping[str, Any], containers: str
) -> list[tuple[Any, Any, Any]]:
    """The containers that have other amounts than they request; to report what was asked for changes nothing."""
    if not statuses:
        return []
    found = []
    listed: list[JsonObject] = spec.get(containers) or []
    for number, status in enumerate(statuses):
        resources, allocated = status.get("resources"), status.get("allocatedResources")
        if not (resources or allocated):
            continue
        name = status.get("name")
        # Kubelets report on containers in the order in which they are listed, mostly.
        container = listed[number] if number < len(listed) else _EMPTY
        if container.get("name") != name:
            container = next((each for each in listed if each.get("name") == name), _EMPTY)
        wanted = (container.get("resources") or _EMPTY).get("requests") or None
        if ((resources or _EMPTY).get("requests") or None) != wanted or (allocated and allocated != wanted):
            found.append((name, resources, allocated))
    return found
