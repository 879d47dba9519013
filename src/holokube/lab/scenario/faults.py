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
    """All nodes of a zone fall silent, and no new ones can be created there until the fault ends."""

    zone: Annotated[str, Text()]
    """The name of the zone: the value of the nodes' label ``topology.kubernetes.io/zone``."""


@dataclass(frozen=True, slots=True)
class SpotReclaim:
    """The cloud reclaims spot nodes."""

    share: Annotated[float | None, SHARE] = None
    """The share of the spot nodes that exist at ``at``: all at once or, if there is an ``until``, spread over the time
    until then."""
    per_hour: Annotated[float | None, Number(above=True)] = None
    """Instead of a share: the average number of nodes per hour, at random times. Requires ``until``."""
    zone: Annotated[str, Text()] = ""
    """Only nodes in this zone; by default all zones."""
    notice_s: Annotated[float, Duration()] = 120.0
    """Time between the termination notice and the end of the machine."""

    def mistakes(self) -> Iterator[Wrong]:
        """Two numbers, or none."""
        if self.share is None and self.per_hour is None:
            yield Wrong("does not say how many", "Add `share: 0.5` or `perHour: 20`.")
        elif self.share is not None and self.per_hour is not None:
            yield Wrong("says how many in two ways", "Keep share or perHour.", "perHour")


@dataclass(frozen=True, slots=True)
class StockOut:
    """New machines are not available. An empty list means all; a machine must match every list that is not empty."""

    instance_types: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Names of types in the catalogue."""
    groups: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Node groups or NodePools."""
    zones: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Zones without stock."""
    capacity_types: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """``spot`` or ``on-demand``."""


@dataclass(frozen=True, slots=True)
class SlowBoot:
    """New machines take longer to boot: their usual time multiplied by ``factor``, plus ``extra``."""

    factor: Annotated[float, Number(1.0)] = 1.0
    """Multiplies the boot time."""
    extra_s: Annotated[float, Duration()] = 0.0
    """Added to the boot time."""

    def mistakes(self) -> Iterator[Wrong]:
        """No change at all."""
        if self.factor == 1 and not self.extra_s:
            yield Wrong("makes nothing slower", "Add `factor: 3` or `extra: 2m`.")


@dataclass(frozen=True, slots=True)
class ApiErrors:
    """The API server rejects a share of the requests. An empty list means all."""

    share: Annotated[float, SHARE]
    """The share of requests that are rejected."""
    kinds: Annotated[tuple[str, ...], ListOf(Text())] = ()
    """Only requests for these kinds of objects, such as Node."""
    verbs: Annotated[tuple[str, ...], ListOf(Choice(words=_VERBS))] = ()
    """Only requests with these verbs."""
    code: Annotated[int, Whole(400, 599)] = 500
    """The HTTP status of the responses."""


@dataclass(frozen=True, slots=True)
class NodeSilence:
    """Kubelets stop reporting."""

    selector: Annotated[str, Selector()] = ""
    """Only nodes with matching labels; by default all nodes."""
    count: Annotated[int | None, Whole(1)] = None
    """How many of these nodes, chosen at random from the seed; by default all of them."""


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
    """Something that goes wrong, and when. It has these fields and those of its kind."""

    at_s: Annotated[float, Duration()]
    """When the fault begins: time since the start of the run."""
    arguments: FaultArguments
    until_s: Annotated[float | None, Duration()] = None
    """When the fault ends: time since the start of the run. By default it never ends."""

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
