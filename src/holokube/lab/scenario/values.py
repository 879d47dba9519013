"""What a field of a scenario may hold: how it is read, and what it is called in messages and in the reference."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from holokube.hollow.profile import Spread
from holokube.hollow.usage_syntax import check_curve
from holokube.kube.names import is_dns1123_label
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.timeformat import format_duration, format_time, parse_duration, parse_time
from holokube.lab.results import MEASURE_BY_NAME
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Mark, Problem, Told, Wrong, choose_among, one_of
from holokube.pricing.instance_types import Catalog
from holokube.runtime.cron_schedules import ScheduleError, parse_schedule

_DAY_S: Final = 86_400.0
_DAYS: Final = re.compile(r"(\d+(?:\.\d+)?)d(.*)", re.ASCII)
_TIME_OF_DAY: Final = re.compile(r"(\d\d?):(\d\d)", re.ASCII)


class Reading:
    """One reading of a scenario: the problems found so far, and what later fields need of earlier ones."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[Problem] = []
        self.catalog: Catalog | None = None
        """The scenario's, once it is read."""
        self.has_wrong_catalog = False
        """Whether it has one that cannot be used."""
        self.files: dict[str, Path] = {}
        """Those that the scenario names, by these names."""
        self._folder = folder

    def file(self, name: str, given: Marked) -> Path:
        """The path of a file that a value names, relative to the file of the value or else to the scenario."""
        if "\0" in name:
            raise Wrong(f"{name!r} is no name of a file", "Check the name of the file.")
        path = (Path(given.mark.source).parent if given.mark.line else self._folder) / name
        self.files[name] = path
        return path

    def problem(self, mark: Mark, path: str, what: str, remedy: str) -> None:
        """A mistake that does not keep others from being found."""
        found = Problem(mark, path, what, remedy)
        if found not in self.problems:
            self.problems.append(found)

    def attempt(self, value: Value, given: Marked, path: str) -> Any:
        """The value read; Told if it is wrong, which is then on the list."""
        try:
            return value.read(given, path, self)
        except Wrong as wrong:
            dot = "." if path and wrong.field and not wrong.field.startswith("[") else ""
            where = f"{path}{dot}{wrong.field}"
            self.problem(given.at(wrong.field), where, wrong.what, wrong.remedy)
            raise Told from wrong


class Value(ABC):
    """Something that a field may hold."""

    title: ClassVar[str] = ""
    """For the reference."""
    example: ClassVar[str] = ""

    @abstractmethod
    def read(self, given: Marked, path: str, reading: Reading) -> Any:
        """The value; Wrong or Told if there is none."""

    def shown(self, value: Any) -> str:
        """A default as one would write it."""
        return str(value)

    @property
    def describes(self) -> str:
        """For the reference."""
        return self.title


@dataclass(frozen=True)
class Text(Value):
    """Any text."""

    title: ClassVar[str] = "text"
    example: ClassVar[str] = "a few words"
    may_be_empty: bool = False

    def read(self, given: Marked, path: str, reading: Reading) -> str:  # noqa: ARG002 - part of the protocol
        if not isinstance(given.value, str):
            raise Wrong(f"a text is expected, not {given.kind}", "Put it in quotes if it is meant as a text.")
        if not given.value and not self.may_be_empty:
            raise Wrong("is empty", "Say something, or leave the field out.")
        return given.value

    def shown(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class Name(Text):
    """A name that fits into those of objects."""

    title: ClassVar[str] = "name"
    example: ClassVar[str] = "web"

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        text = super().read(given, path, reading)
        if is_dns1123_label(text):
            raise Wrong(f"{text!r} is no name", "Use lower case letters, digits and dashes, such as web-1.")
        return text


@dataclass(frozen=True)
class Choice(Text):
    """One of some words."""

    words: tuple[str, ...] = ()

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        text = super().read(given, path, reading)
        if text not in self.words:
            raise Wrong(f"{text!r} is none of {', '.join(self.words)}", choose_among(text, self.words))
        return text

    def shown(self, value: Any) -> str:
        return str(value)

    @property
    def describes(self) -> str:
        return one_of([f"`{word}`" for word in self.words])


@dataclass(frozen=True)
class Truth(Value):
    """Yes or no."""

    title: ClassVar[str] = "`true` or `false`"
    example: ClassVar[str] = "true"

    def read(self, given: Marked, path: str, reading: Reading) -> bool:  # noqa: ARG002 - part of the protocol
        if not isinstance(given.value, bool):
            raise Wrong(f"true or false is expected, not {given.kind}", "Write true or false, without quotes.")
        return given.value

    def shown(self, value: Any) -> str:
        return str(value).lower()


@dataclass(frozen=True)
class Whole(Value):
    """A whole number."""

    example: ClassVar[str] = "10"
    low: int = 0
    high: int | None = None

    def read(self, given: Marked, path: str, reading: Reading) -> int:  # noqa: ARG002 - part of the protocol
        value = given.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"a whole number is expected, not {given.kind}", f"Write one, such as {max(10, self.low)}.")
        if value < self.low or (self.high is not None and value > self.high):
            raise Wrong(f"{value} is out of range", f"Use {self._range}.")
        return value

    @property
    def _range(self) -> str:
        return f"a number from {self.low} to {self.high}" if self.high is not None else f"{self.low} or more"

    @property
    def describes(self) -> str:
        return f"whole number, {self._range.removeprefix('a number ')}"


