"""Made-up instance types: families x sizes x architectures x operating systems x zones x capacity types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector
from holokube.pricing.hollow_types import hollow_type
from holokube.pricing.instance_types import ON_DEMAND, SPOT, Catalog, InstanceType, Offering
from holokube.pricing.size_labels import SIZE_LABELS
from holokube.pricing.spot import SpotModel

_GIB_MILLI: Final = 2**30 * 1000


@dataclass(frozen=True, slots=True)
class Family:
    """Types of one kind, from small to large."""

    name: str
    gib_per_cpu: int
    price_factor: float = 1.0
    """Against the price of cpu and memory alone."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Extended resources of the smallest size; a larger one has as many times more as it has cores."""
    usd_per_device_hour: float = 0.0


GENERIC_FAMILIES: Final = (Family("c", 2), Family("s", 4), Family("m", 8))
"""Compute, standard and memory."""


@dataclass(frozen=True, slots=True)
class CatalogPlan:
    """What to generate. The defaults give the hollow provider's own catalogue: 144 types in 1152 offerings."""

    families: tuple[Family, ...] = GENERIC_FAMILIES
    cpus: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
    architectures: tuple[str, ...] = ("amd64", "arm64")
    operating_systems: tuple[str, ...] = ("linux", "windows")
    zones: tuple[str, ...] = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
    capacity_types: tuple[str, ...] = (SPOT, ON_DEMAND)
    pods_per_cpu: int = 16
    most_pods: int = 1024
    ephemeral_storage_gib: int = 20
    usd_per_cpu_hour: float = 0.025
    usd_per_memory_gb_hour: float = 0.001
    """Per 10^9 bytes."""
    zone_price_factors: Mapping[str, float] = field(default_factory=dict)
    """Zones that are dearer or cheaper than the others."""
    architecture_price_factors: Mapping[str, float] = field(default_factory=dict)
    spot: SpotModel = field(default_factory=SpotModel)

    def __post_init__(self) -> None:
        for name in ("families", "cpus", "architectures", "operating_systems", "zones", "capacity_types"):
            values = getattr(self, name)
            if not values:
                raise UsageError(f"catalogue: no {name.replace('_', ' ')}", hint="give at least one")
            if len(set(_names(values))) != len(values):
                raise UsageError(f"catalogue: {name.replace('_', ' ')} are named twice in {', '.join(_names(values))}")
        if min(self.cpus) < 1 or min(family.gib_per_cpu for family in self.families) < 1:
            raise UsageError("catalogue: a type has at least one core and 1 GiB of memory per core")
        unknown = sorted(set(self.capacity_types) - {SPOT, ON_DEMAND})
        if unknown:
            raise UsageError(
                f"catalogue: {', '.join(unknown)} cannot be generated", hint=f"only {SPOT} and {ON_DEMAND} can"
            )


def _names(values: tuple[object, ...]) -> list[str]:
    return [value.name if isinstance(value, Family) else str(value) for value in values]


def generate(plan: CatalogPlan | None = None, seed: int | str = 0) -> Catalog:
    """The catalogue of a plan. The seed matters only where spot prices stray."""
    return _usual() if plan is None and seed == 0 else _generate(plan or CatalogPlan(), seed)


@cache
def _usual() -> Catalog:
    """The one for all who say nothing of it: several ask for it in each run, and nobody changes a catalogue."""
    return _generate(CatalogPlan(), 0)


def _generate(plan: CatalogPlan, seed: int | str) -> Catalog:
    rng = Rng(seed)
    types = [
        _instance_type(plan, family, cpu, operating_system, architecture, rng)
        for cpu in plan.cpus
        for family in plan.families
        for operating_system in plan.operating_systems
        for architecture in plan.architectures
    ]
    return Catalog(types, SIZE_LABELS)


def _instance_type(
    plan: CatalogPlan, family: Family, cpu: int, operating_system: str, architecture: str, rng: Rng
) -> InstanceType:
    name = f"{family.name}-{cpu}x-{architecture}-{operating_system}"
    capacity: ResourceVector = {
        CPU: cpu * 1000,
        MEMORY: cpu * family.gib_per_cpu * _GIB_MILLI,
        PODS: min(cpu * plan.pods_per_cpu, plan.most_pods) * 1000,
        EPHEMERAL_STORAGE: plan.ephemeral_storage_gib * _GIB_MILLI,
    }
    times = cpu // min(plan.cpus)
    for device, count in family.devices.items():
        capacity[device] = count * times * 1000
    # In this order, as the last bit of a sum of floats depends on it.
    price = plan.usd_per_cpu_hour * cpu + plan.usd_per_memory_gb_hour * (capacity[MEMORY] // 1000) / 1e9
    price = price * family.price_factor * plan.architecture_price_factors.get(architecture, 1.0)
    price += family.usd_per_device_hour * sum(family.devices.values()) * times
    offerings = []
    for zone in plan.zones:
        in_zone = price * plan.zone_price_factors.get(zone, 1.0)
        for capacity_type in plan.capacity_types:
            of_kind = plan.spot.price(in_zone, name, zone, rng) if capacity_type == SPOT else in_zone
            offerings.append(Offering(zone, capacity_type, of_kind))
    return hollow_type(name, architecture, (operating_system,), capacity, offerings)
