"""Instance types: what a node of a kind has, where it is offered, and for how much.

An :class:`InstanceType` has one or more :class:`Offering`: a zone, a capacity type and a price. Both say by
requirements which labels their nodes will carry. All of it is immutable, and compared by identity: a solver keeps
bit masks over the positions of a list of types, and a changed price is a new offering.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from holokube.kube.requirements import (
    ARCH_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    WELL_KNOWN_LABELS,
    ZONE_LABEL,
    Requirement,
    Requirements,
)
from holokube.kube.resources import HUGEPAGES_PREFIX, MEMORY, ResourceVector, subtract

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"
LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)
"""The capacity type that a launch takes first, if several are open to it."""

RESERVATION_ID_LABEL: Final = "karpenter.kwok.sh/reservation-id"
"""On a reserved offering: which reservation it belongs to. Several types may share one."""

NO_REQUIREMENTS: Final = Requirements()
UNKNOWN_PRICE: Final = math.inf
"""Above every price: nothing can be launched."""


@lru_cache(maxsize=4096)
def _place(zone: str, capacity_type: str, reservation_id: str) -> Requirements:
    """A catalogue has few places and many offerings, so they share what they are."""
    labels = {ZONE_LABEL: zone, CAPACITY_TYPE_LABEL: capacity_type, RESERVATION_ID_LABEL: reservation_id}
    return Requirements.from_labels({key: value for key, value in labels.items() if value})


@dataclass(frozen=True, slots=True, eq=False)
class Offering:
    """One place where an instance type can be had, and its price there."""

    zone: str
    capacity_type: str
    price_usd_per_hour: float
    available: bool = True
    """Whether the provider could launch here lately; a reservation that is full is available all the same."""
    reservation_id: str = ""
    reservation_capacity: int = 0
    """How many more instances a reservation holds; without meaning for other capacity types."""
    requirements: Requirements = NO_REQUIREMENTS
    """Labels of a node launched here. Zone, capacity type and reservation are added where they are missing."""
    capacity_override: ResourceVector | None = None
    """Amounts that stand instead of the type's own capacity."""
    overhead_override: ResourceVector | None = None
    """Amounts that stand instead of the type's own overhead."""
    is_price_overlaid: bool = False
    """Whether the price is not the catalogue's."""

    def __post_init__(self) -> None:
        place = _place(self.zone, self.capacity_type, self.reservation_id)
        if not place.keys() <= self.requirements.keys():
            object.__setattr__(self, "requirements", place.without(*self.requirements).merged(self.requirements))

    @property
    def is_reserved(self) -> bool:
        """Whether it draws on a reservation."""
        return self.capacity_type == RESERVED

    @property
    def is_launchable(self) -> bool:
        """Whether a node can be launched here now: available, and not a reservation that is used up."""
        return self.available and (self.capacity_type != RESERVED or self.reservation_capacity > 0)

    def with_price(self, price_usd_per_hour: float) -> Offering:
        """The same at another price."""
        return replace(self, price_usd_per_hour=price_usd_per_hour, is_price_overlaid=True)


@dataclass(frozen=True, slots=True, eq=False)
class AllocatableGroup:
    """Available offerings of a type whose nodes have the same room for pods."""

    allocatable: ResourceVector
    offerings: tuple[Offering, ...]


@dataclass(frozen=True, slots=True, eq=False)
class InstanceType:
    """A kind of node that can be bought."""

    name: str
    requirements: Requirements
    capacity: ResourceVector
    overhead: ResourceVector
    """What the system keeps for itself: kubelet, operating system, eviction threshold."""
    offerings: tuple[Offering, ...]
    allocatable_groups: tuple[AllocatableGroup, ...] = field(init=False, repr=False)
    """Available offerings by the room their nodes have; the first group is the one without overrides."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "allocatable_groups", tuple(_groups(self)))

    @property
    def allocatable(self) -> ResourceVector:
        """The room for pods, where no offering says otherwise. A missing name means zero."""
        return self.allocatable_groups[0].allocatable

    def offering(self, zone: str, capacity_type: str) -> Offering | None:
        """The first offering at this place, available or not."""
        for offering in self.offerings:
            if offering.zone == zone and offering.capacity_type == capacity_type:
                return offering
        return None

    def launchable(self, requirements: Requirements, well_known: frozenset[str]) -> Iterator[Offering]:
        """Where a node with these requirements can be launched now, in the type's own order."""
        for offering in self.offerings:
            if offering.is_launchable and requirements.is_compatible(
                offering.requirements, allow_undefined=well_known
            ):
                yield offering

    def cheapest(self, requirements: Requirements, well_known: frozenset[str]) -> Offering | None:
        """The cheapest place for these requirements; of equally cheap ones the first."""
        best: Offering | None = None
        for offering in self.launchable(requirements, well_known):
            if best is None or offering.price_usd_per_hour < best.price_usd_per_hour:
                best = offering
        return best

    def cheapest_price(self, requirements: Requirements, well_known: frozenset[str]) -> float:
        """The price at the cheapest place; infinite if there is none."""
        best = self.cheapest(requirements, well_known)
        return UNKNOWN_PRICE if best is None else best.price_usd_per_hour

    def worst_launch_price(self, requirements: Requirements, well_known: frozenset[str]) -> float:
        """The most a launch may cost: the dearest place of the capacity type that would be launched."""
        prices: dict[str, float] = {}
        for offering in self.launchable(requirements, well_known):
            known = prices.get(offering.capacity_type, -math.inf)
            prices[offering.capacity_type] = max(known, offering.price_usd_per_hour)
        for capacity_type in LAUNCH_ORDER:
            if capacity_type in prices:
                return prices[capacity_type]
        return UNKNOWN_PRICE

    def with_offerings(self, offerings: Iterable[Offering]) -> InstanceType:
        """The same type, offered otherwise."""
        return InstanceType(self.name, self.requirements, self.capacity, self.overhead, tuple(offerings))


