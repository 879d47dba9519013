"""What goes wrong with machines of a group, by annotations on its template; drawn from a seed.

============================ =============================================================================
annotation (after the prefix) meaning
============================ =============================================================================
boot-delay                   ``30s``, or ``30s..90s`` for a time between: until then the machine is being
                             created and has no node
boot-failure-probability     0 to 1: as many machines never get a node
boot-failure-mode            ``error`` (default): after its boot delay the machine shows an error;
                             ``silent``: it shows nothing, and the autoscaler has to lose patience with it
stock                        how many machines of the group the cloud has at all
stock-out                    ``10m..30m``, ``1h..``, or with instants ``2026-01-01T10:00:00Z..``; several are
                             divided by commas: while one lasts no machine can be had. Spans count from the
                             start of the provider, so only instants survive its restart
stock-out-mode               ``instance`` (default): the increase is granted, and the machines that cannot be
                             had show the error OutOfResources, as managed instance groups of GCE and Auto
                             Scaling groups of AWS do; ``call``: the increase itself fails after the machines
                             that could be had, as scale sets of Azure and quota checks do
increase-limit               how many machines one call gets at most; the call then fails, and the target tells
                             how far it came
============================ =============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.errors import CloudError, OutOfResourcesError
from holokube.cluster_autoscaler.cloud.provider import ErrorClass, InstanceError
from holokube.kube.timeformat import parse_duration, parse_time

BOOT_DELAY = "boot-delay"
BOOT_FAILURE = "boot-failure-probability"
BOOT_FAILURE_MODE = "boot-failure-mode"
STOCK = "stock"
STOCK_OUT = "stock-out"
STOCK_OUT_MODE = "stock-out-mode"
INCREASE_LIMIT = "increase-limit"
KEYS = (BOOT_DELAY, BOOT_FAILURE, BOOT_FAILURE_MODE, STOCK, STOCK_OUT, STOCK_OUT_MODE, INCREASE_LIMIT)

BOOT_FAILURE_MODES = ("error", "silent")
STOCK_OUT_MODES = ("instance", "call")

NO_STOCK_CODE = "OUT_OF_RESOURCES"
BOOT_FAILED_CODE = "BOOT_FAILED"


class Window(NamedTuple):
    """A time without machines: seconds since the start of the provider, or of the epoch."""

    start_s: float
    end_s: float
    is_absolute: bool

    def covers(self, now_s: float, started_s: float) -> bool:
        at_s = now_s if self.is_absolute else now_s - started_s
        return self.start_s <= at_s < self.end_s


class Boot(NamedTuple):
    """What becomes of one machine."""

    delay_s: float = 0.0
    error: InstanceError | None = None
    """Shown after the delay, instead of a node."""
    is_silent: bool = False
    """Neither a node nor an error ever comes."""

    @property
    def is_immediate(self) -> bool:
        return self.delay_s <= 0 and self.error is None and not self.is_silent


class Grant(NamedTuple):
    """How much of an increase the cloud does."""

    machines: int
    refused: int = 0
    """Machines that are granted and then show ``OutOfResources``."""
    error: CloudError | None = None
    """With which the call ends after that."""


NO_STOCK = InstanceError(ErrorClass.OUT_OF_RESOURCES, NO_STOCK_CODE, "the cloud has no machine of this kind left")
BOOT_FAILED = InstanceError(ErrorClass.OTHER, BOOT_FAILED_CODE, "the machine failed to boot")


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one group; without any of them machines come at once."""

    boot_delay_s: tuple[float, float] = (0.0, 0.0)
    boot_failure_probability: float = 0.0
    boot_failure_mode: str = "error"
    stock: int | None = None
    stock_out: tuple[Window, ...] = ()
    stock_out_mode: str = "instance"
    increase_limit: int | None = None

    def left(self, existing: int, now_s: float, started_s: float) -> int | None:
        """How many more machines can be had; None for any number."""
        if any(window.covers(now_s, started_s) for window in self.stock_out):
            return 0
        return None if self.stock is None else max(0, self.stock - existing)

    def grant(
        self, group: str, delta: int, *, existing: int, now_s: float, started_s: float, atomic: bool = False
    ) -> Grant:
        """What an increase by ``delta`` comes to; ``existing`` machines are taken already."""
        asked = delta
        limited: CloudError | None = None
        if self.increase_limit is not None and delta > self.increase_limit:
            asked = self.increase_limit
            limited = CloudError(
                f"group {group}: the cloud gave {asked} of {delta} machines and refuses the others",
                hint=f"The template's annotation {INCREASE_LIMIT} asks for that.",
            )
        left = self.left(existing, now_s, started_s)
        had = asked if left is None else min(asked, left)
        if had == delta:
            return Grant(delta)
        short = OutOfResourcesError(f"group {group}: {had} of {delta} machines can be had: {NO_STOCK.message}")
        if atomic:
            return Grant(0, error=short if had < asked else limited)
        if had == asked:
            return Grant(asked, error=limited)
        if self.stock_out_mode == "call":
            return Grant(had, error=short)
        return Grant(had, refused=asked - had, error=limited)

    def boot(self, rng: Rng) -> Boot:
        """What becomes of the next machine. Draws the same number of times whatever comes of it."""
        low_s, high_s = self.boot_delay_s
        delay_s, luck = rng.uniform(low_s, high_s), rng.random()
        if luck >= self.boot_failure_probability:
            return Boot(delay_s)
        if self.boot_failure_mode == "silent":
            return Boot(delay_s, is_silent=True)
        return Boot(delay_s, BOOT_FAILED)


def parse_delay(text: str) -> tuple[float, float]:
    """``30s`` or ``30s..90s``."""
    low, separator, high = text.partition("..")
    low_s = _span(low)
    high_s = _span(high) if separator else low_s
    if high_s < low_s:
        raise ValueError("it ends before it begins")
    return low_s, high_s


def parse_windows(text: str) -> tuple[Window, ...]:
    """``10m..30m,1h..``, with spans or instants."""
    return tuple(_window(part.strip()) for part in text.split(","))


def _window(text: str) -> Window:
    start, separator, end = text.partition("..")
    if not separator:
        raise ValueError(f"{text!r} is not of the form FROM..UNTIL")
    is_absolute = "T" in text
    if start and end and ("T" in start) != ("T" in end):
        raise ValueError(f"{text!r} mixes a span and an instant")
    read = _instant if is_absolute else _span
    start_s = read(start) if start else 0.0
    end_s = read(end) if end else float("inf")
    if end_s <= start_s:
        raise ValueError(f"{text!r} ends before it begins")
    return Window(start_s, end_s, is_absolute)


def _span(text: str) -> float:
    seconds = parse_duration(text.strip())
    if seconds < 0:
        raise ValueError(f"{text!r} is negative")
    return seconds


def _instant(text: str) -> float:
    return parse_time(text.strip()).timestamp()
