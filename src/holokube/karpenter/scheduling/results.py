"""What a solve answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from holokube.base.go_sort import sort_as_go
from holokube.base.lazy import lazy
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.kube.requirements import Requirement, Requirements
from holokube.kube.resources import ResourceVector
from holokube.kube.taints import Taint
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType, Offering

_EMPTY: Final[Mapping[str, Any]] = {}


def by_price(
    types: Sequence[InstanceType], requirements: Requirements, well_known: frozenset[str]
) -> list[InstanceType]:
    """Types by their cheapest launchable offering; equal prices in the order upstream's sort leaves them."""
    price = {one: one.cheapest_price(requirements, well_known) for one in types}
    return sort_as_go(types, price.__getitem__)


@dataclass(frozen=True, eq=False)
class PlannedClaim:
    """A NodeClaim to be made, with the pods that it is for."""

    pool: NodePool
    requirements: Requirements
    """What the node must be like, without its hostname."""
    candidate_types: Sequence[InstanceType] = field(repr=False)
    """The instance types that will do, in the order of the catalogue."""
    pods: tuple[JsonObject, ...] = field(repr=False)
    requests: ResourceVector
    """Of the pods, and at least what DaemonSets will add."""
    well_known: frozenset[str] = field(repr=False)
    min_values_relaxed: bool = False
    max_instance_types: int = 600

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that the node keeps."""
        return self.pool.taints

    @property
    def startup_taints(self) -> tuple[Taint, ...]:
        """Taints that it loses when it is ready."""
        return self.pool.startup_taints

    @lazy
    def instance_types(self) -> list[InstanceType]:
        """The types that will do, the cheapest first, at most as many as a launch takes."""
        ordered = by_price(self.candidate_types, self.requirements, self.well_known)
        return ordered[: self.max_instance_types]

    def cheapest(self) -> tuple[InstanceType, Offering] | None:
        """What would be launched, and where; None if nothing can be launched now."""
        for one in self.instance_types[:1]:
            offering = one.cheapest(self.requirements, self.well_known)
            if offering is not None:
                return one, offering
        return None

    @property
    def price_usd_per_hour(self) -> float:
        """The price of :meth:`cheapest`; 0 if nothing can be launched."""
        best = self.cheapest()
        return best[1].price_usd_per_hour if best is not None else 0.0

    def unmet_min_values(self) -> Mapping[str, int]:
        """Keys with fewer values than their ``minValues`` among the instance types, and how many there are."""
        return unmet_min_values(self.instance_types, self.requirements)

    def with_types(self, types: Sequence[InstanceType]) -> PlannedClaim:
        """The same claim with fewer types."""
        return replace(self, candidate_types=tuple(types))

    def narrowed(self, *requirements: Requirement) -> PlannedClaim:
        """The same claim with further requirements."""
        return replace(self, requirements=self.requirements.adding(*requirements))


@dataclass(frozen=True, slots=True, eq=False)
class PodError:
    """Why a pod has no place."""

    pod: JsonObject
    reason: str
    is_reserved: bool = False
    """Whether it only waits for reserved capacity: the decision is put off, and nothing is wrong."""
    is_dra: bool = False


@dataclass(eq=False)
class Results:
    """Where pods go. ``errors`` by ``namespace/name``; pods that a time-out left over are in none of the three."""

    new_claims: list[PlannedClaim]
    existing: dict[str, list[JsonObject]]
    """By the state node's name; only nodes that got pods."""
    failed: dict[str, PodError]
    timed_out: bool = False

    @property
    def errors(self) -> dict[str, str]:
        """Why pods have no place."""
        return {key: error.reason for key, error in self.failed.items()}

    @property
    def price_usd_per_hour(self) -> float:
        """Of all new nodes together."""
        total = 0.0
        for claim in self.new_claims:
            total += claim.price_usd_per_hour
        return total

    def failed_except(self, is_exempt: Callable[[JsonObject], bool]) -> dict[str, PodError]:
        """Errors of pods that are not exempt."""
        return {key: error for key, error in self.failed.items() if not is_exempt(error.pod)}
