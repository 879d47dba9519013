"""How much a container uses over time: curves that can be evaluated, and integrated exactly.

All times are seconds since the container started; ``start_s`` says when that was, for curves that follow the clock.
Every curve knows its integral with a factor ``exp(i omega t)`` in closed form. With omega zero that is what a CPU
counter shows; with others it is what noise, a sum of sines, multiplies it by. So no counter costs more the longer
its container runs.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

_DAY_S = 86_400.0
# Incommensurate, so that the noise does not repeat within a cluster's life; the weights add up to one.
_NOISE_WAVES = ((2.0, 0.5), (2.0 * 1.618033988749895, 0.3), (2.0 * 2.618033988749895, 0.2))
_RESONANCE = 1e-9


class Curve(Protocol):
    """A function of time that is never negative."""

    def value(self, at_s: float, start_s: float) -> float: ...

    def transform(self, begin_s: float, end_s: float, start_s: float, omega: float) -> complex:
        """The integral of ``value(t) * exp(i omega t)`` from begin to end."""
        ...


def integral(curve: Curve, begin_s: float, end_s: float, start_s: float) -> float:
    """Amount times seconds between two times, never negative."""
    if type(curve) is Constant:
        # Nearly all are, and a product needs no complex numbers.
        return max(0.0, curve.amount * (end_s - begin_s)) if end_s > begin_s else 0.0
    return max(0.0, curve.transform(begin_s, end_s, start_s, 0.0).real) if end_s > begin_s else 0.0


def _wave(begin_s: float, end_s: float, omega: float) -> complex:
    """The integral of ``exp(i omega t)``."""
    if omega == 0.0:
        return complex(end_s - begin_s)
    return (cmath.exp(1j * omega * end_s) - cmath.exp(1j * omega * begin_s)) / (1j * omega)


@dataclass(frozen=True)
class Constant:
    """Always the same."""

    amount: float

    def value(self, at_s: float, start_s: float) -> float:  # noqa: ARG002 - part of the protocol
        return self.amount

    def transform(self, begin_s: float, end_s: float, start_s: float, omega: float) -> complex:  # noqa: ARG002 - as above
        return self.amount * _wave(begin_s, end_s, omega)


@dataclass(frozen=True)
class _Segment:
    """A straight line."""

    begin_s: float
    end_s: float
    first: float
    slope: float

    def value(self, at_s: float) -> float:
        return self.first + self.slope * (at_s - self.begin_s) if self.slope else self.first

    def transform(self, begin_s: float, end_s: float, omega: float) -> complex:
        begin_s, end_s = max(begin_s, self.begin_s), min(end_s, self.end_s)
        if end_s <= begin_s:
            return 0j
        if not self.slope:
            return self.first * _wave(begin_s, end_s, omega)
        low, high = self.value(begin_s), self.value(end_s)
        if omega == 0.0:
            return complex((low + high) / 2 * (end_s - begin_s))
        at_begin, at_end = cmath.exp(1j * omega * begin_s), cmath.exp(1j * omega * end_s)
        # Integrated by parts.
        return (high * at_end - low * at_begin) / (1j * omega) + self.slope * (at_end - at_begin) / omega**2


@dataclass(frozen=True)
class Piecewise:
    """Points in time with amounts: held until the next one, or joined by straight lines.

    The first amount also holds before its time, the last one ever after, or until ``every_s`` begins it all anew.
    """

    points: tuple[tuple[float, float], ...]
    linear: bool = False
    every_s: float = 0.0
    from_s: float | None = None
    """The Unix time of the points' zero; None is the start of the container."""

    @cached_property
    def _segments(self) -> Sequence[_Segment]:
        end_s = self.every_s or math.inf
        (first_s, first), (last_s, last) = self.points[0], self.points[-1]
        found = [_Segment(0.0 if self.every_s else -math.inf, first_s, first, 0.0)]
        for (begin_s, low), (next_s, high) in pairwise(self.points):
            slope = (high - low) / (next_s - begin_s) if self.linear else 0.0
            found.append(_Segment(begin_s, next_s, low, slope))
        found.append(_Segment(last_s, end_s, last, 0.0))
        return [segment for segment in found if segment.end_s > segment.begin_s]

    def _origin_s(self, start_s: float) -> float:
        return 0.0 if self.from_s is None else self.from_s - start_s

    def value(self, at_s: float, start_s: float) -> float:
        at_s -= self._origin_s(start_s)
        if self.every_s:
            at_s %= self.every_s
        return next((s.value(at_s) for s in self._segments if s.begin_s <= at_s < s.end_s), self.points[-1][1])

    def transform(self, begin_s: float, end_s: float, start_s: float, omega: float) -> complex:
        origin_s = self._origin_s(start_s)
        found = self._shifted(begin_s - origin_s, end_s - origin_s, omega)
        return found * cmath.exp(1j * omega * origin_s) if omega else found

    def _shifted(self, begin_s: float, end_s: float, omega: float) -> complex:
        every_s = self.every_s
        if not every_s:
            return self._once(begin_s, end_s, omega)
        first, last = math.floor(begin_s / every_s), math.floor(end_s / every_s)
        turn = omega * every_s
        head, tail = begin_s - first * every_s, end_s - last * every_s
        if first == last:
            return self._once(head, tail, omega) * cmath.exp(1j * turn * first)
        found = self._once(head, every_s, omega) * cmath.exp(1j * turn * first)
        found += self._once(0.0, tail, omega) * cmath.exp(1j * turn * last)
        whole = last - first - 1
        if whole:
            found += self._once(0.0, every_s, omega) * _geometric(turn, first + 1, whole)
        return found

    def _once(self, begin_s: float, end_s: float, omega: float) -> complex:
        return sum((s.transform(begin_s, end_s, omega) for s in self._segments), 0j)


