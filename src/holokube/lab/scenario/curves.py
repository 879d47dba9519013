"""How many replicas there are, and when Jobs arrive, over the time of a run.

All are lazy, and the same for the same seed. Times are seconds since the run began; ``start_s`` is the Unix time of
that moment, for those that follow the clock (UTC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from itertools import pairwise, repeat
from typing import Annotated, ClassVar, Final, Protocol

from holokube.base.rng import Rng
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Wrong
from holokube.lab.scenario.file_values import MOST, Row, TraceFile
from holokube.lab.scenario.shapes import Called, Shape, Tagged
from holokube.lab.scenario.values import SHARE, CronSchedule, Duration, ListOf, Number, Reading, TimeOfDay, Whole
from holokube.runtime.cron_schedules import parse_schedule

_DAY_S: Final = 86_400.0
_REPLICAS: Final = Whole(0, 1_000_000)


class Curve(Protocol):
    """A number of replicas over time."""

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:
        """When the number changes, and to what: first at 0, rising times below ``duration_s``."""
        ...


class Arrivals(Protocol):
    """Moments at which something is made."""

    def arrivals(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[float]:
        """In order, below ``duration_s``; a moment may come several times."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same number of replicas all the time. A plain number means the same: ``curve: 5``."""

    replicas: Annotated[int, _REPLICAS]
    """The number of replicas."""

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:  # noqa: ARG002 - part of the protocol
        yield 0.0, self.replicas


@dataclass(frozen=True, slots=True)
class Step:
    """A number of replicas from a time on."""

    at_s: Annotated[float, Duration()]
    """Time since the start of the run."""
    replicas: Annotated[int, _REPLICAS]
    """The number of replicas from then on."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Each number holds until the next point; the first number also holds before its point."""

    points: Annotated[tuple[Step, ...], ListOf(Shape(Step), at_least=1)]
    """In chronological order."""
    every_s: Annotated[float | None, Duration(above_zero=True)] = None
    """Repeat the points with this period; by default they are not repeated."""

    def mistakes(self) -> Iterator[Wrong]:
        """Times that do not rise."""
        for number, (earlier, later) in enumerate(pairwise(self.points), 1):
            if later.at_s <= earlier.at_s:
                yield Wrong("is not later than the point before", "Sort the points by time.", f"points[{number}].at")
        if self.every_s is not None and self.points[-1].at_s >= self.every_s:
            place = f"points[{len(self.points) - 1}].at"
            yield Wrong("lies at or after the end of every", "Let the points be earlier, or every be longer.", place)

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:  # noqa: ARG002 - part of the protocol
        return _distinct(self._all(duration_s))

    def _all(self, duration_s: float) -> Iterator[tuple[float, int]]:
        begin_s = 0.0
        yield 0.0, self.points[0].replicas
        while True:
            for point in self.points:
                if begin_s + point.at_s >= duration_s:
                    return
                yield begin_s + point.at_s, point.replicas
            if not self.every_s:
                return
            begin_s += self.every_s


