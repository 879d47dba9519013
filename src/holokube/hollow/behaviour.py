"""What a pod's own annotations ask of its life: holokube's, and kwok's for the stages it ships.

kwok's ``jitter-delay`` is the upper end of a uniform delay, not an addition; one that is not above the delay
replaces it. A delay may also be an RFC 3339 time, which counts from now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from holokube.hollow.draws import Draw
from holokube.hollow.usage import usage_problems
from holokube.kube.timeformat import parse_duration, parse_time

PREFIX = "holokube.dev/"
START_DELAY = PREFIX + "start-delay"
READY_DELAY = PREFIX + "ready-delay"
RUN_TIME = PREFIX + "run-time"
STOP_TIME = PREFIX + "stop-time"
EXIT_CODE = PREFIX + "exit-code"
FAILURE = PREFIX + "failure"
FAILURE_CONTAINER = PREFIX + "failure-container"
FAILURE_MESSAGE = PREFIX + "failure-message"
TERMINATION_MESSAGE = PREFIX + "termination-message"

FAILURES = ("ErrImagePull", "OOMKilled", "Error")

_KWOK_SUFFIX = ".stage.kwok.x-k8s.io"
_OOM_EXIT_CODE = 137
TERMINATION_MESSAGE_MAX = 4096
"""A kubelet keeps no more of a termination log."""


class Behaviour(msgspec.Struct, frozen=True):
    """Everything a pod's metadata says about its life; None leaves it to the profile."""

    sandbox_s: float | None = None
    start_s: float | None = None
    ready_s: float | None = None
    init_start_s: float | None = None
    init_run_s: float | None = None
    run_s: float | None = None
    job_run_s: float | None = None
    """A run time that counts for pods of Jobs only, as kwok's pod-complete stage does."""
    stop_s: float | None = None
    exit_code: int = 0
    failure: str = ""
    """``ErrImagePull``, or the reason with which the container ends."""
    failure_container: str = ""
    failure_kind: str = ""
    """``main`` or ``init``: without a name all of these fail, as with kwok; empty means the first main container."""
    failure_message: str = ""
    fails_after_s: float | None = None
    termination_message: str = ""
    """What a container that ends by itself leaves in its termination log."""
    problems: tuple[str, ...] = ()
    """What could not be understood."""


DEFAULT = Behaviour()


def behaviour_of(pod: Mapping[str, Any], now_s: float, draw: Draw) -> Behaviour:
    """Reads labels and annotations; most pods have none of interest and share one object."""
    meta = pod["metadata"]
    annotations: Mapping[str, str] = meta.get("annotations") or {}
    labels: Mapping[str, str] = meta.get("labels") or {}
    is_labelled = _asks(labels)
    if len(annotations) == 1 and RUN_TIME in annotations and not is_labelled:
        # All that the pods of a run's jobs say, each another time.
        try:
            run_s = parse_duration(annotations[RUN_TIME])
        except ValueError:
            run_s = -1.0
        if run_s >= 0:
            return Behaviour(run_s=run_s)
    if not is_labelled and not (annotations and _asks(annotations)):
        return DEFAULT
    reader = _Reader(annotations, labels, now_s, draw, str(meta.get("uid") or ""))
    failure = reader.failure()
    return Behaviour(
        sandbox_s=reader.kwok_delay("pod-create"),
        start_s=_first(reader.duration(START_DELAY), reader.kwok_delay("pod-ready")),
        ready_s=reader.duration(READY_DELAY),
        init_start_s=reader.kwok_delay("pod-init-container-running"),
        init_run_s=reader.kwok_delay("pod-init-container-completed"),
        run_s=reader.duration(RUN_TIME),
        job_run_s=reader.kwok_delay("pod-complete"),
        stop_s=_first(reader.duration(STOP_TIME), reader.kwok_delay("pod-delete")),
        exit_code=failure.exit_code,
        failure=failure.reason,
        failure_container=failure.container,
        failure_kind=failure.kind,
        failure_message=failure.message,
        fails_after_s=failure.after_s,
        termination_message=annotations.get(TERMINATION_MESSAGE, "")[:TERMINATION_MESSAGE_MAX],
        problems=(*reader.problems, *usage_problems(pod)),
    )