@dataclass(frozen=True)
class Number(Value):
    """Any number within limits."""

    example: ClassVar[str] = "0.5"
    low: float = 0.0
    high: float = math.inf
    above: bool = False
    """Whether the lower limit itself is out."""

    def read(self, given: Marked, path: str, reading: Reading) -> float:  # noqa: ARG002 - part of the protocol
        value = given.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong(f"a number is expected, not {given.kind}", "Write one without quotes and units, such as 0.5.")
        if not self.low <= value <= self.high or (self.above and value == self.low):
            raise Wrong(f"{given.raw or value} is out of range", f"Use a number {self._range}.")
        return float(value)

    def shown(self, value: Any) -> str:
        return f"{value:g}"

    @property
    def _range(self) -> str:
        if self.high < math.inf:
            return f"{'above' if self.above else 'from'} {self.low:g} {'up ' if self.above else ''}to {self.high:g}"
        return f"above {self.low:g}" if self.above else f"of {self.low:g} or more"

    @property
    def describes(self) -> str:
        return f"number {self._range}"


SHARE: Final = Number(0.0, 1.0)


@dataclass(frozen=True)
class Duration(Value):
    """A length of time."""

    title: ClassVar[str] = "duration"
    example: ClassVar[str] = "5m"
    above_zero: bool = False

    def read(self, given: Marked, path: str, reading: Reading) -> float:  # noqa: ARG002 - part of the protocol
        if isinstance(given.value, int | float) and not isinstance(given.value, bool) and given.value:
            raise Wrong(f"{given.raw} has no unit", f"Write {given.raw}s for seconds, or use m, h or d.")
        if not isinstance(given.value, str) and given.value != 0:
            raise Wrong(f"a duration is expected, not {given.kind}", "Write one such as 90s, 5m, 24h or 1d.")
        value_s = duration_s(given.raw)
        if value_s < 0 or (self.above_zero and value_s == 0):
            limit = "above zero" if self.above_zero else "zero or more"
            raise Wrong(f"{given.raw} must be {limit}", "Write one such as 90s, 5m, 24h or 1d.")
        return value_s

    def shown(self, value: Any) -> str:
        return short_duration(value)


def duration_s(text: str) -> float:
    """Seconds in a duration; Go's units and ``d`` for days of 24 hours. Wrong if it is none."""
    days = _DAYS.fullmatch(text)
    rest = days[2] if days else text
    try:
        return (float(days[1]) * _DAY_S if days else 0.0) + (parse_duration(rest) if rest or not days else 0.0)
    except ValueError:
        raise Wrong(f"{text!r} is no duration", "Write one such as 90s, 5m, 1h30m, 24h or 1d.") from None


def short_duration(seconds: float) -> str:
    """A duration without the zeros that Go writes: ``5m``, not ``5m0s``."""
    text = format_duration(seconds)
    for zero, unit in (("m0s", "m"), ("h0m", "h")):
        if text.endswith(zero):
            text = text.removesuffix(zero) + unit
    return text


@dataclass(frozen=True)
class Moment(Value):
    """A point in time."""

    title: ClassVar[str] = "time, RFC 3339"
    example: ClassVar[str] = "2026-01-05T00:00:00Z"

    def read(self, given: Marked, path: str, reading: Reading) -> float:  # noqa: ARG002 - part of the protocol
        try:
            moment_s = parse_time(given.raw).timestamp() if isinstance(given.value, str) else math.nan
        except ValueError:
            moment_s = math.nan
        # Years outside of this are beyond what certificates and cron know.
        if not 0 <= moment_s < 4_000_000_000:
            raise Wrong(f"{given.raw!r} is no time in RFC 3339", f"Write one such as {self.example}.")
        return moment_s

    def shown(self, value: Any) -> str:
        return format_time(value)


@dataclass(frozen=True)
class TimeOfDay(Duration):
    """When, counted from midnight."""

    title: ClassVar[str] = "time of day, UTC"
    example: ClassVar[str] = "14:30"

    def read(self, given: Marked, path: str, reading: Reading) -> float:
        clock = _TIME_OF_DAY.fullmatch(given.raw)
        # YAML of old takes 14:30 for a number to the base of sixty, so the text as it was written counts.
        if clock and int(clock[1]) < 24 and int(clock[2]) < 60:
            return int(clock[1]) * 3600.0 + int(clock[2]) * 60.0
        if clock:
            raise Wrong(f"{given.raw} is no time of day", "Write one from 00:00 to 23:59.")
        return super().read(given, path, reading)

    def shown(self, value: Any) -> str:
        return f"{int(value // 3600):02d}:{int(value % 3600 // 60):02d}"


