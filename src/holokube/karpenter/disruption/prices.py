"""Prices of instance types under requirements, worked out once for all probes of a pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holokube.base.go_sort import sort_as_go
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.kube.requirements import Requirement, Requirements
from holokube.pricing.instance_types import InstanceType


class _Price(NamedTuple):
    cheapest: float
    worst: float


class PriceBook:
    """What launches cost.

    Requirements matter only as far as offerings speak of the same labels, so two claims that agree in zones and
    capacity types share their prices, whatever else their pods ask for.
    """

    __slots__ = ("_keys", "_tables", "well_known")

    def __init__(self, well_known: frozenset[str]) -> None:
        self.well_known = well_known
        self._keys: dict[str, None] = {}
        """All labels that offerings speak of, as far as types have been met."""
        self._tables: dict[tuple[Requirement | None, ...], dict[InstanceType, _Price]] = {}
        """Prices by the requirements on those labels."""

    def cheaper(
        self, types: Iterable[InstanceType], requirements: Requirements, max_price: float
    ) -> list[InstanceType]:
        """The types whose launch costs less than ``max_price`` even at worst, in their order.

        At worst is the dearest place of the capacity type that would be launched.
        """
        return [one for one, price in self._prices(types, requirements) if price.worst < max_price]

    def ordered(self, claim: PlannedClaim) -> list[InstanceType]:
        """The types of a claim, the cheapest first; the same as its own list of them."""
        price = {one: price.cheapest for one, price in self._prices(claim.candidate_types, claim.requirements)}
        return sort_as_go(claim.candidate_types, price.__getitem__)[: claim.max_instance_types]

    def savings(self, source_price: float, options: Sequence[InstanceType], requirements: Requirements) -> float:
        """What is saved if the first option launches where it is cheapest.

        If it cannot launch anywhere under the requirements it counts as free, which shows too large a saving; so
        does upstream.
        """
        price = options[0].cheapest_price(requirements, self.well_known) if options else math.inf
        return source_price - (0.0 if math.isinf(price) else price)

    def _prices(
        self, types: Iterable[InstanceType], requirements: Requirements
    ) -> list[tuple[InstanceType, _Price]]:
        table = self._table(requirements)
        found = []
        for one in types:
            price = table.get(one)
            if price is None:
                price = self._learn(one, requirements)
                table = self._table(requirements)
            found.append((one, price))
        return found

    def _table(self, requirements: Requirements) -> dict[InstanceType, _Price]:
        return self._tables.setdefault(tuple(requirements.get(key) for key in self._keys), {})

    def _learn(self, one: InstanceType, requirements: Requirements) -> _Price:
        new_keys = [key for place in one.offerings for key in place.requirements if key not in self._keys]
        if new_keys:
            # A label that no type before spoke of: tables of requirements that differ in it must be told apart.
            self._keys.update(dict.fromkeys(new_keys))
            self._tables.clear()
        price = _Price(
            one.cheapest_price(requirements, self.well_known), one.worst_launch_price(requirements, self.well_known)
        )
        self._table(requirements)[one] = price
        return price
