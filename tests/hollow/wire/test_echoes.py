"""What the server tells twice is decoded once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from holokube.hollow.wire import echoes
from holokube.hollow.wire.echoes import Echoes, version_in
from holokube.hollow.wire.slim import Slimmer


def pod(version: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "p", "resourceVersion": version, "managedFields": [{"manager": "m"}]}}


def line(version: str, type: str = "MODIFIED") -> bytes:
    return orjson.dumps({"type": type, "object": pod(version)})


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (orjson.dumps(pod("17")), "17"),
        (line("4"), "4"),
        (b"{}", ""),
        (orjson.dumps({"metadata": {"annotations": {"a": '"resourceVersion":"9"'}, "resourceVersion": "5"}}), "5"),
    ],
)
def test_the_version_is_found_in_the_bytes(text: bytes, version: str) -> None:
    assert version_in(text) == version


def test_the_echo_of_an_answer_is_the_answer() -> None:
    known = Echoes(Slimmer())
    kept = known.put(pod("7"))
    assert "managedFields" not in kept["metadata"]
    assert known.take(line("8")) is None
    assert known.take(line("7")) is kept
    assert known.take(line("7")) is None and len(known) == 0


def test_an_echo_is_made_small_once_and_everything_else_whenever_it_comes() -> None:
    seen = []

    class Watched(Slimmer):
        def __call__(self, obj: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
            seen.append(obj)
            return super().__call__(obj, before)

    known = Echoes(Watched())
    kept = known.put(pod("7"))
    assert known.keep(known.take(line("7")) or {}) is kept
    assert len(seen) == 1
    other = pod("8")
    assert known.keep(other) is other
    assert seen[1:] == [other]


def test_answers_that_nobody_tells_of_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echoes, "ECHOES_MAX", 3)
    known = Echoes(Slimmer())
    for number in range(10):
        known.put(pod(str(number)))
    assert len(known) == 3
    assert known.take(line("6")) is None and known.take(line("7")) is not None
