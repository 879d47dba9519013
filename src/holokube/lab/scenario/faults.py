"""What may go wrong in a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Told, Wrong
from holokube.lab.scenario.shapes import KIND_FIELD, Tagged, file_fields, read_attributes, tell_mistakes
from holokube.lab.scenario.values import SHARE, Choice, Duration, ListOf, Number, Reading, Selector, Text, Whole

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ZoneLoss:
    """All nodes of a zone fall silent, and none can be made there until it is over."""

    zone: Annotated[str, Text()]
    """Its name, as nodes have it in the label ``topology.kubernetes.io/zone``."""


@dataclass(frozen=True, slots=True)
class SpotReclaim:
    """The cloud takes spot nodes back."""

    share: Annotated[float | None, SHARE] = None
    """Of the spot nodes there at the beginning: at once, or with ``until`` spread over the time until then."""
    per_hour: Annotated[float | None, Number(above=True)] = None
    """Instead of a share: so many on average per hour, at random moments."""
    zone: Annotated[str, Text()] = ""
    """In this zone only; in all unless told."""
    notice_s: Annotated[float, Duration()] = 120.0
    """Between the notice and the end of the machine."""

    def mistakes(self) -> Iterator[Wrong]:
        """Two numbers, or none."""
        if self.share is None and self.per_hour is None:
            yield Wrong("does not say how many", "Add `share: 0.5` or `perHour: 20`.")
        elif self.share is not None and self.per_hour is not None:
            yield Wrong("says how many in two ways", "Keep share or perHour.", "perHour")


@dataclass(frozen=True, slots=True)
class StockOut:
    """New machines cannot be had. An empty list means all, and what is named in several must fit all of them."""

    instance_types: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Names of the catalogue."""
    groups: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Node groups or NodePools."""
    zones: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Where nothing is to be had."""
    capacity_types: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """``spot``, ``on-demand``."""


@dataclass(frozen=True, slots=True)
class SlowBoot:
    """New machines take longer to come: their usual time times ``factor``, and ``extra`` besides."""

    factor: Annotated[float, Number(1.0)] = 1.0
    """So many times longer."""
    extra_s: Annotated[float, Duration()] = 0.0
    """So much longer."""

    def mistakes(self) -> Iterator[Wrong]:
        """No change at all."""
        if self.factor == 1 and not self.extra_s:
            yield Wrong("makes nothing slower", "Add `factor: 3` or `extra: 2m`.")


@dataclass(frozen=True, slots=True)
class ApiErrors:
    """The API server refuses a share of the requests. An empty list means all."""

    share: Annotated[float, SHARE]
    """Of the requests."""
    kinds: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Kinds of objects, such as Node."""
    verbs: Annotated[tuple[str, ...], ListOf(Choice(words=_VERBS))] = ()
    """Which requests."""
    code: Annotated[int, Whole(400, 599)] = 500
    """The HTTP status of the answer."""


@dataclass(frozen=True, slots=True)
class NodeSilence:
    """Kubelets stop reporting."""

    selector: Annotated[str, Selector()] = ""
    """Those of these nodes; of all unless told."""
    count: Annotated[int | None, Whole(1)] = None
    """So many of these, chosen by the seed; all of them unless told."""


FaultArguments = ZoneLoss | SpotReclaim | StockOut | SlowBoot | ApiErrors | NodeSilence
FaultKind = Literal["zone-loss", "spot-reclaim", "stock-out", "slow-boot", "api-errors", "node-silence"]

FAULTS: Final[Mapping[FaultKind, type]] = {
    "zone-loss": ZoneLoss,
    "spot-reclaim": SpotReclaim,
    "stock-out": StockOut,
    "slow-boot": SlowBoot,
    "api-errors": ApiErrors,
    "node-silence": NodeSilence,
}
_KINDS: Final[Mapping[type, FaultKind]] = {cls: kind for kind, cls in FAULTS.items()}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, and when. Besides these fields it has those of its kind."""

    at_s: Annotated[float, Duration()]
    """Counted from the start of the run."""
    arguments: FaultArguments
    until_s: Annotated[float | None, Duration()] = None
    """Counted from the start of the run; never over unless told."""

    @property
    def kind(self) -> FaultKind:
        """The name under which a scenario file has it."""
        return _KINDS[type(self.arguments)]

    def mistakes(self) -> Iterator[Wrong]:
        """Times that contradict each other."""
        if self.until_s is not None and self.until_s <= self.at_s:
            yield Wrong("is not after at", "Both count from the start of the run; let it be later.", "until")
        if isinstance(self.arguments, SpotReclaim) and self.arguments.per_hour is not None and self.until_s is None:
            yield Wrong("is missing, and perHour needs an end", "Add `until: 8h`.", "until")


@dataclass(frozen=True)
class FaultValue(Tagged):
    """A fault: its times and the fields of its kind, side by side."""

    example: ClassVar[str] = "{kind: zone-loss, at: 6h, zone: a}"
    classes: Mapping[str, type]

    def read(self, given: Marked, path: str, reading: Reading) -> Fault:
        cls = self.class_of(given, path, reading)
        common = tuple(one.name for one in file_fields(Fault))
        own = tuple(one.name for one in file_fields(cls))
        found: list[dict[str, Any]] = []
        for part, others in ((Fault, own), (cls, common)):
            try:
                found.append(read_attributes(part, given, path, reading, (KIND_FIELD, *others)))
            except Told:
                continue
        if len(found) < 2:
            raise Told
        arguments = cls(**found[1])
        fault = Fault(**found[0], arguments=arguments)
        failed = False
        for built in (arguments, fault):
            try:
                tell_mistakes(built, given, path, reading)
            except Told:
                failed = True
        if failed:
            raise Told
        return fault
