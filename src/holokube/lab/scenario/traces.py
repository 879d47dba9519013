"""Traces and recordings of other clusters as the workload of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from holokube.base.errors import UsageError
from holokube.lab.formats import READ_FORMATS, Timeline, read_workload
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Wrong
from holokube.lab.scenario.shapes import Shape, read_attributes, tell_mistakes
from holokube.lab.scenario.values import Choice, Duration, ListOf, Number, Reading, Text, Truth


@dataclass(frozen=True, slots=True)
class TraceSource:
    """Replays what users of another cluster created: objects at their times, and pods with their run times."""

    format: Annotated[str, Choice(words=READ_FORMATS)]
    """``simkube``: SimKube traces (.sktrace); ``kwok``: recordings of `kwokctl snapshot record`; ``openb``: Alibaba's
    GPU trace (node and pod CSV); ``kubectl``: a dump of objects, which do not change over time."""
    files: Annotated[tuple[str, ...], ListOf(Text(), at_least=1)]
    """One file; for openb one or more."""
    from_s: Annotated[float, Duration()] = 0.0
    """Where in the trace the run starts. Objects that existed by then exist from the start of the run."""
    until_s: Annotated[float | None, Duration(above_zero=True)] = None
    """Where in the trace the replay ends; by default at the end of the trace."""
    speed: Annotated[float, Number(0.0, above=True)] = 1.0
    """Replay this many times faster."""
    nodes: Annotated[bool, Truth()] = False
    """Whether the nodes at the beginning of the trace exist throughout the run."""

    def mistakes(self) -> Iterator[Wrong]:
        """Settings that do not fit together."""
        if self.until_s is not None and self.until_s <= self.from_s:
            yield Wrong("is not after from", "Both count from the beginning of the trace.", "until")
        if self.format != "openb" and len(self.files) > 1:
            yield Wrong(f"a {self.format} trace is one file", "Only openb comes in several.", "files")


@dataclass(frozen=True)
class TraceValue(Shape):
    """The workload of a trace, read and ready to be played."""

    example: ClassVar[str] = "{format: simkube, files: [trace.sktrace]}"

    def read(self, given: Marked, path: str, reading: Reading) -> Timeline:
        source = TraceSource(**read_attributes(TraceSource, given, path, reading))
        tell_mistakes(source, given, path, reading)
        files = [reading.file(name, given) for name in source.files]
        try:
            timeline = read_workload(
                source.format, files, from_s=source.from_s, until_s=source.until_s, speed=source.speed,
                nodes=source.nodes,
            )  # fmt: skip
        except UsageError as error:
            raise Wrong(error.message, error.hint, "files") from error
        return timeline

    def shown(self, value: Any) -> str:  # noqa: ARG002 - part of the protocol
        return ""
