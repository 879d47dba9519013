"""Overlays: prices and resources that a user knows better than the catalogue.

An overlay selects offerings by requirements and gives them a price, changes their price, or adds extended resources
to their types. The heaviest overlay wins for each offering and resource; of equal weight the later name comes first,
and a second one that touches the same offering conflicts and is left out as a whole, like upstream's NodeOverlay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.base.errors import UsageError
from holokube.kube.quantity import QuantityError
from holokube.kube.requirements import Requirements
from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector, parse_resources
from holokube.pricing.instance_types import Catalog, InstanceType, Offering

_ADJUSTMENT: Final = re.compile(r"([+-]\d*\.?\d+)(%?)", re.ASCII)
_PRICE: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
_OWN_RESOURCES: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay."""

    name: str
    requirements: Requirements
    price: str = ""
    """A price in USD per hour that stands instead of the catalogue's."""
    price_adjustment: str = ""
    """``+0.1`` or ``-0.1`` in USD per hour, or ``+10%``, ``-10%``. The result is never below 0."""
    capacity: ResourceVector | None = None
    """Extended resources to add."""
    weight: int = 0

    def __post_init__(self) -> None:
        where = f"overlay {self.name}"
        if self.price and self.price_adjustment:
            raise UsageError(f"{where}: cannot set both price and priceAdjustment")
        if self.price and not _PRICE.fullmatch(self.price):
            raise UsageError(f"{where}: price {self.price!r} is no price", hint="write it like 0.25")
        if self.price_adjustment:
            form = _ADJUSTMENT.fullmatch(self.price_adjustment)
            if form is None or (form[2] and float(form[1]) < -100):
                raise UsageError(
                    f"{where}: priceAdjustment {self.price_adjustment!r} is no change of a price",
                    hint="write it like +0.1, -0.1, +10% or -10%; not below -100%",
                )
        restricted = sorted(_OWN_RESOURCES & (self.capacity or {}).keys())
        if restricted:
            raise UsageError(
                f"{where}: capacity {', '.join(restricted)} is restricted", hint="only extended resources can be added"
            )
        if not 0 <= self.weight <= 10_000:
            raise UsageError(f"{where}: weight {self.weight} is not between 1 and 10000")

    @classmethod
    def from_json(cls, obj: Mapping[str, Any]) -> Overlay:
        """From a NodeOverlay object."""
        name = (obj.get("metadata") or {}).get("name", "")
        spec = obj.get("spec") or {}
        try:
            requirements = Requirements.from_json(spec.get("requirements"))
            capacity = parse_resources(spec["capacity"]) if spec.get("capacity") else None
        except (ValueError, QuantityError) as error:
            raise UsageError(f"overlay {name}: {error}") from error
        price, adjustment = (str(spec.get(field) or "") for field in ("price", "priceAdjustment"))
        return cls(name, requirements, price, adjustment, capacity, spec.get("weight") or 0)

    def adjusted(self, price_usd_per_hour: float) -> float:
        """The price that stands instead of this one."""
        if self.price:
            return float(self.price)
        form = _ADJUSTMENT.fullmatch(self.price_adjustment)
        if form is None:
            return price_usd_per_hour
        change = float(form[1])
        changed = price_usd_per_hour * (1 + change / 100) if form[2] else price_usd_per_hour + change
        return max(changed, 0.0)

    @property
    def sets_price(self) -> bool:
        """Whether prices are its business."""
        return bool(self.price or self.price_adjustment)

    def selected(self, one: InstanceType, labels: Requirements, well_known: frozenset[str]) -> list[Offering]:
        """The offerings of a type that it is about."""
        if not labels.merged(one.requirements).is_compatible(self.requirements):
            return []
        return [
            offering for offering in one.offerings
            if self.requirements.is_compatible(offering.requirements, allow_undefined=well_known)
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A catalogue under overlays."""

    catalog: Catalog
    conflicts: tuple[str, ...]
    """Overlays that were left out, by name."""


class _Changes:
    """What the overlays so far do to one type."""

    def __init__(self) -> None:
        self.prices: dict[Offering, tuple[Overlay, int]] = {}
        self.capacity: ResourceVector = {}
        self.last_capacity: tuple[int, frozenset[str]] = (-1, frozenset())

    def conflicts(self, overlay: Overlay, offerings: list[Offering]) -> bool:
        if overlay.sets_price and any(
            offering in self.prices and self.prices[offering][1] == overlay.weight for offering in offerings
        ):
            return True
        weight, names = self.last_capacity
        return weight == overlay.weight and bool(names & (overlay.capacity or {}).keys())

    def take(self, overlay: Overlay, offerings: list[Offering]) -> None:
        if overlay.sets_price:
            for offering in offerings:
                winner = self.prices[offering][0] if offering in self.prices else overlay
                self.prices[offering] = (winner, overlay.weight)
        if overlay.capacity:
            self.capacity = {**overlay.capacity, **self.capacity}
            weight, names = self.last_capacity
            more = frozenset(overlay.capacity)
            self.last_capacity = (overlay.weight, more | names if weight == overlay.weight else more)

    def applied_to(self, one: InstanceType) -> InstanceType:
        if not self.prices and not self.capacity:
            return one
        offerings = tuple(
            offering.with_price(self.prices[offering][0].adjusted(offering.price_usd_per_hour))
            if offering in self.prices
            else offering
            for offering in one.offerings
        )
        return InstanceType(one.name, one.requirements, {**one.capacity, **self.capacity}, one.overhead, offerings)


def apply_overlays(
    catalog: Catalog, overlays: Iterable[Overlay], node_labels: Mapping[str, str] | None = None
) -> Overlaid:
    """The catalogue as overlays make it, for nodes that will carry ``node_labels`` too (those of a pool)."""
    labels = Requirements.from_labels(node_labels)
    changes = [_Changes() for _ in catalog.types]
    conflicts = []
    for overlay in sorted(overlays, key=lambda one: (one.weight, one.name), reverse=True):
        touched = [
            (change, offerings)
            for change, one in zip(changes, catalog.types, strict=True)
            if (offerings := overlay.selected(one, labels, catalog.well_known))
        ]
        # All or nothing: an overlay that applied in part would be harder to understand than one that did not.
        if any(change.conflicts(overlay, offerings) for change, offerings in touched):
            conflicts.append(overlay.name)
            continue
        for change, offerings in touched:
            change.take(overlay, offerings)
    types = [change.applied_to(one) for change, one in zip(changes, catalog.types, strict=True)]
    return Overlaid(catalog.with_types(types), tuple(conflicts))