def _asks(keys: Mapping[str, str]) -> bool:
    """Whether any key is about a pod's life."""
    for key in keys:  # noqa: SIM110 - any() with a generator costs twice as much
        if key.startswith(PREFIX) or _KWOK_SUFFIX in key:
            return True
    return False


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str = ""
    container: str = ""
    message: str = ""
    exit_code: int = 0
    after_s: float | None = None
    kind: str = ""


# Label of kwok's chaos stages -> containers it is about, and what it says unless told.
_KWOK_FAILURES = {
    "pod-container-running-failed": ("main", "containerFailed", "container failed"),
    "pod-init-container-running-failed": ("init", "initContainerError", "initContainer reported errors"),
}


class _Reader:
    def __init__(
        self, annotations: Mapping[str, str], labels: Mapping[str, str], now_s: float, draw: Draw, uid: str
    ) -> None:
        self._annotations = annotations
        self._labels = labels
        self._now_s = now_s
        self._draw = draw
        self._uid = uid
        self._knows_kwok = any(_KWOK_SUFFIX in key for key in annotations)
        self.problems: list[str] = []

    def duration(self, key: str) -> float | None:
        text = self._annotations.get(key)
        if text is None:
            return None
        try:
            value = parse_duration(text)
        except ValueError:
            try:
                value = parse_time(text).timestamp() - self._now_s
            except ValueError:
                self.problems.append(f"{key}: {text!r} is neither a duration such as 1m30s nor an RFC 3339 time")
                return None
            value = max(0.0, value)
        if value < 0:
            self.problems.append(f"{key}: {text!r} is negative")
            return None
        return value

    def number(self, key: str, default: int) -> int:
        text = self._annotations.get(key)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            value = -1
        if not 0 <= value <= 255:
            self.problems.append(f"{key}: {text!r} is not an exit code from 0 to 255")
            return default
        return value

    def kwok_delay(self, stage: str) -> float | None:
        if not self._knows_kwok:
            return None
        low = self.duration(f"{stage}{_KWOK_SUFFIX}/delay")
        high = self.duration(f"{stage}{_KWOK_SUFFIX}/jitter-delay")
        if high is None:
            return low
        if low is None or high <= low:
            return high
        return round(low + (high - low) * self._draw(f"{self._uid}/{stage}"), 3)

    def failure(self) -> _Failure:
        name = self._annotations.get(FAILURE, "")
        if name and name not in FAILURES:
            self.problems.append(f"{FAILURE}: {name!r} is not one of {', '.join(FAILURES)}")
            name = ""
        if name:
            default = _OOM_EXIT_CODE if name == "OOMKilled" else 1
            return _Failure(
                name,
                self._annotations.get(FAILURE_CONTAINER, ""),
                self._annotations.get(FAILURE_MESSAGE, ""),
                self.number(EXIT_CODE, default),
                self.duration(RUN_TIME),
            )
        for stage in _KWOK_FAILURES:
            if self._labels.get(stage + _KWOK_SUFFIX) == "true":
                return self._kwok_failure(stage + _KWOK_SUFFIX, stage)
        return _Failure(exit_code=self.number(EXIT_CODE, 0))

    def _kwok_failure(self, prefix: str, stage: str) -> _Failure:
        annotations = self._annotations
        kind, reason, message = _KWOK_FAILURES[stage]
        return _Failure(
            annotations.get(f"{prefix}/reason") or reason,
            annotations.get(f"{prefix}/container-name", ""),
            annotations.get(f"{prefix}/message") or message,
            self.number(f"{prefix}/exit-code", 1),
            _first(self.kwok_delay(stage), 1.0),
            kind,
        )
