"""A NodePool as the controllers read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.base.lazy import lazy
from holokube.karpenter.api import labels
from holokube.karpenter.api.budgets import Budget, allowed_disruptions
from holokube.karpenter.api.durations import duration_s
from holokube.karpenter.api.node_claim import DEFAULT_EXPIRE_AFTER_S, NodeClassRef, seconds_of
from holokube.karpenter.api.pool_hash import pool_hash
from holokube.kube import conditions
from holokube.kube.requirements import NODEPOOL_LABEL, Requirements
from holokube.kube.resources import ResourceVector, parse_resources
from holokube.kube.taints import Taint
from holokube.kube.types import JsonObject

WHEN_EMPTY: Final = "WhenEmpty"
WHEN_EMPTY_OR_UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"

NODES: Final = "nodes"
"""The limit that counts nodes instead of a resource."""

_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, eq=False)
class NodePool:
    """A frozen view over the JSON object, with the defaults of the API where a field is missing."""

    name: str
    weight: int
    template_labels: Mapping[str, str]
    template_annotations: Mapping[str, str]
    requirements: Requirements
    """``spec.template.spec.requirements`` alone; see :attr:`template_requirements`."""
    taints: tuple[Taint, ...]
    startup_taints: tuple[Taint, ...]
    node_class_ref: NodeClassRef
    expire_after_s: float | None
    """None for never."""
    termination_grace_period_s: float | None
    limits: ResourceVector | None
    """Milli-units; the key ``nodes`` counts nodes, in thousandths like the others."""
    replicas: int | None
    """Set for a static pool."""
    consolidation_policy: str
    consolidate_after_s: float | None
    """None for never: then nothing is consolidated, empty nodes neither."""
    budgets: tuple[Budget, ...]
    object: JsonObject = field(repr=False)

    @classmethod
    def of(cls, obj: JsonObject) -> NodePool:
        """The pool in an API object; ValueError, naming the field, if it makes no sense."""
        name = (obj.get("metadata") or _EMPTY).get("name", "")
        try:
            return cls._read(name, obj)
        except ValueError as error:
            raise ValueError(f"NodePool {name}: {error}") from error

    @classmethod
    def _read(cls, name: str, obj: JsonObject) -> NodePool:
        spec = obj.get("spec") or _EMPTY
        template = spec.get("template") or _EMPTY
        metadata = template.get("metadata") or _EMPTY
        node = template.get("spec") or _EMPTY
        disruption = spec.get("disruption") or _EMPTY
        limits = spec.get("limits")
        budgets = disruption.get("budgets")
        return cls(
            name=name,
            weight=spec.get("weight") or 0,
            template_labels=metadata.get("labels") or _EMPTY,
            template_annotations=metadata.get("annotations") or _EMPTY,
            requirements=Requirements.from_json(node.get("requirements")),
            taints=tuple(map(Taint.from_json, node.get("taints") or ())),
            startup_taints=tuple(map(Taint.from_json, node.get("startupTaints") or ())),
            node_class_ref=NodeClassRef.from_json(node.get("nodeClassRef")),
            expire_after_s=duration_s(node, "expireAfter", DEFAULT_EXPIRE_AFTER_S),
            termination_grace_period_s=duration_s(node, "terminationGracePeriod"),
            limits=None if limits is None else parse_resources(limits),
            replicas=spec.get("replicas"),
            consolidation_policy=disruption.get("consolidationPolicy") or WHEN_EMPTY_OR_UNDERUTILIZED,
            consolidate_after_s=duration_s(disruption, "consolidateAfter", 0.0),
            budgets=(Budget("10%"),) if budgets is None else tuple(map(Budget.from_json, budgets)),
            object=obj,
        )

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return self.object.get("metadata") or _EMPTY

    @property
    def uid(self) -> str:
        """The object's own."""
        return str(self._metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        """Which version of the spec this is."""
        return self._metadata.get("generation") or 0

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the pool itself."""
        return self._metadata.get("annotations") or _EMPTY

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was asked for."""
        return bool(self._metadata.get("deletionTimestamp"))

    @property
    def is_ready(self) -> bool:
        """Whether its Ready condition is True."""
        return conditions.is_true(self.object, labels.READY)

    @property
    def is_static(self) -> bool:
        """Whether it has a fixed number of nodes."""
        return self.replicas is not None

    @lazy
    def created_s(self) -> float:
        """When the object was created, in seconds since 1970; 0 if it was not yet."""
        return seconds_of(self._metadata.get("creationTimestamp")) or 0.0

    @lazy
    def node_labels(self) -> Mapping[str, str]:
        """Labels of every node of the pool: the template's, the pool's name and the node class's."""
        found = {**self.template_labels, NODEPOOL_LABEL: self.name}
        ref = self.node_class_ref
        if ref.kind:
            found[ref.label] = ref.name
        return found

    @lazy
    def template_requirements(self) -> Requirements:
        """What every node of the pool is like: requirements and labels together."""
        return self.requirements.merged(Requirements.from_labels(self.node_labels))

    @lazy
    def hash(self) -> str:
        """Changes when a node made from the old template should be replaced."""
        return pool_hash((self.object.get("spec") or _EMPTY).get("template") or _EMPTY)

    def exceeded_limit(self, usage: Mapping[str, int]) -> str:
        """Which limit is exceeded (strictly) by such a usage; empty if none."""
        for name, used in usage.items():
            if self.limits is not None and used > self.limits.get(name, used):
                return name
        return ""

    def allowed_disruptions(self, now_s: float, nodes: int, reason: str) -> int:
        """How many of ``nodes`` may be disrupted at once for this reason; see :mod:`.budgets`."""
        return allowed_disruptions(self.budgets, now_s, nodes, reason)


def in_order(pools: Iterable[NodePool]) -> list[NodePool]:
    """Pools as they are tried: heavier ones first, of equal weight the later name first."""
    return sorted(pools, key=lambda pool: (pool.weight, pool.name), reverse=True)
