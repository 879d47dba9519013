"""A second look at a finished plan: does topology hold for every pod, all of them together?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from holokube.karpenter.optimal.offers import Offers
from holokube.karpenter.optimal.pod_groups import PodGroup, bound_counts
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec


class Spot(NamedTuple):
    """A pod where a plan puts it."""

    key: str
    group: PodGroup
    bin: int
    host: str
    """Tells nodes apart."""


def misplaced(ground: Groundwork, offers: Offers, spots: Sequence[Spot]) -> set[str]:
    """Keys of pods whose spread, affinity or anti-affinity does not hold."""
    specs = dict.fromkeys(spec for spot in spots for spec in spot.group.form.specs)
    return {key for spec in specs for key in _Check(ground, offers, spec, spots).wrong()}


class _Check:
    """One topology group."""

    def __init__(self, ground: Groundwork, offers: Offers, spec: GroupSpec, spots: Sequence[Spot]) -> None:
        self._spec = spec
        self._owners = [spot for spot in spots if spec in spot.group.form.specs]
        self._domain = {
            spot.key: spot.host if spec.is_hostname else offers.domain(spot.bin, spec.key) for spot in spots
        }
        self._bound = bound_counts(ground, spec)
        self._all: Counter[str] = Counter(self._bound)
        """Pods that match, by domain."""
        self._own: Counter[str] = Counter(self._bound)
        """The same, but of new pods only those that are bound by the constraint themselves."""
        for spot in spots:
            domain = self._domain[spot.key]
            if domain is not None and spec.selects(spot.group.form.labels):
                self._all[domain] += 1
                self._own[domain] += spec in spot.group.form.specs
        base = ground.census.base(spec, inverse=False)
        self._domains = base.known | set(base.nodes)

    def wrong(self) -> list[str]:
        """Owners for which the constraint does not hold."""
        holds = {
            GroupKind.SPREAD: self._is_spread,
            GroupKind.AFFINITY: self._is_near,
            GroupKind.ANTI_AFFINITY: self._is_apart,
        }[self._spec.kind]
        return [
            spot.key
            for spot in self._owners
            if (domain := self._domain[spot.key]) is None or not holds(spot, domain)
        ]

    def _usable(self, spot: Spot) -> list[str]:
        wanted = spot.group.form.strict.get(self._spec.key)
        return [domain for domain in self._domains if wanted is None or wanted.has(domain)]

    def _is_spread(self, spot: Spot, domain: str) -> bool:
        lowest = 0
        if not self._spec.is_hostname:
            usable = self._usable(spot)
            if len(usable) >= (self._spec.min_domains or 1):
                lowest = min((self._all[one] for one in usable), default=0)
        return self._own[domain] - lowest <= self._spec.max_skew

    def _is_near(self, spot: Spot, domain: str) -> bool:
        """With another that it wants; or it wants its own kind, and is the first of it."""
        mine = int(self._spec.selects(spot.group.form.labels))
        if self._all[domain] > mine:
            return True
        others = sum(self._all.values()) - mine if self._spec.is_hostname else sum(
            self._all[one] for one in self._usable(spot)
        ) - mine  # fmt: skip
        return bool(mine) and others == 0

    def _is_apart(self, spot: Spot, domain: str) -> bool:
        return self._all[domain] <= int(self._spec.selects(spot.group.form.labels))
