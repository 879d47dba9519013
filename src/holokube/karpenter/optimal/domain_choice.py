"""Topology over zones and the like, settled before packing: which domain each pod goes to.

Spread constraints, affinity and anti-affinity over keys other than the hostname decide about domains, not about nodes.
Once every pod they concern has its domain, packing needs only to know which bins are there. Pods are taken one by one,
as a scheduler would, so that each step keeps every rule; where the rules leave a choice, the cheapest domain wins.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from holokube.karpenter.optimal.model import BoolArray, FloatArray
from holokube.karpenter.optimal.offers import Offers
from holokube.karpenter.optimal.pod_groups import PodGroup, bound_counts
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec

Cell = tuple[str | None, ...]
"""A value for each topology key that matters; None where a node has none."""


def settled(ground: Groundwork, offers: Offers, groups: list[PodGroup]) -> list[PodGroup]:
    """Groups split by the domains chosen for their units; units for which the rules leave none have no bins."""
    specs = [
        spec
        for spec in dict.fromkeys(spec for group in groups for form in group.parts for spec in form.specs)
        if not spec.is_hostname
    ]
    if not specs:
        return groups
    return _Chooser(ground, offers, specs).settle(groups)


class _Chooser:
    def __init__(self, ground: Groundwork, offers: Offers, specs: list[GroupSpec]) -> None:
        self._offers = offers
        self._specs = specs
        self._keys = sorted({spec.key for spec in specs})
        self._place = {key: place for place, key in enumerate(self._keys)}
        cells = [tuple(offers.domain(bin_, key) for key in self._keys) for bin_ in range(len(offers))]
        self._cells: list[Cell] = sorted(set(cells), key=lambda cell: tuple(value or "" for value in cell))
        number = {cell: place for place, cell in enumerate(self._cells)}
        self._cell_of = np.array([number[cell] for cell in cells], dtype=np.intp)
        self._rooms = offers.rooms()
        self._prices = np.array(offers.prices())
        census = ground.census
        self._counts = {spec: Counter(bound_counts(ground, spec)) for spec in specs}
        """Pods by domain that a group counts."""
        self._owners: dict[GroupSpec, Counter[str]] = {
            spec: Counter() for spec in specs if spec.kind is GroupKind.ANTI_AFFINITY
        }
        """Pods by domain that own an anti-affinity term; those that run already were looked at before."""
        self._domains = {
            spec: census.base(spec, inverse=False).known | set(census.base(spec, inverse=False).nodes)
            for spec in specs
        }

    def settle(self, groups: list[PodGroup]) -> list[PodGroup]:
        done: list[PodGroup] = []
        for group in sorted(groups, key=self._rank):
            done += self._split(group) if self._is_concerned(group) else [group]
        return done

    def _is_concerned(self, group: PodGroup) -> bool:
        """Owners, and pods that an affinity or anti-affinity term is about: these must be where they are expected."""
        return any(
            group.owns(spec) or (spec.kind is not GroupKind.SPREAD and group.counted_by(spec)) for spec in self._specs
        )

    def _rank(self, group: PodGroup) -> tuple[bool, bool, int]:
        """Who needs others comes after them; who spreads, and so has least choice, comes first of the rest."""
        affine = [s for s in self._specs if s.kind is GroupKind.AFFINITY and group.owns(s)]
        follows = any(not group.counted_by(spec) for spec in affine)
        return follows, bool(affine), int(group.allowed.sum())

    def _split(self, group: PodGroup) -> list[PodGroup]:
        costs = self._costs(group)
        chosen: dict[int | None, list[tuple[int, ...]]] = {}
        for unit in group.units:
            cell = self._choose(group, costs)
            chosen.setdefault(cell, []).append(unit)
            if cell is not None:
                self._record(group, self._cells[cell])
        found = []
        for cell, units in chosen.items():
            there: BoolArray = np.zeros(len(self._cell_of), dtype=np.bool_) if cell is None else self._cell_of == cell
            domains = None if cell is None else self._cells[cell]
            found.append(replace(group, units=tuple(units), allowed=group.allowed & there, cell=domains))
        return found

    def _costs(self, group: PodGroup) -> FloatArray:
        """By cell: the price of the share of a node that one unit takes, where that is cheapest; infinite if none."""
        shares = (group.demand / np.maximum(self._rooms, 1)).max(axis=1)
        fits = group.allowed & (self._rooms >= group.demand).all(axis=1)
        # A node that is there costs nothing, but its room is not enough to choose a zone for everyone by it.
        held = np.arange(len(fits)) >= len(self._offers.offers)
        prices = np.where(held, max(float(self._prices.max(initial=0.0)), 1.0), self._prices)
        costs = np.full(len(self._cells), np.inf)
        usable = np.flatnonzero(fits)
        np.minimum.at(costs, self._cell_of[usable], (prices * np.minimum(shares, 1.0))[usable])
        return costs

    def _choose(self, group: PodGroup, costs: FloatArray) -> int | None:
        cells = [
            place
            for place, cell in enumerate(self._cells)
            if np.isfinite(costs[place]) and all(self._admits(form, cell) for form in group.parts)
        ]
        if not cells:
            return None
        return min(cells, key=lambda place: (costs[place], self._crowd(group, self._cells[place]), place))

    def _crowd(self, group: PodGroup, cell: Cell) -> int:
        """How many there are already: of equally cheap domains, the emptier one."""
        return sum(
            self._counts[spec][self._domain(spec, cell) or ""]
            for spec in self._specs
            if spec.kind is GroupKind.SPREAD and group.owns(spec)
        )

    def _domain(self, spec: GroupSpec, cell: Cell) -> str | None:
        return cell[self._place[spec.key]]

    def _admits(self, form: PodForm, cell: Cell) -> bool:
        for spec in self._specs:
            domain = self._domain(spec, cell)
            if spec in form.specs and (domain is None or not self._keeps(spec, form, domain)):
                return False
            is_shunned = spec in self._owners and domain is not None and self._owners[spec][domain] > 0
            if is_shunned and spec.selects(form.labels):
                return False
        return True

    def _keeps(self, spec: GroupSpec, form: PodForm, domain: str) -> bool:
        if spec.kind is GroupKind.SPREAD:
            return self._spreads(spec, form, domain)
        if spec.kind is GroupKind.AFFINITY:
            return self._attracts(spec, form, domain)
        return not self._counts[spec][domain]

    def _usable(self, spec: GroupSpec, form: PodForm) -> list[str]:
        wanted = form.strict.get(spec.key)
        return [domain for domain in self._domains[spec] if wanted is None or wanted.has(domain)]

    def _spreads(self, spec: GroupSpec, form: PodForm, domain: str) -> bool:
        usable = self._usable(spec, form)
        counts = self._counts[spec]
        lowest = min((counts[one] for one in usable), default=0)
        if len(usable) < (spec.min_domains or 1):
            lowest = 0
        return counts[domain] + int(spec.selects(form.labels)) - lowest <= spec.max_skew

    def _attracts(self, spec: GroupSpec, form: PodForm, domain: str) -> bool:
        counts = self._counts[spec]
        if counts[domain] > 0:
            return True
        return spec.selects(form.labels) and not any(counts[one] for one in self._usable(spec, form))

    def _record(self, group: PodGroup, cell: Cell) -> None:
        for spec in self._specs:
            domain = self._domain(spec, cell)
            if domain is None:
                continue
            self._counts[spec][domain] += group.counted_by(spec)
            if spec in self._owners and group.owns(spec):
                self._owners[spec][domain] += 1
