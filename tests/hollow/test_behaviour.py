"""What annotations ask of a pod."""

from __future__ import annotations

import pytest

from holokube.hollow.behaviour import DEFAULT, Behaviour, behaviour_of
from tests.builders import pod
from tests.hollow.worlds import DRAW

KWOK = ".stage.kwok.x-k8s.io"


def read(annotations: dict[str, str], labels: dict[str, str] | None = None) -> Behaviour:
    given = pod()
    given["metadata"].update(annotations=annotations, labels=labels or {}, uid="u")
    return behaviour_of(given, 1_767_225_600.0, DRAW)


def test_pods_without_any_share_one_object() -> None:
    assert read({"a": "b"}) is DEFAULT is read({})


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        ({"holokube.dev/start-delay": "1.5s"}, "start_s", 1.5),
        ({"holokube.dev/run-time": "1m"}, "run_s", 60),
        ({"holokube.dev/stop-time": "2s"}, "stop_s", 2),
        ({"holokube.dev/ready-delay": "3s"}, "ready_s", 3),
        ({"holokube.dev/exit-code": "4"}, "exit_code", 4),
        ({"holokube.dev/failure": "OOMKilled"}, "exit_code", 137),
        ({"holokube.dev/failure": "Error"}, "exit_code", 1),
        ({f"pod-ready{KWOK}/delay": "5s"}, "start_s", 5),
        ({f"pod-create{KWOK}/delay": "6s"}, "sandbox_s", 6),
        ({f"pod-complete{KWOK}/delay": "7s"}, "job_run_s", 7),
        ({f"pod-delete{KWOK}/delay": "8s"}, "stop_s", 8),
        ({f"pod-init-container-completed{KWOK}/delay": "9s"}, "init_run_s", 9),
        ({f"pod-init-container-running{KWOK}/delay": "10s"}, "init_start_s", 10),
        ({"holokube.dev/termination-message": "bye"}, "termination_message", "bye"),
        # kwok: a jitter that is not above the delay replaces it.
        ({f"pod-ready{KWOK}/delay": "5s", f"pod-ready{KWOK}/jitter-delay": "2s"}, "start_s", 2),
        ({f"pod-ready{KWOK}/delay": "2026-01-01T00:00:10Z"}, "start_s", 10),
        ({f"pod-ready{KWOK}/delay": "2025-01-01T00:00:10Z"}, "start_s", 0),
    ],
)
def test_annotations_are_read(annotations: dict[str, str], field: str, value: float) -> None:
    behaviour = read(annotations)
    assert getattr(behaviour, field) == value and behaviour.problems == ()


def test_kwoks_jitter_is_the_upper_end() -> None:
    behaviour = read({f"pod-ready{KWOK}/delay": "5s", f"pod-ready{KWOK}/jitter-delay": "9s"})
    assert behaviour.start_s is not None and 5 <= behaviour.start_s < 9


def test_kwoks_failure_labels_are_read() -> None:
    prefix = f"pod-container-running-failed{KWOK}"
    notes = {f"{prefix}/container-name": "c", f"{prefix}/reason": "Boom", f"{prefix}/exit-code": "9",
             f"{prefix}/message": "m", f"{prefix}/delay": "3s"}  # fmt: skip
    behaviour = read(notes, {prefix: "true"})
    assert (behaviour.failure, behaviour.failure_container, behaviour.exit_code) == ("Boom", "c", 9)
    assert (behaviour.failure_message, behaviour.fails_after_s) == ("m", 3)
    assert read(notes, {prefix: "false"}).failure == ""


@pytest.mark.parametrize(
    ("stage", "kind", "reason", "message"),
    [
        ("pod-container-running-failed", "main", "containerFailed", "container failed"),
        ("pod-init-container-running-failed", "init", "initContainerError", "initContainer reported errors"),
    ],
)
def test_kwoks_failures_have_kwoks_defaults(stage: str, kind: str, reason: str, message: str) -> None:
    behaviour = read({}, {f"{stage}{KWOK}": "true"})
    assert (behaviour.failure, behaviour.failure_message, behaviour.failure_kind) == (reason, message, kind)
    assert (behaviour.exit_code, behaviour.fails_after_s, behaviour.failure_container) == (1, 1.0, "")


@pytest.mark.parametrize(
    ("key", "text"),
    [("run-time", "soon"), ("run-time", "-1s"), ("exit-code", "x"), ("exit-code", "256"), ("failure", "Meteor")],
)
def test_what_makes_no_sense_is_named_and_ignored(key: str, text: str) -> None:
    behaviour = read({f"holokube.dev/{key}": text})
    (problem,) = behaviour.problems
    assert problem.startswith(f"holokube.dev/{key}: ") and text in problem
    assert behaviour.run_s is None and behaviour.exit_code == 0 and behaviour.failure == ""


@pytest.mark.parametrize("text", ["5s", "0s", "1h2m3.5s", "-5s", "nonsense", "", "2026-01-01T00:01:00Z"])
@pytest.mark.parametrize("labels", [{}, {"a": "b"}, {f"pod-container-running-failed{KWOK}": "true"}])
def test_a_run_time_alone_is_read_as_among_others(text: str, labels: dict[str, str]) -> None:
    alone = read({"holokube.dev/run-time": text}, labels)
    assert alone == read({"holokube.dev/run-time": text, "a": "b"}, labels)
