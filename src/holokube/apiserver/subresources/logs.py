"""pods/log: hollow containers write no logs, so these are made up, and say so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.options import parse_bool, parse_int
from holokube.kube.errors import BadRequest, invalid
from holokube.kube.timeformat import TimeFormatError, format_micro_time, parse_time
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

TEXT = "text/plain"

LogLine = tuple[float, str]
"""When it was written, in Unix seconds, and what."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What part of a log is wanted."""

    previous: bool = False
    """Of the run before the present one."""
    follow: bool = False
    since_s: float | None = None
    """Nothing older than this Unix time."""
    tail_lines: int | None = None
    limit_bytes: int | None = None
    timestamps: bool = False

    @staticmethod
    def parse(pod: str, query: Mapping[str, str], now_s: float) -> LogOptions:
        """Reads the parameters of a request; what is wrong with them is an Invalid, as upstream words it."""
        _validate(pod, query)
        since_s = None
        seconds = parse_int(query, "sinceSeconds")
        if seconds is not None:
            since_s = now_s - seconds
        elif query.get("sinceTime"):
            try:
                since_s = parse_time(query["sinceTime"]).timestamp()
            except TimeFormatError as problem:
                raise BadRequest(str(problem)) from None
        return LogOptions(
            previous=bool(parse_bool(query, "previous")),
            follow=bool(parse_bool(query, "follow")),
            since_s=since_s,
            tail_lines=parse_int(query, "tailLines"),
            limit_bytes=parse_int(query, "limitBytes"),
            timestamps=bool(parse_bool(query, "timestamps")),
        )

    def choose(self, lines: Sequence[LogLine]) -> Sequence[LogLine]:
        """The lines that are wanted."""
        if self.since_s is not None:
            lines = [line for line in lines if line[0] >= self.since_s]
        if self.tail_lines is not None:
            lines = lines[len(lines) - min(self.tail_lines, len(lines)) :]
        return lines

    def text(self, lines: Iterable[LogLine]) -> bytes:
        """Lines as they are sent, not cut yet."""
        if self.timestamps:
            return "".join(f"{_stamp(when_s)} {line}\n" for when_s, line in lines).encode()
        return "".join(f"{line}\n" for _, line in lines).encode()


@dataclass(frozen=True, slots=True)
class TextStream:
    """An answer that goes on: pieces of text, sent as they come."""

    pieces: AsyncIterator[bytes]
    content_type: str = TEXT


class LogSource(Protocol):
    """Where log lines come from."""

    def lines(self, pod: JsonObject, container: str, options: LogOptions) -> Sequence[LogLine]:
        """The log so far, in order; it may leave out what ``options`` do not ask for."""
        ...

    def follow(self, pod: JsonObject, container: str, after: LogLine | None) -> AsyncIterator[LogLine]:
        """What comes after a line, as it comes, until the container ends."""
        ...


class SyntheticLogs:
    """One line per thing that is known about the container; nothing ever comes after them."""

    def lines(self, pod: JsonObject, container: str, options: LogOptions) -> Sequence[LogLine]:  # noqa: ARG002 - the protocol's
        started = (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
        images = {c["name"]: c.get("image", "") for c in _containers(pod)}
        node = pod["spec"].get("nodeName", "")
        started_s = parse_time(started).timestamp()
        return [
            (started_s, f"hollow container {container} ({images.get(container, '')}) on node {node}"),
            (started_s, "this container is simulated and writes no output of its own"),
        ]

    async def follow(self, pod: JsonObject, container: str, after: LogLine | None) -> AsyncIterator[LogLine]:  # noqa: ARG002 - the protocol's
        nothing: tuple[LogLine, ...] = ()
        for line in nothing:
            yield line


def pod_log(
    registry: Registry, source: LogSource, namespace: str, name: str, query: Mapping[str, str]
) -> tuple[bytes, str] | TextStream:
    """The log of one container, cut as the query asks."""
    pod = registry.get_stored(registry.resolve("", "v1", "pods"), namespace, name).obj
    options = LogOptions.parse(name, query, registry.clock.time())
    container = _choose(pod, name, query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        # Nobody could have written anything yet.
        return b"", TEXT
    return container_log(source, pod, container, options)


def container_log(
    source: LogSource, pod: JsonObject, container: str, options: LogOptions
) -> tuple[bytes, str] | TextStream:
    """The log of a container that exists."""
    lines = source.lines(pod, container, options)
    chosen = options.choose(lines)
    if options.follow:
        last = lines[-1] if lines else None
        return TextStream(_limited(_followed(source, pod, container, options, chosen, last), options.limit_bytes))
    return options.text(chosen)[: options.limit_bytes], TEXT


async def _followed(
    source: LogSource,
    pod: JsonObject,
    container: str,
    options: LogOptions,
    lines: Sequence[LogLine],
    last: LogLine | None,
) -> AsyncIterator[bytes]:
    if lines:
        yield options.text(lines)
    async for line in source.follow(pod, container, last):
        yield options.text((line,))


async def _limited(pieces: AsyncIterator[bytes], limit_bytes: int | None) -> AsyncIterator[bytes]:
    left = limit_bytes
    async for piece in pieces:
        if left is None:
            yield piece
            continue
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _stamp(when_s: float) -> str:
    """As container runtimes write it: always nine decimals."""
    return f"{format_micro_time(when_s)[:-1]}000Z"


def _containers(pod: JsonObject) -> list[JsonObject]:
    spec = pod.get("spec") or {}
    return [
        *(spec.get("initContainers") or []),
        *(spec.get("containers") or []),
        *(spec.get("ephemeralContainers") or []),
    ]


def _validate(name: str, query: Mapping[str, str]) -> None:
    errors = FieldErrors()
    tail, limit = parse_int(query, "tailLines"), parse_int(query, "limitBytes")
    since = parse_int(query, "sinceSeconds")
    if tail is not None and tail < 0:
        errors.invalid("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        errors.invalid("limitBytes", limit, "must be greater than 0")
    if since is not None and query.get("sinceTime"):
        errors.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif since is not None and since < 1:
        errors.invalid("sinceSeconds", since, "must be greater than 0")
    if errors:
        raise invalid("", "PodLogOptions", name, errors.causes)


def _choose(pod: JsonObject, name: str, container: str) -> str:
    spec = pod.get("spec") or {}
    if container:
        if container not in [c["name"] for c in _containers(pod)]:
            raise BadRequest(f"container {container} is not valid for pod {name}")
        return container
    mains = [c["name"] for c in spec.get("containers") or []]
    if len(mains) == 1:
        return str(mains[0])
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if default in mains:
        return str(default)
    message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(mains)}]"
    inits = [c["name"] for c in spec.get("initContainers") or []]
    if inits:
        message += f" or one of the init containers: [{' '.join(inits)}]"
    raise BadRequest(message)
