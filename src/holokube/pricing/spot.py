"""A model of the spot market: what spare capacity costs, and how long it lasts.

Prices are drawn once per type and zone from a seed, not over time: one run of a cluster sees one market, and the same
seed gives the same one again.
"""

from __future__ import annotations

from dataclasses import dataclass

from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.pricing.instance_types import ON_DEMAND, SPOT, Catalog, InstanceType, Offering, type_requirements_of


@dataclass(frozen=True, slots=True)
class SpotModel:
    """How spot capacity relates to on-demand capacity."""

    price_factor: float = 0.7
    """The price of spot as a share of the on-demand price."""
    price_spread: float = 0.0
    """How far the factor strays per type and zone: 0.2 for anything from 80 % to 120 % of it."""
    interruptions_per_hour: float = 0.0
    """How often a running instance is reclaimed. They do not remember how long they ran."""
    notice_s: float = 120.0
    """How long before the end the interruption is announced."""

    def __post_init__(self) -> None:
        if not self.price_factor > 0:
            raise UsageError(f"spot: price factor {self.price_factor} is not above 0", hint="0.7 means 30 % off")
        if not 0 <= self.price_spread < 1:
            raise UsageError(f"spot: price spread {self.price_spread} is not between 0 and 1", hint="0.2 means ± 20 %")
        if self.interruptions_per_hour < 0 or self.notice_s < 0:
            raise UsageError("spot: interruptions per hour and notice cannot be negative")

    def price(self, on_demand_usd_per_hour: float, type_name: str, zone: str, rng: Rng) -> float:
        """The price of a type in a zone. It depends on the seed of ``rng`` and the two names alone."""
        price = on_demand_usd_per_hour * self.price_factor
        if not self.price_spread:
            return price
        draw = rng.fork(f"spot {type_name} {zone}").random()
        return price * (1 + self.price_spread * (2 * draw - 1))

    def lifetime_s(self, rng: Rng) -> float | None:
        """When an instance started now is reclaimed; None for never."""
        if not self.interruptions_per_hour:
            return None
        return rng.expovariate(self.interruptions_per_hour) * 3600

    def applied(self, catalog: Catalog, rng: Rng) -> Catalog:
        """The catalogue with a spot offering, at this model's price, beside every on-demand offering."""
        return catalog.with_types([self._applied_to(one, rng) for one in catalog.types])

    def _applied_to(self, one: InstanceType, rng: Rng) -> InstanceType:
        offerings: list[Offering] = []
        priced: set[str] = set()
        for offering in one.offerings:
            if offering.capacity_type != ON_DEMAND:
                continue
            priced.add(offering.zone)
            price = self.price(offering.price_usd_per_hour, one.name, offering.zone, rng)
            known = one.offering(offering.zone, SPOT)
            offerings.append(known.with_price(price) if known else Offering(offering.zone, SPOT, price))
        kept = [o for o in one.offerings if o.capacity_type != SPOT or o.zone not in priced]
        everything = (*kept, *offerings)
        requirements = type_requirements_of(one, everything)
        return InstanceType(one.name, requirements, one.capacity, one.overhead, everything)