@dataclass(frozen=True)
class Times(Value):
    """A duration, or a distribution of them."""

    title: ClassVar[str] = "duration or [distribution](#distributions-of-durations)"
    example: ClassVar[str] = "{min: 2s, max: 8s}"
    _FIELDS: ClassVar[tuple[str, ...]] = ("min", "mean", "max")

    def read(self, given: Marked, path: str, reading: Reading) -> Spread:
        if not isinstance(given.value, dict):
            fixed_s = Duration().read(given, path, reading)
            return Spread(min_s=fixed_s, max_s=fixed_s)
        found: dict[str, float] = {}
        failed = False
        for name, part in given.value.items():
            if name not in self._FIELDS:
                remedy = choose_among(name, self._FIELDS)
                reading.problem(given.key_marks[name], f"{path}.{name}", "there is no such field", remedy)
                failed = True
                continue
            try:
                found[name] = reading.attempt(Duration(), part, f"{path}.{name}")
            except Told:
                failed = True
        if failed:
            raise Told
        if "max" not in found and "mean" not in found:
            raise Wrong("says too little", "Give max for a uniform distribution, or mean for an exponential one.")
        low = found.get("min", 0.0)
        for name in ("mean", "max"):
            if found.get(name, low) < low:
                raise Wrong(f"{name} is below min", "Let min be the smallest.", name)
        return Spread(min_s=low, max_s=found.get("max"), mean_s=found.get("mean"))


@dataclass(frozen=True)
class UsageCurve(Text):
    """How much a container uses."""

    title: ClassVar[str] = "[usage curve](hollow-nodes.md#usage-logs-and-kubectl-top)"
    example: ClassVar[str] = "diurnal(20%, 80%, peak=14h)"

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        if isinstance(given.value, int | float) and not isinstance(given.value, bool):
            # One core, say.
            text = given.raw
        else:
            text = super().read(given, path, reading)
        problem = check_curve(text)
        if problem:
            raise Wrong(problem, "Write an amount such as 250m, a share such as 60%, or diurnal(20%, 80%, peak=14h).")
        return text


@dataclass(frozen=True)
class CronSchedule(Text):
    """When something is due."""

    title: ClassVar[str] = "cron schedule"
    example: ClassVar[str] = "0 8 * * 1-5"

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        text = super().read(given, path, reading)
        try:
            parse_schedule(text)
        except ScheduleError as error:
            raise Wrong(
                f"{text!r} is no cron schedule: {error}",
                "Write minute, hour, day, month and weekday, such as 0 8 * * 1-5, or @hourly.",
            ) from error
        return text


@dataclass(frozen=True)
class Selector(Text):
    """Which objects, by label."""

    title: ClassVar[str] = "label selector"
    example: ClassVar[str] = "pool=spot,zone!=a"

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        text = super().read(given, path, reading)
        try:
            LabelSelector.parse(text)
        except SelectorError as error:
            raise Wrong(f"{text!r} is no label selector: {error}", "Write one such as pool=spot,zone!=a.") from error
        return text


@dataclass(frozen=True)
class MeasureName(Text):
    """A measure of the results."""

    title: ClassVar[str] = "measure"
    example: ClassVar[str] = "pending_p99_s"

    def read(self, given: Marked, path: str, reading: Reading) -> str:
        text = super().read(given, path, reading)
        if text not in MEASURE_BY_NAME:
            raise Wrong(f"there is no measure {text!r}", choose_among(text, MEASURE_BY_NAME))
        return text


@dataclass(frozen=True)
class ListOf(Value):
    """Several of a kind."""

    of: Value = field(default_factory=Text)
    at_least: int = 0

    def read(self, given: Marked, path: str, reading: Reading) -> tuple[Any, ...]:
        if not isinstance(given.value, list):
            raise Wrong(f"a list is expected, not {given.kind}", f"Write `- {self.of.example}` below it.")
        if len(given.value) < self.at_least:
            raise Wrong("is empty", f"Add at least {self.at_least}, such as `- {self.of.example}`.")
        found: list[Any] = []
        failed = False
        for number, part in enumerate(given.value):
            try:
                found.append(reading.attempt(self.of, part, f"{path}[{number}]"))
            except Told:
                failed = True
        if failed:
            raise Told
        return tuple(found)

    def shown(self, value: Any) -> str:
        return ", ".join(map(self.of.shown, value))

    @property
    def describes(self) -> str:
        return f"list: {self.of.describes}"


def mapping_of(given: Marked, what: str) -> Mapping[str, Marked]:
    """The fields of a value; Wrong if it has none."""
    if not isinstance(given.value, dict):
        raise Wrong(f"{what} is expected, not {given.kind}", "Write its fields below, each as `name: value`.")
    return given.value
