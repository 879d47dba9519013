"""A pod on a node, as the engine remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holokube.kube.resources import ResourceVector
from holokube.kube.types import JsonObject
from holokube.packing.counters import LabelSet
from holokube.packing.podclass import PodClass


@dataclass(slots=True, eq=False)
class PlacedPod:
    """A pod that is on a node, or will be once its node is known."""

    key: str
    """``namespace/name``, or what ``place`` made up."""
    cls: PodClass
    node_name: str
    namespace: str
    labels: Mapping[str, str]
    requests: ResourceVector
    requests_nonzero: tuple[int, int]
    is_terminating: bool
    pod: JsonObject | None
    """The object, unless the pod exists only as a placement of its class."""
    number: int = 0
    """Pods that came later have larger numbers, whatever was undone in between."""
    priority: int | None = None
    """Of an object; placements of a class have none."""
    count: int = 1
    """How many pods of the class these are; more than one only for what ``place_many`` made."""
    label_set: LabelSet | None = None
    """Where it is counted by its labels, if it came alone and its node is known."""

    def takes_as_before(self, new: JsonObject) -> bool:
        """Whether a later state of the object plainly means the same to all filters, its end left aside."""
        old = self.pod
        if old is None or old["spec"] is not new["spec"] or old.get("status") is not new.get("status"):
            return False
        was, is_ = old["metadata"], new["metadata"]
        return bool(was.get("uid") == is_.get("uid") and was.get("labels") == is_.get("labels"))

    def takes_the_same_room(self, new: JsonObject) -> bool:
        """Whether a later state of the object plainly takes what it took of the same node, and nothing but room.

        Its labels may be others, and it may be on its way out.
        """
        old, cls, spec = self.pod, self.cls, new["spec"]
        if old is None or not cls.takes_only_room:
            return False
        if old["metadata"].get("uid") != new["metadata"].get("uid"):
            return False
        status = new.get("status") or {}
        if status.get("phase") in ("Succeeded", "Failed"):
            return False
        if spec is old["spec"]:
            if spec.get("nodeName") != self.node_name:
                return False
            if self.takes_as_before(new):
                return True
        elif {**old["spec"], "nodeName": self.node_name} != spec:
            return False
        # What a kubelet says of containers can count as well.
        if status.get("containerStatuses") or status.get("resources"):
            return False
        if self.requests is cls.requests and self.requests_nonzero is cls.requests_nonzero:
            return True
        return bool(self.requests == cls.requests and self.requests_nonzero == cls.requests_nonzero)


class Priorities:
    """How many pods have which priority."""

    __slots__ = ("_pods",)

    def __init__(self) -> None:
        self._pods: dict[int, int] = {}

    @property
    def lowest(self) -> int | None:
        """The least that any of them matters; None if there is none."""
        return min(self._pods, default=None)

    def count(self, priority: int | None, pods: int) -> None:
        """Some pods came, or left; those without a priority do not count."""
        if priority is not None:
            left = self._pods.get(priority, 0) + pods
            if left:
                self._pods[priority] = left
            else:
                del self._pods[priority]
