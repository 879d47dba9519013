"""Turns that are left out."""

from __future__ import annotations

import io

import pytest

from holokube.cluster_autoscaler.loop.resting import Rest
from holokube.lab.run.runner import run_scenario
from holokube.lab.scenario.behaviour import PodBehaviour
from holokube.lab.scenario.curves import Diurnal, Poisson
from holokube.lab.scenario.faults import Fault, NodeSilence, StockOut
from holokube.lab.scenario.model import Scenario, Workload
from holokube.lab.scenario.values import Spread
from tests.lab.run.small_scenarios import autoscaled, job, scenario, web


def two_hours(seed: int) -> Scenario:
    """Nodes come and go, some cannot be had for a while, and one falls silent."""
    work = (
        Workload("web", (web(),), curve=Diurnal(low=2, high=14, noise=0.2, every_s=240.0, period_s=3600.0)),
        Workload(
            "batch", (job(),), arrivals=Poisson(20.0),
            behaviour=PodBehaviour(run_time=Spread(min_s=30.0, max_s=900.0)),
        ),
    )  # fmt: skip
    faults = (Fault(1500.0, StockOut(), until_s=2400.0), Fault(4000.0, NodeSilence(count=1), until_s=4900.0))
    return scenario(*work, minutes=120.0, seed=seed, faults=faults)


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[Rest]:
    """All that are made."""
    made: list[Rest] = []
    begin = Rest.__init__

    def remember(self: Rest, *arguments: object) -> None:
        begin(self, *arguments)  # type: ignore[arg-type]  # handed through
        made.append(self)

    monkeypatch.setattr(Rest, "__init__", remember)
    return made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leaving_turns_out_changes_nothing_that_happens(
    seed: int, rests: list[Rest], monkeypatch: pytest.MonkeyPatch
) -> None:
    resting, restless = io.StringIO(), io.StringIO()
    first = run_scenario(two_hours(seed), autoscaled(), event_log=resting)
    # A good part of the 720 turns of two hours.
    assert rests[0].left_out > 100
    monkeypatch.setattr(Rest, "goes_on", lambda _rest, _now_s: False)
    second = run_scenario(two_hours(seed), autoscaled(), event_log=restless)
    assert resting.getvalue() == restless.getvalue()
    assert (first.nodes, first.pods, first.decisions) == (second.nodes, second.pods, second.decisions)
    assert len(first.nodes) > 3
