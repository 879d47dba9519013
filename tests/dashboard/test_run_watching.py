"""Runs that are looked at: the same result, at any pace."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from holokube.base.clock import WallClock
from holokube.base.pace import Pace
from holokube.dashboard.run_watching import RunPage
from holokube.lab.run.runner import RunningLab, run_scenario
from holokube.lab.scenario.model import Workload
from tests.dashboard.web_client import act, stream
from tests.lab.run.small_scenarios import autoscaled, scenario, web


@pytest.fixture
def page() -> Iterator[RunPage]:
    made = RunPage(WallClock())
    made.start()
    yield made
    made.stop()


def test_looking_on_changes_nothing(page: RunPage) -> None:
    small = scenario(Workload("web", (web(cpu="3", replicas=6),)), minutes=30)
    alone, watched = io.StringIO(), io.StringIO()
    result = run_scenario(small, autoscaled(), event_log=alone)
    labs: list[RunningLab] = []

    def observe(lab: RunningLab) -> None:
        labs.append(lab)
        page.observe(lab)

    page.pace.set_speed(3600.0)
    with stream(page._dashboard.url) as events:
        assert next(events)[0] == "empty"
        assert run_scenario(small, autoscaled(), event_log=watched, observe=observe) == result
        snapshots = [data for kind, data in _until_empty(page, events) if kind == "snapshot"]
    assert snapshots[0]["title"] == "small: cluster-autoscaler" and snapshots[0]["virtual"]
    assert watched.getvalue() == alone.getvalue() != ""
    assert len(labs) == 1


def _until_empty(page: RunPage, events: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    page.end_run()
    for kind, data in events:
        if kind == "empty":
            assert data == {"note": "the run is over"}
            return
        yield kind, data


def test_a_run_waits_while_it_is_paused(page: RunPage) -> None:
    small = scenario(minutes=5)
    page.pace.pause()

    def observe(lab: RunningLab) -> None:
        page.observe(lab)
        # Whoever resumes it does so from the page, while the run stands still.
        clicker.start()

    def click() -> None:
        with stream(page._dashboard.url) as events:
            seen.append(next(data for kind, data in events if kind == "snapshot"))
        act(page._dashboard.url, "pace", {"paused": False})

    seen: list[dict[str, Any]] = []
    clicker = threading.Thread(target=click, daemon=True)
    result = run_scenario(small, autoscaled(), observe=observe)
    clicker.join()
    assert seen[0]["paused"] and seen[0]["can"] == {"pace": True, "faults": True}
    assert result.duration_s == 300.0 and not page.pace.is_paused


def test_the_pace_of_one_run_goes_on_in_the_next() -> None:
    page = RunPage(WallClock(), pace=Pace(100_000.0))
    page.start()
    try:
        for _ in range(2):
            run_scenario(scenario(minutes=5), autoscaled(), observe=page.observe)
            page.end_run()
        assert page.pace.speed == 100_000.0
    finally:
        page.stop()
