"""Instance types as arrays, so that one comparison answers for all of them.

A row is an instance type with those of its offerings that have the same room. Rows of a claim only ever become fewer:
its requirements narrow, and its pods take room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from holokube.karpenter.scheduling.requirement_states import RequirementState
from holokube.kube.requirements import Requirement, Requirements
from holokube.kube.resources import ResourceVector
from holokube.pricing.instance_types import InstanceType, Offering

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.intp]

_NO_ROOM: Final = -1


class TypeTable:
    """The types of one pool, each with the overhead of the daemons that would run there."""

    def __init__(
        self,
        types: Sequence[InstanceType],
        overheads: Sequence[ResourceVector],
        columns: Mapping[str, int],
        well_known: frozenset[str],
    ) -> None:
        self.types = tuple(types)
        self._well_known = well_known
        offerings: list[Offering] = []
        row_types: list[int] = []
        starts: list[int] = []
        rooms: list[IntArray] = []
        for position, (one, overhead) in enumerate(zip(types, overheads, strict=True)):
            for group in one.allocatable_groups:
                if group.offerings:
                    row_types.append(position)
                    starts.append(len(offerings))
                    offerings.extend(group.offerings)
                    rooms.append(_room(group.allocatable, overhead, columns))
        self._offerings = tuple(offerings)
        self._starts = np.array(starts, dtype=np.intp)
        self.row_types: RowArray = np.array(row_types, dtype=np.intp)
        """The place of the type of each row."""
        self.room: IntArray = (
            np.array(rooms, dtype=np.int64).T.copy() if rooms else np.zeros((len(columns), 0), dtype=np.int64)
        )
        """By resource and row: what pods may use; less than nothing where a row can never be used."""
        self._one_row_each = len(row_types) == len(self.types)
        self._key_masks: dict[Requirement, BoolArray | None] = {}
        self._offering_masks: dict[tuple[Requirement | str, ...], BoolArray] = {}
        self._state_masks: dict[RequirementState, BoolArray] = {}
        self._lowest: dict[RequirementState, list[float]] = {}
        self._offering_keys = sorted({key for offering in offerings for key in offering.requirements})
        self._type_keys = frozenset(key for one in types for key in one.requirements)
        self.has_reserved = any(offering.is_reserved for one in types for offering in one.offerings)

    def rows(self, state: RequirementState) -> BoolArray:
        """Rows whose type and at least one offering agree with a state."""
        found = self._state_masks.get(state)
        if found is None:
            found = self._state_masks[state] = self._rows(state.requirements)
        return found

    def _rows(self, requirements: Requirements) -> BoolArray:
        mask = self._offered(requirements)
        for requirement in requirements.values():
            if requirement.key in self._type_keys:
                of_types = self._key_mask(requirement)
                if of_types is not None:
                    mask = mask & (of_types if self._one_row_each else of_types[self.row_types])
        return mask

    def _key_mask(self, requirement: Requirement) -> BoolArray | None:
        """Types that agree with one requirement; None if all do."""
        if requirement in self._key_masks:
            return self._key_masks[requirement]
        verdicts: dict[Requirement, bool] = {}
        mask = np.ones(len(self.types), dtype=np.bool_)
        for position, one in enumerate(self.types):
            own = one.requirements.get(requirement.key)
            if own is None:
                continue
            verdict = verdicts.get(own)
            if verdict is None:
                verdict = own.intersects(requirement) or not (own.is_positive or requirement.is_positive)
                verdicts[own] = verdict
            mask[position] = verdict
        found = self._key_masks[requirement] = None if mask.all() else mask
        return found

    def _offered(self, requirements: Requirements) -> BoolArray:
        """Rows with an offering that a node with these requirements could be launched from."""
        key = tuple(requirements.get(name, name) for name in self._offering_keys)
        found = self._offering_masks.get(key)
        if found is None:
            relevant = Requirements(r for r in requirements.values() if r.key in self._offering_keys)
            verdicts: dict[Requirements, bool] = {}
            fits = np.zeros(len(self._offerings), dtype=np.bool_)
            for position, offering in enumerate(self._offerings):
                verdict = verdicts.get(offering.requirements)
                if verdict is None:
                    verdict = relevant.is_compatible(offering.requirements, allow_undefined=self._well_known)
                    verdicts[offering.requirements] = verdict
                fits[position] = verdict
            found = np.logical_or.reduceat(fits, self._starts) if len(fits) else np.zeros(0, dtype=np.bool_)
            self._offering_masks[key] = found
        return found

    def lowest_prices(self, state: RequirementState) -> list[float]:
        """By type: the least that it can cost under a state, to be had or not; less than anything if nobody knows."""
        found = self._lowest.get(state)
        if found is None:
            wanted = state.requirements
            found = self._lowest[state] = [
                min((
                    -math.inf if math.isnan(one.price_usd_per_hour) else one.price_usd_per_hour
                    for one in of_type.offerings
                    if wanted.is_compatible(one.requirements, allow_undefined=self._well_known)
                ), default=math.inf)
                for of_type in self.types
            ]  # fmt: skip
        return found

    def types_of(self, rows: RowArray) -> list[InstanceType]:
        """The types of some rows, each once, in order."""
        places = self.row_types[rows]
        if not self._one_row_each:
            places = np.unique(places)
        return [self.types[place] for place in places.tolist()]


def _room(allocatable: ResourceVector, overhead: ResourceVector, columns: Mapping[str, int]) -> IntArray:
    room = np.zeros(len(columns), dtype=np.int64)
    left = {name: allocatable.get(name, 0) - overhead.get(name, 0) for name in (*allocatable, *overhead)}
    if any(milli < 0 for milli in (*allocatable.values(), *left.values())):
        # Where less than nothing is left of one resource, nothing fits.
        room[:] = _NO_ROOM
        return room
    for name, column in columns.items():
        room[column] = left.get(name, 0)
    return room