@dataclass(frozen=True, slots=True)
class Diurnal:
    """A daily wave with one minimum and one maximum, and optional noise."""

    low: Annotated[int, _REPLICAS]
    """The number of replicas at the minimum, half a day from the peak."""
    high: Annotated[int, _REPLICAS]
    """The number of replicas at the peak."""
    peak_s: Annotated[float, TimeOfDay()] = 14 * 3600.0
    """When the number is highest."""
    noise: Annotated[float, SHARE] = 0.0
    """Random deviation up or down, as a share of the number: 0.1 means up to 10 %."""
    every_s: Annotated[float, Duration(above_zero=True)] = 300.0
    """How often the number of replicas is updated."""
    period_s: Annotated[float, Duration(above_zero=True)] = _DAY_S
    """The length of the wave."""

    def mistakes(self) -> Iterator[Wrong]:
        """A wave upside down, or none."""
        if self.low > self.high:
            yield Wrong(f"{self.low} is above high, {self.high}", "Let low be at most high.", "low")
        if self.peak_s >= self.period_s:
            yield Wrong("lies after the end of the period", "Let the peak be earlier, or the period longer.", "peak")
        if self.every_s > self.period_s / 2:
            yield Wrong("is too seldom for a wave", "Let it be at most half of the period.", "every")

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:
        return _distinct(self._all(rng, start_s, duration_s))

    def _all(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:
        number = 0
        while (at_s := number * self.every_s) < duration_s:
            middle = self._wave((start_s + at_s - self.peak_s) / self.period_s)
            swing = 1.0 + self.noise * (2.0 * rng.random() - 1.0) if self.noise else 1.0
            yield at_s, max(0, round(middle * swing))
            number += 1

    def _wave(self, days: float) -> float:
        """The cosine's likeness of parabolas: made of sums and products, it is the same on every machine."""
        part = days % 1.0
        # Zero at the peak, one half at the lowest place.
        distance = min(part, 1.0 - part)
        if distance <= 0.25:
            height = 1.0 - 8.0 * distance * distance
        else:
            rest = 0.5 - distance
            height = 8.0 * rest * rest
        return self.low + (self.high - self.low) * height


@dataclass(frozen=True, slots=True)
class Due:
    """A number of replicas that is set whenever a schedule fires."""

    schedule: Annotated[str, CronSchedule()]
    """In UTC, unless it starts with a time zone: ``TZ=Europe/Berlin 0 8 * * *``."""
    replicas: Annotated[int, _REPLICAS]
    """The number of replicas from then on."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Schedules set the number of replicas. If two fire at once, the later one in the list wins."""

    initial: Annotated[int, _REPLICAS]
    """The number of replicas at the start of the run."""
    rules: Annotated[tuple[Due, ...], ListOf(Shape(Due), at_least=1)]
    """Schedules, each with a number of replicas."""

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:  # noqa: ARG002 - part of the protocol
        return _distinct(self._all(start_s, duration_s))

    def _all(self, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:
        yield 0.0, self.initial
        times = [_numbered(number, _due(rule.schedule, start_s, duration_s)) for number, rule in enumerate(self.rules)]
        for at_s, number in merge(*times):
            yield at_s, self.rules[number].replicas


@dataclass(frozen=True, slots=True)
class Trace:
    """Numbers of replicas from a file."""

    rows: Annotated[tuple[Row, ...], Called("file"), TraceFile("replicas")]
    """Times count from the start of the run, in chronological order."""
    scale: Annotated[float, Number(above=True)] = 1.0
    """Multiply the numbers in the file by this factor."""

    def mistakes(self) -> Iterator[Wrong]:
        """More than there can be."""
        if max(row.amount for row in self.rows) * self.scale > MOST:
            yield Wrong(f"makes more than {MOST:,} replicas of the file's numbers", "Use a smaller one.", "scale")

    def changes(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[tuple[float, int]]:
        points = tuple(Step(row.at_s, round(row.amount * self.scale)) for row in self.rows)
        return Steps(points).changes(rng, start_s, duration_s)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals at a constant average rate."""

    per_hour: Annotated[float, Number(above=True)]
    """Average number of arrivals per hour."""
    from_s: Annotated[float, Duration()] = 0.0
    """Time of the run at which arrivals start."""
    until_s: Annotated[float | None, Duration()] = None
    """Time of the run at which arrivals stop; by default the end of the run."""

    def mistakes(self) -> Iterator[Wrong]:
        """No time for anything to arrive."""
        if self.until_s is not None and self.until_s <= self.from_s:
            yield Wrong("is not after from", "Let it be later.", "until")

    def arrivals(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[float]:  # noqa: ARG002 - part of the protocol
        end_s = duration_s if self.until_s is None else min(duration_s, self.until_s)
        at_s = self.from_s
        while True:
            at_s += rng.expovariate(self.per_hour / 3600.0)
            # Milliseconds are fine enough, and the same on every machine.
            if (moment_s := round(at_s, 3)) >= end_s:
                return
            yield moment_s


@dataclass(frozen=True, slots=True)
class CronArrivals:
    """A fixed number at once, whenever a schedule fires."""

    schedule: Annotated[str, CronSchedule()]
    """In UTC, unless it starts with a time zone: ``TZ=Europe/Berlin 0 8 * * *``."""
    count: Annotated[int, Whole(1, 100_000)] = 1
    """The number of arrivals each time."""

    def arrivals(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[float]:  # noqa: ARG002 - part of the protocol
        for at_s in _due(self.schedule, start_s, duration_s):
            yield from repeat(at_s, self.count)


@dataclass(frozen=True, slots=True)
class TraceArrivals:
    """Times of arrival from a file."""

    rows: Annotated[tuple[Row, ...], Called("file"), TraceFile("count", default=1)]
    """Times count from the start of the run, in chronological order."""

    def arrivals(self, rng: Rng, start_s: float, duration_s: float) -> Iterator[float]:  # noqa: ARG002 - part of the protocol
        for row in self.rows:
            if row.at_s < duration_s:
                yield from repeat(row.at_s, row.amount)


CURVES: Final[Mapping[str, type]] = {
    "constant": Constant, "steps": Steps, "diurnal": Diurnal, "cron": Cron, "trace": Trace,
}  # fmt: skip
ARRIVALS: Final[Mapping[str, type]] = {"poisson": Poisson, "cron": CronArrivals, "trace": TraceArrivals}


@dataclass(frozen=True)
class CurveValue(Tagged):
    """A curve, or short for a constant one a number."""

    example: ClassVar[str] = "{kind: diurnal, low: 5, high: 40}"

    def read(self, given: Marked, path: str, reading: Reading) -> Curve:
        if isinstance(given.value, int | float) and not isinstance(given.value, bool):
            return Constant(_REPLICAS.read(given, path, reading))
        curve: Curve = super().read(given, path, reading)
        return curve


def _due(schedule: str, start_s: float, duration_s: float) -> Iterator[float]:
    parsed = parse_schedule(schedule)
    # The moment at which the run begins counts too if the schedule names it; an interval begins there.
    before_s = 0 if "@every" in schedule else 1
    moment = parsed.next(datetime.fromtimestamp(start_s - before_s, UTC))
    while moment is not None and (at_s := moment.timestamp() - start_s) < duration_s:
        if at_s >= 0:
            yield at_s
        moment = parsed.next(moment)


def _numbered(number: int, times: Iterator[float]) -> Iterator[tuple[float, int]]:
    for at_s in times:
        yield at_s, number


def _distinct(points: Iterator[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """Of several points at one time the last, and none that changes nothing."""
    last: int | None = None
    held: tuple[float, int] | None = None
    for point in points:
        if held is not None and held[0] != point[0] and held[1] != last:
            last = held[1]
            yield held
        held = point
    if held is not None and held[1] != last:
        yield held
