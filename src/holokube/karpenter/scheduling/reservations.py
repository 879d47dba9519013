"""Reserved capacity: who holds which reservation while a plan is made.

A claim holds every reservation that it could still end up in, so that no more claims count on one than it has room for.
It lets go of those that its pods rule out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holokube.kube.requirements import Requirements
from holokube.pricing.instance_types import InstanceType, Offering


class ReservedError(Exception):
    """A pod should wait for reserved capacity instead of taking something else."""


class ReservationsFullError(Exception):
    """A pool has only reservations left, and they are full; another pool may do."""


class Reservations:
    """Free slots by reservation, and what each claim holds."""

    def __init__(self, types: Iterable[InstanceType], credit: Mapping[str, int]) -> None:
        self._free: dict[str, int] = {}
        self._held: dict[int, set[str]] = {}
        self._credit = credit
        for one in types:
            for offering in one.offerings:
                if offering.is_reserved:
                    known = self._free.get(offering.reservation_id, offering.reservation_capacity)
                    self._free[offering.reservation_id] = min(known, offering.reservation_capacity)
        for reservation, slots in credit.items():
            if reservation in self._free:
                self._free[reservation] += slots

    def to_hold(
        self,
        claim: int,
        holds: Sequence[Offering],
        types: Iterable[InstanceType],
        requirements: Requirements,
        well_known: frozenset[str],
        *,
        is_strict: bool,
    ) -> list[Offering]:
        """The reserved offerings that a claim with these types and requirements should hold.

        ReservedError if it had better wait; ReservationsFullError if nothing but full reservations is left to it.
        """
        has_room = is_full = has_others = False
        found: list[Offering] = []
        for one in types:
            for offering in one.offerings:
                if not offering.available or not requirements.is_compatible(
                    offering.requirements, allow_undefined=well_known
                ):
                    continue
                if not offering.is_reserved:
                    has_others = True
                elif not offering.reservation_capacity and not self._credit.get(offering.reservation_id):
                    is_full = True
                else:
                    has_room = True
                    if self._can_hold(claim, offering.reservation_id):
                        found.append(offering)
        if is_strict and has_room and not found:
            raise ReservedError("compatible reserved offerings are available, but other new nodes hold them for now")
        if is_full and not has_room and not has_others:
            if is_strict:
                raise ReservedError("all compatible reserved offerings are full, and there is no other capacity type")
            raise ReservationsFullError("the only compatible reserved offering is full")
        if is_strict and holds and not found:
            raise ReservedError("the pod would rule out every reserved offering that the node could use")
        return found

    def _can_hold(self, claim: int, reservation: str) -> bool:
        return reservation in self._held.get(claim, ()) or self._free.get(reservation, 0) > 0

    def hold(self, claim: int, offerings: Iterable[Offering]) -> None:
        """Let a claim hold these, and nothing else."""
        wanted = {offering.reservation_id for offering in offerings}
        held = self._held.setdefault(claim, set())
        for reservation in wanted - held:
            self._free[reservation] -= 1
        for reservation in held - wanted:
            self._free[reservation] += 1
        self._held[claim] = wanted
