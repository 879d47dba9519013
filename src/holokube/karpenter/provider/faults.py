"""What goes wrong in a hollow cloud: by share and seed, or by what is in stock.

The fate of a machine follows from the seed and the claim's uid alone: a controller that was started anew sees the same
machine fail in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from holokube.base.rng import Rng


class Place(NamedTuple):
    """One offering of one instance type."""

    instance_type: str
    zone: str
    capacity_type: str


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares between 0 and 1; nothing goes wrong unless told."""

    launch_failure: float = 0.0
    """Of all tries to launch."""
    insufficient_capacity: float = 0.0
    """Of all tries to launch: nothing is to be had at the place that was chosen."""
    never_registers: float = 0.0
    """Of all machines: their Node never comes."""
    slow: float = 0.0
    """Of all machines: their Node comes ``slow_by_s`` later than others."""
    slow_by_s: float = 120.0
    stock: Mapping[Place, int] = field(default_factory=dict)
    """How many machines there are at a place, in all; any number where none is given."""
    unavailable_for_s: float = 180.0
    """How long a place where nothing was to be had is left alone."""


class Fate(Enum):
    """What becomes of a machine."""

    COMES = "comes"
    COMES_LATE = "comes-late"
    NEVER_COMES = "never-comes"


def fate_of(faults: Faults, rng: Rng, uid: str) -> Fate:
    """The fate of a claim's machine."""
    if not faults.never_registers and not faults.slow:
        # No draw is below zero.
        return Fate.COMES
    draw = rng.fork(f"fate/{uid}").random()
    if draw < faults.never_registers:
        return Fate.NEVER_COMES
    return Fate.COMES_LATE if draw < faults.never_registers + faults.slow else Fate.COMES