def _geometric(turn: float, first: int, count: int) -> complex:
    """The sum of ``exp(i turn k)`` for ``count`` numbers from ``first`` on."""
    ratio = cmath.exp(1j * turn)
    if abs(1 - ratio) < _RESONANCE:
        return count * cmath.exp(1j * turn * first)
    return cmath.exp(1j * turn * first) * (1 - cmath.exp(1j * turn * count)) / (1 - ratio)


@dataclass(frozen=True)
class Diurnal:
    """A cosine between two amounts that follows the clock, UTC, not the age of the container."""

    low: float
    high: float
    peak_s: float = 14 * 3600.0
    """When in each period it is highest."""
    period_s: float = _DAY_S

    def _phase(self, start_s: float) -> float:
        return math.tau * ((start_s - self.peak_s) % self.period_s) / self.period_s

    def value(self, at_s: float, start_s: float) -> float:
        angle = math.tau * at_s / self.period_s + self._phase(start_s)
        return max(0.0, (self.high + self.low) / 2 + (self.high - self.low) / 2 * math.cos(angle))

    def transform(self, begin_s: float, end_s: float, start_s: float, omega: float) -> complex:
        own, phase = math.tau / self.period_s, self._phase(start_s)
        forward = cmath.exp(1j * phase) * _wave(begin_s, end_s, omega + own)
        backward = cmath.exp(-1j * phase) * _wave(begin_s, end_s, omega - own)
        return (self.high + self.low) / 2 * _wave(begin_s, end_s, omega) + (self.high - self.low) / 4 * (
            forward + backward
        )


@dataclass(frozen=True)
class Noise:
    """Another curve that swings around its course by up to ``share`` of it, up and down."""

    inner: Curve
    share: float
    every_s: float
    """About how long one swing to either side takes."""
    phases: tuple[float, float, float]
    """From 0 to 1; what tells the noise of one container from that of another."""

    def _waves(self) -> list[tuple[float, float, float]]:
        return [
            (math.tau / (factor * self.every_s), weight * self.share, math.tau * phase)
            for (factor, weight), phase in zip(_NOISE_WAVES, self.phases, strict=True)
        ]

    def value(self, at_s: float, start_s: float) -> float:
        swing = math.fsum(weight * math.sin(omega * at_s + phase) for omega, weight, phase in self._waves())
        return max(0.0, self.inner.value(at_s, start_s) * (1.0 + swing))

    def transform(self, begin_s: float, end_s: float, start_s: float, omega: float) -> complex:
        if omega:
            raise ValueError("noise has no noise of its own")
        found = self.inner.transform(begin_s, end_s, start_s, 0.0).real
        for own, weight, phase in self._waves():
            found += weight * (cmath.exp(1j * phase) * self.inner.transform(begin_s, end_s, start_s, own)).imag
        return complex(found)