def _groups(instance_type: InstanceType) -> list[AllocatableGroup]:
    plain: list[Offering] = []
    overridden: dict[tuple[object, ...], list[Offering]] = {}
    for offering in instance_type.offerings:
        if not offering.available:
            continue
        if not offering.capacity_override and offering.overhead_override is None:
            plain.append(offering)
            continue
        key = (_as_key(offering.capacity_override), _as_key(offering.overhead_override))
        overridden.setdefault(key, []).append(offering)
    return [
        AllocatableGroup(_allocatable(instance_type, None), tuple(plain)),
        *(AllocatableGroup(_allocatable(instance_type, alike[0]), tuple(alike)) for alike in overridden.values()),
    ]


def _as_key(vector: ResourceVector | None) -> tuple[tuple[str, int], ...] | None:
    return None if vector is None else tuple(sorted(vector.items()))


def _allocatable(instance_type: InstanceType, offering: Offering | None) -> ResourceVector:
    """Capacity without overhead. Memory in huge pages is not there for anyone else, but never below zero."""
    capacity, overhead = instance_type.capacity, instance_type.overhead
    if offering is not None:
        capacity = {**capacity, **(offering.capacity_override or {})}
        overhead = {**overhead, **(offering.overhead_override or {})}
    # Overhead of something the type does not have would make it negative, and a negative amount fits nothing.
    allocatable = subtract(capacity, {name: milli for name, milli in overhead.items() if name in capacity})
    for name, milli in capacity.items():
        if name.startswith(HUGEPAGES_PREFIX):
            allocatable[MEMORY] = max(allocatable.get(MEMORY, 0) - milli, 0)
    return allocatable


def type_requirements(
    name: str,
    architecture: str,
    operating_systems: Iterable[str],
    offerings: Iterable[Offering],
    labels: dict[str, str] | None = None,
) -> Requirements:
    """The requirements of a type: its own labels, and every zone and capacity type it is offered in."""
    return Requirements((
        Requirement.new(INSTANCE_TYPE_LABEL, "In", (name,)),
        Requirement.new(ARCH_LABEL, "In", (architecture,)),
        Requirement.new(OS_LABEL, "In", operating_systems),
        *_places(tuple(offerings)),
        *(Requirement.new(key, "In", (value,)) for key, value in (labels or {}).items()),
    ))  # fmt: skip


def type_requirements_of(one: InstanceType, offerings: Iterable[Offering]) -> Requirements:
    """The requirements of a type that is to be offered otherwise."""
    return one.requirements.without(ZONE_LABEL, CAPACITY_TYPE_LABEL).adding(*_places(tuple(offerings)))


def _places(offerings: tuple[Offering, ...]) -> list[Requirement]:
    return [
        Requirement.new(key, "In", [value for offering in offerings for value in offering.requirements.of(key).values])
        for key in (ZONE_LABEL, CAPACITY_TYPE_LABEL)
    ]


class Catalog:
    """All instance types of a provider, in the order of its file."""

    __slots__ = ("by_name", "types", "well_known")

    def __init__(self, types: Iterable[InstanceType], well_known: Iterable[str] = ()) -> None:
        self.types: tuple[InstanceType, ...] = tuple(types)
        self.by_name: dict[str, InstanceType] = {one.name: one for one in self.types}
        """A name may stand for several types, for different operating systems; here is the last, as upstream has it."""
        added = {key for one in self.types for offering in one.offerings for key in offering.requirements}
        self.well_known: frozenset[str] = WELL_KNOWN_LABELS | frozenset(well_known) | added
        """Keys that a pool may leave undefined: the common ones, the catalogue's own, and those of offerings."""

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[InstanceType]:
        return iter(self.types)

    def with_types(self, types: Sequence[InstanceType]) -> Catalog:
        """The same keys, with other types."""
        return Catalog(types, self.well_known)
