"""A NodeClaim as the controllers read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from holokube.base.lazy import lazy
from holokube.karpenter.api import labels
from holokube.karpenter.api.durations import duration_s
from holokube.kube import conditions
from holokube.kube.requirements import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    NODEPOOL_LABEL,
    ZONE_LABEL,
    Requirements,
)
from holokube.kube.resources import ResourceVector, parse_resources
from holokube.kube.taints import Taint
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

DEFAULT_EXPIRE_AFTER_S: Final = 720.0 * 3600
_EMPTY: Final[Mapping[str, Any]] = {}


class NodeClassRef(NamedTuple):
    """Which node class a pool or claim refers to."""

    group: str
    kind: str
    name: str

    @classmethod
    def from_json(cls, ref: Mapping[str, Any] | None) -> NodeClassRef:
        """From ``nodeClassRef``."""
        ref = ref or _EMPTY
        # As the constructor does, by one call less: each look at a claim or pool begins with it.
        return tuple.__new__(cls, (ref.get("group", ""), ref.get("kind", ""), ref.get("name", "")))

    def to_json(self) -> JsonObject:
        """``nodeClassRef``."""
        return {"group": self.group, "kind": self.kind, "name": self.name}

    @property
    def label(self) -> str:
        """The label key under which nodes carry the class's name."""
        return labels.node_class_label(self.group, self.kind)


@lru_cache(maxsize=16_384)
def seconds_of(time: str | None) -> float | None:
    """A time of the API as seconds since 1970."""
    return parse_time(time).timestamp() if time else None


@dataclass(frozen=True, eq=False, init=False)
class NodeClaim:
    """A frozen view over the JSON object; parts that cost something are read when asked for, and kept.

    Most views are made for one question: what is as quickly read as remembered is not kept.
    """

    object: JsonObject = field(repr=False)
    name: str
    uid: str

    _metadata: Mapping[str, Any] = field(repr=False)

    def __init__(self, object: JsonObject) -> None:
        # Views are made by the hundred thousand, and what a dataclass generates for frozen fields takes twice as long.
        own = self.__dict__
        own["object"] = object
        own["_metadata"] = metadata = object.get("metadata") or _EMPTY
        own["name"] = metadata.get("name", "")
        own["uid"] = metadata.get("uid", "")

    @classmethod
    def of(cls, obj: JsonObject) -> NodeClaim:
        """The claim in an API object."""
        return cls(obj)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The JSON spec."""
        return self.object.get("spec") or _EMPTY

    @property
    def status(self) -> Mapping[str, Any]:
        """The JSON status."""
        return self.object.get("status") or _EMPTY

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the claim, which its node gets too."""
        return self._metadata.get("labels") or _EMPTY

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the claim."""
        return self._metadata.get("annotations") or _EMPTY

    @property
    def finalizers(self) -> tuple[str, ...]:
        """Who must let go before the object can vanish."""
        return tuple(self._metadata.get("finalizers") or ())

    @property
    def pool_name(self) -> str:
        """The pool it belongs to; empty for a claim of a user's own."""
        return self.labels.get(NODEPOOL_LABEL, "")

    @property
    def instance_type(self) -> str:
        """What was launched; empty before that."""
        return self.labels.get(INSTANCE_TYPE_LABEL, "")

    @property
    def zone(self) -> str:
        """Where it was launched."""
        return self.labels.get(ZONE_LABEL, "")

    @property
    def capacity_type(self) -> str:
        """spot, on-demand or reserved."""
        return self.labels.get(CAPACITY_TYPE_LABEL, "")

    @property
    def node_class_ref(self) -> NodeClassRef:
        """The node class."""
        return NodeClassRef.from_json(self.spec.get("nodeClassRef"))

    @lazy
    def requirements(self) -> Requirements:
        """What the node must be like."""
        return Requirements.from_json(self.spec.get("requirements"))

    @lazy
    def taints(self) -> tuple[Taint, ...]:
        """Taints that the node keeps."""
        return tuple(map(Taint.from_json, self.spec.get("taints") or ()))

    @lazy
    def startup_taints(self) -> tuple[Taint, ...]:
        """Taints that somebody takes away when the node is ready for pods."""
        return tuple(map(Taint.from_json, self.spec.get("startupTaints") or ()))

    @lazy
    def requests(self) -> ResourceVector:
        """What the pods planned for it need."""
        return parse_resources((self.spec.get("resources") or _EMPTY).get("requests"))

    @lazy
    def capacity(self) -> ResourceVector:
        """What the provider says the node will have."""
        return parse_resources(self.status.get("capacity"))

    @lazy
    def allocatable(self) -> ResourceVector:
        """What the provider says pods will have."""
        return parse_resources(self.status.get("allocatable"))

    @lazy
    def expire_after_s(self) -> float | None:
        """After which age it goes; None for never, as for a claim in which no server has filled in the default."""
        return duration_s(self.spec, "expireAfter")

    @lazy
    def termination_grace_period_s(self) -> float | None:
        """How long a drain may take; None for as long as it needs."""
        return duration_s(self.spec, "terminationGracePeriod")

    @property
    def provider_id(self) -> str:
        """The instance; empty before launch."""
        return self.status.get("providerID") or ""

    @property
    def node_name(self) -> str:
        """The Node; empty before registration."""
        return self.status.get("nodeName") or ""

    @property
    def created_s(self) -> float:
        """When the object was created, in seconds since 1970; 0 if it was not yet."""
        return seconds_of(self._metadata.get("creationTimestamp")) or 0.0

    @property
    def deleted_s(self) -> float | None:
        """When its deletion was asked for."""
        return seconds_of(self._metadata.get("deletionTimestamp"))

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was asked for."""
        return bool(self._metadata.get("deletionTimestamp"))

    @property
    def last_pod_event_s(self) -> float | None:
        """When a pod last came to the node or left it."""
        return seconds_of(self.status.get("lastPodEventTime"))

    @lazy
    def termination_deadline_s(self) -> float | None:
        """When a drain that is under way ends by force; None if it may take its time, or the annotation is no time."""
        text = self.annotations.get(labels.TERMINATION_TIMESTAMP)
        try:
            return seconds_of(text)
        except ValueError:
            return None

    def condition(self, type: str) -> JsonObject | None:
        """The condition of that type."""
        return conditions.get_condition(self.object, type)

    def is_true(self, type: str) -> bool:
        """Whether the condition is there and True."""
        return conditions.is_true(self.object, type)

    def since_s(self, type: str) -> float | None:
        """When the condition last changed its status."""
        found = self.condition(type)
        return seconds_of(found.get("lastTransitionTime")) if found else None

    @property
    def is_launched(self) -> bool:
        """Whether the provider has an instance for it."""
        return self.is_true(labels.LAUNCHED)

    @property
    def is_registered(self) -> bool:
        """Whether its Node is there and known."""
        return self.is_true(labels.REGISTERED)

    @property
    def is_initialized(self) -> bool:
        """Whether its Node is ready for pods."""
        return self.is_true(labels.INITIALIZED)
