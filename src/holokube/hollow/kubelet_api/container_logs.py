"""The logs of hollow containers: what they would say if they could. The same lines however often they are read.

Two lines at the start, one every ``holokube.dev/log-every`` (a duration, one minute by default, 0s for none), and one
at the end. Only the last lines are kept, as with a log that is rotated.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from holokube.apiserver.subresources.logs import LogLine, LogOptions
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.kube.errors import BadRequest
from holokube.kube.quantity import Format, Quantity
from holokube.kube.timeformat import format_age, parse_duration, parse_time
from holokube.kube.types import JsonObject

LOG_EVERY = "holokube.dev/log-every"
DEFAULT_EVERY_S = 60.0
LINES_MAX = 10_000
_PULL_TROUBLES = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
_STATUS_FIELDS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a container."""

    start_s: float
    end_s: float | None
    restart: int
    ending: str
    """Empty while it runs."""


class HollowLogs:
    """A ``LogSource`` for the pods of a fleet."""

    def __init__(self, view: KubeletView) -> None:
        self._view = view

    def lines(self, pod: JsonObject, container: str, options: LogOptions) -> Sequence[LogLine]:
        # Without its kubelet nobody can read a log, however well this process knows what it says.
        self._view.node(pod["spec"].get("nodeName") or "")
        run = _run_of(pod, container, previous=options.previous)
        most = LINES_MAX if options.tail_lines is None else min(options.tail_lines, LINES_MAX)
        # One more than wanted, so that somebody who follows knows where the log stands.
        return self._lines(pod, container, run, self._view.now_s, max(most, 1))

    async def follow(self, pod: JsonObject, container: str, after: LogLine | None) -> AsyncIterator[LogLine]:
        meta, last_s = pod["metadata"], after[0] if after is not None else -math.inf
        run = _run_of(pod, container)
        while True:
            now_s = self._view.now_s
            found = self._view.pod(meta["namespace"], meta["name"])
            gone = found is None or found["metadata"]["uid"] != meta["uid"]
            current = run if found is None or gone else _same_run(found, container, run, now_s)
            for line in self._lines(pod, container, current, now_s, LINES_MAX):
                if line[0] > last_s:
                    last_s = line[0]
                    yield line
            if gone or current.ending:
                return
            # The end of a container is not announced here; a second is soon enough for whoever reads along.
            await self._view.sleep(1.0)

    def _lines(self, pod: JsonObject, container: str, run: _Run, now_s: float, most: int) -> list[LogLine]:
        """The last ``most`` lines of a run."""
        end_s = now_s if run.end_s is None else run.end_s
        every_s = _every_s(pod)
        beats = int((end_s - run.start_s) // every_s) if every_s else 0
        head = self._head(pod, container, run)
        last = [(end_s, run.ending)] if run.ending else []
        wanted = max(0, most - len(last))
        first_beat = max(1, beats - wanted + 1)
        beating = [self._beat(pod, container, run, number, every_s) for number in range(first_beat, beats + 1)]
        lines = [*head, *beating] if len(beating) < wanted else beating
        return [*lines[len(lines) - min(wanted, len(lines)) :], *last]

    def _head(self, pod: JsonObject, container: str, run: _Run) -> list[LogLine]:
        spec = pod["spec"]
        image = next(
            (
                c.get("image", "")
                for field in ("containers", "initContainers", "ephemeralContainers")
                for c in spec.get(field) or ()
                if c["name"] == container
            ),
            "",
        )
        node = spec.get("nodeName", "")
        return [
            (run.start_s, f"hollow container {container} ({image}) started on node {node}, restart {run.restart}"),
            (run.start_s + 0.001, "this container is simulated: it runs no process and writes no output of its own"),
        ]

    def _beat(self, pod: JsonObject, container: str, run: _Run, number: int, every_s: float) -> LogLine:
        at_s = run.start_s + number * every_s
        usage = self._view.use_of(pod, container, run.start_s).at(at_s)
        cpu = Quantity(-(-usage.cpu_nano // 1_000_000), -3)
        memory = Quantity(usage.memory_bytes // 1024 * 1024, 0, Format.BINARY_SI)
        text = f"up {format_age(number * every_s)}, cpu {cpu}, memory {memory}"
        return at_s, text


def _every_s(pod: JsonObject) -> float:
    text = (pod["metadata"].get("annotations") or {}).get(LOG_EVERY)
    if text is None:
        return DEFAULT_EVERY_S
    try:
        every_s = parse_duration(text)
    except ValueError:
        return DEFAULT_EVERY_S
    return max(every_s, 0.01) if every_s > 0 else 0.0


def _entry(pod: JsonObject, container: str) -> JsonObject | None:
    status = pod.get("status") or {}
    for field in _STATUS_FIELDS:
        for entry in status.get(field) or ():
            if entry["name"] == container:
                return entry  # type: ignore[no-any-return]  # pods are plain JSON
    return None


def _run_of(pod: JsonObject, container: str, *, previous: bool = False) -> _Run:
    """The run whose log is asked for; a BadRequest in the kubelet's words if there is none."""
    name = pod["metadata"]["name"]
    entry = _entry(pod, container)
    if entry is None:
        raise BadRequest(f'container "{container}" in pod "{name}" is not available')
    restarts = int(entry.get("restartCount") or 0)
    state, before = entry.get("state") or {}, (entry.get("lastState") or {}).get("terminated")
    if previous:
        if not before:
            raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
        return _ended_run(before, restarts - 1)
    if state.get("running"):
        return _Run(parse_time(state["running"]["startedAt"]).timestamp(), None, restarts, "")
    if state.get("terminated"):
        return _ended_run(state["terminated"], restarts)
    if before:
        # Between two runs the log is that of the last one.
        return _ended_run(before, restarts)
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    reason = _PULL_TROUBLES.get(reason, reason)
    raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def _ended_run(ended: JsonObject, restart: int) -> _Run:
    end_s = parse_time(ended["finishedAt"]).timestamp() if ended.get("finishedAt") else 0.0
    start_s = parse_time(ended["startedAt"]).timestamp() if ended.get("startedAt") else end_s
    reason, code = ended.get("reason") or "Error", int(ended.get("exitCode") or 0)
    return _Run(start_s, end_s, max(0, restart), f"ended with exit code {code} ({reason})")


def _same_run(pod: JsonObject, container: str, run: _Run, now_s: float) -> _Run:
    """How a run that was going on stands now."""
    entry = _entry(pod, container) or {}
    running = (entry.get("state") or {}).get("running")
    if running and parse_time(running["startedAt"]).timestamp() == run.start_s:
        return run
    for state in (entry.get("state") or {}, entry.get("lastState") or {}):
        ended = state.get("terminated")
        if ended and ended.get("startedAt") and parse_time(ended["startedAt"]).timestamp() == run.start_s:
            return _ended_run(ended, run.restart)
    # Restarted more than once since: how it ended is forgotten.
    return _Run(run.start_s, now_s, run.restart, "ended")
